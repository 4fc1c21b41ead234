import Foundation
import Holdfast
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Opening a store counts what the new model has no place for. Another process saves after that, and before the migration has the store's
/// lock.
@Suite struct ContestedMigrationTests {
  /// The stores, and whether a SQLite file has a log.
  static let stores: [(MigratedStore, Bool)] = MigratedStore.allCases.map { ($0, true) } + [(.sqlite, false), (.coreData, false)]

  private let newer: ManagedObjectModel
  private let older: ManagedObjectModel
  private let photo = Data(repeating: 7, count: 300_000)

  init() throws {
    // With external values, the migration opens the store before it locks it.
    let dog = EntityDescription(
      "Dog", attributes: [.init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)])
    newer = try model(dog, EntityDescription("Walk"))
    older = try model(dog)
  }

  /// A store of the newer model with a dog.
  private func place(_ store: MigratedStore, hasLog: Bool) throws -> MigratedStore.Place {
    let place = MigratedStore.Place(store, hasLog: hasLog)
    try place.fill(newer) { try $0.add("Dog", "a", ["photo": .data(photo)]) }
    // Time stamps of files are too coarse for saves in immediate succession.
    try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: place.path)
    return place
  }

  /// A description of the store that calls a closure before each migration, with its number.
  private func description(of place: MigratedStore.Place, _ save: @escaping @Sendable (Int) throws -> Void) -> StoreDescription {
    var description = place.description.migrating(from: [newer])
    description.administration = description.administration.intercepted(by: SaveBeforeMigration(save))
    return description
  }

  @Test(arguments: stores)
  func openingNeverRemovesDataThatIsSavedMeanwhile(_ store: MigratedStore, hasLog: Bool) throws {
    let place = try place(store, hasLog: hasLog), newer = newer
    let description = description(of: place) { _ in try place.change(newer) { try $0.add("Walk", "late") } }
    let error = #expect(throws: MigrationError.self) { try PersistentStoreCoordinator(model: older, store: description) }
    #expect(error?.code == .lossOfData && error?.problems.map(\.path) == ["Walk"], "\(error as Any)")
    #expect(try place.contents(newer) == ["Dog a: photo=300000 bytes 7", "Walk late:"])
  }

  @Test(arguments: stores)
  func openingMigratesWhatIsSavedMeanwhile(_ store: MigratedStore, hasLog: Bool) throws {
    let place = try place(store, hasLog: hasLog), newer = newer, count = Mutex(0)
    let description = description(of: place) { number in
      count.withLock { $0 = number }
      if number == 1 { try place.change(newer) { try $0.add("Dog", "late") } }
    }
    try PersistentStoreCoordinator(model: older, store: description).close()
    #expect(count.withLock { $0 } == 2)
    #expect(try place.contents(older) == ["Dog a: photo=300000 bytes 7", "Dog late: photo=nil"])
  }

  /// Opening ends although another process saves before each attempt.
  @Test func aStoreThatChangesBeforeEachMigrationIsNotMigrated() throws {
    let place = try place(.json, hasLog: true), newer = newer, count = Mutex(0)
    let description = description(of: place) { number in
      count.withLock { $0 = number }
      try place.change(newer) { try $0.add("Dog", "\(number)") }
    }
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: older, store: description) }
    #expect(error?.code == .storeReplaced && error?.isRetryable == true && error?.path == place.path, "\(error as Any)")
    let saves = count.withLock { $0 }
    #expect(try place.contents(newer).count == saves + 1)
  }

  /// The migration itself may move a log into the file, before or after it locks the file.
  @Test(arguments: [false, true]) func aStoreWithTheLogOfAKilledProcessIsMigrated(hasExternalValues: Bool) throws {
    let dog = EntityDescription("Dog"), killed = MigratedStore.Place(.sqlite), place = MigratedStore.Place(.sqlite)
    let newer = try hasExternalValues ? newer : model(dog, EntityDescription("Walk")), older = try hasExternalValues ? older : model(dog)
    let coordinator = try PersistentStoreCoordinator(model: newer, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    try context.add("Dog", "only in the log")
    try context.save()
    for end in ["", "-wal"] { try FileManager.default.copyItem(atPath: place.path + end, toPath: killed.path + end) }
    try coordinator.close()
    try PersistentStoreCoordinator(model: older, store: killed.description).close()
    #expect(try killed.contents(older) == [hasExternalValues ? "Dog only in the log: photo=nil" : "Dog only in the log:"])
  }
}

/// Lets another process save before each migration of a closed store.
private final class SaveBeforeMigration: AnswerInterceptor {
  private let save: @Sendable (Int) throws -> Void
  private let count = Mutex(0)

  init(_ save: @escaping @Sendable (Int) throws -> Void) { self.save = save }

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    if request is MigrationRequest {
      let number = count.withLock { count in
        count += 1
        return count
      }
      try save(number)
    }
    return try next(request, options)
  }
}
