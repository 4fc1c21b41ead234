import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct LayoutTests {
  @Test func `a new file has the tables, columns and indexes of Core Data`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.store.close()
    let found = try SQL.rows(folder.file(), "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").map { $0[0] }
    #expect(
      found == [
        "CREATE TABLE ZCOMPANY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFOUNDED TIMESTAMP, ZNAME VARCHAR )",
        "CREATE TABLE ZPERSON ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAGE INTEGER, ZID INTEGER, ZISACTIVE INTEGER, ZEMPLOYER INTEGER, ZBIRTHDAY TIMESTAMP, ZHEIGHT FLOAT, ZEMAIL VARCHAR, ZNAME VARCHAR, ZNOTES VARCHAR, ZUID BLOB, ZAVATAR BLOB )",
        "CREATE INDEX ZPERSON_ZEMPLOYER_INDEX ON ZPERSON (ZEMPLOYER)",
        "CREATE UNIQUE INDEX Z_Person_UNIQUE_id ON ZPERSON (ZID COLLATE BINARY ASC)",
        "CREATE INDEX Z_Person_byName ON ZPERSON (ZNAME COLLATE BINARY ASC)",
        "CREATE TABLE Z_2FRIENDOF ( Z_2FRIENDS INTEGER, Z_2FRIENDOF INTEGER, PRIMARY KEY (Z_2FRIENDS, Z_2FRIENDOF) )",
        "CREATE INDEX Z_2FRIENDOF_Z_2FRIENDOF_INDEX ON Z_2FRIENDOF (Z_2FRIENDOF, Z_2FRIENDS)",
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
        "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
      ])
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY") == [
        ["1", "Company", "0", "0"], ["2", "Person", "0", "0"],
      ])
    #expect(try SQL.rows(folder.file(), "PRAGMA auto_vacuum") == [["2"]])
    #expect(try SQL.rows(folder.file(), "PRAGMA page_size") == [["4096"]])
    #expect(try SQL.rows(folder.file(), "PRAGMA journal_mode") == [["wal"]])
  }

  @Test func `rows, links and keys are stored as Core Data stores them`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    let company = try tested.insert("Company", [["name": .string("A"), "founded": .date(86_400)]])[0]
    let person = try tested.entity("Person")
    var links = SaveRequest.LinkChanges(entity: person.index, relationship: try #require(person.relationship(named: "friendOf")).index)
    links.added = [SaveRequest.Link(source: 1, target: 2)]
    try tested.insert(
      "Person",
      [
        ["id": .int64(7), "name": .string("x"), "employer": .objectID(try tested.id("Company", company)), "isActive": .bool(true)],
        ["id": .int64(8)],
      ], links: [links])
    try tested.store.close()
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_PK, Z_ENT, Z_OPT, typeof(ZFOUNDED), ZNAME FROM ZCOMPANY") == [
        ["1", "1", "1", "integer", "A"]
      ])
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_PK, Z_ENT, Z_OPT, ZID, ZNAME, ZEMPLOYER, ZISACTIVE FROM ZPERSON")
        == [["1", "2", "1", "7", "x", "1", "1"], ["2", "2", "1", "8", "NULL", "NULL", "NULL"]])
    // friendOf of 1 is 2. The column with the key of the object that has friendOf is named after its inverse, friends.
    #expect(try SQL.rows(folder.file(), "SELECT Z_2FRIENDS, Z_2FRIENDOF FROM Z_2FRIENDOF") == [["1", "2"]])
    #expect(try SQL.rows(folder.file(), "SELECT Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT") == [["1"], ["2"]])
  }

  @Test func `equal names of join columns get digits`() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("A", relationships: [.toMany("tags", to: "Tag", inverse: "as")]),
      EntityDescription("B", relationships: [.toMany("tags", to: "Tag", inverse: "bs")]),
      EntityDescription("Tag", relationships: [.toMany("as", to: "A", inverse: "tags"), .toMany("bs", to: "B", inverse: "tags")]),
    ])
    let schema = StoreSchema.predicted(model)
    let sides = StoreSchema.namingRelationships(model).map { schema.link($0) }
    #expect(
      sides == [
        StoreSchema.LinkSide(table: "Z_1TAGS", near: "Z_1AS", far: "Z_3TAGS"),
        StoreSchema.LinkSide(table: "Z_2TAGS", near: "Z_2BS", far: "Z_3TAGS1"),
      ])
  }

  @Test func `a model that needs the same name twice is refused`() throws {
    let folder = TemporaryFolder()
    for name in ["_primarykey", "_metadata"] {
      let model = try ManagedObjectModel(entities: [EntityDescription(name)])
      #expect(try thrown { _ = try StoreUnderTest(folder, model, name: name) }.code == .unsupportedModel)
    }
    let model = try ManagedObjectModel(entities: [EntityDescription("A", attributes: [AttributeDescription("_pk", .string)])])
    #expect(try thrown { _ = try StoreUnderTest(folder, model, name: "c") }.code == .unsupportedModel)
  }

  /// The order column for a relationship with an inverse, in a table of the destinations' family, and the one for a relationship without
  /// inverse.
  @Test(arguments: [("Part", "_fok_list"), ("Special", "_fok_list"), ("Other", "_fok_list"), ("Part", "_fok_2loose")])
  func `a property that needs the column of an order is refused`(_ entity: String, _ property: String) throws {
    let folder = TemporaryFolder()
    var entities = [
      EntityDescription("Part", relationships: [.toOne("list", to: "Owner", inverse: "parts")]),
      EntityDescription("Special", superentity: "Part"), EntityDescription("Other", superentity: "Part"),
      EntityDescription(
        "Owner",
        relationships: [
          .toMany("parts", to: "Part", inverse: "list", isOrdered: true), .toMany("loose", to: "Part", inverse: nil, isOrdered: true),
        ]),
    ]
    let owner = try ManagedObjectModel(entities: entities).entity(named: "Owner")?.index.rawValue
    _ = try StoreUnderTest(folder, try ManagedObjectModel(entities: entities), name: "sound")
    let name = property.replacing("2", with: "\((owner ?? 0) + 1)")
    let place = try #require(entities.firstIndex { $0.name == entity })
    entities[place].attributes.append(AttributeDescription(name, .integer64, isOptional: true))
    let error = try thrown { _ = try StoreUnderTest(folder, try ManagedObjectModel(entities: entities), name: "refused") }
    #expect(error.code == .unsupportedModel && error.reason.contains("Z" + name.uppercased()), "\(error)")
  }

  @Test func `relationships whose orders would need the same column are refused`() throws {
    let folder = TemporaryFolder()
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Part", relationships: [.toOne("list", to: "Owner", inverse: "a"), .toOne("_list", to: "Owner", inverse: "b")]),
      EntityDescription(
        "Owner",
        relationships: [
          .toMany("a", to: "Part", inverse: "list", isOrdered: true), .toMany("b", to: "Part", inverse: "_list", isOrdered: true),
        ]),
    ])
    let error = try thrown { _ = try StoreUnderTest(folder, model) }
    #expect(error.code == .unsupportedModel && error.reason.contains("Z_FOK_LIST"), "\(error)")
  }
}
