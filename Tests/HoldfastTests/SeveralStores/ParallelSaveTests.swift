import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// Saves of different stores run in parallel; saves of one store run one after the other.
@Suite struct ParallelSaveTests {
  /// Blocks each save until it is released, and counts saves that are prepared at the same time.
  private final class GatedStore: ForwardingStore {
    let base: any IncrementalStore = MemoryStore()
    let hasBegun = DispatchSemaphore(value: 0), gate = DispatchSemaphore(value: 0)
    private let running = Mutex((now: 0, most: 0))

    var mostAtOnce: Int { running.withLock { $0.most } }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      running.withLock { running in
        running.now += 1
        running.most = max(running.most, running.now)
      }
      defer { running.withLock { $0.now -= 1 } }
      hasBegun.signal()
      gate.wait()
      return try base.prepare(request, options: options)
    }
  }

  private let gated = GatedStore()

  private func open() throws -> PersistentStoreCoordinator {
    let gated = gated
    return try PersistentStoreCoordinator(
      model: Kennel.model, stores: [StoreDescription(type: "gated") { gated }, .memory()])
  }

  /// Saves a dog in some of the stores, on a thread. The result is signalled.
  private static func save(_ coordinator: PersistentStoreCoordinator, _ places: [Int]) -> Saving {
    let saving = Saving()
    Thread.detachNewThread {
      do {
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        for place in places { try context.assign(context.dog("d\(place)"), to: coordinator.persistentStores[place]) }
        try context.save()
      } catch { saving.error.withLock { $0 = error } }
      saving.hasEnded.signal()
    }
    return saving
  }

  private final class Saving: Sendable {
    let hasEnded = DispatchSemaphore(value: 0)
    let error = Mutex<(any Error)?>(nil)

    func wait() throws {
      hasEnded.wait()
      if let error = error.withLock({ $0 }) { throw error }
    }
  }

  @Test func aSaveOfAnotherStoreDoesNotWait() throws {
    let coordinator = try open()
    let blocked = Self.save(coordinator, [0])
    gated.hasBegun.wait()
    try Self.save(coordinator, [1]).wait()
    // Metadata, compaction and other stores don't wait either.
    try coordinator.persistentStores[1].setMetadata(["a": .int64(1)])
    try coordinator.addPersistentStore(.memory())
    try coordinator.remove(coordinator.persistentStores[2])
    gated.gate.signal()
    try blocked.wait()
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.name) == ["d0", "d1"])
  }

  @Test func aSaveOfSeveralStoresKeepsNoStoreBusyWhileItWaitsForAnother() throws {
    let coordinator = try open()
    let blocked = Self.save(coordinator, [0])
    gated.hasBegun.wait()
    let several = Self.save(coordinator, [0, 1]), reversed = Self.save(coordinator, [1, 0])
    // They end although the two saves wait for the first store. There are many, so that the two have begun to wait.
    for _ in 0..<50 { try Self.save(coordinator, [1]).wait() }
    for _ in 0..<3 { gated.gate.signal() }
    for save in [blocked, several, reversed] { try save.wait() }
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try context.count(for: FetchRequest<Dog>()) == 55)
  }

  @Test func savesOfOneStoreRunOneAfterTheOther() throws {
    let coordinator = try open()
    let saves = [[0], [0, 1], [1, 0], [0]].map { Self.save(coordinator, $0) }
    for _ in saves {
      gated.hasBegun.wait()
      gated.gate.signal()
    }
    for save in saves { try save.wait() }
    #expect(gated.mostAtOnce == 1)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try context.count(for: FetchRequest<Dog>()) == 6)
  }

  @Test func aSaveThatWaitedForItsStoreIsDividedAgainIfTheStoreWasRemoved() throws {
    let coordinator = try open(), store = coordinator.persistentStores[0]
    let first = Self.save(coordinator, [0])
    gated.hasBegun.wait()
    let second = Self.save(coordinator, [0])
    let removal = Saving()
    Thread.detachNewThread {
      do { try coordinator.remove(store) } catch { removal.error.withLock { $0 = error } }
      removal.hasEnded.signal()
    }
    // The second save and the removal wait for the first save, in either order.
    gated.gate.signal()
    gated.gate.signal()
    try first.wait()
    try removal.wait()
    do { try second.wait() } catch let error as PersistenceError { #expect(error.code == .missingStore) }
    #expect(coordinator.persistentStores.count == 1)
  }

  @Test func savesInDifferentOrdersOfStoresEnd() throws {
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [.memory(), .memory(), .memory()])
    let saves = (0..<24).map { Self.save(coordinator, [$0 % 3, ($0 + 1 + $0 / 3) % 3]) }
    for save in saves { try save.wait() }
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(try context.count(for: FetchRequest<Dog>()) == 48)
  }

  @Test func theDeadlineOfASaveEndsItsWaitForAnotherSave() throws {
    let coordinator = try open()
    let blocked = Self.save(coordinator, [0])
    gated.hasBegun.wait()
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes), dog = context.dog("late")
    try context.assign(dog, to: coordinator.persistentStores[0])
    context.requestTimeout = .milliseconds(20)
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .timedOut && error.isRetryable)
    for _ in 0..<2 { gated.gate.signal() }
    try blocked.wait()
    context.requestTimeout = nil
    try context.save()
    #expect(try context.count(for: FetchRequest<Dog>()) == 2 && !dog.objectID.isTemporaryID)
  }
}
