import HoldfastStore

/// The handlers of one context, and the changes they haven't received yet. Confined to the context.
final class ContextObservers {
  typealias ChangeHandler = (ManagedObjectContext, ObjectChanges) -> Void

  /// A handler and its registration.
  struct Listener<Handler> {
    let handler: Handler
    private(set) weak var observation: ContextObservation?

    init(_ handler: Handler, _ observation: ContextObservation) { (self.handler, self.observation) = (handler, observation) }

    var isListening: Bool { observation?.isCancelled == false }
  }

  private var changeHandlers: [Listener<ChangeHandler>] = []
  private var willSaveHandlers: [Listener<(ManagedObjectContext) -> Void>] = []
  private var didSaveHandlers: [Listener<ChangeHandler>] = []
  /// The objects that changed since the last notification, each once, in the order of their first change. Kept alive by this array.
  private var noted: ContiguousArray<ManagedObject> = []
  /// The new objects in ``noted`` that a save has sent. It may have saved them before the handlers received them.
  private var sentUntold: Set<ObjectIdentifier> = []
  private var refreshed: [ManagedObjectID] = []
  /// The objects that lost a destination by a deletion since the last notification.
  private var otherEnds: [ManagedObjectID] = []
  /// The keys of more such objects, by a superentity. Their entities aren't known yet.
  private(set) var unreadEnds: [EntityIndex: Set<ObjectKey>] = [:]
  /// The reported ``otherEnds`` since the last save. A rollback restores their destinations.
  private var toldOtherEnds: Set<ManagedObjectID> = []
  private var invalidated: [ManagedObjectID] = []
  /// The new IDs of objects, by former ID, for ``refreshed`` and ``otherEnds``.
  private var newIDs: [ManagedObjectID: ManagedObjectID] = [:]
  /// The objects that were found to be inserted or deleted by another context or process, in this order.
  private var changedElsewhere: [ChangeElsewhere] = []

  private struct ChangeElsewhere {
    let id: ManagedObjectID
    let isInserted: Bool
    /// Whether the context had the object, so that the program may show it.
    var wasHere = false
  }
  /// A notification, and the handlers that haven't received it yet.
  private struct Delivery {
    let changes: ObjectChanges
    var rest: ArraySlice<Listener<ChangeHandler>>
  }
  /// The notifications of changes that are being delivered, oldest first. There are several if a handler causes another one.
  private var deliveries: [Delivery] = []
  /// Saves to report. Handlers are being called for the first one.
  private var untoldSaves: [ObjectChanges] = []

  /// Whether there are handlers for unsaved changes. Otherwise nothing is recorded.
  var hearChanges: Bool { changeHandlers.contains(where: \.isListening) }

  /// Whether there are handlers for saved changes.
  var hearSaves: Bool { didSaveHandlers.contains(where: \.isListening) }

  func addChangeHandler(_ handler: @escaping ChangeHandler) -> ContextObservation { Self.add(handler, to: &changeHandlers) }

  func addWillSaveHandler(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation {
    Self.add(handler, to: &willSaveHandlers)
  }

  func addDidSaveHandler(_ handler: @escaping ChangeHandler) -> ContextObservation { Self.add(handler, to: &didSaveHandlers) }

  private static func add<Handler>(_ handler: Handler, to list: inout [Listener<Handler>]) -> ContextObservation {
    let observation = ContextObservation()
    list.append(Listener(handler, observation))
    return observation
  }

  /// Removes cancelled handlers. If none for changes remain, also removes the changes that were recorded for them.
  func removeSilent() {
    // Released after the lists have changed, because what a handler captured may add a handler when it is released.
    let former = (changeHandlers, willSaveHandlers, didSaveHandlers)
    changeHandlers.removeAll { !$0.isListening }
    willSaveHandlers.removeAll { !$0.isListening }
    didSaveHandlers.removeAll { !$0.isListening }
    if !hearChanges {
      removeUnreadEnds()
      _ = take()
    }
    withExtendedLifetime(former) {}
  }

  /// Removes all handlers, and the changes that they haven't received.
  func removeAll() {
    (changeHandlers, willSaveHandlers, didSaveHandlers) = ([], [], [])
    deliveries = []
    removeUnreadEnds()
    _ = take()
  }

  // MARK: Telling

  /// Calls the handlers of changes with the changes since the last notification.
  ///
  /// If a handler causes this call, the other handlers first receive the notification that they haven't received yet, so that all of them
  /// receive the notifications in the same order.
  func tellChanges(_ context: ManagedObjectContext) {
    removeSilent()
    if !hearChanges { return }
    let changes = take()
    if changes.isEmpty { return }
    deliveries.append(Delivery(changes: changes, rest: changeHandlers[...]))
    while let delivery = deliveries.first {
      if let listener = delivery.rest.first {
        deliveries[0].rest.removeFirst()
        if listener.isListening { listener.handler(context, delivery.changes) }
      } else {
        deliveries.removeFirst()
      }
    }
  }

  /// Calls the handlers for the start of a save.
  func tellWillSave(_ context: ManagedObjectContext) {
    removeSilent()
    for listener in willSaveHandlers where listener.isListening { listener.handler(context) }
  }

  /// Calls all handlers of saves. A save in a handler is reported after the current one, to all handlers in the same order.
  func tellDidSave(_ context: ManagedObjectContext, _ changes: ObjectChanges) {
    untoldSaves.append(changes)
    if untoldSaves.count > 1 { return }
    while let changes = untoldSaves.first {
      for listener in didSaveHandlers where listener.isListening { listener.handler(context, changes) }
      untoldSaves.removeFirst()
    }
  }

  // MARK: Recording

  /// Records a change of an object that isn't in the list yet.
  func note(_ object: ManagedObject) {
    if hearChanges { noted.append(object) }
  }

  /// Records objects whose relationships lost a deleted object.
  func noteOtherEnds(_ ids: some Sequence<ManagedObjectID>) {
    if hearChanges { otherEnds += ids }
  }

  /// Records objects whose relationships lost a deleted object, until their entities are known.
  func noteUnreadEnds(_ entity: EntityIndex, _ keys: [ObjectKey]) {
    if hearChanges && !keys.isEmpty { unreadEnds[entity, default: []].formUnion(keys) }
  }

  func removeUnreadEnds() { unreadEnds = [:] }

  /// Records the new objects that the handlers haven't received, because they are saved now. Those that a handler inserts when it receives
  /// the last changes of a save are among them.
  func noteSavedInsertions() {
    for object in noted where object.isInserted && !object.flags.contains(.toldInserted) { sentUntold.insert(ObjectIdentifier(object)) }
  }

  /// Records that deletions were saved.
  func noteSave() { toldOtherEnds = [] }

  /// Records that an object has another ID. Handlers receive that one, also for what was recorded before.
  func noteNewID(_ id: ManagedObjectID, of former: ManagedObjectID) {
    // A save of many new objects hashes no ID if nothing was recorded.
    if !toldOtherEnds.isEmpty, toldOtherEnds.remove(former) != nil { toldOtherEnds.insert(id) }
    if !otherEnds.isEmpty || !refreshed.isEmpty { newIDs[former] = id }
  }

  /// The present ID of an object. It can have got several IDs, one after the other.
  private func present(_ id: ManagedObjectID) -> ManagedObjectID {
    var id = id
    while let next = newIDs[id] { id = next }
    return id
  }

  /// Records that an object was refreshed.
  func noteRefresh(_ object: ManagedObject) {
    if hearChanges { refreshed.append(object.id) }
  }

  /// Records that another context or process deleted an object.
  func noteRemoval(_ object: ManagedObject) {
    if !hearChanges || object.flags.contains(.toldDeleted) { return }
    changedElsewhere.append(ChangeElsewhere(id: object.id, isInserted: false, wasHere: true))
  }

  /// Records objects that another context or process inserted.
  func noteMergedInsertions(_ ids: [ManagedObjectID]) {
    if hearChanges { changedElsewhere += ids.map { ChangeElsewhere(id: $0, isInserted: true) } }
  }

  /// Records objects that another context or process deleted, and that aren't in this context.
  func noteMergedDeletions(_ ids: [ManagedObjectID]) {
    if hearChanges { changedElsewhere += ids.map { ChangeElsewhere(id: $0, isInserted: false) } }
  }

  /// Records a rollback. Pending changes are dropped, except for those that were saved before handlers received them.
  func noteRollback(of objects: some Sequence<ManagedObject>) {
    guard hearChanges else { return }
    if !noted.isEmpty {
      let reverted = Set(objects.lazy.map { ObjectIdentifier($0) })
      noted.removeAll { reverted.contains(ObjectIdentifier($0)) && ($0.isInserted || !sentUntold.contains(ObjectIdentifier($0))) }
    }
    otherEnds = []
    unreadEnds = [:]
    for object in objects where !object.flags.contains(.detached) {
      if object.isInserted { invalidated.append(object.id) } else { refreshed.append(object.id) }
    }
    refreshed += toldOtherEnds.subtracting(objects.lazy.map(\.id))
    toldOtherEnds = []
  }

  /// Records that the graph was reset.
  func noteReset(of objects: [ManagedObject]) {
    guard hearChanges else { return }
    (noted, sentUntold) = ([], [])
    otherEnds = []
    unreadEnds = [:]
    toldOtherEnds = []
    refreshed = []
    invalidated += objects.map(\.id)
  }

  private func takeOtherEnds(into changes: inout ObjectChanges) {
    if otherEnds.isEmpty { return }
    var known = Set(changes.inserted).union(changes.updated).union(changes.deleted).union(changes.invalidated)
    for id in otherEnds where known.insert(id).inserted { changes.updated.append(id) }
    toldOtherEnds.formUnion(otherEnds)
    otherEnds = []
  }

  /// Adds what others have inserted and deleted. Objects that were inserted and deleted again are in no list, unless the context had them.
  private func takeChangedElsewhere(into changes: inout ObjectChanges) {
    if changedElsewhere.isEmpty { return }
    var exists: [ManagedObjectID: (before: Bool, now: Bool)] = [:]
    for change in changedElsewhere {
      exists[change.id] = (before: exists[change.id]?.before ?? !change.isInserted, now: change.isInserted)
    }
    for change in changedElsewhere {
      guard let known = exists[change.id] else { continue }
      if change.isInserted {
        if known.now { changes.inserted.append(change.id) }
      } else if known.before || change.wasHere {
        changes.deleted.append(change.id)
      }
    }
    changedElsewhere = []
  }

  /// Returns the pending changes and removes them. The next change of each object is recorded again.
  func take() -> ObjectChanges {
    if !newIDs.isEmpty {
      (refreshed, otherEnds) = (refreshed.map(present), otherEnds.map(present))
      newIDs = [:]
    }
    var changes = ObjectChanges(refreshed: refreshed, invalidated: invalidated)
    takeChangedElsewhere(into: &changes)
    let objects = noted, sent = sentUntold
    (noted, sentUntold, refreshed, invalidated) = ([], [], [], [])
    let known = Set(changes.refreshed)
    var seen: Set<ObjectIdentifier> = []
    // After a save between two notifications, an object may be in the list twice.
    for object in objects where seen.insert(ObjectIdentifier(object)).inserted {
      object.flags.remove(.noted)
      if object.isDeleted {
        if object.flags.contains(.toldDeleted) || object.isInserted && !object.flags.contains(.toldInserted) { continue }
        object.flags.insert(.toldDeleted)
        changes.deleted.append(object.id)
      } else if !object.flags.contains(.toldInserted),
        object.isInserted || sent.contains(ObjectIdentifier(object)) && !object.flags.contains(.detached)
      {
        object.flags.insert(.toldInserted)
        changes.inserted.append(object.id)
      } else if object.flags.contains(.detached) || !object.hasChanges && known.contains(object.id) {
        continue
      } else {
        changes.updated.append(object.id)
      }
    }
    takeOtherEnds(into: &changes)
    changes.dropRepetitions()
    return changes
  }
}

extension ObjectChanges {
  /// Keeps the first of equal IDs in each list. Several steps of a merge may refresh or remove one object.
  fileprivate mutating func dropRepetitions() {
    for path in [\ObjectChanges.inserted, \.deleted, \.refreshed] where self[keyPath: path].count > 1 {
      var seen: Set<ManagedObjectID> = []
      self[keyPath: path].removeAll { !seen.insert($0).inserted }
    }
    let gone = Set(deleted)
    if !gone.isEmpty { refreshed.removeAll(where: gone.contains) }
  }
}
