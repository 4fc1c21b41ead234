import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Migrations whose rows are in a temporary file, beside those in memory.
@Suite struct SpilledMigrationTests {
  @Test(arguments: [MigratedStore.json, .xml, .binary], MigratedPeople.Change.allCases)
  func theResultIsTheSameAsInMemory(store: MigratedStore, change: MigratedPeople.Change) throws {
    let folder = TemporaryFolder(), people = MigratedPeople(store: store, path: folder.file("Store"))
    let other = MigratedPeople(store: store, path: folder.file("Other"))
    try people.fill(5_000)
    try FileManager.default.copyItem(atPath: people.path, toPath: other.path)
    try people.migrate(change)
    try RowSpill.$residentByteCount.withValue(0) { try other.migrate(change) }
    let digests = try [people, other].map { try PersistentStoreCoordinator.verifyPersistentStore($0.description) }
    #expect(digests[0] == digests[1] && digests[0].objectCount == 5_006)
    let model = try MigratedPeople.changed(change)
    for people in [people, other] {
      let coordinator = try PersistentStoreCoordinator(model: model, store: people.description)
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Person")) == 5_000)
    }
    #expect(!folder.names.contains { $0.hasSuffix(".tmp") }, "\(folder.names)")
  }

  #if os(Linux)
    /// Disks fail. The error is that of the temporary file, not one of the rows that were made of its bytes.
    @Test(arguments: [MigratedStore.json, .xml, .binary], MigratedPeople.Change.allCases)
    func aTemporaryFileThatCannotBeReadIsAnError(store: MigratedStore, change: MigratedPeople.Change) throws {
      let folder = TemporaryFolder(), people = MigratedPeople(store: store, path: folder.file("Store")), truncated = Mutex(0)
      // Progress is reported after each megabyte of the files.
      try people.fill(store == .binary ? 200_000 : 50_000)
      let before = try folder.snapshot()
      let error = #expect(throws: StoreError.self) {
        try RowSpill.$residentByteCount.withValue(0) {
          // Rows are read until half of the work is done.
          try PersistentStoreCoordinator.migratePersistentStore(people.description, to: MigratedPeople.changed(change)) { share in
            if share >= 0.3 { truncated.withLock { $0 += folder.truncateUnnamedFiles() } }
          }
        }
      }
      #expect(truncated.withLock { $0 } > 0)
      #expect(error?.code == .inputOutput && error?.reason.contains("temporary file") == true, "\(String(describing: error))")
      #expect(try folder.snapshot() == before)
      try people.migrate(change)
    }
  #endif

  /// Objects of the former model that violate a rule of the new one are found in the file as in memory.
  @Test(arguments: [MigratedStore.json, .xml, .binary])
  func aRefusalIsTheSameAsInMemory(store: MigratedStore) throws {
    let old = try model(
      EntityDescription("Dog", relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [.toMany("dogs", to: "Dog", inverse: "walks")]))
    let new = try model(
      EntityDescription("Dog", relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [.toOne("dogs", to: "Dog", inverse: "walks")]))
    let place = MigratedStore.Place(store)
    try place.fill(old) { context in
      let walk = try context.add("Walk", "w")
      try walk.setValue([try context.add("Dog", "a"), try context.add("Dog", "b")], forKey: "dogs")
    }
    let before = try place.folder.snapshot()
    for size in [0, 1 << 20] {
      let error = #expect(throws: MigrationError.self) {
        try RowSpill.$residentByteCount.withValue(size) {
          try PersistentStoreCoordinator.migratePersistentStore(place.description, to: new)
        }
      }
      #expect(error?.code == .constraintViolation && error?.problems.map(\.path) == ["Walk.dogs"], "\(String(describing: error))")
    }
    #expect(try place.folder.snapshot() == before)
  }
}
