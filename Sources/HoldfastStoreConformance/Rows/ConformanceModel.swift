import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The models that the kit uses.
enum ConformanceModel {
  /// An entity with an optional attribute of each type; people, companies, clubs and passports with relationships of every shape.
  static let general = make(generalEntities)

  /// The same model with one more attribute. A store created with ``general`` must refuse it.
  static let changed = make(
    generalEntities.map { entity in
      var entity = entity
      if entity.name == "Club" { entity.attributes.append(AttributeDescription("founded", .date, isOptional: true)) }
      return entity
    })

  private static let generalEntities = [
    EntityDescription(
      "Sample", attributes: AttributeType.storedCases.map { AttributeDescription(attributeName($0), $0, isOptional: true) }),
    EntityDescription(
      "Person",
      attributes: [
        AttributeDescription("age", .integer16, isOptional: true), AttributeDescription("city", .string, isOptional: true),
        AttributeDescription("code", .string, isOptional: true), AttributeDescription("name", .string),
        AttributeDescription("number", .integer64, isOptional: true),
      ],
      relationships: [
        .toOne("employer", to: "Company", inverse: "employees"), .toOne("passport", to: "Passport", inverse: "holder"),
        .toMany("friends", to: "Person", inverse: "friendOf"), .toMany("friendOf", to: "Person", inverse: "friends"),
        .toMany("clubs", to: "Club", inverse: "members"),
      ],
      uniquenessConstraints: [["code"], ["number"], ["city", "age"]]),
    EntityDescription(
      "Company", attributes: [AttributeDescription("name", .string), AttributeDescription("size", .integer32, isOptional: true)],
      relationships: [.toMany("employees", to: "Person", inverse: "employer")]),
    EntityDescription(
      "Club", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("members", to: "Person", inverse: "clubs")]),
    EntityDescription(
      "Passport", attributes: [AttributeDescription("number", .string)],
      relationships: [.toOne("holder", to: "Person", inverse: "passport")]),
  ]

  /// The attribute of `Sample` with a type.
  static func attributeName(_ type: AttributeType) -> String { "a_\(type.rawValue)" }

  /// An entity with more than 64 properties, so that one bit for each of them doesn't fit in a word.
  static let wide = make([
    EntityDescription("Wide", attributes: (0..<70).map { AttributeDescription("n\($0 / 10)\($0 % 10)", .integer64, isOptional: true) })
  ])

  /// An entity with a unique number, which can be NaN.
  static let measurements = make([
    EntityDescription(
      "Measurement", attributes: [AttributeDescription("ratio", .double, isOptional: true)], uniquenessConstraints: [["ratio"]])
  ])

  /// Seats, each with a number that no other seat in its hall has.
  static let seats = make([
    EntityDescription(
      "Hall", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("seats", to: "Seat", inverse: "hall")]),
    EntityDescription(
      "Seat", attributes: [AttributeDescription("number", .integer64, isOptional: true)],
      relationships: [.toOne("hall", to: "Hall", inverse: "seats")], uniquenessConstraints: [["hall", "number"]]),
  ])

  /// A model for a delete rule. Hubs, which the cases delete, have relationships of every shape to spokes, to each other and to `Above`.
  static func deleteRule(_ rule: DeleteRule) -> ManagedObjectModel {
    make([
      EntityDescription(
        "Hub", attributes: [AttributeDescription("name", .string)],
        relationships: [
          .toOne("single", to: "Spoke", inverse: "singleHub", deleteRule: rule),
          .toMany("many", to: "Spoke", inverse: "manyHub", deleteRule: rule),
          .toMany("linked", to: "Spoke", inverse: "linkedHubs", deleteRule: rule),
          .toMany("next", to: "Hub", inverse: "previous", deleteRule: rule),
          .toMany("previous", to: "Hub", inverse: "next", deleteRule: rule),
          .toMany("above", to: "Above", inverse: "hubs", deleteRule: rule),
        ]),
      EntityDescription(
        "Spoke", attributes: [AttributeDescription("name", .string)],
        relationships: [
          .toOne("singleHub", to: "Hub", inverse: "single"), .toOne("manyHub", to: "Hub", inverse: "many"),
          .toMany("linkedHubs", to: "Hub", inverse: "linked"),
        ]),
      // The name sorts before `Hub`, so the links are named by this side of the relationship.
      EntityDescription(
        "Above", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("hubs", to: "Hub", inverse: "above")]),
    ])
  }

  /// Baskets with values derived from their items and their shop.
  static let derived = make([
    EntityDescription(
      "Basket",
      attributes: [
        AttributeDescription("name", .string, isOptional: true), AttributeDescription("code", .integer64, isOptional: true),
        .derived("count", .integer16, "items.@count"), .derived("weight", .integer64, "items.weight.@sum"),
        .derived("price", .decimal, "items.price.@sum"), .derived("length", .double, "items.length.@sum"),
        .derived("shopName", .string, "shop.name"), .derived("key", .string, "canonical:(name)"),
      ], relationships: [.toMany("items", to: "Item", inverse: "basket"), .toOne("shop", to: "Shop", inverse: "baskets")],
      uniquenessConstraints: [["code"]]),
    EntityDescription("BigBasket", superentity: "Basket", attributes: [.derived("again", .integer32, "items.@count")]),
    EntityDescription(
      "Item",
      attributes: [
        AttributeDescription("weight", .integer32, isOptional: true), AttributeDescription("price", .decimal, isOptional: true),
        AttributeDescription("length", .double, isOptional: true),
      ], relationships: [.toOne("basket", to: "Basket", inverse: "items")]),
    EntityDescription(
      "Shop", attributes: [AttributeDescription("name", .string, isOptional: true)],
      relationships: [.toMany("baskets", to: "Basket", inverse: "shop")]),
  ])

  /// An entity whose derived attributes come after more than 64 others.
  static let wideDerived = make([
    EntityDescription(
      "Wide",
      attributes: (0..<66).map { AttributeDescription("n\($0 / 10)\($0 % 10)", .integer64, isOptional: true) } + [
        AttributeDescription.derived("zCount", .integer64, "parts.@count"), AttributeDescription.derived("zShop", .string, "shop.name"),
        AttributeDescription.derived("zTotal", .integer64, "parts.weight.@sum"),
      ], relationships: [.toMany("parts", to: "Part", inverse: "whole"), .toOne("shop", to: "Shop", inverse: "stock")]),
    EntityDescription(
      "Part", attributes: [AttributeDescription("weight", .integer32, isOptional: true)],
      relationships: [.toOne("whole", to: "Wide", inverse: "parts")]),
    EntityDescription(
      "Shop", attributes: [AttributeDescription("name", .string, isOptional: true)],
      relationships: [.toMany("stock", to: "Wide", inverse: "shop")]),
  ])

  /// Notes, whose code, name and pages a history keeps when they are deleted.
  static let preserving = make([
    EntityDescription(
      "Note",
      attributes: [preserved("code", .integer64), preserved("name", .string), AttributeDescription("text", .string, isOptional: true)]),
    EntityDescription("LongNote", superentity: "Note", attributes: [preserved("pages", .double)]),
  ])

  private static func preserved(_ name: String, _ type: AttributeType) -> AttributeDescription {
    var attribute = AttributeDescription(name, type, isOptional: true)
    attribute.preservesValueInHistoryOnDeletion = true
    return attribute
  }

  private static func make(_ entities: [EntityDescription]) -> ManagedObjectModel {
    do {
      return try ManagedObjectModel(entities: entities)
    } catch {
      preconditionFailure("A model of the conformance kit is invalid: \(error)")
    }
  }
}

/// Values that often cause errors: limits of ranges, near misses, similar strings.
enum ConformanceValues {
  /// Distinct values of a type, without nil.
  static func values(of type: AttributeType) -> [StoreValue] {
    switch type {
    case .integer16: [0, 1, -1, 2, 10, Int16.min, Int16.max].map { .int16($0) }
    case .integer32: [0, 1, -1, 2, 70_000, Int32.min, Int32.max].map { .int32($0) }
    case .integer64: [0, 1, -1, 2, 9_007_199_254_740_993, -9_007_199_254_740_993, Int64.min, Int64.max].map { .int64($0) }
    case .boolean: [.bool(false), .bool(true)]
    case .double: [0, 1, -1, 0.1, 2.5, 1e300, -1e-300, 9_007_199_254_740_992].map { .double($0) }
    case .float: [0, 1, -1, 0.1, 2.5, 1e30, -1e-30].map { .float($0) }
    case .date: [0, 1, -1, 0.5, 793_000_000.125, -1e10].map { .date($0) }
    case .decimal:
      ["0", "1", "-1", "0.1", "2.5", "12345678901234567890.123", "-0.0001"].compactMap { Decimal(string: $0) }.map { .decimal($0) }
    case .string: texts.map { .string($0) }
    case .uri: ["", "https://example.org/a", "https://example.org/A", "file:///tmp/%C3%A4", "relative/path?q=1#f"].map { .uri($0) }
    case .binaryData: [[], [0], [0, 0], [1, 2, 3], [255], Array(0...255)].map { .data(Data($0)) }
    case .uuid: uuids.map { .uuid($0) }
    case .transformable: [[], [1], [1, 2, 3], Array(repeating: 7, count: 40)].map { .data(Data($0)) }
    case .objectID: objectIDs.map { .objectID($0) }
    case .composite, .undefined: []
    }
  }

  /// Values that stores often change: normalised text, rounded numbers and dates, numbers that aren't numbers. A store may refuse them.
  static func unusual(of type: AttributeType) -> [StoreValue] {
    switch type {
    case .double: [.nan, .infinity, -.infinity, Double.leastNonzeroMagnitude, .greatestFiniteMagnitude, 1 / 3].map { .double($0) }
    case .float: [.nan, .infinity, -.infinity, Float.leastNonzeroMagnitude, .greatestFiniteMagnitude, 1 / 3].map { .float($0) }
    case .date: [0.0001, 793_000_000.123456, -0.000_000_1, 1 / 3, 64_092_211_200].map { .date($0) }
    case .decimal:
      ["12345678901234567890123456789012345678", "0.00000000000000000000000000000000000001", "-98765432109876543210.987654321"]
        .compactMap { Decimal(string: $0) }.map { .decimal($0) } + [.decimal(.nan)]
    case .string:
      ["\u{E9}", "e\u{301}", "\u{212B}", "\r\n", "\r", "a\r\nb", "\u{0}", "\u{0}\u{0}", "\u{FEFF}x", "\t ", " ", "\u{85}", "\u{2028}"]
        .map { .string($0) }
    case .uri: [.uri("https://example.org/e\u{301}"), .uri("HTTP://EXAMPLE.ORG:80/a/../b")]
    default: []
    }
  }

  /// Strings: empty, different only by case or accents, canonically equivalent, with quotes, wildcards or zero bytes, outside the
  /// basic plane, and a long one.
  static let texts = [
    "", "a", "A", "ab", "abc", "ABC", "b", "caf\u{E9}", "cafe\u{301}", "Caf\u{E9}", "cafe", "stra\u{DF}e", "STRASSE", "it's", "a\"b", "50%",
    "5_0",
    "a*c", "zero\u{0}byte", "\u{1F600}", "\u{FFFD}", "line\nbreak", " space", String(repeating: "long ", count: 60),
  ]

  private static let uuids = [
    "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "80000000-0000-0000-0000-000000000000",
  ].compactMap(UUID.init(uuidString:))

  /// IDs of objects in other stores, which don't have to be open.
  private static let objectIDs = [
    "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Person/p1", "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Person/p12",
    "x-coredata://FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF/Dog/p1",
  ].compactMap { ManagedObjectID(uriRepresentation: $0) }

  /// Constants for comparisons: the values, also the unusual ones, and some between or beyond them.
  static func constants(of type: AttributeType, _ declared: StoreCapabilities) -> [StoreValue] {
    let more: [StoreValue] =
      switch type {
      case .integer16, .integer32, .integer64: [.int64(3), .int64(70_001), .double(0.5), .double(1)] + foreignNumbers
      case .double, .float: [.double(0.2), .int64(1), .double(-1e301), .double(Double(Float(0.1))), .float(-0.0)] + foreignNumbers
      case .date: [.date(0.25), .date(-0.0), .date(0.000_1.nextUp), .date(793_000_000.123)]
      case .decimal: [.int64(1), .double(2.5)] + foreignNumbers
      case .string: [.string("missing"), .string("\n"), .string("a\nb"), .string("a\rb"), .string("zero")]
      default: []
      }
    let all = values(of: type) + unusual(of: type) + more
    // The framework compares decimals itself unless the store declares them.
    return declared.comparedTypes.contains(.decimal) ? all : all.filter { if case .decimal = $0 { false } else { true } }
  }

  /// Numbers that are equal to a value of another type, or close to one: negative zero, powers of two beyond 64 bits, decimals with 38
  /// digits, and numbers that aren't numbers.
  private static let foreignNumbers: [StoreValue] =
    [-0.0, 9_223_372_036_854_775_808, -9_223_372_036_854_775_808, .infinity, -.infinity, .nan].map { .double($0) }
    + [
      "9007199254740993", "9007199254740992.5", "9223372036854775807", "9223372036854775807.5",
      "0.1000000000000000055511151231257827021", "12345678901234567890123456789012345677", "0.00000000000000000000000000000000000002",
    ].compactMap { Decimal(string: $0) }.map { .decimal($0) }
}

/// Deterministic rows for cases that make requests.
enum ConformanceRows {
  /// Inserts rows of `Sample` into a store and a graph: each value of each type twice, rows of nils, and the unusual values that the
  /// store accepts.
  static func samples(_ store: TestedStore) throws -> ExpectedGraph {
    let graph = ExpectedGraph(store)
    let pools = AttributeType.storedCases.map { ConformanceValues.values(of: $0) }
    let rowCount = 2 * (pools.map(\.count).max() ?? 0) + 7
    let keys = try store.keys("Sample", rowCount)
    try store.save(graph) { edit in
      for (row, key) in keys.enumerated() {
        var values: [String: StoreValue] = [:]
        for (type, pool) in zip(AttributeType.storedCases, pools) {
          // Each type steps through its values at its own pace, with a nil after the last.
          let place = (row * (type.coreDataCode % 3 == 0 ? 1 : 5) + row / pool.count) % (pool.count + 1)
          if place < pool.count { values[ConformanceModel.attributeName(type)] = pool[place] }
        }
        edit.insert("Sample", key, version: RowVersion(Int64(row % 3 + 1)), values)
      }
    }
    try insertUnusual(store, graph)
    return graph
  }

  /// Inserts a row for each unusual value. Saves them one by one if the store refuses some of them.
  private static func insertUnusual(_ store: TestedStore, _ graph: ExpectedGraph) throws {
    let values = AttributeType.storedCases.flatMap { type in
      ConformanceValues.unusual(of: type).map { (ConformanceModel.attributeName(type), $0) }
    }
    let rows = zip(try store.keys("Sample", values.count), values)
    do {
      try store.save(graph) { edit in for (key, (name, value)) in rows { edit.insert("Sample", key, [name: value]) } }
    } catch let error as StoreError where error.code == .unstorableValue {
      for (key, (name, value)) in rows {
        do { try store.save(graph) { $0.insert("Sample", key, [name: value]) } } catch let error as StoreError
          where error.code == .unstorableValue
        {}
      }
    }
  }

  /// Inserts 4,000 companies, which fill several pages.
  static func manyCompanies(_ store: TestedStore) throws -> ExpectedGraph {
    let graph = ExpectedGraph(store)
    let keys = try store.keys("Company", 4_000)
    try store.save(graph) { edit in
      for key in keys { edit.insert("Company", key, ["name": .string("A company with a rather long name, so that pages fill: \(key)")]) }
    }
    return graph
  }

  /// Inserts people, companies, clubs and passports into a store and a graph, with links of every kind.
  static func people(_ store: TestedStore) throws -> ExpectedGraph {
    let graph = ExpectedGraph(store)
    let people = try store.keys("Person", 24), companies = try store.keys("Company", 4), clubs = try store.keys("Club", 3)
    let passports = try store.keys("Passport", 6)
    try store.save(graph) { edit in
      for (index, key) in companies.enumerated() {
        edit.insert("Company", key, ["name": .string("Company \(index)"), "size": index == 2 ? .null : .int32(Int32(index * 100))])
      }
      for (index, key) in clubs.enumerated() { edit.insert("Club", key, ["name": .string("Club \(index)")]) }
      for (index, key) in passports.enumerated() {
        edit.insert("Passport", key, ["number": .string("P\(index)"), "holder": .key(people[index * 2])])
      }
      for (index, key) in people.enumerated() {
        var values: [String: StoreValue] = ["name": .string("Person \(index % 9)"), "number": .int64(Int64(index) * 10)]
        if index % 4 != 3 { values["age"] = .int16(Int16(index % 6 * 10)) }
        if index % 5 != 0 { values["city"] = .string("City \(index)") }
        if index % 3 != 2 { values["code"] = .string("c\(index)") }
        if index % 7 != 6 { values["employer"] = .key(companies[index % 3]) }
        if index % 2 == 0, index / 2 < passports.count { values["passport"] = .key(passports[index / 2]) }
        edit.insert("Person", key, values)
        for step in 1..<(1 + index % 4) { edit.link("Person", "friends", key, people[(index * 5 + step * 3) % people.count]) }
        if index % 3 == 0 { edit.link("Person", "clubs", key, clubs[index % 2]) }
      }
    }
    return graph
  }
}
