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
  /// The objects that a reader sees changed: their attributes, or the objects that a relationship references, from whichever side it was
  /// changed, or because a destination was deleted. So the owner of a to-many relationship is listed when an object came or went, and an
  /// object whose derived attributes changed. An object whose to-one relationship without inverse referenced a deleted object isn't listed.
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
  /// Reports what was committed, store by store.
  func announce() {
    let isHeard = context.observers?.didSaveHandlers.isEmpty == false
    if coordinator.saveListeners.isEmpty && !isHeard { return }
    for part in parts where part.isCommitted && !part.request.isEmpty {
      // Objects are still as the save found them, so what changed can still be seen.
      let changes = part.savedChanges
      committedChanges.append(changes)
      coordinator.saveListeners.announce(changes)
    }
  }
}

extension StoreChanges {
  fileprivate var savedChanges: SavedChanges {
    SavedChanges(
      storeIdentifier: store.identifier, contextName: context.name, inserted: inserted.map(savedID), updated: updatedIDs(),
      deleted: deleted.map(savedID))
  }
}
