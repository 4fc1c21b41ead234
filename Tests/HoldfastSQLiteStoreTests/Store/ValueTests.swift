import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Saved values are read back bit by bit, and values from other programs are checked.
@Suite struct ValueTests {
  private static let types = AttributeType.storedCases

  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Thing", attributes: types.map { AttributeDescription($0.rawValue, $0, isOptional: true) })
    ])
  }

  private static func samples(_ type: AttributeType) throws -> [StoreValue] {
    switch type {
    case .integer16: return [.int16(.min), .int16(-1), .int16(0), .int16(.max)]
    case .integer32: return [.int32(.min), .int32(0), .int32(.max)]
    case .integer64: return [.int64(.min), .int64(.min + 1), .int64(0), .int64(1 << 53 + 1), .int64(.max)]
    case .boolean: return [.bool(false), .bool(true)]
    case .double:
      return [
        0, 0.1, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, -.infinity, .infinity, 1.0.nextUp, 3, -7,
        9_007_199_254_740_992,
      ].map { .double($0) }
    case .float: return [0, 0.1, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -.infinity, 16_777_216, 3].map { .float($0) }
    case .date: return [0, 86_400, -86_400, 0.5, 123_456_789.123_456_78, -978_307_200, 63_113_904_000, 1e300].map { .date($0) }
    case .string:
      return [
        "", "a", "a\u{0}b", "\u{0}", "é", "e\u{301}", "日本", "🇮🇹👨‍👩‍👧", "\u{10FFFF}", "\u{FEFF}x", "123", "NULL", "'; DROP TABLE ZTHING; --",
        String(repeating: "ä", count: 100_000),
      ].map { .string($0) }
    case .uri: return ["", "https://example.org/a?b=c#d", "x-coredata://A/B/p1", "ä b"].map { .uri($0) }
    case .uuid:
      return [
        .uuid(UUID()), .uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
        .uuid(UUID(uuid: (255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0))),
      ]
    case .objectID:
      return try ["x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Dog/p4"].map {
        .objectID(try #require(ManagedObjectID(uriRepresentation: $0)))
      }
    case .composite, .undefined: return []
    case .binaryData, .transformable:
      return [Data(), Data([0]), Data([0, 255, 0]), Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) })].map { .data($0) }
    case .decimal:
      let texts = [
        "0", "1", "-1", "0.1", "-0.1", "2.5", "1234567890.12345", "123456789012345", "1234567890123456", "9007199254740993",
        "0.30000000000000004", "99999999999999999999999999999999999999", "-0.00000000000000000000000000000000001", "1e100", "1e-100",
        "12345678901234567890.123456789",
      ]
      return try texts.map { .decimal(try #require(Decimal(string: $0))) }
    }
  }

  @Test(arguments: AttributeType.storedCases) func `values are unchanged bit by bit, even after reopening`(type: AttributeType) throws {
    let folder = TemporaryFolder()
    let samples = try ValueTests.samples(type) + [.null]
    let tested = try StoreUnderTest(folder, try ValueTests.model(), options: SQLiteStoreOptions(storesExactDecimals: true))
    let keys = try tested.insert("Thing", samples.map { [type.rawValue: $0] })
    let slot = try #require(try tested.entity("Thing").slot(named: type.rawValue))
    let before = try tested.batch("Thing", zip(keys, samples).map { ($0, 1, [type.rawValue: $1]) })
    try tested.store.close()
    let again = try StoreUnderTest(folder, tested.model)
    let rows = try again.all("Thing")
    #expect(rows.map { $0[slot] } == samples)
    for (index, row) in rows.enumerated() {
      #expect(row.pointer.hasSameValues(as: before.pointer(index), before.layout))
    }
  }

  @Test func `negative zero becomes zero`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model())
    try tested.insert("Thing", [["double": .double(-0.0)]])
    guard case .double(let value)? = try tested.value("Thing", 1, "double") else { throw CancellationError() }
    #expect(value.sign == .plus)
  }

  /// The stored form of each decimal when long ones are allowed.
  private static let decimals: [(text: String, kept: [String])] = [
    ("2.50", ["real", "2.5"]), ("7", ["integer", "7"]), ("-99999999999999.9", ["real", "-99999999999999.9"]),
    ("9007199254740993", ["integer", "9007199254740993"]), ("9223372036854775807", ["integer", "9223372036854775807"]),
    ("-9223372036854775808", ["integer", "-9223372036854775808"]), ("9223372036854775808", ["blob", "9223372036854775808"]),
    // SQLite's text of a number has 15 digits. The number itself is exact: this is the shortest text of one.
    ("0.1234567890123456", ["real", "0.123456789012346"]), ("3.3333333332999993", ["real", "3.3333333333"]),
    ("0.12345678901234567", ["blob", "0.12345678901234567"]), ("12345678901234567890.5", ["blob", "12345678901234567890.5"]),
  ]

  @Test func `decimals are numbers in the file if that is lossless, and keep their digits if the option requests it`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model(), options: SQLiteStoreOptions(storesExactDecimals: true))
    try tested.insert("Thing", try ValueTests.decimals.map { ["decimal": .decimal(try #require(Decimal(string: $0.text)))] })
    try tested.store.close()
    let kept = try SQL.rows(folder.file(), "SELECT typeof(ZDECIMAL), CAST(ZDECIMAL AS TEXT) FROM ZTHING ORDER BY Z_PK")
    #expect(kept == ValueTests.decimals.map(\.kept))
    // They are read whatever the option is, and a change of another attribute doesn't affect them.
    let again = try StoreUnderTest(folder, tested.model)
    for (number, decimal) in ValueTests.decimals.enumerated() {
      #expect(try again.value("Thing", ObjectKey(Int64(number) + 1), "decimal") == .decimal(try #require(Decimal(string: decimal.text))))
    }
    let last = ObjectKey(ValueTests.decimals.count), long = StoreValue.decimal(try #require(Decimal(string: "12345678901234567890.5")))
    try again.update("Thing", [(last, 1, ["decimal": long, "string": .string("changed")], ["string"])])
    #expect(try again.value("Thing", last, "decimal") == long && again.value("Thing", last, "string") == .string("changed"))
  }

  @Test(arguments: ValueTests.decimals.map(\.text)) func `a decimal that would lose digits is refused and nothing is saved`(text: String)
    throws
  {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model())
    let value = StoreValue.decimal(try #require(Decimal(string: text)))
    let isRefused = ValueTests.decimals.first { $0.text == text }?.kept[0] == "blob"
    guard isRefused else {
      try tested.insert("Thing", [["decimal": value]])
      #expect(try tested.value("Thing", 1, "decimal") == value)
      return
    }
    let error = try thrown { try tested.insert("Thing", [["string": .string("beside")], ["decimal": value]]) }
    #expect(error.code == .unstorableValue && error.reason.contains("Thing.decimal") && error.reason.contains("storesExactDecimals"))
    #expect(!"\(error)".contains(text))
    #expect(try tested.all("Thing").isEmpty)
  }

  @Test(arguments: [
    ("integer16", "'x'", "TEXT"), ("integer16", "40000", "INTEGER"), ("integer32", "3000000000", "INTEGER"), ("integer64", "x'01'", "BLOB"),
    ("integer64", "1.5", "REAL"), ("boolean", "2", "INTEGER"), ("double", "'x'", "TEXT"), ("date", "x'00'", "BLOB"),
    ("string", "x'61'", "BLOB"), ("string", "CAST(x'FF' AS TEXT)", "TEXT"), ("string", "CAST(x'61C3' AS TEXT)", "TEXT"),
    ("string", "CAST(x'EDA080' AS TEXT)", "TEXT"), ("uuid", "x'0102'", "BLOB"), ("uuid", "'x'", "TEXT"), ("decimal", "'x1'", "TEXT"),
    ("binaryData", "5", "INTEGER"), ("decimal", "1e200", "REAL"), ("decimal", "-1e-200", "REAL"), ("decimal", "'1-2'", "TEXT"),
    ("decimal", "'1e5.3'", "TEXT"), ("decimal", "x'312D32'", "BLOB"), ("decimal", "'-'", "TEXT"),
  ]) func `a value of the wrong storage class is an error that names table, column and key`(
    column: String, literal: String, storage: String
  ) throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model())
    try tested.insert("Thing", [[:], [:]])
    try tested.store.close()
    _ = try SQL.rows(folder.file(), "UPDATE ZTHING SET Z\(column.uppercased()) = \(literal) WHERE Z_PK = 2")
    let again = try StoreUnderTest(folder, tested.model)
    #expect(try again.row("Thing", 1) != nil)
    let error = try thrown { _ = try again.all("Thing") }
    #expect(error.code == .wrongType)
    #expect(error.reason.contains("ZTHING.Z\(column.uppercased())") && error.reason.contains("key 2") && error.reason.contains(storage))
    #expect(try again.row("Thing", 1) != nil)
  }

  /// The bug: extremes and groups had the number cut to the width of the attribute, and sums contained it.
  @Test(arguments: [("integer16", "40000"), ("integer16", "-32769"), ("integer32", "3000000000"), ("boolean", "2")])
  func `aggregates refuse a number that the attribute can't have, as reading the row does`(column: String, literal: String) throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model())
    try tested.insert("Thing", [[:], [:]])
    try tested.store.close()
    _ = try SQL.rows(folder.file(), "UPDATE ZTHING SET Z\(column.uppercased()) = \(literal) WHERE Z_PK = 2")
    let again = try StoreUnderTest(folder, tested.model)
    let slot = try #require(try again.entity("Thing").slot(named: column))
    let plans = [
      AggregatePlan(groupBy: [], columns: [.maximum(slot: slot), .minimum(slot: slot)]),
      AggregatePlan(groupBy: [], columns: [.count(slot: slot)]),
      AggregatePlan(groupBy: [slot], columns: [.group(slot: slot), .count(slot: nil)]),
    ]
    for aggregates in plans {
      var plan = try again.plan("Thing")
      plan.output = .aggregates(aggregates)
      let error = try thrown { _ = try again.fetch(plan) }
      #expect(error.code == .wrongType && error.reason.contains("ZTHING.Z\(column.uppercased())"))
    }
  }

  @Test func `values that Core Data writes in other storage classes are read`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try ValueTests.model())
    try tested.insert("Thing", [[:]])
    try tested.store.close()
    _ = try SQL.rows(
      folder.file(), "UPDATE ZTHING SET ZDATE = 5, ZDECIMAL = '0.5', ZBINARYDATA = 'text', ZDOUBLE = 2, Z_OPT = NULL WHERE Z_PK = 1")
    let again = try StoreUnderTest(folder, tested.model)
    #expect(try again.value("Thing", 1, "date") == .date(5))
    #expect(try again.value("Thing", 1, "decimal") == .decimal(Decimal(string: "0.5")!))
    #expect(try again.value("Thing", 1, "binaryData") == .data(Data("text".utf8)))
    #expect(try again.row("Thing", 1)?.version == 0)
    try again.update("Thing", [(1, 0, ["double": .double(4)], ["double"])])
    #expect(try again.row("Thing", 1)?.version == 1)
  }

  @Test func `rows with many slots use several words of presence bits`() throws {
    let folder = TemporaryFolder()
    let names = (0..<150).map { "a\($0)" }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Wide", attributes: names.map { AttributeDescription($0, .integer64, isOptional: true) })
    ])
    let tested = try StoreUnderTest(folder, model)
    let values = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0 % 3 == 0 ? StoreValue.null : .int64(Int64($0))) })
    try tested.insert("Wide", [values])
    #expect(try tested.all("Wide")[0].values == (try tested.values("Wide", values)))
    try tested.update("Wide", [(1, 1, ["a149": .int64(-1), "a3": .int64(-2)], ["a149", "a3"])])
    #expect(try tested.value("Wide", 1, "a149") == .int64(-1))
    #expect(try tested.value("Wide", 1, "a3") == .int64(-2))
    #expect(try tested.value("Wide", 1, "a4") == .int64(4))
  }
}
