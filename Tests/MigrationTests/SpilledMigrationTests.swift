import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Migrations and copies whose rows are in a temporary file, beside those in memory.
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

  /// The code changes, deletes and inserts objects and links, in the order of the objects and in another one.
  @Test(arguments: [MigratedStore.json, .xml, .binary]) func aPlanHasTheSameResultAsInMemory(store: MigratedStore) throws {
    let folder = TemporaryFolder(), people = MigratedPeople(store: store, path: folder.file("Store"))
    let other = MigratedPeople(store: store, path: folder.file("Other"))
    try people.fill(5_000)
    try FileManager.default.copyItem(atPath: people.path, toPath: other.path)
    try people.migrateByManyChanges()
    try RowSpill.$residentByteCount.withValue(0) { try other.migrateByManyChanges() }
    let digests = try [people, other].map { try PersistentStoreCoordinator.verifyPersistentStore($0.description) }
    #expect(digests[0] == digests[1] && digests[0].objectCount == 4_500 + 6 + 50)
    #expect(!folder.names.contains { $0.hasSuffix(".tmp") }, "\(folder.names)")
  }

  /// A copy is verified by building its tables, which also shows the external files of its rows.
  @Test(arguments: [MigratedStore.json, .xml, .binary])
  func aCopyHasTheSameContentsAndFilesAsInMemory(store: MigratedStore) throws {
    let place = MigratedStore.Place(store), other = MigratedStore.Place(store)
    let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    let model = try model(EntityDescription("Dog", attributes: [photo]))
    try place.fill(model) { context in
      for number in 0..<50 {
        try context.add("Dog", "\(number)", ["photo": .data(Data(repeating: 7, count: number < 2 ? 300_000 : 10))])
      }
    }
    try other.fill(model) { try $0.add("Dog", "former", ["photo": .data(Data(repeating: 8, count: 300_000))]) }
    func files() -> [String] { other.folder.namesOfAllLevels.filter { $0.contains("_EXTERNAL_DATA/") && $0.contains("-") } }
    let digest = try PersistentStoreCoordinator.graphDigest(of: place.description)
    try RowSpill.$residentByteCount.withValue(0) {
      _ = try PersistentStoreCoordinator.replacePersistentStore(other.description, withCopyOf: place.description)
    }
    #expect(try PersistentStoreCoordinator.verifyPersistentStore(other.description) == digest)
    #expect(files().count == 2, "\(other.folder.namesOfAllLevels)")
    try RowSpill.$residentByteCount.withValue(0) { try PersistentStoreCoordinator.destroyPersistentStore(other.description) }
    #expect(files().isEmpty && !other.folder.exists("Store"), "\(other.folder.namesOfAllLevels)")
    #expect(!other.folder.names.contains { $0.hasSuffix(".tmp") }, "\(other.folder.names)")
  }

  #if os(Linux)
    /// The copy isn't verified then, so it doesn't take the place of the former store.
    @Test(arguments: [MigratedStore.json, .xml])
    func aCopyWhoseTemporaryFileCannotBeReadReplacesNothing(store: MigratedStore) throws {
      let folder = TemporaryFolder(), people = MigratedPeople(store: store, path: folder.file("Store")), truncated = Mutex(0)
      let other = MigratedPeople(store: store, path: folder.file("Other"))
      try people.fill(50_000)
      try other.fill(10)
      let before = try folder.snapshot()
      let error = #expect(throws: StoreError.self) {
        try RowSpill.$residentByteCount.withValue(0) {
          // The copy is verified in the second half.
          _ = try PersistentStoreCoordinator.replacePersistentStore(other.description, withCopyOf: people.description) { share in
            if share >= 0.6 { truncated.withLock { $0 += folder.truncateUnnamedFiles() } }
          }
        }
      }
      #expect(truncated.withLock { $0 } > 0)
      #expect(error?.code == .inputOutput && error?.reason.contains("temporary file") == true, "\(String(describing: error))")
      #expect(try folder.snapshot() == before)
    }

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
