public import HoldfastStore

/// What changed in one context, told by ``ManagedObjectContext/objectsDidChange(_:)`` and
/// ``ManagedObjectContext/contextDidSave(_:)``: object IDs only, so that it can travel.
public struct ObjectChanges: Sendable, Hashable {
  /// The new objects. Before the save their IDs are temporary.
  public var inserted: [ManagedObjectID]
  /// The objects that a reader sees changed: their attributes, or the objects that a relationship references, from whichever side it was
  /// changed, or because a destination was deleted. An object that is new to the listener is in ``inserted`` alone.
  public var updated: [ManagedObjectID]
  /// The objects that are going to be deleted by the next save, or were by this one. New objects that were deleted before
  /// anybody was told of them are in no list.
  public var deleted: [ManagedObjectID]
  /// The objects that were refreshed, or whose changes were taken back by a rollback.
  public var refreshed: [ManagedObjectID]
  /// The objects that left the graph: all by a reset, the new ones by a rollback.
  public var invalidated: [ManagedObjectID]

  /// Makes the record.
  public init(
    inserted: [ManagedObjectID] = [], updated: [ManagedObjectID] = [], deleted: [ManagedObjectID] = [],
    refreshed: [ManagedObjectID] = [], invalidated: [ManagedObjectID] = []
  ) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    self.refreshed = refreshed
    self.invalidated = invalidated
  }

  /// Whether nothing changed.
  public var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty && refreshed.isEmpty && invalidated.isEmpty }
}

/// Listens to a context until it is cancelled or the context goes. It need not be kept.
public final class ContextObservation {
  private let observers: ContextObservers
  private let number: Int

  init(_ observers: ContextObservers, _ number: Int) {
    self.observers = observers
    self.number = number
  }

  /// Stops listening. The handler is not called any more and is let go.
  public func cancel() { observers.remove(number) }
}

/// Those who listen to one context, and what they have not been told yet. Confined to the context.
final class ContextObservers {
  typealias ChangeHandler = (ManagedObjectContext, ObjectChanges) -> Void

  private var count = 0
  private(set) var changeHandlers: [(number: Int, handler: ChangeHandler)] = []
  private(set) var willSaveHandlers: [(number: Int, handler: (ManagedObjectContext) -> Void)] = []
  private(set) var didSaveHandlers: [(number: Int, handler: ChangeHandler)] = []
  /// The objects that changed since the last message, each once, in the order in which that began; kept alive by this.
  private var noted: ContiguousArray<ManagedObject> = []
  private var refreshed: [ManagedObjectID] = []
  /// The objects that lost what was deleted since the last message.
  private var otherEnds: [ManagedObjectID] = []
  /// Those of which a message has been sent, since the last save. A rollback gives them back what they lost.
  private var toldOtherEnds: Set<ManagedObjectID> = []
  private var invalidated: [ManagedObjectID] = []
  /// Saves of which handlers have to be told, the first of which is being told.
  private var untoldSaves: [ObjectChanges] = []

  /// Whether somebody wants to hear of unsaved changes. While nobody does, nothing is recorded.
  var hearChanges: Bool { !changeHandlers.isEmpty }

  func addChangeHandler(_ handler: @escaping ChangeHandler) -> ContextObservation {
    changeHandlers.append((next(), handler))
    return ContextObservation(self, count)
  }

  func addWillSaveHandler(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation {
    willSaveHandlers.append((next(), handler))
    return ContextObservation(self, count)
  }

  func addDidSaveHandler(_ handler: @escaping ChangeHandler) -> ContextObservation {
    didSaveHandlers.append((next(), handler))
    return ContextObservation(self, count)
  }

  private func next() -> Int {
    count += 1
    return count
  }

  func remove(_ number: Int) {
    changeHandlers.removeAll { $0.number == number }
    willSaveHandlers.removeAll { $0.number == number }
    didSaveHandlers.removeAll { $0.number == number }
    if !hearChanges { _ = take() }
  }

  // MARK: Telling

  /// Calls everyone who listens to saves. What a handler saves is told after the present message, to all in the same order.
  func tellDidSave(_ context: ManagedObjectContext, _ changes: ObjectChanges) {
    untoldSaves.append(changes)
    if untoldSaves.count > 1 { return }
    while let changes = untoldSaves.first {
      for listener in didSaveHandlers where didSaveHandlers.contains(where: { $0.number == listener.number }) {
        listener.handler(context, changes)
      }
      untoldSaves.removeFirst()
    }
  }

  // MARK: Recording

  /// Notes a change of an object that is not among those that are noted.
  func note(_ object: ManagedObject) {
    if hearChanges { noted.append(object) }
  }

  /// Notes objects whose relationships lost what was deleted.
  func noteOtherEnds(_ ids: some Sequence<ManagedObjectID>) {
    if hearChanges { otherEnds += ids }
  }

  /// Notes that what was deleted is saved.
  func noteSave() { toldOtherEnds = [] }

  /// Notes that an object was refreshed.
  func noteRefresh(_ object: ManagedObject) {
    if hearChanges { refreshed.append(object.id) }
  }

  /// Notes that changes were taken back, which were noted before or are not to be told any more.
  func noteRollback(of objects: some Sequence<ManagedObject>) {
    guard hearChanges else { return }
    noted = []
    otherEnds = []
    for object in objects {
      if object.isInserted { invalidated.append(object.id) } else { refreshed.append(object.id) }
    }
    refreshed += toldOtherEnds.subtracting(objects.lazy.map(\.id))
    toldOtherEnds = []
  }

  /// Notes that the graph is given up.
  func noteReset(of objects: [ManagedObject]) {
    guard hearChanges else { return }
    noted = []
    otherEnds = []
    toldOtherEnds = []
    refreshed = []
    invalidated += objects.map(\.id)
  }

  private func takeOtherEnds(into changes: inout ObjectChanges) {
    if otherEnds.isEmpty { return }
    var known = Set(changes.inserted).union(changes.updated).union(changes.deleted)
    for id in otherEnds where known.insert(id).inserted { changes.updated.append(id) }
    toldOtherEnds.formUnion(otherEnds)
    otherEnds = []
  }

  /// What is to be told now, which is forgotten by that. The next change of each object is noted again.
  func take() -> ObjectChanges {
    var changes = ObjectChanges(refreshed: refreshed, invalidated: invalidated)
    let objects = noted
    (noted, refreshed, invalidated) = ([], [], [])
    let known = Set(changes.refreshed)
    var seen: Set<ObjectIdentifier> = []
    // A save between two messages lets an object be noted again.
    for object in objects where seen.insert(ObjectIdentifier(object)).inserted {
      object.flags.remove(.noted)
      if object.isDeleted {
        if object.flags.contains(.toldDeleted) || object.isInserted && !object.flags.contains(.toldInserted) { continue }
        object.flags.insert(.toldDeleted)
        changes.deleted.append(object.id)
      } else if object.isInserted && !object.flags.contains(.toldInserted) {
        object.flags.insert(.toldInserted)
        changes.inserted.append(object.id)
      } else if object.flags.contains(.detached) || !object.hasChanges && known.contains(object.id) {
        continue
      } else {
        changes.updated.append(object.id)
      }
    }
    takeOtherEnds(into: &changes)
    return changes
  }
}
