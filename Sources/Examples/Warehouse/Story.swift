import Foundation
import Holdfast

/// A stack wired by hand, and what one does with it, told step by step. Each step gives the lines that the program prints.
struct Story {
  private let context: ManagedObjectContext

  // MARK: The stack

  /// Wires model, coordinator and context, from the bottom up.
  init(_ store: StoreDescription) throws {
    // 1. The model says which kinds of objects there are, what they know and how they hang together. It is made once and
    //    does not change afterwards.
    let model = try Story.makeModel()

    // 2. The coordinator opens the store. It stands between the contexts, of which there may be many, and the file.
    let coordinator = try PersistentStoreCoordinator(model: model, store: store)

    // 3. The context is the scratch pad: objects live in it, and what happens to them stays in it until it is saved. The
    //    classes say as what the objects of each entity appear.
    context = try ManagedObjectContext(coordinator: coordinator, classes: [Warehouse.self, Good.self])
  }

  /// The model in code: an entity for each class.
  static func makeModel() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Warehouse", attributes: [AttributeDescription("city", .string)],
        // One warehouse has many goods. When it is deleted they go too.
        relationships: [.toMany("goods", to: "Good", inverse: "warehouse", deleteRule: .cascade)]),
      EntityDescription(
        "Good",
        attributes: [
          AttributeDescription("name", .string), AttributeDescription("kind", .string),
          AttributeDescription("amount", .integer32, default: .int32(0)),
          // A decimal keeps 0.10 as it is; a double does not.
          AttributeDescription("price", .decimal),
        ],
        // The other end of the same relationship. Whoever sets one end has set both.
        relationships: [.toOne("warehouse", to: "Warehouse", inverse: "goods")]),
    ])
  }

  // MARK: The story

  /// Everything in order.
  func lines() throws -> [String] {
    try clear() + stock() + search() + sell() + takeBack() + count() + scrap() + close()
  }

  /// A file may have a warehouse from the last time. Deleting an object is deleting it from its context; the save after it
  /// deletes the rows, and by the delete rule those of the goods.
  private func clear() throws -> [String] {
    let old = try context.fetch(FetchRequest<Warehouse>())
    for warehouse in old { context.delete(warehouse) }
    try context.save()
    return ["Cleared \(old.count) old warehouses."]
  }

  /// Insert, relate, save.
  private func stock() throws -> [String] {
    // A new object belongs to its context at once, and to the store after the next save.
    let warehouse = context.insert(Warehouse.self)
    warehouse.city = "Hamburg"

    for (name, kind, amount, price) in Story.delivery {
      let good = context.insert(Good.self)
      good.name = name
      good.kind = kind
      good.amount = amount
      good.price = price
      good.warehouse = warehouse  // warehouse.goods has it too
    }

    // One save takes all changes of the context or none, and is durable when it returns.
    try context.save()
    return ["Stocked \(warehouse.city) with \(warehouse.goods.count) goods."]
  }

  private static let delivery: [(String, String, Int, Decimal)] = [
    ("Hammer", "tool", 40, price("12.50")), ("Saw", "tool", 15, price("18.90")), ("Anvil", "tool", 2, price("349")),
    ("Nail", "part", 5000, price("0.05")), ("Screw", "part", 3200, price("0.10")), ("Lamp", "lighting", 12, price("24.95")),
  ]

  /// A literal such as 18.90 would take the way through a double. Text does not.
  private static func price(_ text: String) -> Decimal { Decimal(string: text) ?? 0 }

  /// Fetch with a predicate and an order.
  private func search() throws -> [String] {
    // Key paths are checked by the compiler. The store answers with the rows that are wanted, in the order that is wanted.
    let request = FetchRequest<Good>(
      where: \.amount >= 10 && (\Good.warehouse).then(\.city) == "Hamburg",
      sortedBy: [FetchSortDescriptor(\Good.price, ascending: false), FetchSortDescriptor(\Good.name)])
    let goods = try context.fetch(request)
    return ["Of at least 10 there are, the dearest first:"] + goods.map { "  \($0.name): \($0.amount) at \($0.price) euros" }
  }

  /// Change and save.
  private func sell() throws -> [String] {
    guard let hammer = try good(named: "Hammer") else { return ["There is no hammer."] }
    hammer.amount -= 4
    // The context knows what has changed, down to the property.
    let changed = hammer.changedValues().keys.sorted()
    try context.save()
    return ["Sold 4 hammers: changed \(changed.joined(separator: ", ")), \(hammer.amount) are left."]
  }

  /// Change and think better of it.
  private func takeBack() throws -> [String] {
    guard let anvil = try good(named: "Anvil") else { return ["There is no anvil."] }
    anvil.price = 1
    // Everything since the last save is undone; the store has never heard of it.
    context.rollback()
    return ["An anvil for 1 euro was a mistake: it is \(anvil.price) euros again."]
  }

  /// Aggregate: the answer is values, not objects.
  private func count() throws -> [String] {
    let request = DictionaryFetchRequest<Good>(
      columns: ["kind": .property("kind"), "goods": .count(), "pieces": .sum("amount"), "dearest": .maximum("price")],
      groupedBy: ["kind"])
    let groups = try context.fetch(request).map { group in
      "  \(text(group["kind"])): \(text(group["goods"])) goods, \(text(group["pieces"])) pieces, the dearest at \(text(group["dearest"])) euros"
    }
    // What the store does not compute, a loop over objects does.
    let value = try context.fetch(FetchRequest<Good>()).reduce(Decimal(0)) { $0 + $1.price * Decimal($1.amount) }
    return ["By kind:"] + groups + ["All of it is worth \(value) euros."]
  }

  /// Delete one object. The relationship of the other end forgets it.
  private func scrap() throws -> [String] {
    guard let lamp = try good(named: "Lamp"), let warehouse = lamp.warehouse else { return ["There is no lamp."] }
    let before = warehouse.goods.count
    context.delete(lamp)
    try context.save()
    return ["Scrapped the lamps: \(before) goods before, \(warehouse.goods.count) after."]
  }

  /// A second context sees what was saved, with objects of its own.
  private func close() throws -> [String] {
    let coordinator = context.persistentStoreCoordinator
    let other = try ManagedObjectContext(coordinator: coordinator, classes: [Warehouse.self, Good.self])
    let kept = try other.count(for: FetchRequest<Good>())
    try coordinator.close()
    return ["The store keeps \(kept) goods."]
  }

  // MARK: Reading

  private func good(named name: String) throws -> Good? {
    try context.fetch(FetchRequest<Good>(where: \.name == name, limit: 1)).first
  }

  /// A value of a dictionary result as text.
  private func text(_ value: StoreValue?) -> String {
    switch value {
    case .string(let text): text
    case .int64(let number): "\(number)"
    case .decimal(let number): "\(number)"
    default: "?"
    }
  }
}
