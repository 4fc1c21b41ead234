import Foundation
import HoldfastAtomicStore
import HoldfastStore
import TestSupport
import Testing

#if os(Linux)
  /// The memory that migrations take, as the operating system counts it. Each is measured in a process of its own.
  @Suite(.serialized, .ownThreads) struct MigrationMemoryTests {
    /// 64 MB for 1,000,000 objects. The part that doesn't depend on their number is for buffers of files.
    private static func limit(_ count: Int) -> Int { (8 << 20) + 56 * count }

    /// The number of people of most tests.
    private static let count = TestTier.count(200_000, full: 1_000_000)

    /// The folder of the stores that tests copy. It is deleted when the process ends.
    private static let originals: TemporaryFolder = {
      atexit { try? FileManager.default.removeItem(at: MigrationMemoryTests.originals.url) }
      return TemporaryFolder()
    }()

    /// Whole files with that number of people, by their type.
    private static let filled = Result { () throws -> [MigratedStore: MigratedPeople] in
      try Dictionary(
        uniqueKeysWithValues: [MigratedStore.json, .xml, .binary].map { store in
          let people = MigratedPeople(store: store, path: originals.file("\(store)"))
          try people.fill(count)
          return (store, people)
        })
    }

    /// A copy of a whole file in a folder.
    private func copy(_ store: MigratedStore, in folder: TemporaryFolder) throws -> MigratedPeople {
      let people = MigratedPeople(store: store, path: folder.file("Store"))
      try FileManager.default.copyItem(atPath: #require(try Self.filled.get()[store]).path, toPath: people.path)
      return people
    }

    /// A random type of whole files, or all in the full tier. Migrations, copies and previews read and write each type.
    private static func someWholeFiles() -> [MigratedStore] {
      Array([MigratedStore.json, .xml, .binary].shuffled().prefix(TestTier.isFull ? 3 : 1))
    }

    @Test(arguments: [MigratedStore.json, .xml, .binary], MigratedPeople.Change.allCases)
    func aMigrationOfAWholeFileTakes64MBForAMillionObjects(store: MigratedStore, change: MigratedPeople.Change) async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = try copy(store, in: folder)
      let count = Self.count, limit = Self.limit(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, change = change as MigratedPeople.Change, count = count as Int, limit = limit as Int] in
        let taken = try MeasuredMigration(people: people).taken(count) { try $0.migrate(change) }
        demand(taken <= limit, "\(taken) bytes for \(count) people; the limit is \(limit) bytes.")
        print("REPORT migration, \(people.store), \(change): \(taken >> 20) MiB for \(count) people, at most \(limit >> 20)")
      }
      report(child)
      #expect(!folder.names.contains { $0.hasSuffix(".tmp") }, "\(folder.names)")
    }

    @Test(arguments: MigratedPeople.Change.allCases)
    func aMigrationOfASQLiteFileTakesAtMost64MB(change: MigratedPeople.Change) async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = MigratedPeople(store: .sqlite, path: folder.file("Store"))
      let count = TestTier.count(200_000, full: 1_000_000)
      try people.fill(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, change = change as MigratedPeople.Change, count = count as Int] in
        let taken = try MeasuredMigration(people: people).taken { try $0.migrate(change) }
        demand(taken <= 64 << 20, "\(taken) bytes for \(count) people.")
        print("REPORT migration, \(people.store), \(change): \(taken >> 20) MiB for \(count) people")
      }
      report(child)
    }

    @Test func aPlanWithCodeForASQLiteFileTakesAtMost64MB() async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = MigratedPeople(store: .sqlite, path: folder.file("Store"))
      let count = TestTier.count(100_000, full: 1_000_000)
      try people.fill(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int] in
        let taken = try MeasuredMigration(people: people).taken { try $0.migrateByPlan() }
        demand(taken <= 64 << 20, "\(taken) bytes for \(count) people.")
        print("REPORT plan, \(people.store): \(taken >> 20) MiB for \(count) people")
      }
      report(child)
    }

    /// Its mappings insert no objects.
    @Test func aMappingModelForASQLiteFileTakesAtMost64MB() async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = MigratedPeople(store: .sqlite, path: folder.file("Store"))
      let count = TestTier.count(100_000, full: 1_000_000)
      try people.fill(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int] in
        let taken = try MeasuredMigration(people: people).taken { try $0.migrateByMappingModel() }
        demand(taken <= 64 << 20, "\(taken) bytes for \(count) people.")
        print("REPORT mapping model, \(people.store): \(taken >> 20) MiB for \(count) people")
      }
      report(child)
    }

    /// Each person is inserted again, and then linked with a company. So half of the people are needed for as many objects.
    @Test func aMappingModelThatInsertsObjectsOfASQLiteFileTakesAtMost64MB() async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = MigratedPeople(store: .sqlite, path: folder.file("Store"))
      let count = TestTier.count(50_000, full: 500_000)
      try people.fill(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int] in
        let taken = try MeasuredMigration(people: people).taken { try $0.migrateByInsertingMappingModel() }
        demand(taken <= 64 << 20, "\(taken) bytes for \(2 * count) people.")
        print("REPORT mapping model that inserts objects, \(people.store): \(taken >> 20) MiB for \(2 * count) people")
      }
      report(child)
    }

    @Test(arguments: someWholeFiles())
    func aMappingModelThatInsertsObjectsOfAWholeFileTakes64MBForAMillionObjects(store: MigratedStore) async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = MigratedPeople(store: store, path: folder.file("Store"))
      let count = TestTier.count(50_000, full: 500_000), limit = Self.limit(2 * count)
      try people.fill(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int, limit = limit as Int] in
        let taken = try MeasuredMigration(people: people).taken(2 * count) { try $0.migrateByInsertingMappingModel() }
        demand(taken <= limit, "\(taken) bytes for \(2 * count) people; the limit is \(limit) bytes.")
        print(
          "REPORT mapping model that inserts objects, \(people.store): \(taken >> 20) MiB for \(2 * count) people, at most \(limit >> 20)")
      }
      report(child)
    }

    /// A preview of a plan runs the plan, whose memory is tested above, on a copy. So usually it is measured for one type.
    @Test(arguments: [MigratedStore.json, .xml, .binary], [false, true])
    func aPreviewOfAWholeFileTakes64MBForAMillionObjects(store: MigratedStore, ofAPlan isOfPlan: Bool) async throws {
      if TestTier.isThreadSanitized || isOfPlan && store != .json && !TestTier.isFull { return }
      let folder = TemporaryFolder(), people = try copy(store, in: folder)
      let count = Self.count, limit = Self.limit(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, isOfPlan = isOfPlan as Bool, count = count as Int, limit = limit as Int] in
        let taken = try MeasuredMigration(people: people).taken(count) { people in
          isOfPlan ? try people.previewPlan() : try people.preview(.attribute)
        }
        demand(taken <= limit, "\(taken) bytes for \(count) people; the limit is \(limit) bytes.")
        let subject = isOfPlan ? "plan" : "migration"
        print("REPORT preview of a \(subject), \(people.store): \(taken >> 20) MiB for \(count) people, at most \(limit >> 20)")
      }
      report(child)
      #expect(folder.names.allSatisfy { !$0.hasPrefix(".holdfast") }, "\(folder.names)")
    }

    /// A plan copies the store three times. Each copy is verified by building its tables.
    @Test(arguments: [MigratedStore.json, .xml, .binary])
    func aCopyOfAWholeFileTakes64MBForAMillionObjects(store: MigratedStore) async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = try copy(store, in: folder)
      let count = Self.count, limit = Self.limit(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int, limit = limit as Int] in
        let taken = try MeasuredMigration(people: people).taken(count) { try $0.copy() }
        demand(taken <= limit, "\(taken) bytes for \(count) people; the limit is \(limit) bytes.")
        print("REPORT copy, \(people.store): \(taken >> 20) MiB for \(count) people, at most \(limit >> 20)")
      }
      report(child)
      #expect(!folder.names.contains { $0.hasSuffix(".tmp") }, "\(folder.names)")
    }

    @Test(arguments: someWholeFiles())
    func aPlanWithCodeForAWholeFileTakes64MBForAMillionObjects(store: MigratedStore) async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), people = try copy(store, in: folder)
      let count = Self.count, limit = Self.limit(count)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [people = people as MigratedPeople, count = count as Int, limit = limit as Int] in
        let taken = try MeasuredMigration(people: people).taken(count) { try $0.migrateByPlan() }
        demand(taken <= limit, "\(taken) bytes for \(count) people; the limit is \(limit) bytes.")
        print("REPORT plan, \(people.store): \(taken >> 20) MiB for \(count) people, at most \(limit >> 20)")
      }
      report(child)
    }
  }

  /// Runs in a separate process.
  private struct MeasuredMigration {
    let people: MigratedPeople

    /// The memory that a migration of a whole file takes if as large a part of its rows stays in memory as of a million objects.
    func taken(_ count: Int, _ migrate: (MigratedPeople) throws -> Void) throws -> Int {
      try RowSpill.$residentByteCount.withValue(RowSpill.residentByteCount * count / 1_000_000) { try taken(migrate) }
    }

    /// The memory that a migration takes.
    func taken(_ migrate: (MigratedPeople) throws -> Void) throws -> Int {
      // Running code for the first time takes memory too, so a small store is migrated first.
      let small = MigratedPeople(store: people.store, path: people.path + ".small")
      try small.fill(1_000)
      try migrate(small)
      return try ProcessMemory.taken { try migrate(people) }
    }
  }
#endif
