public import HoldfastStore
import Synchronization

/// What one save changed in one store: object IDs only, so that it can travel. A save that changes several stores gives one for
/// each.
///
/// ```swift
/// for await changes in container.persistentStoreCoordinator.savedChanges() {
///   print("\(changes.inserted.count) new, \(changes.updated.count) changed, \(changes.deleted.count) deleted")
/// }
/// ```
public struct SavedChanges: Sendable, Hashable {
  /// The UUID of the store.
  public var storeIdentifier: String
  /// The name of the context that saved.
  public var contextName: String
  /// The new objects, with their permanent IDs, in the order in which they were inserted.
  public var inserted: [ManagedObjectID]
  /// The objects whose values or links the context changed. Where only the store cleared a link, because what it led to was deleted,
  /// the object is not listed.
  public var updated: [ManagedObjectID]
  /// The deleted objects.
  public var deleted: [ManagedObjectID]

  /// Makes the record.
  public init(
    storeIdentifier: String, contextName: String, inserted: [ManagedObjectID] = [], updated: [ManagedObjectID] = [],
    deleted: [ManagedObjectID] = []
  ) {
    self.storeIdentifier = storeIdentifier
    self.contextName = contextName
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
  }
}

extension PersistentStoreCoordinator {
  /// The changes of every save from now on, in the order of the commits, whichever context saves.
  ///
  /// Each caller gets a sequence of its own, which ends when the coordinator goes or the task that goes over it is cancelled.
  ///
  /// - Parameter limit: how many changes wait for a slow reader; beyond that the oldest go, never the newest.
  public func savedChanges(bufferingNewest limit: Int = 256) -> AsyncStream<SavedChanges> { saveListeners.stream(limit) }
}

/// Those who want to hear of saves.
final class SaveListeners: Sendable {
  private struct Listeners {
    var next = 0
    var all: [(number: Int, continuation: AsyncStream<SavedChanges>.Continuation)] = []
  }

  /// Guards the list.
  private let listeners = Mutex(Listeners())

  deinit {
    for listener in listeners.withLock({ $0.all }) { listener.continuation.finish() }
  }

  var isEmpty: Bool { listeners.withLock { $0.all.isEmpty } }

  func stream(_ limit: Int) -> AsyncStream<SavedChanges> {
    AsyncStream(bufferingPolicy: .bufferingNewest(limit)) { continuation in
      let number = listeners.withLock { listeners in
        listeners.next += 1
        listeners.all.append((listeners.next, continuation))
        return listeners.next
      }
      continuation.onTermination = { [weak self] _ in self?.remove(number) }
    }
  }

  private func remove(_ number: Int) {
    listeners.withLock { $0.all.removeAll { $0.number == number } }
  }

  /// Tells everybody. Called while the save's lock is held, so that everybody hears of saves in their order.
  func announce(_ changes: SavedChanges) {
    for listener in listeners.withLock({ $0.all }) { listener.continuation.yield(changes) }
  }
}

extension SaveOperation {
  /// Tells who wants to know what was committed, store by store.
  func announce() {
    if coordinator.saveListeners.isEmpty { return }
    for part in parts where part.isCommitted && !part.request.isEmpty { coordinator.saveListeners.announce(part.savedChanges) }
  }
}

extension StoreChanges {
  fileprivate var savedChanges: SavedChanges {
    func saved(_ object: ManagedObject) -> ManagedObjectID {
      context.objectID(Int(object.flags.entityIndex), permanent(object.objectKey))
    }
    // Objects whose changes came to nothing were not saved.
    let rows = Set(published.lazy.flatMap(\.objects).map { ObjectIdentifier($0) })
    return SavedChanges(
      storeIdentifier: store.identifier, contextName: context.name, inserted: inserted.map(saved),
      updated: updated.filter { rows.contains(ObjectIdentifier($0)) }.map(saved), deleted: deleted.map(saved))
  }
}
