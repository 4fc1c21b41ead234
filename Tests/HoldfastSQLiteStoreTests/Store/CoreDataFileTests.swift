import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Files that Apple's framework wrote, if the environment names a folder with them.
@Suite struct CoreDataFileTests {
  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  private func copy(_ path: String, to folder: TemporaryFolder) throws {
    let corpus = try #require(CoreDataFileTests.corpus)
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: corpus + "/sqlite/" + path + end) {
      let data = try Data(contentsOf: URL(fileURLWithPath: corpus + "/sqlite/" + path + end))
      try data.write(to: URL(fileURLWithPath: folder.file() + end))
    }
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set")) func `a store of one entity is read, changed and read again`() throws {
    let folder = TemporaryFolder()
    try copy("CoreDataPlus/Tests/Resources/SampleModel3/Fixtures/SampleModel3_V1.sqlite", to: folder)
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "User", attributes: [AttributeDescription("name", .string), AttributeDescription("petName", .string, isOptional: true)])
      ])
    let tested = try StoreUnderTest(folder, model)
    let rows = try tested.all("User")
    #expect(rows.count == 12)
    #expect(rows[0].values == [.string("User_2"), .string("Dog_2_0")])
    #expect(rows[11].values == [.string("User_0"), .string("Dog_0_1")])
    #expect(try tested.insert("User", [["name": .string("new")]]) == [13])
    try tested.store.close()
    #expect(try StoreUnderTest(folder, model).all("User").count == 13)
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set")) func `a store with a relationship contains what plain SQL reads`() throws
  {
    let folder = TemporaryFolder()
    try copy("CoreDataMigrationRevised/stores/CoreDataMigration_Example_3.sqlite", to: folder)
    let post = try SQL.rows(folder.file(), "SELECT Z_PK, ZDATE, ZHEXCOLOR, ZPOSTID FROM ZPOST ORDER BY Z_PK")
    let sections = try SQL.rows(folder.file(), "SELECT ZPOST, Z_PK FROM ZSECTION ORDER BY ZPOST, Z_PK")
    let tested = try StoreUnderTest(
      folder,
      try ManagedObjectModel(entities: [
        EntityDescription(
          "Post",
          attributes: [
            AttributeDescription("date", .date, isOptional: true), AttributeDescription("hexColor", .string, isOptional: true),
            AttributeDescription("postID", .string, isOptional: true),
          ],
          relationships: [.toMany("sections", to: "Section", inverse: "post", isOptional: false, deleteRule: .cascade)]),
        EntityDescription(
          "Section",
          attributes: [
            AttributeDescription("body", .string, isOptional: true), AttributeDescription("index", .integer16, isOptional: true),
            AttributeDescription("title", .string, isOptional: true),
          ], relationships: [.toOne("post", to: "Post", inverse: "sections")]),
      ]))
    let rows = try tested.all("Post")
    #expect(rows.map(\.key.description) == post.map { $0[0] })
    #expect(rows.map { $0[1] } == post.map { $0[2] == "NULL" ? .null : .string($0[2]) })
    #expect(!sections.isEmpty)
    let targets = try tested.targets("Post", "sections", rows.map(\.key))
    #expect(
      targets == rows.map { row in sections.filter { $0[0] == row.key.description }.compactMap { Int64($0[1]).map { ObjectKey($0) } } })
    #expect(try tested.all("Section").count == sections.count)
  }
}
