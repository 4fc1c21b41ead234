import Foundation
import Holdfast
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Triggers with which Core Data maintains derived attributes, in files that it wrote and in a similar one.
@Suite struct DerivedTriggerTests {
  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  /// The model of the corpus file, with Core Data's transformable attributes as bytes.
  private static func books() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Book",
        attributes: [
          .derived("pagesCount", .integer64, "pages.@count"), AttributeDescription("publishedAt", .date, isOptional: true),
          AttributeDescription("price", .decimal, isOptional: true), AttributeDescription("title", .string, isOptional: true),
          AttributeDescription("uniqueID", .uuid, isOptional: true), AttributeDescription("frontCover", .binaryData, isOptional: true),
        ],
        relationships: [
          .toOne("author", to: "Author", inverse: "books"), .toMany("pages", to: "Page", inverse: "book", deleteRule: .cascade),
        ]),
      EntityDescription(
        "GraphicNovel", superentity: "Book", attributes: [AttributeDescription("isBlackAndWhite", .boolean, isOptional: true)]),
      EntityDescription(
        "Feedback",
        attributes: [
          AttributeDescription("rating", .double, isOptional: true), AttributeDescription("authorAlias", .string, isOptional: true),
          AttributeDescription("comment", .string, isOptional: true), AttributeDescription("bookID", .uuid, isOptional: true),
        ]),
      EntityDescription(
        "Page",
        attributes: [
          AttributeDescription("isBookmarked", .boolean, isOptional: true), AttributeDescription("number", .integer32, isOptional: true),
          AttributeDescription("content", .binaryData, isOptional: true),
        ], relationships: [.toOne("book", to: "Book", inverse: "pages")]),
      EntityDescription("Writer", isAbstract: true, attributes: [AttributeDescription("age", .integer16, isOptional: true)]),
      EntityDescription(
        "Author", superentity: "Writer", attributes: [AttributeDescription("alias", .string, isOptional: true)],
        relationships: [.toMany("books", to: "Book", inverse: "author")]),
    ])
  }

  /// Copies a file and sets the model in its metadata.
  private func copy(_ path: String, _ folder: TemporaryFolder, _ model: ManagedObjectModel) throws {
    let from = try #require(Self.corpus) + "/sqlite/" + path
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: from + end) {
      try Data(contentsOf: URL(fileURLWithPath: from + end)).write(to: URL(fileURLWithPath: folder.file() + end))
    }
    let hex = try SQL.rows(folder.file(), "SELECT hex(Z_PLIST) FROM Z_METADATA")[0][0]
    let bytes = stride(from: 0, to: hex.utf8.count, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
    var plist = try #require(try PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any])
    plist["NSStoreModelVersionHashes"] = Dictionary(uniqueKeysWithValues: model.entities.map { ($0.name, Data($0.versionHash)) })
    plist["NSStoreModelVersionHashesDigest"] = nil
    let changed = try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
    _ = try SQL.rows(folder.file(), "UPDATE Z_METADATA SET Z_PLIST = x'\(changed.map { String(format: "%02x", $0) }.joined())'")
  }

  /// A file of Holdfast with the triggers of the corpus file, but without calls of Apple's functions, which plain SQL can't run.
  private func makeFile(_ folder: TemporaryFolder, _ model: ManagedObjectModel) throws {
    try PersistentStoreCoordinator(model: model, store: .sqlite(at: folder.file())).close()
    for trigger in [
      "PARAMETER_INSERT AFTER INSERT ON ZPAGE FOR EACH ROW WHEN (NEW.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = IFNULL(ZPAGESCOUNT, 0) + 1 WHERE Z_PK = NEW.ZBOOK; SELECT NSCoreDataDATriggerUpdatedAffectedObjectValue('ZBOOK', Z_ENT, Z_PK, 'pagesCount', ZPAGESCOUNT) FROM ZBOOK WHERE Z_PK = NEW.ZBOOK; END",
      "PARAMETER_UPDATE_INCREMENT AFTER UPDATE OF ZBOOK ON ZPAGE FOR EACH ROW WHEN (NEW.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZPAGESCOUNT + 1 WHERE Z_PK = NEW.ZBOOK; END",
      "PARAMETER_UPDATE_DECREMENT AFTER UPDATE OF ZBOOK ON ZPAGE FOR EACH ROW WHEN (OLD.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZPAGESCOUNT - 1 WHERE Z_PK = OLD.ZBOOK; END",
      "PARAMETER_DELETE AFTER DELETE ON ZPAGE FOR EACH ROW WHEN (OLD.ZBOOK NOT NULL) BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = ZPAGESCOUNT - 1 WHERE Z_PK = OLD.ZBOOK; END",
    ] { _ = try SQL.rows(folder.file(), "CREATE TRIGGER Z_DA_ZPAGE_Book_pagesCount_\(trigger)") }
    _ = try SQL.rows(
      folder.file(),
      "CREATE TRIGGER Z_DA_ZBOOK_Book_pagesCount_SOURCE_INSERT AFTER INSERT ON ZBOOK FOR EACH ROW BEGIN UPDATE ZBOOK SET ZPAGESCOUNT = (SELECT IFNULL(COUNT(ZBOOK), 0) FROM ZPAGE WHERE ZBOOK = NEW.Z_PK) WHERE Z_PK = NEW.Z_PK; END"
    )
  }

  /// Inserts, moves and deletes pages, and compares the counts with those of plain SQL.
  private func exercise(_ folder: TemporaryFolder, _ model: ManagedObjectModel) throws {
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: folder.file()))
    let context = try ManagedObjectContext(coordinator: coordinator)
    func page(of book: ManagedObject) throws -> ManagedObject {
      let page = try context.insert(entityNamed: "Page")
      try page.setValue(.int32(1), forKey: "number")
      try book.toMany(forKey: "pages").insert(page)
      return page
    }
    func expectRight(_ step: String) throws {
      try context.save()
      let wrong = try SQL.rows(
        folder.file(), "SELECT Z_PK FROM ZBOOK AS b WHERE ZPAGESCOUNT IS NOT (SELECT COUNT(*) FROM ZPAGE WHERE ZBOOK = b.Z_PK)")
      #expect(wrong.isEmpty, "\(step)")
      for book in try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")) {
        #expect(try book.value(forKey: "pagesCount") == .int64(Int64(try book.toMany(forKey: "pages").count)), "\(step)")
      }
    }
    let new = try context.insert(entityNamed: "Book"), novel = try context.insert(entityNamed: "GraphicNovel")
    let pages = try (0..<3).map { _ in try page(of: new) }
    _ = try page(of: novel)
    try expectRight("new books with pages")
    for _ in 0..<2 { _ = try page(of: new) }
    try new.setValue(.string("Title"), forKey: "title")
    try expectRight("more pages of a book that changes itself")
    try novel.toMany(forKey: "pages").insert(pages[0])
    context.delete(pages[1])
    try expectRight("a page moves and one goes")
    let old = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).min { $0.objectID.key < $1.objectID.key })
    try old.toMany(forKey: "pages").insert(pages[0])
    _ = try page(of: old)
    try expectRight("pages of a book that was there")
    context.delete(new)
    try expectRight("a book goes with its pages")
    try coordinator.close()
  }

  @Test func `triggers and the stack don't count a page twice`() throws {
    let folder = TemporaryFolder(), model = try Self.books()
    try makeFile(folder, model)
    try exercise(folder, model)
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set"), arguments: [1, 2])
  func `counts stay correct in a Core Data file with such triggers`(_ version: Int) throws {
    let folder = TemporaryFolder(), model = try Self.books()
    try copy("CoreDataPlus/Tests/Resources/SampleModel2/Fixtures/SampleModel2_V\(version).sqlite", folder, model)
    if version == 1 { _ = try SQL.rows(folder.file(), "ALTER TABLE ZBOOK RENAME COLUMN ZCOVER TO ZFRONTCOVER") }
    let before = try SQL.rows(folder.file(), "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name")
    #expect(before.count == 5)
    try exercise(folder, model)
    #expect(try SQL.rows(folder.file(), "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name") == before)
  }

  // MARK: Migrations

  private func triggers(_ folder: TemporaryFolder) throws -> [[String]] {
    try SQL.rows(folder.file(), "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name")
  }

  /// Both tables are copied, because their rows get a value.
  @Test func `a migration keeps triggers, and counts stay correct`() throws {
    let folder = TemporaryFolder(), model = try Self.books()
    try makeFile(folder, model)
    var entities = model.declarations
    for place in entities.indices where ["Book", "Page"].contains(entities[place].name) {
      entities[place].attributes.append(AttributeDescription("note", .string, default: .string("?")))
    }
    let new = try ManagedObjectModel(entities: entities), before = try triggers(folder)
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: folder.file()), to: new)
    #expect(try triggers(folder) == before && before.count == 5)
    try exercise(folder, new)
  }

  /// They would fail, or overwrite a value that belongs to the program now.
  @Test(arguments: [false, true]) func `a migration removes the triggers of an attribute that is no longer derived`(isKept: Bool) throws {
    let folder = TemporaryFolder(), model = try Self.books()
    try makeFile(folder, model)
    var entities = model.declarations
    let book = try #require(entities.firstIndex { $0.name == "Book" })
    entities[book].attributes.removeAll { $0.name == "pagesCount" }
    if isKept { entities[book].attributes.append(AttributeDescription("pagesCount", .integer64, isOptional: true)) }
    let new = try ManagedObjectModel(entities: entities)
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: folder.file()), to: new)
    #expect(try triggers(folder).isEmpty)
    let coordinator = try PersistentStoreCoordinator(model: new, store: .sqlite(at: folder.file()))
    let context = try ManagedObjectContext(coordinator: coordinator), object = try context.insert(entityNamed: "Book")
    if isKept { try object.setValue(.int64(7), forKey: "pagesCount") }
    try object.toMany(forKey: "pages").insert(try context.insert(entityNamed: "Page"))
    try context.save()
    try coordinator.close()
    if isKept { #expect(try SQL.rows(folder.file(), "SELECT ZPAGESCOUNT FROM ZBOOK") == [["7"]]) }
  }

  /// All tables, triggers and rows. The migration has begun by then, so bytes of the header differ.
  private func content(_ folder: TemporaryFolder) throws -> [[[String]]] {
    try [
      "SELECT type, name, sql FROM sqlite_master ORDER BY name", "SELECT * FROM ZBOOK", "SELECT * FROM ZPAGE",
      "SELECT Z_UUID, hex(Z_PLIST) FROM Z_METADATA", "SELECT * FROM Z_PRIMARYKEY",
    ].map { try SQL.rows(folder.file(), $0) }
  }

  @Test func `triggers that don't fit the new model end the migration, and the content is unchanged`() throws {
    let folder = TemporaryFolder(), model = try Self.books()
    try makeFile(folder, model)
    try exercise(folder, model)
    var entities = model.declarations
    let book = try #require(entities.firstIndex { $0.name == "Book" }), page = try #require(entities.firstIndex { $0.name == "Page" })
    // The triggers name its column.
    entities[page].relationships[0].name = "volume"
    entities[page].relationships[0].renamingIdentifier = "book"
    for place in entities[book].relationships.indices where entities[book].relationships[place].name == "pages" {
      entities[book].relationships[place].inverse = "volume"
    }
    let new = try ManagedObjectModel(entities: entities), before = try content(folder)
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: folder.file()), to: new)
    }
    #expect(error?.path == folder.file() && error?.reason.contains("The file has triggers") == true, "\(error as Any)")
    #expect(error?.reason.contains("Copy the store with copyPersistentStore") == true)
    #expect(try content(folder) == before && before[1].count > 0)
    try exercise(folder, model)
  }

  /// The books with an entity before them, and another kind of book.
  private static func moreBooks() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: books().declarations + [EntityDescription("Album"), EntityDescription("Atlas", superentity: "Book")])
  }

  /// Core Data's triggers of a relationship to an entity with subentities compare the entity's number.
  @Test func `a migration replaces the numbers of entities in triggers`() throws {
    let folder = TemporaryFolder(), model = try Self.books(), new = try Self.moreBooks()
    try makeFile(folder, model)
    for trigger in try triggers(folder) {
      var sql = trigger[1]
      for row in ["NEW.ZBOOK", "OLD.ZBOOK"] {
        sql = sql.replacingOccurrences(of: "Z_PK = \(row)", with: "Z_PK = \(row) AND 1 <= Z_ENT AND Z_ENT <= 2")
      }
      try SQL.run(folder.file(), "DROP TRIGGER \(trigger[0]); \(sql)")
    }
    try exercise(folder, model)
    let before = try triggers(folder)
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: folder.file()), to: new)
    let expected = before.map { $0.map { $0.replacingOccurrences(of: "1 <= Z_ENT AND Z_ENT <= 2", with: "2 <= Z_ENT AND Z_ENT <= 4") } }
    #expect(try triggers(folder) == expected && expected != before)
    try exercise(folder, new)
  }

  @Test func `names and numbers in a trigger are replaced only if their meaning is known`() throws {
    func library(_ books: ManagedObjectModel) throws -> ManagedObjectModel {
      var entities = books.declarations
      let book = try #require(entities.firstIndex { $0.name == "Book" }), author = try #require(entities.firstIndex { $0.name == "Author" })
      entities[book].relationships += [.toMany("notes", to: "Page", inverse: nil), .toMany("fans", to: "Author", inverse: "favourites")]
      entities[author].relationships.append(.toMany("favourites", to: "Book", inverse: "fans"))
      return try ManagedObjectModel(entities: entities)
    }
    let old = try library(Self.books()), new = try library(Self.moreBooks())
    let schemas = (StoreSchema.predicted(old), StoreSchema.predicted(new))
    let renumbering = TriggerRenumbering(try MappingModel.inferred(from: old, to: new), schemas.0, schemas.1)
    let links = try [schemas.0, schemas.1].map { schema in
      let book = try #require(schema.model.entity(named: "Book"))
      return schema.link(try #require(book.relationships.first { $0.name == "fans" }))
    }
    #expect(links[0].table != links[1].table && links[0].far != links[1].far)
    func statement(_ body: String) -> String? { renumbering.statement("CREATE TRIGGER t AFTER INSERT ON ZPAGE BEGIN \(body); END") }
    func expect(_ body: String, _ changed: String?) {
      #expect(statement(body) == changed.map { "CREATE TRIGGER t AFTER INSERT ON ZPAGE BEGIN \($0); END" })
    }
    expect("UPDATE ZBOOK SET ZA = ZA + 1 WHERE Z_PK = NEW.Z1NOTES", "UPDATE ZBOOK SET ZA = ZA + 1 WHERE Z_PK = NEW.Z2NOTES")
    expect("SELECT \"z1notes\" FROM ZPAGE", "SELECT \"Z2NOTES\" FROM ZPAGE")
    expect("SELECT 'Z1NOTES' FROM \(links[0].table)", "SELECT 'Z1NOTES' FROM \(links[1].table)")
    expect("SELECT \(links[0].near) * \(links[0].far)", "SELECT \(links[1].near) * \(links[1].far)")
    expect("SELECT IFNULL(1, 2) FROM ZA WHERE 5 <= Z_ENT AND Z_ENT <= 6", "SELECT IFNULL(1, 2) FROM ZA WHERE 7 <= Z_ENT AND Z_ENT <= 8")
    expect("SELECT 1 FROM ZPAGE WHERE 2 <= NEW.Z_ENT AND NEW.Z_ENT <= 2", "SELECT 1 FROM ZPAGE WHERE 4 <= NEW.Z_ENT AND NEW.Z_ENT <= 4")
    expect("SELECT f(Z_ENT) FROM ZPAGE WHERE Z_ENT = 4", "SELECT f(Z_ENT) FROM ZPAGE WHERE Z_ENT = 6")
    // The bug: an entity that an earlier migration had added to the file wasn't in the range.
    expect("SELECT 1 FROM ZBOOK WHERE 1 <= Z_ENT AND Z_ENT <= 1", "SELECT 1 FROM ZBOOK WHERE 2 <= Z_ENT AND Z_ENT <= 4")
    // Books have subentities. The others are no conditions of Core Data.
    for condition in [
      "Z_ENT = 1", "1 <= Z_ENT AND Z_ENT <= 3", "9 <= Z_ENT AND Z_ENT <= 9", "Z_ENT <= 2", "Z_ENT IN (1, 2)", "Z_ENT > 1", "Z_ENT < 3",
      "Z_ENT BETWEEN 1 AND 2", "Z_ENT <= ZA", "Z_ENT != 3", "Z_ENT IS 1", "3 = Z_ENT AND 1", "3 > Z_ENT", "1 < NEW.Z_ENT AND 1",
      "ZA <= Z_ENT AND 1", "1 <= Z_ENT + 1", "-Z_ENT AND 1",
    ] { expect("SELECT 1 FROM ZBOOK WHERE \(condition)", nil) }
    // The columns with entities of destinations contain the same numbers.
    let columns = try [schemas.0, schemas.1].map { schema in
      let page = try #require(schema.model.entity(named: "Page")), book = try #require(page.relationships.first { $0.name == "book" })
      return try #require(schema.tables[page.index].entityColumn(book.slot))
    }
    for (condition, changed) in [
      ("1 <= NEW.# AND NEW.# <= 2", "2 <= NEW.# AND NEW.# <= 4"), ("# NOT NULL", "# NOT NULL"), ("# = 1", nil), ("NEW.# > 1", nil),
    ] {
      expect(
        "SELECT 1 FROM ZPAGE WHERE \(condition.replacing("#", with: columns[0]))",
        changed.map { "SELECT 1 FROM ZPAGE WHERE \($0.replacing("#", with: columns[1]))" })
    }
  }

  @Test func `new files have no triggers`() throws {
    let folder = TemporaryFolder()
    try PersistentStoreCoordinator(model: try Self.books(), store: .sqlite(at: folder.file())).close()
    #expect(try SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE type = 'trigger'").isEmpty)
  }
}
