import HoldfastStore

@testable import Holdfast

/// What a save must make of the values of all objects, computed from those of both sides before it.
///
/// - A property that only one side has changed gets that side's value. If both did, the policy chooses.
/// - Objects with unique values of other objects may become one, so only the origin of their values is checked.
/// - A child's save isn't in conflict with unsaved changes that its parent itself has made. So both values are possible while a parent has
///   unsaved changes.
struct SaveExpectation {
  private typealias Values = [String: StoreValue]

  private struct Change {
    let object: ManagedObject
    /// The values that the context had read; empty for a new object.
    let base: Values
    let ours: Values

    /// The unique values that the object may get: each property may have the value of either side.
    func keys(with theirs: Values) -> Set<RaceContents.Key> {
      var combinations: [Values] = [[:]]
      for name in RaceContents.names(of: object.entity).dropFirst() {
        var longer: [Values] = []
        for values in combinations {
          for side in [base, ours, theirs] {
            var values = values
            values[name] = side[name]
            longer.append(values)
          }
        }
        combinations = longer
      }
      return Set(combinations.flatMap { RaceContents.keys(of: object.entity, $0) })
    }
  }

  private let context: ManagedObjectContext
  private let policy: PolicyRace.Policy
  private let before: RaceContents
  /// The changed objects that the save will write, and deleted ones that were changed before.
  private var updated: [ManagedObjectID: Change] = [:]
  /// The values that the context had read of objects whose rows it hasn't changed. Under `overwrite`, those get them that a deletion changes,
  /// or a link of another object.
  private var overwriting: [ManagedObjectID: Values] = [:]
  /// The changed objects without a row.
  private var unread: Set<ManagedObjectID> = []
  private var inserted: [Change] = []
  /// The objects that the context inserts again after another one deleted them, although a third one has done so.
  private var insertedByBoth: [ManagedObjectID: Change] = [:]
  private let deleted: [ManagedObject]
  /// Whether objects are deleted, and others perhaps with them.
  private let hasDeletions: Bool
  /// The unique values of several objects.
  private let shared: Set<RaceContents.Key>
  /// All values of changed and new objects.
  private let candidates: [Values]

  /// Whether a parent has unsaved changes.
  private let isAmbiguous: Bool

  init(_ context: ManagedObjectContext, _ policy: PolicyRace.Policy, _ before: RaceContents) throws {
    (self.context, self.policy, self.before) = (context, policy, before)
    isAmbiguous = sequence(first: context) { $0.parent }.dropFirst().contains { $0.hasChanges }
    deleted = context.deletedObjects
    hasDeletions = context.core.changes.objects.contains { $0.isDeleted }
    var changes: [Change] = []
    for object in context.updatedObjects {
      if object.row == nil || object.isInaccessible { unread.insert(object.objectID) }
      // An object of which only links have changed is inserted again, with its unique values, if others have deleted it.
      let isWritten = object.changesItsRow || before.things[object.objectID] == nil
      if object.row == nil || object.isInaccessible || !isWritten { continue }
      let base = try object.committedValues(forKeys: RaceContents.names(of: object.entity))
      let change = Change(object: object, base: base, ours: try RaceContents.values(of: object))
      if object.changesItsRow { updated[object.objectID] = change }
      changes.append(change)
    }
    // The policy may revert a deletion. Then changes from before it are merged.
    for object in deleted where object.row != nil && !object.isInaccessible {
      let base = try object.committedValues(forKeys: RaceContents.names(of: object.entity))
      let change = Change(object: object, base: base, ours: try RaceContents.values(of: object))
      if change.ours == base { continue }
      updated[object.objectID] = change
      changes.append(change)
    }
    for object in context.insertedObjects {
      let change = Change(object: object, base: [:], ours: try RaceContents.values(of: object))
      if before.things[object.objectID] == nil { inserted.append(change) } else { insertedByBoth[object.objectID] = change }
      changes.append(change)
    }
    if policy == .overwrite {
      let linked = Set(context.updatedObjects.flatMap(SaveExpectation.otherEnds))
      for object in context.registeredObjects where !object.isInserted && object.row != nil && !object.isInaccessible {
        if !hasDeletions && !linked.contains(object) { continue }
        overwriting[object.objectID] = try object.committedValues(forKeys: RaceContents.names(of: object.entity))
      }
    }
    // The save of a parent checks uniqueness.
    shared = context.parent == nil ? SaveExpectation.shared(changes, before) : []
    candidates = changes.map(\.ours)
  }

  /// The objects at the other ends of an object's changed links.
  ///
  /// If the ends were read before and after another context changed a link, only one of them records that it was set. The save completes it.
  private static func otherEnds(of object: ManagedObject) -> [ManagedObject] {
    object.entity.relationships.flatMap { relationship -> [ManagedObject] in
      let keys: [ObjectKey]
      if relationship.isToMany {
        keys = object.toMany.map { $0[relationship.toManyIndex].added + $0[relationship.toManyIndex].removed } ?? []
      } else {
        let values = [object.row, object.committedRow].map { row -> ObjectKey? in
          row.flatMap { $0.isPresent(relationship.slot) ? $0.key(relationship.slot) : nil }
        }
        keys = values[0] == values[1] ? [] : values.compactMap(\.self)
      }
      return keys.compactMap { object.context.registered(relationship.destinationIndex, $0) }
    }
  }

  private static func shared(_ changes: [Change], _ before: RaceContents) -> Set<RaceContents.Key> {
    var owners: [RaceContents.Key: Set<ManagedObjectID>] = [:]
    for (id, thing) in before.things { for key in thing.keys { owners[key, default: []].insert(id) } }
    for change in changes {
      let id = change.object.objectID
      for key in change.keys(with: before.things[id]?.values ?? [:]) { owners[key, default: []].insert(id) }
    }
    return Set(owners.filter { $0.value.count > 1 }.keys)
  }

  // MARK: A save that succeeded

  /// - Parameter after: What the store or the parent has after the save.
  func check(_ after: RaceContents) throws {
    for (id, change) in updated { try check(id, change, after) }
    for change in inserted { try check(new: change, after) }
    for (id, change) in insertedByBoth { try check(id, insertedByBoth: change, after) }
    if policy.prefersOurs || policy == .error {
      for object in deleted where after.things[object.objectID] != nil { throw RaceFault("Deleted \(object) is still there.") }
    }
    for (id, thing) in before.things where updated[id] == nil && insertedByBoth[id] == nil && !unread.contains(id) {
      if !shared.isDisjoint(with: thing.keys) {
        try checkOrigin(of: id, [thing.values] + [overwriting[id]].compactMap(\.self), after)
      } else if let now = after.things[id] {
        if now.values != thing.values && now.values != overwriting[id] {
          throw fault(id, "changed, although the context didn't change it", after)
        }
      } else if !hasDeletions {
        throw fault(id, "was deleted, although the context deletes nothing", after)
      }
    }
  }

  private func check(_ id: ManagedObjectID, _ change: Change, _ after: RaceContents) throws {
    let theirs = before.things[id]?.values, now = after.things[id]?.values
    if !shared.isDisjoint(with: change.keys(with: theirs ?? [:])) { return try checkOrigin(of: id, [change.base, theirs ?? [:]], after) }
    guard let theirs else { return try checkDeletedByOthers(id, change, after) }
    guard let now else {
      if !hasDeletions { throw fault(id, "was deleted, although the context only changed it", after) }
      return
    }
    if policy == .error, !isAmbiguous, !context.automaticallyMergesChanges, change.ours != change.base, theirs != change.base {
      throw fault(id, "was saved over values that the context hasn't read", after)
    }
    for (name, value) in now {
      let (base, ours, theirs) = (change.base[name] ?? .null, change.ours[name] ?? .null, theirs[name] ?? .null)
      if !possible(base, ours, theirs, isChanged: change.ours != change.base).contains(value) {
        throw fault(id, "has a wrong value of \(name), read \(base), set to \(ours)", after)
      }
    }
    if policy == .rollback, !isAmbiguous, now != change.ours, now != theirs { throw fault(id, "has values of both sides", after) }
  }

  /// The values that a property of a changed object may have.
  ///
  /// - Parameter isChanged: Whether the context has changed any attribute. If it has only changed links that other conflicts revert, the
  ///   object isn't written.
  private func possible(_ base: StoreValue, _ ours: StoreValue, _ theirs: StoreValue, isChanged: Bool) -> [StoreValue] {
    switch policy {
    case .error, .objectTrump: [ours != base ? ours : theirs]
    case .overwrite: ours != base || isChanged && !isAmbiguous ? [ours] : [ours, theirs]
    case .storeTrump: isAmbiguous ? [ours, theirs] : [theirs != base ? theirs : ours]
    case .rollback: [ours, theirs]
    }
  }

  private func checkDeletedByOthers(_ id: ManagedObjectID, _ change: Change, _ after: RaceContents) throws {
    // A parent may have an object that its store doesn't have any more.
    if isAmbiguous { return }
    let now = after.things[id]?.values, isChanged = change.ours != change.base
    if policy.prefersOurs {
      if isChanged && !hasDeletions && now != change.ours { throw fault(id, "wasn't inserted again", after) }
    } else if now != nil || policy == .error && isChanged {
      throw fault(id, "was saved, although it was deleted", after)
    }
  }

  private func check(new change: Change, _ after: RaceContents) throws {
    // It may be deleted with another object.
    if hasDeletions { return }
    let entity = change.object.entity, keys = RaceContents.keys(of: entity, change.ours)
    if shared.isDisjoint(with: keys) {
      if after.things[change.object.objectID]?.values != change.ours { throw fault(change.object.objectID, "wasn't inserted", after) }
    } else if entity.uniquenessConstraints.count == 1, !after.things.values.contains(where: { $0.keys == keys }) {
      throw fault(change.object.objectID, "has become no object with its unique values", after)
    }
  }

  /// Nothing is known of the row that was deleted, so all values count as changed by both. Merging keeps this context's.
  private func check(_ id: ManagedObjectID, insertedByBoth change: Change, _ after: RaceContents) throws {
    let theirs = before.things[id]?.values ?? [:]
    if !shared.isDisjoint(with: change.keys(with: theirs)) { return try checkOrigin(of: id, [theirs], after) }
    guard let now = after.things[id]?.values else {
      if !hasDeletions { throw fault(id, "was deleted, although the context inserted it", after) }
      return
    }
    let isResolvedForStore = policy == .storeTrump || policy == .rollback
    if now != change.ours && (now != theirs || !isResolvedForStore && !isAmbiguous) { throw fault(id, "has values of neither side", after) }
  }

  /// Each value of an object that others may have become is one of theirs or its own.
  private func checkOrigin(of id: ManagedObjectID, _ own: [Values], _ after: RaceContents) throws {
    for (name, value) in after.things[id]?.values ?? [:] {
      if !(own + candidates).contains(where: { $0[name] == value }) { throw fault(id, "has a value of no object for \(name)", after) }
    }
  }

  // MARK: A save that was refused

  /// Checks that the context keeps its changes.
  ///
  /// Merging changes of others before the save, and resolving some of its conflicts, can discard changes.
  func checkRefusal() throws {
    if policy != .error || context.automaticallyMergesChanges { return }
    for change in updated.values where !change.object.isDeleted { try checkKept(change, change.object.isUpdated) }
    for change in inserted + insertedByBoth.values where !change.object.isDeleted { try checkKept(change, change.object.isInserted) }
    for object in deleted where !object.isDeleted { throw RaceFault("The refused save has reverted the deletion of \(object).") }
  }

  private func checkKept(_ change: Change, _ isChanged: Bool) throws {
    let isKept = try isChanged && RaceContents.values(of: change.object) == change.ours
    if !isKept { throw RaceFault("The refused save has discarded changes of \(change.object).") }
  }

  private func fault(_ id: ManagedObjectID, _ what: String, _ after: RaceContents) -> RaceFault {
    func text(_ contents: RaceContents) -> String { contents.things[id]?.description ?? "nothing" }
    return RaceFault("\(policy): \(id.uriRepresentation) \(what): \(text(before)) became \(text(after))")
  }
}
