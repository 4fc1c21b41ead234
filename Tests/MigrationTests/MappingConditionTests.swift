import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// `TERNARY`, `SUBQUERY`, `CAST` and `MATCHES` in expressions of mapping models.
@Suite struct MappingConditionTests {
  private typealias Property = MappingModelText.Property

  private let old: ManagedObjectModel

  init() throws {
    old = try model(
      EntityDescription(
        "Shop",
        attributes: [
          .init("name", .string, isOptional: true), .init("rate", .double, default: .double(0.1)),
          .init("big", .integer64, default: .int64(.max)), .init("opened", .date, isOptional: true),
        ], relationships: [.toMany("items", to: "Item", inverse: "shop"), .toOne("owner", to: "Maker", inverse: nil)]),
      EntityDescription(
        "Item",
        attributes: [
          .init("price", .decimal, isOptional: true), .init("kind", .string, isOptional: true),
          .init("rank", .integer16, default: .int16(0)),
        ],
        relationships: [
          .toOne("shop", to: "Shop", inverse: "items"), .toOne("maker", to: "Maker", inverse: nil),
          .toMany("parts", to: "Part", inverse: "item"),
        ]),
      EntityDescription("Maker"), EntityDescription("Part", relationships: [.toOne("item", to: "Item", inverse: "parts")]))
  }

  /// A shop with three items, and one without.
  private func fill(_ context: ManagedObjectContext) throws {
    let maker = try context.add("Maker", "m"), shop = try context.add("Shop", "full", ["name": "Corner Shop", "opened": .date(20)])
    try context.add("Shop", "empty")
    let prices: [(tag: String, price: String?, kind: String, rank: Int16, parts: Int)] = [
      ("a", "1.1", "x", 1, 2), ("b", "2.2", "x", 1, 1), ("c", nil, "y", 5, 0),
    ]
    let items = try prices.map { found in
      let price = try found.price.map { StoreValue.decimal(try #require(Decimal(string: $0))) }
      let item = try context.add("Item", found.tag, ["price": price ?? .null, "kind": .string(found.kind), "rank": .int16(found.rank)])
      if found.tag != "c" { try item.setValue(maker, forKey: "maker") }
      try item.setValue(try (0..<found.parts).map { try context.add("Part", "\(found.tag)\($0)") }, forKey: "parts")
      return item
    }
    try shop.setValue(items, forKey: "items")
  }

  private typealias Attribute = (type: AttributeType, name: String, expression: TestExpression)

  private func plan(_ attributes: [Attribute]) throws -> MigrationPlan {
    let folder = TemporaryFolder()
    var text = MappingModelText(), plan = MigrationPlan(from: old)
    text.map("Shop", to: "Shop", attributes: [Property("tag")] + attributes.map { Property($0.name, expression: $0.expression.archive) })
    let new = try model(EntityDescription("Shop", attributes: attributes.map { AttributeDescription($0.name, $0.type, isOptional: true) }))
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
    return plan
  }

  /// Migrates a store, and returns the values of the two shops by attribute.
  private func migrated(_ store: MigratedStore, _ attributes: [Attribute]) throws -> (full: [String: String], empty: [String: String]) {
    let place = MigratedStore.Place(store), plan = try self.plan(attributes)
    try place.fill(old, fill)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    var shops: [String: [String: String]] = [:]
    try place.change(plan.model) { context in
      for shop in try context.fetch(FetchRequest<ManagedObject>(entityName: "Shop")) {
        shops[try Contents.tag(shop)] = Dictionary(
          uniqueKeysWithValues: try attributes.map { ($0.name, Contents.text(try shop.value(forKey: $0.name).storeValue)) })
      }
    }
    return (try #require(shops["full"]), try #require(shops["empty"]))
  }

  private static func path(_ path: String) -> TestExpression { .path(.source, path) }
  private static let items = path("items"), count = path("items.@count"), name = path("name")

  // MARK: Conditions

  /// Conditions with their values for the full and the empty shop.
  private static let conditions: [(predicate: TestPredicate, full: Bool, empty: Bool)] = [
    (.comparison(count, 2, .number(2)), true, false), (.comparison(count, 1, .number(2)), false, true),
    (.comparison(count, 4, .number(3)), true, false), (.comparison(count, 5, .number(3)), false, true),
    (.comparison(.number(2), 0, count), true, false), (.comparison(path("items.@max.price"), 3, .constant(.real(2.2))), true, false),
    (.comparison(path("opened"), 0, .constant(.date(21))), true, false), (.comparison(name, 4, .constant(.null)), false, true),
    (.comparison(path("owner"), 4, .constant(.null)), true, true), (.comparison(.constant(.null), 5, items), true, false),
    (.comparison(name, 8, .text("corner"), options: 1), true, false), (.comparison(name, 8, .text("corner")), false, false),
    (.comparison(name, 9, .text("Shop")), true, false), (.comparison(name, 99, .text("er Sh")), true, false),
    (.comparison(name, 7, .text("*SHOP"), options: 1), true, false), (.comparison(name, 6, .text("[A-Z].* S.+")), true, false),
    (.comparison(name, 6, .text("corner")), false, false), (.comparison(name, 6, .text("CORNER.SHOP"), options: 1), true, false),
    (.comparison(count, 10, .aggregate([.number(3), .number(5)])), true, false),
    (.comparison(name, 10, .constant(.array([.string("a"), .string("corner shop")])), options: 3), true, false),
    (.comparison(count, 100, .aggregate([.number(0), .number(2)])), false, true),
    (.not(.comparison(count, 2, .number(2))), false, true), (.truth(true), true, true), (.truth(false), false, false),
    (.and(.comparison(count, 2, .number(0)), .comparison(name, 5, .constant(.null))), true, false),
    (.or(.comparison(count, 4, .number(0)), .comparison(name, 5, .constant(.null))), true, true),
  ]

  @Test(arguments: MigratedStore.allCases) func aConditionChoosesOneOfTwoValues(_ store: MigratedStore) throws {
    var attributes: [Attribute] = Self.conditions.enumerated().map { number, condition -> Attribute in
      (type: .string, name: "c\(number)", expression: .conditional(condition.predicate, .text("yes"), .text("no")))
    }
    let more = TestExpression.function("add:to:", [Self.count, .number(1)])
    let nested = TestExpression.conditional(.comparison(Self.count, 2, .number(5)), .number(2), more)
    attributes.append((.integer64, "nested", .conditional(.comparison(Self.count, 4, .number(0)), .number(0), nested)))
    let found = try migrated(store, attributes)
    for (number, condition) in Self.conditions.enumerated() {
      #expect(found.full["c\(number)"] == (condition.full ? "yes" : "no"), "\(condition)")
      #expect(found.empty["c\(number)"] == (condition.empty ? "yes" : "no"), "\(condition)")
    }
    #expect(found.full["nested"] == "4" && found.empty["nested"] == "0")
  }

  /// The bug: each comparison with nil was read twice, and so were those within it.
  @Test func nestedComparisonsWithNullAreReadOnce() throws {
    func choosing(_ predicate: TestPredicate) -> TestExpression { .conditional(predicate, .text("yes"), .text("no")) }
    let numbers = (0..<10_000).map { TestExpression.constant(.integer(Int64($0))) }
    var nested = choosing(.comparison(Self.count, 10, .aggregate(numbers)))
    for _ in 0..<14 { nested = choosing(.comparison(nested, 5, .constant(.null))) }
    let found = try migrated(.json, [(.string, "nested", nested)])
    #expect(found.full["nested"] == "yes" && found.empty["nested"] == "yes")
  }

  // MARK: Subqueries

  private static func chosen(_ predicate: TestPredicate) -> TestExpression { .subquery(items, "i", predicate) }
  private static func item(_ path: String) -> TestExpression { .path(.variable("i"), path) }
  private static let isX = TestPredicate.comparison(item("kind"), 4, .text("x"))

  @Test(arguments: MigratedStore.allCases) func aSubqueryChoosesObjects(_ store: MigratedStore) throws {
    let hasParts = TestPredicate.comparison(
      .path(.subquery(Self.item("parts"), "p", .comparison(.path(.variable("p"), "item"), 5, .constant(.null))), "@count"), 2, .number(0))
    let found = try migrated(
      store,
      [
        (.integer64, "dear", .path(Self.chosen(.comparison(Self.item("price"), 2, .constant(.real(1.5)))), "@count")),
        (.integer64, "kinds", .function("count:", [Self.chosen(Self.isX)])),
        (.integer64, "ranks", .path(Self.chosen(Self.isX), "@sum.rank")),
        (.integer64, "union", .function("sum:", [.path(Self.chosen(.not(Self.isX)), "@unionOfObjects.rank")])),
        (.integer64, "parts", .path(Self.chosen(.comparison(Self.item("rank"), 4, .number(1))), "parts.@count")),
        (.integer64, "unmade", .path(Self.chosen(.comparison(Self.item("maker"), 4, .constant(.null))), "@count")),
        (.integer64, "nested", .path(Self.chosen(hasParts), "@count")),
        (.integer64, "twice", .path(.subquery(Self.chosen(Self.isX), "i", hasParts), "@count")),
      ])
    #expect(
      found.full == [
        "dear": "1", "kinds": "2", "ranks": "2", "union": "5", "parts": "3", "unmade": "1", "nested": "2", "twice": "2",
      ])
    #expect(Set(found.empty.values) == ["0"], "\(found.empty)")
  }

  @Test(arguments: MigratedStore.allCases) func aSubqueryChoosesDestinations(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), folder = TemporaryFolder()
    let new = try model(
      EntityDescription("Shop", relationships: [.toMany("best", to: "Item", inverse: nil), .toOne("any", to: "Item", inverse: nil)]),
      EntityDescription("Item"))
    func destinations(_ objects: TestExpression) -> TestExpression {
      .method(.variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:", [.text("ItemToItem"), objects])
    }
    let isBest = TestPredicate.comparison(Self.item("rank"), 2, .number(1))
    var text = MappingModelText(), plan = MigrationPlan(from: old)
    text.map("Item", to: "Item", attributes: [Property("tag")])
    text.map(
      "Shop", to: "Shop", attributes: [Property("tag")],
      relationships: [
        Property("best", expression: destinations(Self.chosen(isBest)).archive),
        Property(
          "any",
          expression: TestExpression.conditional(
            .comparison(Self.count, 2, .number(0)), destinations(Self.chosen(isBest)), .constant(.null)
          ).archive),
      ])
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
    try place.fill(old, fill)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(
      try place.contents(new) == ["Item a:", "Item b:", "Item c:", "Shop empty: any=nil best=[]", "Shop full: any=c best=[c]"])
  }

  // MARK: Casts

  private static func cast(_ expression: TestExpression, _ type: String) -> TestExpression {
    .function("castObject:toType:", [expression, .text(type)])
  }

  @Test(arguments: MigratedStore.allCases) func valuesAreCast(_ store: MigratedStore) throws {
    let found = try migrated(
      store,
      [
        (.string, "whole", Self.cast(Self.path("big"), "NSString")),
        (.string, "decimal", Self.cast(Self.path("items.@max.price"), "NSString")),
        (.string, "name", Self.cast(Self.name, "NSString")), (.integer64, "digits", Self.cast(.text("-42"), "NSNumber")),
        (.double, "fraction", Self.cast(.text("1.5"), "NSNumber")), (.double, "seconds", Self.cast(Self.path("opened"), "NSNumber")),
        (.decimal, "exact", Self.cast(.text("1.10"), "NSDecimalNumber")),
        (.decimal, "rate", Self.cast(Self.path("rate"), "NSDecimalNumber")),
        (.date, "date", Self.cast(Self.count, "NSDate")), (.date, "same", Self.cast(Self.path("opened"), "NSDate")),
      ])
    #expect(
      found.full == [
        "whole": "9223372036854775807", "decimal": "2.2", "name": "Corner Shop", "digits": "-42", "fraction": "1.5", "seconds": "20.0",
        "exact": "1.1", "rate": "0.1", "date": "@3.0", "same": "@20.0",
      ])
    #expect(["decimal", "name", "seconds", "same"].allSatisfy { found.empty[$0] == "nil" } && found.empty["date"] == "@0.0")
  }

  /// Core Data's result would depend on the system, or be another one than the text shows.
  private static let failures: [(expression: TestExpression, reason: String)] = [
    (cast(path("rate"), "NSString"), "can't be cast to NSString"), (cast(path("opened"), "NSString"), "can't be cast to NSString"),
    (cast(.text("010"), "NSNumber"), "can't be cast to NSNumber"), (cast(.text("ten"), "NSNumber"), "can't be cast to NSNumber"),
    (cast(.text(String(repeating: "9", count: 400) + ".5"), "NSNumber"), "can't be cast to NSNumber"),
    (cast(.text("1,5"), "NSDecimalNumber"), "can't be cast to NSDecimalNumber"),
    (cast(.text("tomorrow"), "NSDate"), "can't be cast to NSDate"),
    (.conditional(.comparison(path("rate"), 4, .text("high")), .number(1), .number(2)), "values of different types"),
    (.conditional(.comparison(path("big"), 8, .number(9)), .number(1), .number(2)), "values of different types"),
    (.conditional(.comparison(path("rate"), 6, .text("0.*")), .number(1), .number(2)), "a value that isn't text"),
  ]

  @Test(arguments: failures.indices) func aValueWithoutAnExactResultEndsTheMigration(index: Int) throws {
    let place = MigratedStore.Place(.json), (expression, reason) = Self.failures[index]
    let plan = try self.plan([(.string, "result", expression)])
    try place.fill(old, fill)
    let before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
    #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["Shop.result"], "\(error as Any)")
    #expect(error?.problems.first?.reason.contains(reason) == true, "\(error as Any)")
    #expect(try place.folder.snapshot() == before)
  }

  @Test func whatIsNotSupportedIsNamedBeforeAStoreIsTouched() throws {
    func choosing(_ predicate: TestPredicate) -> TestExpression { .conditional(predicate, .number(1), .number(2)) }
    let wrong: [TestExpression] = [
      Self.cast(Self.name, "NSUUID"), Self.cast(Self.name, "Class"), .function("castObject:toType:", [Self.name]),
      choosing(.comparison(Self.path("items.kind"), 4, .text("x"), modifier: 2)),
      choosing(.comparison(Self.path("items.kind"), 4, .text("x"))),
      choosing(.comparison(Self.name, 4, .text("x"), options: 8)), choosing(.comparison(Self.name, 7, .text("a*b"))),
      choosing(.comparison(Self.name, 6, .text("("))), choosing(.comparison(Self.name, 6, .text("a"), options: 2)),
      choosing(.comparison(Self.name, 6, Self.path("big"))), choosing(.comparison(Self.name, 10, .text("x"))),
      choosing(.comparison(Self.count, 100, .aggregate([.number(1)]))), choosing(.comparison(Self.path("owner"), 4, .number(3))),
      .conditional(.truth(true), Self.items, .number(2)), .conditional(.truth(true), .number(1), Self.path("colour")),
      Self.chosen(Self.isX), .path(Self.chosen(Self.isX), "kind"), .path(.subquery(Self.path("owner"), "o", .truth(true)), "@count"),
      .path(.subquery(Self.items, "i", .comparison(Self.item("rank"), 2, Self.count)), "@count"),
      .path(.subquery(Self.items, "i", .comparison(Self.item("colour"), 4, .number(1))), "@count"),
      .path(.path(.source, "items.@count"), "more"), .subquery(Self.name, "n", .truth(true)),
    ]
    let attributes = wrong.enumerated().map { number, expression -> Attribute in
      (type: .integer64, name: "wrong\(number)", expression: expression)
    }
    let error = #expect(throws: MigrationError.self) { try plan(attributes) }
    #expect(error?.code == .invalidMappingModel)
    let named = Set(error?.problems.map(\.path) ?? [])
    for number in wrong.indices { #expect(named.contains("Shop.wrong\(number)"), "\(wrong[number])") }
    for problem in error?.problems ?? [] { #expect(problem.reason.hasSuffix(".") && problem.reason.count > 30, "\(problem)") }
  }
}
