import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Expressions in mapping models that compute values.
@Suite struct MappingExpressionTests {
  private typealias Property = MappingModelText.Property

  private let old: ManagedObjectModel

  init() throws {
    old = try model(
      EntityDescription(
        "Shop", attributes: [.init("rate", .double, default: .double(0.1)), .init("big", .integer64, default: .int64(.max))],
        relationships: [.toMany("items", to: "Item", inverse: "shop"), .toOne("owner", to: "Maker", inverse: nil)]),
      EntityDescription(
        "Item",
        attributes: [
          .init("price", .decimal, isOptional: true), .init("amount", .integer32, isOptional: true),
          .init("name", .string, isOptional: true), .init("weight", .double, isOptional: true), .init("sold", .date, isOptional: true),
          .init("kind", .string, isOptional: true),
          .init("rank", .integer16, default: .int16(0)), .init("photo", .binaryData, isOptional: true),
        ],
        relationships: [
          .toOne("shop", to: "Shop", inverse: "items"), .toOne("maker", to: "Maker", inverse: nil),
          .toMany("parts", to: "Part", inverse: "item"),
        ]),
      EntityDescription("Maker", attributes: [.init("size", .integer16, default: .int16(0))]),
      EntityDescription("Part", relationships: [.toOne("item", to: "Item", inverse: "parts")]))
  }

  /// A shop with three items, and one without.
  private func fill(_ context: ManagedObjectContext) throws {
    func item(_ tag: String, _ values: [String: StoreValue], _ objects: [String: ManagedObject], parts: Int) throws -> ManagedObject {
      let item = try context.add("Item", tag, values)
      for (name, object) in objects { try item.setValue(object, forKey: name) }
      try item.setValue(try (0..<parts).map { try context.add("Part", "\(tag)\($0)") }, forKey: "parts")
      return item
    }
    let maker = try context.add("Maker", "m", ["size": .int16(5)]), shop = try context.add("Shop", "full")
    try context.add("Shop", "empty")
    let decimals = try ["1.1", "2.2"].map { try #require(Decimal(string: $0)) }
    let items = [
      try item(
        "a",
        [
          "price": .decimal(decimals[0]), "amount": .int32(3), "name": "b", "weight": .double(1e16), "sold": .date(10), "kind": "x",
          "rank": .int16(1),
        ], ["maker": maker], parts: 2),
      try item(
        "b",
        ["price": .decimal(decimals[1]), "name": "a", "weight": .double(0.5), "sold": .date(20), "kind": "x", "rank": .int16(1)],
        ["maker": maker], parts: 1),
      try item("c", ["amount": .int32(4), "weight": .double(-1e16), "kind": "y", "rank": .int16(5)], [:], parts: 0),
    ]
    try shop.setValue(items, forKey: "items")
  }

  /// The new shops, each with one attribute for an expression.
  private func shops(_ attributes: [(type: AttributeType, source: Property)]) throws -> ManagedObjectModel {
    try model(EntityDescription("Shop", attributes: attributes.map { AttributeDescription($0.source.name, $0.type, isOptional: true) }))
  }

  private func plan(_ attributes: [(type: AttributeType, source: Property)]) throws -> MigrationPlan {
    var text = MappingModelText(), plan = MigrationPlan(from: old)
    let folder = TemporaryFolder()
    text.map("Shop", to: "Shop", attributes: [Property("tag")] + attributes.map(\.source))
    try plan.add(try shops(attributes), mappingModelsAt: [try text.write(to: folder)])
    return plan
  }

  /// Migrates a store, and returns the values of the two shops by attribute.
  private func migrated(
    _ store: MigratedStore, _ attributes: [(type: AttributeType, source: Property)]
  ) throws -> (full: [String: String], empty: [String: String]) {
    let place = MigratedStore.Place(store), plan = try self.plan(attributes)
    try place.fill(old, fill)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    var shops: [String: [String: String]] = [:]
    try place.change(plan.model) { context in
      for shop in try context.fetch(FetchRequest<ManagedObject>(entityName: "Shop")) {
        shops[try Contents.tag(shop)] = Dictionary(
          uniqueKeysWithValues: try attributes.map { ($0.source.name, Contents.text(try shop.value(forKey: $0.source.name).storeValue)) })
      }
    }
    return (try #require(shops["full"]), try #require(shops["empty"]))
  }

  private func path(_ name: String, _ path: String) -> Property { Property(name, path: "$source." + path) }

  private func call(_ name: String, _ selector: String, _ arguments: TestExpression...) -> Property {
    Property(name, expression: TestExpression.function(selector, arguments).archive)
  }

  private func list(_ path: String) -> TestExpression { .path(.source, "items." + path) }

  // MARK: Several objects

  /// As Core Data documents it: nil counts as 0 in sums and averages, extremes ignore it, and values are read of each object. The sum of the
  /// weights is rounded once; adding them one by one would give 0 in some orders.
  @Test(arguments: MigratedStore.allCases) func operatorsReadAValueOfEachObject(_ store: MigratedStore) throws {
    let found = try migrated(
      store,
      [
        (.decimal, path("price", "items.@sum.price")), (.decimal, path("meanPrice", "items.@avg.price")),
        (.integer64, path("amount", "items.@sum.amount")), (.double, path("meanAmount", "items.@avg.amount")),
        (.double, path("weight", "items.@sum.weight")), (.integer32, path("least", "items.@min.amount")),
        (.string, path("first", "items.@min.name")), (.date, path("last", "items.@max.sold")),
        (.integer64, path("makers", "items.@sum.maker.size")), (.integer64, path("makerSize", "items.maker.@sum.size")),
        (.integer64, path("parts", "items.@sum.parts.@count")), (.integer64, path("most", "items.@max.parts.@count")),
      ])
    #expect(
      found.full == [
        "price": "3.3", "meanPrice": "1.1", "amount": "7", "meanAmount": "\(7.0 / 3)", "weight": "0.5", "least": "3", "first": "a",
        "last": "@20.0", "makers": "10", "makerSize": "5", "parts": "3", "most": "2",
      ])
    #expect(
      found.empty == [
        "price": "0", "meanPrice": "nil", "amount": "0", "meanAmount": "nil", "weight": "0.0", "least": "nil", "first": "nil",
        "last": "nil", "makers": "0", "makerSize": "0", "parts": "0", "most": "nil",
      ])
  }

  @Test(arguments: MigratedStore.allCases) func functionsReadTheValuesOfAUnion(_ store: MigratedStore) throws {
    let count = TestExpression.function("count:", [.path(.source, "items")])
    let kinds = TestExpression.function("count:", [list("@distinctUnionOfObjects.kind")])
    let found = try migrated(
      store,
      [
        (.integer64, call("count", "count:", .path(.source, "items"))),
        (.integer64, call("kinds", "count:", list("@distinctUnionOfObjects.kind"))),
        (.integer64, call("allKinds", "count:", list("@unionOfObjects.kind"))),
        (.integer64, call("ranks", "sum:", list("@distinctUnionOfObjects.rank"))),
        (.integer64, call("allRanks", "sum:", list("@unionOfObjects.rank"))),
        (.double, call("mean", "average:", list("@unionOfObjects.rank"))),
        (.integer16, call("least", "min:", list("@unionOfObjects.rank"))),
        (.string, call("last", "max:", list("@unionOfObjects.kind"))),
        (.integer64, Property("rest", expression: TestExpression.function("from:subtract:", [count, kinds]).archive)),
      ])
    #expect(
      found.full == [
        "count": "3", "kinds": "2", "allKinds": "3", "ranks": "6", "allRanks": "7", "mean": "\(7.0 / 3)", "least": "1", "last": "y",
        "rest": "1",
      ])
    #expect(
      found.empty == [
        "count": "0", "kinds": "0", "allKinds": "0", "ranks": "0", "allRanks": "0", "mean": "nil", "least": "nil", "last": "nil",
        "rest": "0",
      ])
  }

  /// Core Data raises an exception.
  @Test(arguments: MigratedStore.allCases) func aUnionOfMissingValuesEndsTheMigration(_ store: MigratedStore) throws {
    let error = #expect(throws: MigrationError.self) {
      try migrated(store, [(.integer64, call("amounts", "sum:", list("@unionOfObjects.amount")))])
    }
    #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["Shop.amounts"], "\(error as Any)")
    #expect(error?.problems.first?.reason.contains("has no value") == true)
  }

  @Test func pathsAndFunctionsThatDoNotFitAreNamed() throws {
    let wrong: [(type: AttributeType, source: Property)] = [
      (.double, path("text", "items.@sum.name")), (.double, path("bytes", "items.@max.photo")), (.double, path("nothing", "items.@sum")),
      (.double, path("objects", "items.@avg.parts")), (.double, path("one", "owner.@sum.size")),
      (.double, path("unknown", "items.@max.colour")), (.double, path("list", "items.@unionOfObjects.price")),
      (.double, path("behind", "items.amount.@sum")), (.double, call("notUnited", "sum:", list("amount"))),
      (.double, call("ofText", "average:", list("@unionOfObjects.name"))), (.double, call("ofOne", "count:", .path(.source, "owner"))),
      (.double, call("ofConstant", "max:", .constant(.integer(3)))), (.double, call("two", "max:", list("@unionOfObjects.rank"), .source)),
      (.double, call("argument", "add:to:", list("@unionOfObjects.rank"), .constant(.integer(1)))),
    ]
    let error = #expect(throws: MigrationError.self) { try plan(wrong) }
    #expect(error?.code == .invalidMappingModel)
    #expect(Set(error?.problems.map(\.path) ?? []) == Set(wrong.map { "Shop." + $0.source.name }))
    for problem in error?.problems ?? [] { #expect(problem.reason.hasSuffix(".") && problem.reason.count > 30, "\(problem)") }
  }

  /// A path may return to an entity, so it can have any length.
  @Test func longPathsAreNamed() throws {
    func path(_ part: String, _ count: Int, _ rest: String) -> Property {
      self.path("long", String(repeating: part, count: count) + rest)
    }
    // The most operators and names.
    for source in [path("items.@max.shop.", 8, "rate"), path("items.shop.", 23, "items.shop.@max.rate")] {
      #expect(throws: Never.self) { try plan([(.double, source)]) }
    }
    for source in [
      path("items.@max.shop.", 9, "rate"), path("items.@max.shop.", 100_000, "rate"), path("items.@unionOfObjects.shop.", 40, "rate"),
      path("items.shop.", 24, "items.@max.rank"),
    ] {
      let error = #expect(throws: MigrationError.self) { try plan([(.double, source)]) }
      #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["Shop.long"])
    }
  }

  // MARK: Arithmetic

  private static let price = TestExpression.path(.source, "items.@max.price")
  private static let amount = TestExpression.path(.source, "items.@max.amount")
  private static let rate = TestExpression.path(.source, "rate")
  private static let big = TestExpression.path(.source, "big")

  @Test(arguments: MigratedStore.allCases) func arithmeticWithDecimalsIsDecimal(_ store: MigratedStore) throws {
    let found = try migrated(
      store,
      [
        (.decimal, call("product", "multiply:by:", Self.price, Self.amount)), (.decimal, call("sum", "add:to:", Self.price, Self.rate)),
        (.decimal, call("difference", "from:subtract:", Self.amount, Self.price)),
        (.decimal, call("quotient", "divide:by:", Self.price, Self.amount)),
        (.decimal, call("constant", "multiply:by:", Self.price, .constant(.real(1.2)))),
        (.decimal, call("beyond", "add:to:", Self.price, Self.big)),
        (.integer64, call("whole", "divide:by:", Self.amount, .constant(.integer(3)))),
        (.double, call("real", "multiply:by:", Self.rate, .constant(.integer(3)))),
      ])
    #expect(
      found.full == [
        "product": "8.8", "sum": "2.3", "difference": "1.8", "quotient": "0.55", "constant": "2.64", "beyond": "9223372036854775809.2",
        "whole": "1", "real": "\(0.1 * 3)",
      ])
    // Without one of the numbers, there is no result.
    #expect(
      found.empty == [
        "product": "nil", "sum": "nil", "difference": "nil", "quotient": "nil", "constant": "nil", "beyond": "nil", "whole": "nil",
        "real": "\(0.1 * 3)",
      ])
  }

  private static let failures: [(String, TestExpression, TestExpression, String)] = [
    ("divide:by:", price, .constant(.integer(0)), "A divisor is 0."), ("divide:by:", amount, .constant(.integer(0)), "A divisor is 0."),
    ("divide:by:", rate, .constant(.real(0)), "A divisor is 0."), ("add:to:", big, .constant(.integer(1)), "The result is too large."),
    ("multiply:by:", big, big, "The result is too large."),
    ("multiply:by:", .constant(.real(1e300)), .constant(.real(1e300)), "The result is too large"),
    ("multiply:by:", rate, big, "An argument is too large"), ("add:to:", rate, .constant(.string("3")), "An argument isn't a number."),
  ]

  @Test(arguments: failures)
  func arithmeticWithoutAResultEndsTheMigration(call: String, left: TestExpression, right: TestExpression, reason: String) throws {
    let error = #expect(throws: MigrationError.self) { try migrated(.json, [(.decimal, self.call("result", call, left, right))]) }
    #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["Shop.result"], "\(error as Any)")
    #expect(error?.problems.first?.reason.contains(reason) == true, "\(error as Any)")
  }
}
