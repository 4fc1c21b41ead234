import Foundation
import HoldfastStore
import HoldfastStoreConformance
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct SaveTests {
  private func people() throws -> (TemporaryFolder, StoreUnderTest) {
    let folder = TemporaryFolder()
    return (folder, try StoreUnderTest(folder, try TestModels.peopleModel()))
  }

  @Test func `saved objects are there after reopening`() throws {
    let (folder, tested) = try people()
    let keys = try tested.insert("Person", (1...3).map { ["id": .int64($0), "name": .string("n\($0)")] })
    #expect(keys == [1, 2, 3])
    let uuid = tested.metadata.identity.storeUUID
    try tested.store.close()
    let again = try StoreUnderTest(folder, tested.model)
    #expect(again.metadata.identity.storeUUID == uuid)
    #expect(
      try again.all("Person").map { $0[try #require(try again.entity("Person").slot(named: "name"))] } == [
        .string("n1"), .string("n2"), .string("n3"),
      ])
    #expect(try again.insert("Person", [["id": .int64(9)]]) == [4])
  }

  /// Reserving keys doesn't wait for the disk; a save does.
  @Test func `commits wait for the disk even after reserving keys failed`() throws {
    let (folder, tested) = try people()
    let store = try tested.store.opened("look at the writer")
    func syncing() throws -> Int64? { try store.writing("look at the writer") { try $0.int64("PRAGMA synchronous") } }
    #expect(try syncing() == 3)
    _ = try SQL.rows(folder.file(), "DELETE FROM Z_PRIMARYKEY")
    let error = #expect(throws: StoreError.self) { try tested.store.reserveKeys(entity: tested.entity("Company").index, count: 1) }
    #expect(error?.code == .damaged)
    #expect(try syncing() == 3)
  }

  /// A store with such a trigger can't be opened for writing.
  @Test func `a new row that a trigger leaves out is an error`() throws {
    let (folder, tested) = try people()
    try tested.insert("Person", [["id": .int64(1)]])
    try SQL.run(folder.file(), "CREATE TRIGGER t BEFORE INSERT ON ZPERSON WHEN NEW.ZID = 3 BEGIN SELECT RAISE(IGNORE); END")
    let error = try thrown { _ = try tested.insert("Person", [["id": .int64(2)], ["id": .int64(3)]]) }
    #expect(error.code == .unsafeSchema && error.reason.contains("ZPERSON"), "\(error)")
    #expect(try tested.all("Person").count == 1)
    try SQL.run(folder.file(), "DROP TRIGGER t")
    try tested.insert("Person", [["id": .int64(2)], ["id": .int64(3)]])
    #expect(try tested.all("Person").count == 3)
  }

  @Test func `a prepared save is invisible until its commit and has no effect after an abort`() throws {
    let (_, tested) = try people()
    var changes = SaveRequest.EntityChanges(entity: try tested.entity("Company").index)
    changes.inserted = [try tested.batch("Company", [(1, 1, ["name": .string("A")])])]
    let request = SaveRequest(entities: [changes])
    let aborted = try tested.store.prepare(request)
    #expect(try tested.all("Company").isEmpty)
    aborted.abort()
    #expect(try tested.all("Company").isEmpty)
    let committed = try tested.store.prepare(request)
    #expect(try tested.all("Company").isEmpty)
    try committed.commit()
    #expect(try tested.all("Company").count == 1)
  }

  @Test func `an update writes only the changed columns and increments the version`() throws {
    let (_, tested) = try people()
    try tested.insert("Person", [["id": .int64(1), "name": .string("a"), "age": .int16(3)]])
    try tested.update("Person", [(1, 1, ["id": .int64(99), "name": .string("b")], ["name"])])
    #expect(try tested.value("Person", 1, "id") == .int64(1))
    #expect(try tested.value("Person", 1, "name") == .string("b"))
    #expect(try tested.value("Person", 1, "age") == .int16(3))
    #expect(try tested.row("Person", 1)?.version == 2)
    try tested.update("Person", [(1, 2, [:], [])])
    #expect(try tested.row("Person", 1)?.version == 3)
    #expect(try tested.value("Person", 1, "name") == .string("b"))
  }

  @Test func `all rows with other versions are reported at once with their current values, and nothing is saved`() throws {
    let (_, tested) = try people()
    try tested.insert("Person", (1...5).map { ["id": .int64($0), "name": .string("old")] })
    try tested.update("Person", [(2, 1, ["name": .string("theirs")], ["name"])])
    try tested.save(try tested.deletion("Person", [3]))
    var changes = SaveRequest.EntityChanges(entity: try tested.entity("Person").index)
    changes.updated = [
      try tested.updates("Person", [1, 2, 3].map { (ObjectKey($0), 1, ["name": .string("mine")], ["name"]) })
    ]
    changes.deleted = SaveRequest.KeyedRows(keys: [4], expectedVersions: [8])
    changes.locked = SaveRequest.KeyedRows(keys: [5], expectedVersions: [7])
    let error = try thrown { _ = try tested.store.prepare(SaveRequest(entities: [changes])) }
    #expect(error.code == .conflict)
    #expect(Set(error.conflicts.map(\.objectID.key)) == [2, 3, 4, 5])
    let second = try #require(error.conflicts.first { $0.objectID.key == 2 })
    #expect(second.expectedVersion == 1)
    #expect(second.persisted?.version == 2)
    #expect(second.persisted?[try #require(try tested.entity("Person").slot(named: "name"))] == .string("theirs"))
    #expect(error.conflicts.first { $0.objectID.key == 3 }?.persisted == nil)
    #expect(try tested.value("Person", 1, "name") == .string("old"))
  }

  @Test func `all violated constraints are reported at once with the objects that have the values`() throws {
    let (_, tested) = try people()
    try tested.insert("Person", (1...4).map { ["id": .int64($0)] })
    var changes = SaveRequest.EntityChanges(entity: try tested.entity("Person").index)
    changes.inserted = [try tested.batch("Person", [(10, 1, ["id": .int64(1)]), (11, 1, ["id": .int64(50)]), (12, 1, ["id": .int64(50)])])]
    changes.updated = [try tested.updates("Person", [(2, 1, ["id": .int64(3)], ["id"])])]
    let error = try thrown { _ = try tested.store.prepare(SaveRequest(entities: [changes])) }
    #expect(error.code == .constraintConflict)
    let pairs = error.constraintConflicts.map { [$0.objectID.key, $0.existing?.key ?? 0] }
    #expect(Set(pairs) == [[2, 3], [10, 1], [12, 11]])
    #expect(error.constraintConflicts.allSatisfy { $0.constraint == ["id"] })
    #expect(try tested.all("Person").count == 4)
  }

  @Test func `a save can exchange the values of a constraint, and reuse those of a deleted row`() throws {
    let (_, tested) = try people()
    try tested.insert("Person", (1...3).map { ["id": .int64($0)] })
    try tested.update("Person", [(1, 1, ["id": .int64(2)], ["id"]), (2, 1, ["id": .int64(1)], ["id"])])
    #expect(try tested.value("Person", 1, "id") == .int64(2))
    #expect(try tested.value("Person", 2, "id") == .int64(1))
    var request = try tested.deletion("Person", [3])
    request.entities[0].inserted = [try tested.batch("Person", [(20, 1, ["id": .int64(3)])])]
    try tested.save(request)
    #expect(try tested.all("Person").map(\.key) == [1, 2, 20])
  }

  @Test func `many first rows are stored with all indexes, and constraints hold among them`() throws {
    let (folder, tested) = try people()
    try tested.insert("Person", (0..<3000).map { ["id": .int64($0), "name": .string("n\($0)")] })
    let error = try thrown { try tested.insert("Person", [["id": .int64(17)]]) }
    #expect(error.code == .constraintConflict)
    try tested.store.close()
    let names = try SQL.rows(
      folder.file(), "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'ZPERSON' ORDER BY 1")
    #expect(names == [["ZPERSON_ZEMPLOYER_INDEX"], ["Z_Person_UNIQUE_id"], ["Z_Person_byName"]])
    let second = TemporaryFolder()
    let other = try StoreUnderTest(second, tested.model)
    let twice = try thrown { try other.insert("Person", (0..<2000).map { ["id": .int64($0 % 1999)] }) }
    #expect(twice.constraintConflicts.map(\.objectID.key) == [2000])
    #expect(try other.all("Person").isEmpty)
  }

  @Test func `a save of many first rows runs only the definitions of indexes`() throws {
    let (folder, tested) = try people()
    try tested.insert("Company", [["name": .string("A")], ["name": .string("B")]])
    // Not when the store is opened, which refuses it.
    try SQL.run(
      folder.file(),
      "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = sql || '; DELETE FROM ZCOMPANY' WHERE name = 'Z_Person_byName'")
    _ = try thrown { try tested.insert("Person", (0..<2000).map { ["id": .int64($0)] }) }
    #expect(try tested.all("Company").count == 2)
    #expect(try tested.all("Person").isEmpty)
  }

  @Test func `deleting a row removes the links to it and increments versions once`() throws {
    let (_, tested) = try people()
    let companies = try tested.insert("Company", [["name": .string("A")], ["name": .string("B")]])
    let person = try tested.entity("Person")
    var links = SaveRequest.LinkChanges(entity: person.index, relationship: try #require(person.relationship(named: "friendOf")).index)
    links.added = [.init(source: 1, target: 2), .init(source: 2, target: 3), .init(source: 3, target: 1)]
    try tested.insert(
      "Person", (1...3).map { ["id": .int64($0), "employer": .objectID(try! tested.id("Company", companies[$0 == 3 ? 1 : 0]))] },
      links: [links])
    #expect(try tested.targets("Person", "friendOf", [1, 2, 3]) == [[2], [3], [1]])
    #expect(try tested.targets("Person", "friends", [1, 2, 3]) == [[3], [1], [2]])
    #expect(try tested.targets("Company", "employees", companies) == [[1, 2], [3]])
    try tested.save(try tested.deletion("Company", [companies[0]]))
    #expect(try tested.value("Person", 1, "employer") == .null)
    #expect(try [1, 2, 3].map { try tested.row("Person", $0)?.version } == [2, 2, 1])
    try tested.save(try tested.deletion("Person", [2], versions: [2]))
    #expect(try tested.targets("Person", "friendOf", [1, 2, 3]) == [[], [], [1]])
    #expect(try tested.targets("Person", "friends", [1, 2, 3]) == [[3], [], []])
  }

  /// One statement inserts 16 links, and the rest is inserted one by one.
  @Test func `any number of links is inserted, with few statements, and links that exist are left alone`() throws {
    let (_, tested) = try people()
    let keys = try tested.insert("Person", (1...40).map { ["id": .int64($0)] }), size = LinkInsertion.linksPerStatement
    let person = try tested.entity("Person"), friendOf = try #require(person.relationship(named: "friendOf")).index
    func add(_ targets: some Sequence<ObjectKey>, to source: ObjectKey) throws -> Int {
      var links = SaveRequest.LinkChanges(entity: person.index, relationship: friendOf)
      links.added = targets.map { SaveRequest.Link(source: source, target: $0) }
      let before = tested.store.statementCount
      try tested.save(SaveRequest(entities: [], links: [links]))
      return tested.store.statementCount - before
    }
    _ = try add(keys.prefix(1), to: keys[0])
    let one = try add(keys[1..<2], to: keys[0])
    for (place, count) in [size - 1, size, size + 1, 2 * size - 1, 2 * size, 2 * size + 1].enumerated() {
      let source = keys[place + 1], statements = try add(keys.prefix(count), to: source)
      #expect(try tested.targets("Person", "friendOf", [source]) == [Array(keys.prefix(count))])
      #expect(statements - one == count / size + count % size - 1, "\(count) links")
    }
    // The first and the last three of them aren't in the table.
    _ = try add(keys[3..<17], to: keys[9])
    _ = try add(keys[0..<20], to: keys[9])
    #expect(try tested.targets("Person", "friendOf", [keys[9]]) == [Array(keys[0..<20])])
    #expect(try tested.targets("Person", "friends", [keys[18]]) == [[keys[4], keys[5], keys[6], keys[9]]])
  }

  @Test func `keys are never issued twice`() throws {
    let (folder, tested) = try people()
    let index = try tested.entity("Person").index
    #expect(try tested.store.reserveKeys(entity: index, count: 5) == [1, 2, 3, 4, 5])
    #expect(try tested.store.reserveKeys(entity: index, count: 0) == [])
    try tested.store.close()
    let again = try StoreUnderTest(folder, tested.model)
    #expect(try again.store.reserveKeys(entity: index, count: 2) == [6, 7])
  }

  @Test func `a NaN is refused and nothing is saved`() throws {
    let (_, tested) = try people()
    let error = try thrown { try tested.insert("Person", [["id": .int64(1)], ["id": .int64(2), "height": .double(.nan)]]) }
    #expect(error.code == .unstorableValue)
    #expect(error.reason.contains("Person.height"))
    #expect(try tested.all("Person").isEmpty)
  }
}
