import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// How a model's fetch indexes are stored in the file.
@Suite struct FetchIndexTests {
  private static func model(_ indexes: [FetchIndexDescription]) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Entry",
        attributes: [
          AttributeDescription("date", .date, isOptional: true), AttributeDescription("title", .string, isOptional: true),
          AttributeDescription("place", .integer32, isOptional: true),
        ], indexes: indexes)
    ])
  }

  private static let newest = FetchIndexDescription(
    "newest", elements: [FetchIndexElement("date", isAscending: false), FetchIndexElement("title")])
  private static let backwards = FetchIndexDescription(
    "backwards", elements: [FetchIndexElement("title", isAscending: false), FetchIndexElement("place", isAscending: false)])

  @Test func `an index has its columns in the order and directions of its elements`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try FetchIndexTests.model([FetchIndexTests.newest, FetchIndexTests.backwards]))
    try tested.store.close()
    let made = try SQL.rows(
      folder.file(), "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'ZENTRY' ORDER BY name")
    #expect(
      made == [
        ["CREATE INDEX Z_Entry_backwards ON ZENTRY (ZTITLE COLLATE BINARY DESC, ZPLACE COLLATE BINARY DESC)"],
        ["CREATE INDEX Z_Entry_newest ON ZENTRY (ZDATE COLLATE BINARY DESC, ZTITLE COLLATE BINARY ASC)"],
      ])
  }

  @Test func `a fetch in the order of a descending index doesn't sort`() throws {
    let folder = TemporaryFolder()
    try StoreUnderTest(folder, try FetchIndexTests.model([FetchIndexTests.newest])).store.close()
    func plan(_ order: String) throws -> String {
      try SQL.rows(folder.file(), "EXPLAIN QUERY PLAN SELECT Z_PK FROM ZENTRY ORDER BY \(order)").map { $0[3] }.joined(
        separator: "; ")
    }
    #expect(try plan("ZDATE DESC, ZTITLE ASC").contains("Z_Entry_newest") && !plan("ZDATE DESC, ZTITLE ASC").contains("TEMP B-TREE"))
    #expect(try plan("ZDATE ASC, ZTITLE ASC").contains("TEMP B-TREE"))
  }

  @Test func `an index over several dimensions can be declared, but isn't created`() throws {
    let folder = TemporaryFolder()
    let box = FetchIndexDescription(
      "box", elements: [FetchIndexElement("date", kind: .rTree), FetchIndexElement("place", kind: .rTree)])
    let tested = try StoreUnderTest(folder, try FetchIndexTests.model([box]))
    #expect(tested.model.entities[0].indexes == [box])
    try tested.store.close()
    #expect(try SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'ZENTRY'").isEmpty)
  }
}
