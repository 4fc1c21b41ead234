import Foundation
import Holdfast
import HoldfastPropertyList
import HoldfastStore
import HoldfastStoreConformance
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct OpeningTests {
  @Test func `a store of another model is refused with the names of the entities that differ, and isn't changed`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.store.close()
    let before = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
    var entities = TestModels.people
    entities[1].attributes.removeLast()
    entities.append(EntityDescription("Extra"))
    let error = try thrown { _ = try StoreUnderTest(folder, try ManagedObjectModel(entities: entities)) }
    #expect(error.code == .incompatibleModel)
    #expect(error.reason.contains("Extra (not in the store), Person."))
    #expect(!error.reason.contains("Company"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file())) == before)
    _ = try StoreUnderTest(folder, tested.model)
  }

  @Test func `files that aren't stores are refused with what they are`() throws {
    let folder = TemporaryFolder()
    let model = try TestModels.peopleModel()
    let text = Data((0..<200).map { _ in UInt8(ascii: "x") })
    try text.write(to: URL(fileURLWithPath: folder.file("text")))
    #expect(try thrown { _ = try StoreUnderTest(folder, model, name: "text") }.code == .notAStore)
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("text"))) == text)
    _ = try SQL.rows(folder.file("other"), "CREATE TABLE t (x)")
    #expect(try thrown { _ = try StoreUnderTest(folder, model, name: "other") }.code == .notAStore)
    let readOnly = SQLiteStoreOptions(isReadOnly: true)
    #expect(try thrown { _ = try StoreUnderTest(folder, model, name: "none", options: readOnly) }.code == .notFound)
    #expect(
      try thrown { _ = try StoreUnderTest(folder, model, name: "none", options: SQLiteStoreOptions(createsIfMissing: false)) }.code
        == .notFound)
    #expect(!FileManager.default.fileExists(atPath: folder.file("none")))
  }

  @Test(arguments: [
    ("UPDATE Z_METADATA SET Z_VERSION = 2", StoreError.Code.newerFormat), ("DELETE FROM Z_METADATA", .damaged),
    ("UPDATE Z_METADATA SET Z_PLIST = x'62706C6973743030'", .damaged), ("UPDATE Z_METADATA SET Z_PLIST = NULL", .damaged),
    ("UPDATE Z_METADATA SET Z_PLIST = 'no list'", .damaged),
  ]) func `invalid metadata is refused`(change: String, code: StoreError.Code) throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.store.close()
    _ = try SQL.rows(folder.file(), change)
    #expect(try thrown { _ = try StoreUnderTest(folder, tested.model) }.code == code)
  }

  @Test func `metadata with any truncation or changed byte is read or refused, never a crash`() throws {
    let record = try MetadataRecord(uuid: "U", new: try TestModels.peopleModel())
    let bytes = record.bytes
    for count in 0..<bytes.count {
      #expect(throws: PropertyListError.self) { try MetadataRecord(uuid: "U", bytes: Array(bytes[..<count])) }
    }
    var refused = 0
    for place in bytes.indices {
      for value: UInt8 in [0, 0x0F, 0x7F, 0xFF, bytes[place] ^ 1] {
        var changed = bytes
        changed[place] = value
        if (try? MetadataRecord(uuid: "U", bytes: changed)) == nil { refused += 1 }
        _ = MetadataRecord.holdsNothingOfTheUser(changed)
      }
    }
    #expect((40..<5 * bytes.count).contains(refused), "\(refused) of \(5 * bytes.count) refused")
    #expect(MetadataRecord.holdsNothingOfTheUser(bytes))
    #expect(try MetadataRecord(uuid: "U", bytes: bytes).list == record.list)
  }

  @Test func `a database without tables, as a crash can leave it, becomes a store`() throws {
    let folder = TemporaryFolder()
    _ = try SQL.rows(folder.file(), "PRAGMA journal_mode = wal")
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("A")]])
    #expect(try tested.all("Company").count == 1)
  }

  /// Copies a database to a new one whose texts have another encoding.
  private func copy(_ path: String, to copy: String, encoding: String) throws {
    var script = "PRAGMA encoding = '\(encoding)'; BEGIN;"
    for row in try SQL.rows(path, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid") { script += row[0] + ";" }
    for table in try SQL.rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'").map({ $0[0] }) {
      let columns = try SQL.rows(path, "SELECT name FROM pragma_table_info('\(table)')").map { "quote(\($0[0]))" }
      for row in try SQL.rows(path, "SELECT \(columns.joined(separator: " || ', ' || ")) FROM \(table)") {
        script += "INSERT INTO \(table) VALUES (\(row[0]));"
      }
    }
    try SQL.run(copy, script + "COMMIT")
  }

  @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"]) func `a database with texts in UTF-16 is refused, and its texts aren't misread`(
    encoding: String
  ) throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("Ada")]])
    try tested.store.close()
    try copy(folder.file(), to: folder.file("copy.sqlite"), encoding: encoding)
    // Also without tables, because a new store would keep the encoding.
    try SQL.run(folder.file("empty.sqlite"), "PRAGMA encoding = '\(encoding)'; CREATE TABLE t (x); DROP TABLE t")
    for name in ["copy.sqlite", "empty.sqlite"] {
      func names() throws -> [StoreValue] {
        let opened = try StoreUnderTest(folder, tested.model, name: name)
        if name == "empty.sqlite" { try opened.insert("Company", [["name": .string("Ada")]]) }
        let slot = try #require(try opened.entity("Company").slot(named: "name"))
        return try opened.all("Company").map { $0[slot] }
      }
      if encoding == "UTF-8" {
        #expect(try names() == [.string("Ada")])
      } else {
        let error = try thrown { _ = try names() }
        #expect(error.code == .notAStore && error.reason.contains(encoding), "\(error)")
      }
    }
  }

  @Test(arguments: ["UTF-16le", "UTF-16be"]) func `a repair converts the texts of a database in UTF-16`(encoding: String) throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("Ada Ωmega")]])
    try tested.store.close()
    try copy(folder.file(), to: folder.file("copy.sqlite"), encoding: encoding)
    let report = try PersistentStoreCoordinator.repairPersistentStore(
      .sqlite(at: folder.file("copy.sqlite")), to: .sqlite(at: folder.file("repaired.sqlite")), model: tested.model)
    #expect(report.isComplete, "\(report)")
    let repaired = try StoreUnderTest(folder, tested.model, name: "repaired.sqlite")
    let slot = try #require(try repaired.entity("Company").slot(named: "name"))
    #expect(try repaired.all("Company").map { $0[slot] } == [.string("Ada Ωmega")])
  }

  @Test func `a file can be opened only once per process`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    #expect(try thrown { _ = try StoreUnderTest(folder, tested.model) }.code == .alreadyOpen)
    try tested.store.close()
    try tested.store.close()
    _ = try StoreUnderTest(folder, tested.model)
    #expect(try thrown { _ = try tested.store.beginRead(.latest) }.code == .notOpen)
  }

  @Test func `a read-only store reads, refuses to write and leaves no file behind`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("A")]])
    try tested.store.close()
    let before = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
    let again = try StoreUnderTest(folder, tested.model, options: SQLiteStoreOptions(isReadOnly: true))
    #expect(try again.all("Company").count == 1)
    #expect(try thrown { try again.insert("Company", [["name": .string("B")]]) }.code == .readOnly)
    #expect(try thrown { try again.save(try again.deletion("Company", [1])) }.code == .readOnly)
    #expect(try thrown { try again.store.setMetadata([:]) }.code == .readOnly)
    try again.store.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store.sqlite"])
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file())) == before)
  }

  @Test func `the user's metadata keeps its types, and other programs' metadata is kept`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    #expect(tested.metadata.userInfo.isEmpty)
    let info: [String: StoreValue] = [
      "text": .string("ä\u{0}b"), "empty": .string(""), "flag": .bool(true), "small": .int16(-3), "middle": .int32(70_000),
      "large": .int64(.min),
      "single": .float(0.1), "number": .double(0.1), "exact": .decimal(Decimal(string: "12345678901234567890.5")!), "when": .date(0.25),
      "id": .uuid(UUID()), "link": .uri("a:b"), "bytes": .data(Data([0, 255])), "none": .null,
    ]
    try tested.store.setMetadata(info)
    try tested.store.close()
    // Another program adds a list.
    let hex = try SQL.rows(folder.file(), "SELECT hex(Z_PLIST), Z_UUID FROM Z_METADATA")[0]
    var list = try MetadataRecord(uuid: hex[1], bytes: ValueParsing.bytes(hex[0])).list
    list["theirs"] = .array([.string("x"), .uid(7), .dictionary(["k": .real(1.5)])])
    let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
    _ = try SQL.rows(folder.file(), "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'")
    let again = try StoreUnderTest(folder, tested.model)
    #expect(again.metadata.userInfo == info)
    try again.store.setMetadata(["only": .int64(1)])
    #expect(try thrown { try again.store.setMetadata(["NSStoreType": .string("x")]) }.code == .unstorableValue)
    try again.store.close()
    let last = try StoreUnderTest(folder, tested.model)
    #expect(last.metadata.userInfo == ["only": .int64(1)])
    try last.store.close()
    let end = try SQL.rows(folder.file(), "SELECT hex(Z_PLIST) FROM Z_METADATA")[0][0]
    #expect(try MetadataRecord(uuid: "U", bytes: ValueParsing.bytes(end)).list["theirs"] == list["theirs"])
  }

  @Test func `the metadata contains what Core Data stores`() throws {
    let model = try TestModels.peopleModel()
    let list = try MetadataRecord(uuid: "U", new: model).list
    #expect(list["NSStoreType"] == .string("SQLite"))
    #expect(list["NSStoreModelVersionHashesVersion"] == .integer(3))
    #expect(list["NSStoreModelVersionIdentifiers"] == .array([.string("1")]))
    #expect(list["NSStoreModelVersionHashesDigest"] == .string(model.versionDigest))
    #expect(list["NSStoreModelVersionChecksumKey"] == .string(model.versionChecksum))
    #expect(list["_NSAutoVacuumLevel"] == .string("2"))
    #expect(list["NSStoreModelVersionHashes"]?.dictionary?["Person"]?.data == model.entity(named: "Person")?.versionHash)
  }

  @Test func `a missing fetch index is created when the file is opened`() throws {
    let folder = TemporaryFolder()
    var entities = TestModels.people
    entities[1].indexes = []
    let tested = try StoreUnderTest(folder, try ManagedObjectModel(entities: entities))
    try tested.store.close()
    let again = try StoreUnderTest(folder, try TestModels.peopleModel())
    try again.store.close()
    #expect(try SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE name = 'Z_Person_byName'").count == 1)
  }

  /// The bug: they had the numbers of the history's tables, so their objects were missing, and new ones got these numbers.
  @Test func `entities with the names of the history's tables have their own numbers in another program's file`() throws {
    let folder = TemporaryFolder(), number = AttributeDescription("number", .integer64)
    let model = try ManagedObjectModel(
      entities: ["CHANGE", "TRANSACTION", "TRANSACTIONSTRING"].map { EntityDescription($0, attributes: [number]) })
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let tested = try StoreUnderTest(folder, model, options: options)
    try tested.insert("TRANSACTION", [["number": .int64(1)]])
    try tested.store.close()
    var list = try MetadataRecord(uuid: "U", new: model).list
    list["_HoldfastLayout"] = nil
    let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
    _ = try SQL.rows(folder.file(), "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'")
    let again = try StoreUnderTest(folder, model, options: options)
    #expect(try again.insert("TRANSACTION", [["number": .int64(2)]]) == [2])
    #expect(try again.all("TRANSACTION").count == 2)
    try again.store.close()
    #expect(try SQL.rows(folder.file(), "SELECT DISTINCT Z_ENT FROM ZTRANSACTION") == [["2"]])
  }

  @Test func `names are looked up in a file that another program laid out`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("A")]])
    try tested.insert("Person", [["id": .int64(1)], ["id": .int64(2)]])
    let hexBefore = try MetadataRecord(uuid: "U", new: tested.model)
    try tested.store.close()
    // Other numbers, the other name of the join table, digits in its columns, foreign tables and columns, no mark.
    var list = hexBefore.list
    list["_HoldfastLayout"] = nil
    list["NSStoreModelVersionHashesDigest"] = nil
    let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
    for change in [
      "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'", "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 10", "DROP TABLE Z_2FRIENDOF",
      "CREATE TABLE \"Z_12FRIENDS\" (Z_12FRIENDS1 INTEGER, Z_12FRIENDOF INTEGER, Z_FOK_12FRIENDS INTEGER, PRIMARY KEY (Z_12FRIENDOF, Z_12FRIENDS1))",
      "INSERT INTO Z_12FRIENDS (Z_12FRIENDS1, Z_12FRIENDOF) VALUES (1, 2)", "CREATE TABLE ZOTHER (x)",
      "ALTER TABLE ZPERSON ADD COLUMN ZMORE INTEGER",
      "UPDATE ZPERSON SET Z_ENT = 12",
    ] { _ = try SQL.rows(folder.file(), change) }
    let again = try StoreUnderTest(folder, tested.model)
    #expect(try again.targets("Person", "friends", [1, 2]) == [[], [1]])
    #expect(try again.targets("Person", "friendOf", [1, 2]) == [[2], []])
    #expect(try again.insert("Person", [["id": .int64(3)]]) == [3])
    try again.save(try again.deletion("Person", [2]))
    #expect(try again.targets("Person", "friendOf", [1]) == [[]])
    try again.store.close()
    #expect(try SQL.rows(folder.file(), "SELECT Z_ENT FROM ZPERSON WHERE Z_PK = 3") == [["12"]])
    #expect(try SQL.rows(folder.file(), "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 12") == [["3"]])
    _ = try SQL.rows(folder.file(), "ALTER TABLE ZPERSON DROP COLUMN ZAVATAR")
    let error = try thrown { _ = try StoreUnderTest(folder, tested.model) }
    #expect(error.code == .damaged && error.reason.contains("ZPERSON.ZAVATAR"))
  }
}

enum ValueParsing {
  static func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex.utf8)
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16) }
  }
}
