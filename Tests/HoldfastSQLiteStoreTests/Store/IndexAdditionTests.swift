import Foundation
import HoldfastPropertyList
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Which files get the declared indexes that they lack.
@Suite struct IndexAdditionTests {
  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func model(indexed: Bool) throws -> ManagedObjectModel {
    var entities = TestModels.people
    if !indexed { entities[1].indexes = [] }
    return try ManagedObjectModel(entities: entities)
  }

  /// A file as from another program: without Holdfast's mark and without the fetch index.
  private func makeForeignFile() throws {
    let plain = try model(indexed: false)
    try StoreUnderTest(folder, plain).store.close()
    var list = try MetadataRecord(uuid: "U", new: plain).list
    list["_HoldfastLayout"] = nil
    list["_HoldfastModel"] = nil
    let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
    _ = try SQL.rows(folder.file(), "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'")
    _ = try SQL.rows(folder.file(), "PRAGMA wal_checkpoint(TRUNCATE)")
  }

  private func schema() throws -> [[String]] { try SQL.rows(folder.file(), "SELECT * FROM sqlite_master ORDER BY rowid") }
  private func bytes() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: folder.file())) }
  private func hasIndex() throws -> Bool { try schema().contains { $0[1] == "Z_Person_byName" } }

  @Test func `opening another program's store for writing changes no byte, and saving adds no index`() throws {
    try makeForeignFile()
    let (before, schemaBefore) = (try bytes(), try schema())
    let tested = try StoreUnderTest(folder, try model(indexed: true))
    #expect(try tested.all("Person").isEmpty)
    try tested.store.close()
    #expect(try bytes() == before)
    let again = try StoreUnderTest(folder, try model(indexed: true))
    try again.insert("Person", [["id": .int64(1), "name": .string("A")]])
    try again.store.close()
    #expect(try bytes() != before)
    #expect(try schema() == schemaBefore)
  }

  @Test func `another program's store gets the indexes if the options request them`() throws {
    try makeForeignFile()
    try StoreUnderTest(folder, try model(indexed: true), options: SQLiteStoreOptions(indexAddition: .allStores)).store.close()
    #expect(try hasIndex())
  }

  @Test func `another program's index with another name is recognized by its columns`() throws {
    try makeForeignFile()
    _ = try SQL.rows(folder.file(), "CREATE INDEX theirs ON ZPERSON (ZNAME COLLATE BINARY ASC)")
    try StoreUnderTest(folder, try model(indexed: true), options: SQLiteStoreOptions(indexAddition: .allStores)).store.close()
    #expect(try !hasIndex())
  }

  @Test(arguments: SQLiteStoreOptions.IndexAddition.allCases) func `a store of this framework gets them unless the options say never`(
    addition: SQLiteStoreOptions.IndexAddition
  ) throws {
    let plain = try StoreUnderTest(folder, try model(indexed: false))
    try plain.store.setMetadata(["key": .int64(1)])
    try plain.store.close()
    try StoreUnderTest(folder, try model(indexed: true), options: SQLiteStoreOptions(indexAddition: addition)).store.close()
    #expect(try hasIndex() == (addition != .never))
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set"))
  func `opening a Core Data store for writing doesn't change its bytes, and saving doesn't change its schema`() throws {
    let source = try #require(Self.corpus) + "/sqlite/CoreDataPlus/Tests/Resources/SampleModel3/Fixtures/SampleModel3_V1.sqlite"
    try Data(contentsOf: URL(fileURLWithPath: source)).write(to: URL(fileURLWithPath: folder.file()))
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "User", attributes: [AttributeDescription("name", .string), AttributeDescription("petName", .string, isOptional: true)],
        indexes: [FetchIndexDescription("byName", ["name"])])
    ])
    let (before, schemaBefore) = (try bytes(), try schema())
    let tested = try StoreUnderTest(folder, model)
    #expect(try tested.all("User").count == 12)
    try tested.store.close()
    #expect(try bytes() == before)
    let again = try StoreUnderTest(folder, model)
    try again.insert("User", [["name": .string("new")]])
    try again.store.close()
    #expect(try schema() == schemaBefore)
  }
}
