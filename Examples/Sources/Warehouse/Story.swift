import Foundation
import Holdfast

/// A stack created by hand, used step by step. Each step returns the lines that the program prints.
struct Story {
  private let context: ManagedObjectContext

  // MARK: The stack

  /// Creates model, coordinator and context, in this order.
  init(_ store: StoreDescription) throws {
    // 1. The model has the entities, their attributes and their relationships, here from the classes. It never changes.
    let model = try ManagedObjectModel.declared(by: [Warehouse.self, Good.self])

    // 2. The coordinator opens the store. It connects the contexts, one or more, with the store.
    let coordinator = try PersistentStoreCoordinator(model: model, store: store)

    // 3. The context holds the objects and their changes until it's saved. The classes determine the type of each entity's
    //    objects.
    context = try ManagedObjectContext(coordinator: coordinator, classes: [Warehouse.self, Good.self])
  }

  // MARK: The story

  /// Runs all steps in order.
  func lines() throws -> [String] {
    try clear() + stock() + search() + sell() + takeBack() + count() + scrap() + close()
  }

  /// Deletes the warehouses of an earlier run. Deleting an object marks it in its context; the next save deletes its row and, because
  /// of the delete rule, the rows of its goods.
  private func clear() throws -> [String] {
    let old = try context.fetch(Warehouse.self)
    for warehouse in old { context.delete(warehouse) }
    try context.save()
    return ["Deleted \(old.count) old warehouses."]
  }

  /// Insert, relate, save.
  private func stock() throws -> [String] {
    // A new object is in its context at once, and in the store after the next save.
    let warehouse = context.insert(Warehouse.self) { $0.city = "Hamburg" }

    for (name, kind, amount, price) in Story.delivery {
      let good = Good(context: context, price: price)  // prices have no default, so the compiler asks for one
      (good.name, good.kind, good.amount) = (name, kind, amount)
      good.warehouse = warehouse  // warehouse.goods contains it at once
    }

    // A save is all or nothing, and durable when it returns.
    try context.save()
    return ["Stocked \(warehouse.city) with \(warehouse.goods.count) goods."]
  }

  private static let delivery: [(String, String, Int, Decimal)] = [
    ("Hammer", "tool", 40, price("12.50")), ("Saw", "tool", 15, price("18.90")), ("Anvil", "tool", 2, price("349")),
    ("Nail", "part", 5000, price("0.05")), ("Screw", "part", 3200, price("0.10")), ("Lamp", "lighting", 12, price("24.95")),
  ]

  /// A decimal from text. A literal such as 18.90 would be converted through a double.
  private static func price(_ text: String) -> Decimal { Decimal(string: text) ?? 0 }

  /// Fetch with a predicate and sort descriptors.
  private func search() throws -> [String] {
    // The compiler checks the condition. The result contains the matching objects, sorted.
    let goods = try context.fetch(Good.self, sortedBy: [.descending(\.price), .ascending(\.name)]) {
      $0.amount >= 10 && $0.warehouse.city == "Hamburg"
    }
    return ["At least 10 in stock, most expensive first:"] + goods.map { "  \($0.name): \($0.amount) at \($0.price) euros" }
  }

  /// Change and save.
  private func sell() throws -> [String] {
    guard let hammer = try good(named: "Hammer") else { return ["No hammer found."] }
    hammer.amount -= 4
    // The context tracks changes of each property.
    let changed = hammer.changedValues().keys.sorted()
    try context.save()
    return ["Sold 4 hammers: changed \(changed.joined(separator: ", ")), \(hammer.amount) left."]
  }

  /// Change and roll back.
  private func takeBack() throws -> [String] {
    guard let anvil = try good(named: "Anvil") else { return ["No anvil found."] }
    anvil.price = 1
    // Discards all changes since the last save. The store isn't involved.
    context.rollback()
    return ["Rolled back an anvil for 1 euro: it costs \(anvil.price) euros again."]
  }

  /// Aggregate: the result contains values instead of objects.
  private func count() throws -> [String] {
    let kinds = try context.aggregate(Good.self, by: \.kind) { ($0.count(), $0.sum(\.amount), $0.maximum(\.price)) }
    let groups = kinds.map { kind, values in
      let (goods, pieces, dearest) = values
      return "  \(kind): \(goods) goods, \(pieces) pieces, at most \(dearest ?? 0) euros each"
    }
    // Other values are computed from the objects.
    let value = try context.fetch(Good.self).reduce(Decimal(0)) { $0 + $1.price * Decimal($1.amount) }
    return ["By kind:"] + groups + ["Total value: \(value) euros."]
  }

  /// Delete one object. The relationship at the other end no longer contains it.
  private func scrap() throws -> [String] {
    guard let lamp = try good(named: "Lamp"), let warehouse = lamp.warehouse else { return ["No lamp found."] }
    let before = warehouse.goods.count
    context.delete(lamp)
    try context.save()
    return ["Scrapped the lamps: \(before) goods before, \(warehouse.goods.count) after."]
  }

  /// Count in a second context, which sees what was saved.
  private func close() throws -> [String] {
    let coordinator = context.persistentStoreCoordinator
    let other = try ManagedObjectContext(coordinator: coordinator, classes: [Warehouse.self, Good.self])
    let kept = try other.count(Good.self)
    try coordinator.close()
    return ["The store contains \(kept) goods."]
  }

  // MARK: Reading

  private func good(named name: String) throws -> Good? {
    try context.fetchOne(Good.self) { $0.name == name }
  }
}
