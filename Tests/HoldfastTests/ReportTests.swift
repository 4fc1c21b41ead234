import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

/// Stores that report changes by others.
@Suite struct ReportTests {
  /// A store whose rows another program can change behind its back.
  private final class SharedStore: ForwardingStore {
    let base: any IncrementalStore
    private let received = Mutex<StoreHost?>(nil)
    /// Runs after each commit, before the store returns.
    let afterCommit = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ base: any IncrementalStore) { self.base = base }

    var host: StoreHost? { received.withLock { $0 } }

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      received.withLock { $0 = host }
      // Too early: no effect.
      host.objectsChanged(StoreChange(mayIncludeOthers: true))
      return try base.open(model: model, host: host)
    }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      Save(base: try base.prepare(request, options: options), store: self)
    }

    private final class Save: PreparedSave {
      let base: any PreparedSave
      let store: SharedStore
      init(base: any PreparedSave, store: SharedStore) { (self.base, self.store) = (base, store) }
      func commit() throws -> SaveReceipt {
        let receipt = try base.commit()
        store.afterCommit.withLock { $0 }?()
        return receipt
      }
      func abort() { base.abort() }
    }

    /// Sets the age of a dog, as another program would.
    func setAge(_ age: Int16, of id: ManagedObjectID) throws {
      final class Sink: RowSink {
        var row: RowView?
        func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
          if case .one(let index) = rows { row = batch[index] } else { row = batch[0] }
          return .enough
        }
      }
      let dog = try #require(Kennel.model.entity(named: "Dog")), sink = Sink(), view = try base.beginRead(.latest)
      try base.rows(FaultRequest(entity: dog.index, keys: [id.key]), in: view, into: sink)
      view.end()
      let row = try #require(sink.row)
      var values = row.values
      values[Dog.Slot.age] = .int16(age)
      let builder = RowBatchBuilder(layout: row.batch.layout, idPrefix: row.batch.idPrefix)
      try builder.append(key: row.key, version: row.version.next, values: values)
      var changes = SaveRequest.EntityChanges(entity: dog.index)
      changes.updated = [
        SaveRequest.UpdatedRows(
          rows: builder.seal(), expectedVersions: [row.version], changedSlots: [Dog.Slot.age.bit], wordsPerRow: 1)
      ]
      try base.prepare(SaveRequest(entities: [changes])).commit()
    }
  }

  private func open(_ store: TestStore) throws -> (ManagedObjectContext, SharedStore) {
    let found = Mutex<SharedStore?>(nil)
    let (context, _) = try store.makePlace().recording { base in
      let store = SharedStore(base)
      found.withLock { $0 = store }
      return store
    }
    return (context, try #require(found.withLock { $0 }))
  }

  @Test(arguments: TestStore.allCases, [true, false])
  func reportedObjectsAreReadAgainAndAnnounced(_ store: TestStore, isNamed: Bool) async throws {
    // Keys of the second store differ from the coordinator's.
    let (context, shared) = try open(store == .second ? .memory : store)
    let coordinator = context.persistentStoreCoordinator
    let dog = context.dog("rex", age: 3)
    try context.save()
    let before = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try (before.existingObject(with: dog.objectID) as? Dog)?.age == 3)
    let announced = coordinator.savedChanges()
    try shared.setAge(9, of: dog.objectID)
    let host = try #require(shared.host)
    host.objectsChanged(StoreChange())
    host.objectsChanged(isNamed ? StoreChange(updated: [dog.objectID]) : StoreChange(mayIncludeOthers: true))
    let after = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try (after.existingObject(with: dog.objectID) as? Dog)?.age == 9)
    var iterator = announced.makeAsyncIterator()
    let changes = try #require(await iterator.next())
    #expect(
      changes
        == SavedChanges(
          storeIdentifier: coordinator.storeIdentifier, contextName: "", updated: isNamed ? [dog.objectID] : [],
          mayIncludeOthers: !isNamed))
    // An unchanged object keeps its row until it is refreshed.
    #expect(dog.age == 3)
    try context.refresh(dog, mergeChanges: true)
    #expect(dog.age == 9)
  }

  @Test func reportsOfTheSecondStoreConcernItsObjects() async throws {
    let shared = SharedStore(MemoryStore())
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model, stores: [.memory(), StoreDescription(type: "shared") { shared }])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = context.dog("rex", age: 3)
    try context.assign(dog, to: coordinator.persistentStores[1])
    try context.save()
    try shared.setAge(9, of: dog.objectID)
    let host = try #require(shared.host)
    func age() throws -> Int? {
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      return try (context.existingObject(with: dog.objectID) as? Dog)?.age
    }
    // The rows of the second store are cached, so the report is needed.
    #expect(try age() == 3)
    host.objectsChanged(StoreChange(updated: [dog.objectID]))
    #expect(try age() == 9)
    // After the store was removed, reports have no effect: the next change is a save.
    try coordinator.remove(coordinator.persistentStores[1])
    let changes = coordinator.savedChanges()
    host.objectsChanged(StoreChange(mayIncludeOthers: true))
    context.reset()
    let next = context.dog("next")
    try context.save()
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.inserted == [next.objectID])
  }

  /// Another program changes the row right after the commit, before the save has put its own row into the cache.
  @Test(arguments: TestStore.allCases) func aReportBeforeACommitReturnsIsNotLost(_ store: TestStore) throws {
    let (context, shared) = try open(store == .second ? .memory : store)
    let dog = context.dog("rex", age: 3)
    try context.save()
    let id = dog.objectID, host = try #require(shared.host)
    dog.age = 4
    shared.afterCommit.withLock {
      $0 = {
        try? shared.setAge(99, of: id)
        host.objectsChanged(StoreChange(updated: [id]))
      }
    }
    try context.save()
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try (other.existingObject(with: id) as? Dog)?.age == 99)
  }

  @Test(arguments: TestStore.allCases) func aReportOfAnotherObjectDuringASaveLeavesNoOldRowInTheCache(_ store: TestStore) throws {
    let (context, shared) = try open(store == .second ? .memory : store)
    let dog = context.dog("rex", age: 3), other = context.dog("max")
    try context.save()
    let (id, otherID, host) = (dog.objectID, other.objectID, try #require(shared.host))
    func age() throws -> Int? {
      let context = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
      return try (context.existingObject(with: id) as? Dog)?.age
    }
    #expect(try age() == 3)
    shared.afterCommit.withLock { $0 = { host.objectsChanged(StoreChange(updated: [otherID])) } }
    for next in 4..<8 {
      dog.age = next
      try context.save()
      #expect(try age() == next)
    }
  }

  // MARK: The last reference to a coordinator

  /// A store that reports a change while it writes metadata, and then releases the coordinator.
  private final class ReleasingStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    private let received = Mutex<StoreHost?>(nil)
    /// The only reference to the coordinator.
    let coordinator = Mutex<PersistentStoreCoordinator?>(nil)
    let isClosed = Atomic(false)

    func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
      received.withLock { $0 = host }
      return try base.open(model: model, host: host)
    }

    func close() throws {
      isClosed.store(true, ordering: .releasing)
      try base.close()
    }

    func setMetadata(_ metadata: [String: StoreValue]) throws {
      try base.setMetadata(metadata)
      let last = coordinator.withLock { coordinator in
        defer { coordinator = nil }
        return coordinator
      }
      received.withLock { $0 }?.objectsChanged(StoreChange(mayIncludeOthers: true))
      withExtendedLifetime(last) {}
    }
  }

  @Test func aCoordinatorThatIsReleasedWhileMetadataAreWrittenClosesTheStoreAfterwards() async throws {
    let releasing = ReleasingStore()
    func open() throws -> PersistentStore {
      let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: StoreDescription(type: "releasing") { releasing })
      releasing.coordinator.withLock { $0 = coordinator }
      return coordinator.persistentStores[0]
    }
    let store = try open(), hasReturned = Atomic(false)
    startThread {
      try? store.setMetadata([:])
      hasReturned.store(true, ordering: .releasing)
    }
    #expect(await eventually { hasReturned.load(ordering: .acquiring) })
    let isClosed = releasing.isClosed.load(ordering: .acquiring)
    #expect(isClosed)
    #expect(try #require(throws: StoreError.self) { try store.setMetadata([:]) }.code == .notOpen)
  }
}
