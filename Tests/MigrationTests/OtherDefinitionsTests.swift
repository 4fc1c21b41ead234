import Holdfast
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Views and triggers of other programs, which use a model's tables. Holdfast doesn't use them, and leaves them as they are.
@Suite struct OtherDefinitionsTests {
  @Test(arguments: [MigratedStore.sqlite, .coreData], [true, false])
  func migrationsLeaveViewsAndTriggersThatUseTablesOfTheModel(store: MigratedStore, hasLog: Bool) throws {
    func zoo(_ attributes: [AttributeDescription]) throws -> ManagedObjectModel {
      try model([
        EntityDescription("Cat", attributes: attributes, relationships: [.toMany("dogs", to: "Dog", inverse: "cats")]),
        EntityDescription("Dog", relationships: [.toMany("cats", to: "Cat", inverse: "dogs")]),
      ])
    }
    let former = try zoo([]), new = try zoo([AttributeDescription("age", .integer64, default: 3)])
    let place = MigratedStore.Place(store, hasLog: hasLog)
    try place.fill(former) { context in try context.add("Cat", "a").setValue([try context.add("Dog", "b")], forKey: "dogs") }
    try SQL.run(
      place.path,
      """
      CREATE VIEW cats AS SELECT ZTAG FROM ZCAT; CREATE VIEW broken AS SELECT a FROM missing; CREATE TABLE log (a);
      CREATE TRIGGER counts AFTER INSERT ON log BEGIN UPDATE log SET a = (SELECT COUNT(*) FROM ZCAT); END
      """)
    let definitions = "SELECT name, tbl_name, sql FROM sqlite_master WHERE name IN ('cats', 'broken', 'log', 'counts') ORDER BY name"
    let before = try SQL.rows(place.path, definitions)
    #expect(try place.contents(new, from: [former]) == ["Cat a: age=3 dogs=[b]", "Dog b: cats=[a]"])
    #expect(try SQL.rows(place.path, definitions) == before && before.count == 4)
    try SQL.run(place.path, "INSERT INTO log VALUES (0)")
    #expect(try SQL.rows(place.path, "SELECT ZTAG, a FROM cats, log") == [["a", "1"]])
  }
}
