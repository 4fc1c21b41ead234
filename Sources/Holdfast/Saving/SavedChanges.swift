public import HoldfastStore
import Synchronization

/// The changes of one save in one store, or changes by another process or a server that the store reports, as object IDs.
///
/// Use it to follow the changes of every context and process. For one context, also before it saves, use ``ObjectChanges``.
///
/// A save that changes several stores produces one value for each. The value contains no objects, so you can send it to other tasks.
///
/// ```swift
/// for await changes in container.persistentStoreCoordinator.savedChanges() {
///   print("\(changes.inserted.count) new, \(changes.updated.count) changed, \(changes.deleted.count) deleted")
/// }
/// ```
public struct SavedChanges: Sendable, Hashable {
  /// The UUID of the store.
  public var storeIdentifier: String
  /// The name of the context that saved; empty for changes that a store reports.
  public var contextName: String
  /// The new objects, with their permanent IDs, in the order in which they were inserted.
  public var inserted: [ManagedObjectID]
  /// The objects that a reader sees changed.
  ///
  /// An object is listed when its attributes changed, including derived ones, or when a relationship references other objects than before.
  /// It doesn't matter from which side the relationship changed, or whether a destination was deleted. So the owner of a to-many
  /// relationship is listed when an object is added or removed. An object isn't listed when its to-one relationship has no inverse and
  /// referenced a deleted object.
  public var updated: [ManagedObjectID]
  /// The deleted objects.
  ///
  /// All three lists end with objects that the store itself changed during the save, for example with triggers.
  public var deleted: [ManagedObjectID]
  /// Whether other objects may have changed as well, by another process, a server or a trigger.
  public var mayIncludeOthers: Bool
  /// The coordinator whose context saved the changes. It knows which cached rows and lists they change.
  var announcer = Announcer()

  /// Creates a record of changes, for example of IDs that another process has sent; see ``ManagedObjectContext/mergeChanges(from:)``.
  public init(
    storeIdentifier: String, contextName: String, inserted: [ManagedObjectID] = [], updated: [ManagedObjectID] = [],
    deleted: [ManagedObjectID] = [], mayIncludeOthers: Bool = false
  ) {
    self.storeIdentifier = storeIdentifier
    self.contextName = contextName
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    self.mayIncludeOthers = mayIncludeOthers
  }
}

/// The coordinator that announced changes. It isn't part of their value.
struct Announcer: Sendable, Hashable {
  var value: ObjectIdentifier?

  static func == (a: Announcer, b: Announcer) -> Bool { true }
  func hash(into hasher: inout Hasher) {}
}

extension PersistentStoreCoordinator {
  /// Returns a sequence of the changes of all later saves. The coordinator's saves of each store are in commit order.
  ///
  /// It includes the saves of every context, and changes by other processes that stores report. Whole-file stores report them when they
  /// load a file that another process has saved. Such a report comes when the store notices the changes, which can be behind a later save
  /// of this coordinator. So can a save that ended with `outcomeUnknown`: it comes when its outcome is known. Each caller gets its own
  /// sequence, which ends when the coordinator is deallocated or the iterating task is cancelled. Contexts with
  /// ``ManagedObjectContext/automaticallyMergesChanges`` receive each change before the sequence delivers it.
  ///
  /// Call the method once for each task that reads the changes. If several tasks iterate over one sequence, each change goes to only one of
  /// them, and cancelling one task ends the sequence for all.
  ///
  /// A gap isn't silent: if more changes wait than the limit, the oldest are replaced by one element for each store, in which
  /// ``SavedChanges/mayIncludeOthers`` is true. ``ManagedObjectContext/mergeChanges(from:)`` then refreshes all objects of the store. A
  /// program that needs the IDs reads the history; see <doc:HistoryOfSaves>.
  ///
  /// - Parameter limit: The maximum number of saves whose changes wait for a slow reader, each with the IDs of its objects. Defaults to
  ///   256. A number less than 1 counts as 1.
  public func savedChanges(bufferingNewest limit: Int = 256) -> AsyncStream<SavedChanges> { saveListeners.stream(limit) }
}

/// The listeners for saves.
final class SaveListeners: Sendable {
  /// Weak, because the sequence keeps the queue.
  private struct Reader {
    weak var queue: SavedChangesQueue?
  }

  private struct Listeners {
    var all: [Reader] = []
    var inboxes: [MergeInbox] = []

    @inline(never) func end() { for reader in all { reader.queue?.end() } }
  }

  /// Guards the list.
  private let listeners = Mutex(Listeners())

  deinit {
    // Returning the list, or iterating over an empty one, would create its type in every process.
    listeners.withLock { if !$0.all.isEmpty { $0.end() } }
  }

  /// Whether anyone listens to the saves of other contexts than the one with an inbox.
  func isEmpty(besides inbox: MergeInbox?) -> Bool {
    listeners.withLock { listeners in
      if !listeners.all.isEmpty { listeners.all.removeAll { $0.queue == nil } }
      return listeners.all.isEmpty && !listeners.inboxes.contains { $0 !== inbox }
    }
  }

  /// Delivers all later saves of others to an inbox.
  func add(_ inbox: MergeInbox) { listeners.withLock { $0.inboxes.append(inbox) } }

  func remove(_ inbox: MergeInbox) { listeners.withLock { $0.inboxes.removeAll { $0 === inbox } } }

  /// The number of sequences that exist, and of those whose release wasn't noticed yet.
  var readerCount: Int { listeners.withLock { $0.all.count } }

  func stream(_ limit: Int) -> AsyncStream<SavedChanges> {
    let queue = SavedChangesQueue(limit: limit)
    listeners.withLock { listeners in
      // Saves do this as well, but the program may only read what other processes save.
      listeners.all.removeAll { $0.queue == nil }
      listeners.all.append(Reader(queue: queue))
    }
    return AsyncStream(unfolding: { await queue.next() }, onCancel: { queue.end() })
  }

  /// Notifies all listeners. Saves call it under the store's save lock, so that listeners receive them in commit order.
  ///
  /// The contexts are first: a program that reads a change in a sequence can then process the pending changes of a context, and see it.
  ///
  /// - Parameter inbox: The inbox of the context that saved, which doesn't receive them.
  func announce(_ changes: SavedChanges, except inbox: MergeInbox? = nil) {
    let (all, inboxes) = listeners.withLock { ($0.all, $0.inboxes) }
    for other in inboxes where other !== inbox { other.add(changes) }
    for reader in all { reader.queue?.add(changes) }
  }
}

extension SaveOperation {
  /// Whether another context, a sequence or a handler receives the changes of the save.
  var isHeard: Bool { !coordinator.saveListeners.isEmpty(besides: context.merging.inbox) || context.observers?.hearSaves == true }

  /// Notifies listeners of the committed changes, store by store.
  func announce() {
    for part in parts where part.isCommitted { mergeLater(part.others, of: part.store) }
    if !isHeard { return }
    for part in parts where part.isCommitted && !part.request.isEmpty {
      // The objects still have their change flags, so the changes can be listed.
      let changes = part.savedChanges
      committedChanges.append(changes)
      coordinator.saveListeners.announce(changes, except: context.merging.inbox)
    }
  }

  /// Makes the context merge what the store itself has changed during the save, if it merges automatically.
  ///
  /// It doesn't receive its own saves, whose changes name these objects for others.
  func mergeLater(_ others: StoreChange, of store: PersistentStore) {
    guard let inbox = context.merging.inbox, !others.isEmpty else { return }
    inbox.add(
      SavedChanges(
        storeIdentifier: store.identifier, contextName: "", inserted: others.inserted, updated: others.updated, deleted: others.deleted,
        mayIncludeOthers: others.mayIncludeOthers))
  }
}

extension StoreChanges {
  var savedChanges: SavedChanges {
    var changes = SavedChanges(
      storeIdentifier: store.identifier, contextName: context.requests.label ?? "", inserted: inserted.map(savedID) + others.inserted,
      updated: updatedIDs() + others.updated, deleted: deleted.map(savedID) + others.deleted,
      mayIncludeOthers: others.mayIncludeOthers || mayLackOtherEnds)
    // The store's own changes don't name the owners of their objects. Nor do those of a save that had no listener when it was prepared.
    if others.isEmpty && namesOtherEnds { changes.announcer.value = ObjectIdentifier(coordinator) }
    return changes
  }

  /// Whether objects may have lost destinations that weren't looked for, because there was no listener when the save was prepared.
  private var mayLackOtherEnds: Bool {
    if namesOtherEnds { return false }
    return !deleted.isEmpty
      || request.links.contains { !$0.added.isEmpty && context.entities[$0.entity].relationships[$0.relationship].hasTargetsToItself }
  }
}
