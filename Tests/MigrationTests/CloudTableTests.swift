import Holdfast
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Tables in which Core Data mirrors a store to CloudKit. Holdfast doesn't use them. Only migrations change them, because they contain the
/// numbers of entities.
@Suite struct CloudTableTests {
  private let place = MigratedStore.Place(.coreData)
  private let versions: [ManagedObjectModel]

  init() throws {
    func zoo(_ attributes: [AttributeDescription], with others: [EntityDescription]) throws -> ManagedObjectModel {
      try model(
        others + [
          EntityDescription("Dog", attributes: attributes, relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
          EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
        ])
    }
    let age = AttributeDescription("age", .integer64, default: 3), note = AttributeDescription("note", .string, isOptional: true)
    // Another entity that comes first, and a table that is copied.
    versions = [try zoo([], with: []), try zoo([age], with: [.init("Ant")]), try zoo([age, note], with: [.init("Ant")])]
    try place.fill(versions[0]) { context in
      for tag in ["a", "b"] { try context.add("Dog", tag).setValue([try context.add("Walk", tag + "1")], forKey: "walks") }
    }
    for statement in try Self.statements(dog: number(of: "Dog", in: place.path)) { _ = try SQL.rows(place.path, statement) }
  }

  /// A part of the tables that Core Data creates, with a record for each dog.
  private static func statements(dog: String) -> [String] {
    [
      """
      CREATE TABLE ANSCKDATABASEMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDATABASESCOPENUM INTEGER, \
      ZLASTFETCHDATE TIMESTAMP, ZDATABASENAME VARCHAR, ZCURRENTCHANGETOKEN BLOB )
      """,
      """
      CREATE TABLE ANSCKRECORDMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZENTITYID INTEGER, ZENTITYPK INTEGER, \
      ZNEEDSUPLOAD INTEGER, ZCKRECORDNAME VARCHAR, ZENCODEDRECORD BLOB )
      """,
      """
      CREATE UNIQUE INDEX Z_ANSCKRecordMetadata_UNIQUE_entityId_entityPK ON ANSCKRECORDMETADATA \
      (ZENTITYID COLLATE BINARY ASC, ZENTITYPK COLLATE BINARY ASC)
      """,
      "INSERT INTO ANSCKDATABASEMETADATA VALUES (1, 17002, 4, 2, 801234567.25, 'iCloud.org.example.zoo', x'0001ff')",
      "INSERT INTO ANSCKRECORDMETADATA SELECT Z_PK, 17012, 1, \(dog), Z_PK, Z_PK = 2, 'record ' || Z_PK, zeroblob(Z_PK) FROM ZDOG",
      "INSERT INTO Z_PRIMARYKEY VALUES (17002, 'NSCKDatabaseMetadata', 0, 1), (17012, 'NSCKRecordMetadata', 0, 2)",
    ]
  }

  private func number(of entity: String, in path: String) throws -> String {
    try #require(try SQL.rows(path, "SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = '\(entity)'").first?.first)
  }

  /// The definitions and rows of the tables, and their entities.
  private func tables(_ path: String) throws -> [[String]] {
    #expect(try SQL.rows(path, "PRAGMA integrity_check") == [["ok"]])
    let definitions = try SQL.rows(path, "SELECT type, name, sql FROM sqlite_master WHERE tbl_name LIKE 'ANSCK%' ORDER BY name")
    let entities = try SQL.rows(path, "SELECT * FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000 ORDER BY Z_ENT")
    let rows = try ["ANSCKDATABASEMETADATA", "ANSCKRECORDMETADATA"].flatMap { table in
      let columns = try SQL.rows(path, "SELECT name FROM pragma_table_info('\(table)')").map { "quote(\($0[0]))" }
      return try SQL.rows(path, "SELECT \(columns.joined(separator: ", ")) FROM \(table) ORDER BY Z_PK")
    }
    #expect(definitions.count == 3 && entities.count == 2 && rows.count == 3)
    return definitions + entities + rows
  }

  @Test func savesLeaveThem() throws {
    let before = try tables(place.path)
    try place.change(versions[0]) { context in
      try context.add("Dog", "c")
      try context.tagged("Dog", "a").setValue(StoreValue.string("other"), forKey: "tag")
      context.delete(try context.tagged("Dog", "b"))
    }
    #expect(try tables(place.path) == before)
  }

  /// What the records name: the entity, the key and the tag of an object.
  private func recorded(_ path: String) throws -> [[String]] {
    try SQL.rows(
      path,
      """
      SELECT p.Z_NAME, r.ZENTITYPK, d.ZTAG, r.ZCKRECORDNAME FROM ANSCKRECORDMETADATA AS r JOIN Z_PRIMARYKEY AS p ON p.Z_ENT = r.ZENTITYID
      JOIN ZDOG AS d ON d.Z_PK = r.ZENTITYPK AND d.Z_ENT = r.ZENTITYID ORDER BY 2
      """)
  }

  /// Core Data takes the numbers from the model, so another entity that comes first changes them.
  @Test func migrationsReplaceTheNumbersOfEntitiesInThem() throws {
    let path = place.path, names = try recorded(path), before = try tables(path)
    #expect(names.map { $0[2] } == ["a", "b"])
    #expect(try place.contents(versions[1], from: versions).prefix(2) == ["Dog a: age=3 walks=[a1]", "Dog b: age=3 walks=[b1]"])
    #expect(try number(of: "Dog", in: path) == "2" && recorded(path) == names)
    let after = try tables(path)
    // The definitions, the entities and the database's row are the same.
    #expect(after.prefix(6) == before.prefix(6) && after != before)
    // A plan works on a copy, which takes the store's place.
    var plan = MigrationPlan(from: versions[1])
    plan.add(versions[2], named: "notes") { stage in try stage.forEach("Dog") { _, new in try new.setValue("x", forKey: "note") } }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: versions), with: plan)
    #expect(try tables(path) == after && recorded(path) == names)
    #expect(try place.contents(versions[2], from: versions).first == "Dog a: age=3 note=x walks=[a1]")
  }

  /// Dogs get the number of the walks, whose record has the key of one of theirs.
  @Test func recordsOfARemovedEntityAreDeleted() throws {
    let walk = try number(of: "Walk", in: place.path)
    _ = try SQL.rows(place.path, "INSERT INTO ANSCKRECORDMETADATA VALUES (3, 17012, 1, \(walk), 1, 0, 'walk', NULL)")
    let names = try recorded(place.path), dogs = try model(EntityDescription("Ant"), EntityDescription("Dog"))
    #expect(try place.contents(dogs, from: [versions[0]]).count == 2)
    #expect(try number(of: "Dog", in: place.path) == walk && recorded(place.path) == names && names.count == 2)
    #expect(try SQL.rows(place.path, "SELECT COUNT(*) FROM ANSCKRECORDMETADATA") == [["2"]])
  }

  /// The bug: it would have run, although the same trigger of a model's table is refused.
  @Test func aTriggerOfThemIsRefused() throws {
    let path = place.path, before = try tables(path)
    try SQL.run(path, "CREATE TRIGGER t AFTER UPDATE ON ANSCKRECORDMETADATA BEGIN DELETE FROM ZDOG; END")
    let error = #expect(throws: (any Error).self) { try place.contents(versions[1], from: versions) }
    #expect("\(error as Any)".contains("trigger t: Only triggers of derived attributes may run"), "\(error as Any)")
    try SQL.run(path, "DROP TRIGGER t")
    #expect(try tables(path) == before && SQL.rows(path, "SELECT COUNT(*) FROM ZDOG") == [["2"]])
    #expect(try place.contents(versions[1], from: versions).count == 4)
  }

  @Test func copiesAndRepairsKeepThem() throws {
    let before = try tables(place.path), copy = MigratedStore.Place(.coreData), repaired = MigratedStore.Place(.coreData)
    try PersistentStoreCoordinator.replacePersistentStore(copy.description, withCopyOf: place.description)
    #expect(try tables(copy.path) == before)
    let report = try PersistentStoreCoordinator.repairPersistentStore(place.description, to: repaired.description, model: versions[0])
    #expect(report.damagedPlaceCount == 0 && report.unreadableCount == 0 && report.objectCount == 4, "\(report)")
    #expect(try tables(repaired.path) == before)
  }
}
