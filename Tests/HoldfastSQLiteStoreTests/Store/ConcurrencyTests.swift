import CHoldfastSQLite
import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Views during saves, other connections on the file, and a full disk.
@Suite struct ConcurrencyTests {
  private func people(_ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> (TemporaryFolder, StoreUnderTest) {
    let folder = TemporaryFolder()
    return (folder, try StoreUnderTest(folder, try TestModels.peopleModel(), options: options))
  }

  @Test func `a snapshot doesn't change while other contexts save, but a view of the latest generation does`() throws {
    let (_, tested) = try people()
    try tested.insert("Company", [["name": .string("A")]])
    let snapshot = try tested.store.beginRead(.snapshot), latest = try tested.store.beginRead(.latest)
    try tested.insert("Company", [["name": .string("B")]])
    #expect(try tested.all("Company", in: snapshot).count == 1)
    #expect(try tested.all("Company", in: latest).count == 2)
    try tested.save(try tested.deletion("Company", [1]))
    #expect(try tested.all("Company", in: snapshot).map(\.key) == [1])
    #expect(try tested.all("Company", in: latest).map(\.key) == [2])
    snapshot.end()
    snapshot.end()
    #expect(try thrown { _ = try tested.all("Company", in: snapshot) }.code == .notOpen)
  }

  @Test func `views return their connections when they end or are released`() throws {
    let (_, tested) = try people(SQLiteStoreOptions(maximumSnapshots: 2))
    for _ in 0..<10 { _ = try tested.store.beginRead(.snapshot) }
    let first = try tested.store.beginRead(.snapshot), second = try tested.store.beginRead(.snapshot)
    #expect(try thrown { _ = try tested.store.beginRead(.snapshot) }.code == .tooManyReadViews)
    first.end()
    let third = try tested.store.beginRead(.snapshot)
    #expect(try tested.all("Company", in: third).isEmpty)
    #expect(try tested.all("Company", in: second).isEmpty)
  }

  @Test func `closing the store ends its views`() throws {
    let (folder, tested) = try people()
    let view = try tested.store.beginRead(.snapshot)
    try tested.store.close()
    #expect(try thrown { _ = try tested.all("Company", in: view) }.code == .notOpen)
    #expect(!FileManager.default.fileExists(atPath: folder.file() + "-wal"))
    _ = try StoreUnderTest(folder, tested.model)
  }

  @Test func `a sink may query the same view again, stop, and throw`() throws {
    // With a single connection, a nested request would wait forever.
    let (_, tested) = try people(SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    try tested.insert("Person", (1...5000).map { ["id": .int64($0), "name": .string(String(repeating: "n", count: 40))] })
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try tested.store.beginRead(kind)
      let sink = CollectingSink()
      var inner: [Int] = []
      sink.onTake = { batch in
        inner.append(
          try tested.fetch(try tested.plan("Person", .comparison(.property("id"), .equalTo, .constant(.int64(7)), [])), in: view).count)
      }
      try tested.store.fetch(try tested.plan("Person"), in: view, into: sink)
      #expect(sink.rows.count == 5000)
      #expect(inner.count > 1 && inner.allSatisfy { $0 == 1 })
      let early = CollectingSink()
      early.enough = 1
      try tested.store.fetch(try tested.plan("Person"), in: view, into: early)
      #expect(early.batches.count == 1)
      let failing = CollectingSink()
      failing.onTake = { _ in throw CancellationError() }
      #expect(throws: CancellationError.self) { try tested.store.fetch(try tested.plan("Person"), in: view, into: failing) }
      #expect(try tested.all("Person", in: view).count == 5000)
      let ending = CollectingSink()
      ending.onTake = { _ in view.end() }
      try tested.store.fetch(try tested.plan("Person"), in: view, into: ending)
      #expect(ending.rows.count == 5000)
    }
  }

  @Test func `rows requested by key are returned once each, for adjacent and for scattered keys`() throws {
    let (_, tested) = try people()
    try tested.insert("Person", (1...2000).map { ["id": .int64($0)] })
    let entity = try tested.entity("Person")
    for keys: [ObjectKey] in [
      [], [5], [7, 3, 9_999, 1], Array(stride(from: 1, through: 2000, by: 3)), (1...3000).shuffled().map { ObjectKey($0) },
      (1...40).map { ObjectKey($0 * 50) },
    ] {
      let sink = CollectingSink()
      try tested.store.rows(FaultRequest(entity: entity.index, keys: keys), in: try tested.store.beginRead(.latest), into: sink)
      #expect(sink.rows.map(\.key).sorted() == keys.filter { $0 <= 2000 }.sorted())
    }
  }

  @Test func `targets are those of each source, few or many, in the order of the request`() throws {
    let (_, tested) = try people()
    let companies = try tested.insert("Company", (0..<50).map { ["name": .string("\($0)")] })
    try tested.insert(
      "Person", try (0..<500).map { ["id": .int64(Int64($0)), "employer": .objectID(try tested.id("Company", companies[$0 * 7 % 50]))] })
    let expected = companies.map { company in (0..<500).filter { companies[$0 * 7 % 50] == company }.map { ObjectKey($0 + 1) } }
    #expect(try tested.targets("Company", "employees", companies) == expected)
    #expect(try tested.targets("Company", "employees", Array(companies.reversed())) == expected.reversed())
    #expect(try tested.targets("Company", "employees", [999, companies[3]]) == [[], expected[3]])
    #expect(try tested.targets("Company", "employees", companies + [60, 61]) == expected + [[], []])
  }

  @Test func `a write lock of another connection makes a save wait, then fail, and no change is lost`() throws {
    let (folder, tested) = try people(SQLiteStoreOptions(busyTimeout: .seconds(0.05)))
    try tested.insert("Company", [["name": .string("A")]])
    var other: OpaquePointer?
    try #require(sqlite3_open(folder.file(), &other) == SQLITE_OK)
    defer { sqlite3_close(other) }
    try #require(sqlite3_exec(other, "BEGIN IMMEDIATE; UPDATE ZCOMPANY SET ZNAME = 'theirs', Z_OPT = 2", nil, nil, nil) == SQLITE_OK)
    let error = try thrown { try tested.update("Company", [(1, 1, ["name": .string("mine")], ["name"])]) }
    #expect(error.code == .locked && error.isRetryable)
    #expect(try tested.value("Company", 1, "name") == .string("A"))
    try #require(sqlite3_exec(other, "COMMIT", nil, nil, nil) == SQLITE_OK)
    let conflict = try thrown { try tested.update("Company", [(1, 1, ["name": .string("mine")], ["name"])]) }
    #expect(conflict.code == .conflict && conflict.conflicts.first?.persisted?.version == 2)
  }

  @Test func `a full disk fails the save without leaving anything behind, and the next save succeeds`() throws {
    let (_, tested) = try people(SQLiteStoreOptions(maximumFileBytes: 60 * 4096))
    try tested.insert("Company", [["name": .string("A")]])
    let error = try thrown { try tested.insert("Company", [["name": .string(String(repeating: "x", count: 400_000))]]) }
    #expect(error.code == .diskFull)
    #expect(try tested.all("Company").count == 1)
    try tested.insert("Company", [["name": .string("B")]])
    #expect(try tested.all("Company").count == 2)
  }

  @Test func `only one save is prepared at a time, and no keys can be reserved meanwhile`() throws {
    let (_, tested) = try people()
    let prepared = try tested.store.prepare(
      SaveRequest(entities: [
        {
          var changes = SaveRequest.EntityChanges(entity: 0)
          changes.inserted = [try tested.batch("Company", [(1, 1, ["name": .string("A")])])]
          return changes
        }()
      ]))
    #expect(try thrown { _ = try tested.store.reserveKeys(entity: 0, count: 1) }.code == .locked)
    #expect(try thrown { _ = try tested.store.prepare(try tested.deletion("Company", [1])) }.code == .locked)
    prepared.abort()
    #expect(try tested.store.reserveKeys(entity: 0, count: 1) == [1])
  }

  @Test func `readers run during saves, and each sees a complete save`() async throws {
    let (_, tested) = try people()
    let store = tested.store, index = try tested.entity("Company").index
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<60 {
            let sink = CollectingSink()
            try store.fetch(FetchPlan(entity: index, concreteEntities: [index]), in: try store.beginRead(.latest), into: sink)
            #expect(sink.rows.count % 10 == 0)
          }
        }
      }
      for _ in 0..<40 { try tested.insert("Company", (0..<10).map { _ in ["name": .string("x")] }) }
      try await group.waitForAll()
    }
    #expect(try tested.all("Company").count == 400)
  }
}
