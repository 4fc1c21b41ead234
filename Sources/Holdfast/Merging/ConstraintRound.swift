import HoldfastStore

/// The conflicts that one attempt to save resolves, if entities have several uniqueness constraints.
///
/// An object can have a value of one object and another value of a second one, which itself becomes a third one. What the first becomes
/// depends on the values that the second one leaves behind. So some objects wait for the next attempt:
/// - a new object whose conflict depends on an object that this attempt changes by another constraint,
/// - later new objects that can become the same object as one that waits,
/// - all new objects while changed objects are reverted, because these get former values back,
/// - a changed object that is in conflict only with new values of another changed object, which is reverted.
///
/// The result is the same as if changed objects had been saved first, and then one new object after the other. It doesn't depend on whether
/// the store reports the conflicts of rows that it has refused.
struct ConstraintRound {
  typealias Duplicate = ConflictResolution.Duplicate

  /// A uniqueness constraint: the entity that declares it, and its place among the constraints of that entity.
  private struct Constraint: Hashable {
    let entity: EntityIndex
    let place: Int
  }

  /// The values of an object in a constraint.
  private struct UniqueValues: Hashable {
    let constraint: Constraint
    let values: [StoreValue]
  }

  /// What becomes of a new object in conflict.
  private enum Outcome {
    /// It becomes another object, because both have the same values of the constraint.
    case becomes(ManagedObjectID, Constraint)
    /// It waits for the next attempt.
    case waits
  }

  private let context: ContextCore
  /// The saved objects with the values of an object, by the place of the constraint.
  private var reported: [ManagedObject: [Int: ManagedObjectID]] = [:]
  /// The first object of the save with each of the values, without changed objects in conflict.
  private var holders: [UniqueValues: ManagedObject] = [:]
  /// The saved objects that keep values which changed objects would get.
  private var keepers: [UniqueValues: ManagedObjectID] = [:]
  /// The changed objects in conflict.
  private var refused: Set<ManagedObject> = []
  private var outcomes: [ManagedObject: Outcome] = [:]
  /// The objects that new objects become, each with the only constraint by which this attempt merges others into it.
  private var targets: [ManagedObjectID: Constraint] = [:]
  /// Groups of objects that can become one, because they share values, directly or by way of others: a tree for each group.
  private var parents: [ManagedObjectID: ManagedObjectID] = [:]
  /// The groups with new objects that wait, by the roots of their trees.
  private var waiting: Set<ManagedObjectID> = []
  private var duplicates: [Duplicate] = []

  private init(_ context: ContextCore) { self.context = context }

  /// The objects in conflict, each once, or none if none can be found. Nil if no entity has several constraints.
  ///
  /// - Parameter conflicts: The conflicts that the store has reported. Each names a changed object of the context.
  static func duplicates(_ conflicts: [ConstraintConflict], in context: ContextCore) -> [Duplicate]? {
    let objects = conflicts.compactMap { context.registeredObject(for: $0.objectID) }
    let roots = Set(objects.map(\.entity.rootIndex))
    guard let first = objects.first, context.entities.contains(where: { roots.contains($0.rootIndex) && $0.uniqueSlots.count > 1 }) else {
      return nil
    }
    var round = ConstraintRound(context)
    for conflict in conflicts { round.note(conflict) }
    // The conflicts are those of one store.
    let stores = context.persistentStoreCoordinator.storeSet, store = context.store(of: first, in: stores)
    let changed = context.changes.objects.filter { object in
      !object.isDeleted && (object.isInserted || object.changesItsRow) && roots.contains(object.entity.rootIndex)
        && context.store(of: object, in: stores) === store
    }
    // In the order of the request, in which stores let the first of several objects have a value.
    for object in changed.filter({ !$0.isInserted }).sortedByKey() { round.addChanged(object) }
    if round.duplicates.isEmpty { for object in changed where object.isInserted { round.addNew(object) } }
    return round.duplicates
  }

  /// Notes a conflict with a saved object. Those of new objects with each other are found without the store.
  private mutating func note(_ conflict: ConstraintConflict) {
    guard let object = context.registeredObject(for: conflict.objectID), let existing = conflict.existing,
      context.registeredObject(for: existing)?.isInserted != true,
      let place = object.entity.uniquenessConstraints.firstIndex(where: { Set($0) == Set(conflict.constraint) })
    else { return }
    reported[object, default: [:]][place] = existing
  }

  // MARK: Objects

  private mutating func addChanged(_ object: ManagedObject) {
    let values = values(of: object)
    for unique in values {
      guard let owner = owner(of: unique, besides: object) else { continue }
      refused.insert(object)
      return add(object, owner, unique.constraint.place)
    }
    hold(values, object)
  }

  /// The object that has or gets values which a changed object would get. Nil if there is none.
  private mutating func owner(of unique: UniqueValues, besides object: ManagedObject) -> ManagedObjectID? {
    if let keeper = keepers[unique] { return keeper == object.id ? nil : keeper }
    guard let id = reported[object]?[unique.constraint.place] else { return nil }
    guard let other = context.registeredObject(for: id), other.changesItsRow, !keeps(unique, other) else {
      keepers[unique] = id
      return id
    }
    // An object in conflict doesn't get its new values, but stores may report them.
    return refused.contains(other) ? holders[unique]?.id : id
  }

  /// Whether values that a changed object has are those of its stored row.
  private func keeps(_ unique: UniqueValues, _ object: ManagedObject) -> Bool {
    guard let base = object.committedRow else { return false }
    let slots = object.entity.uniqueSlots[unique.constraint.place], columns = object.entity.layout.columns
    return zip(slots, unique.values).allSatisfy { slot, value in base.value(slot, columns[slot]).inConstraint == value }
  }

  private mutating func addNew(_ object: ManagedObject) {
    let values = values(of: object), found = outcome(of: object, values)
    hold(values, object)
    guard let found else { return }
    let group = group(of: object.id)
    if case .becomes(let target, let constraint) = found, !waiting.contains(group) {
      outcomes[object] = found
      targets[target] = constraint
      add(object, target, constraint.place)
    } else {
      outcomes[object] = .waits
      waiting.insert(group)
    }
  }

  /// What becomes of a new object: the first constraint with a conflict decides. Nil if there is none.
  private func outcome(of object: ManagedObject, _ values: [UniqueValues]) -> Outcome? {
    for unique in values {
      guard let target = target(of: object, unique) else { continue }
      guard case .becomes(let id, let constraint) = target, targets[id] ?? constraint == constraint else { return .waits }
      return target
    }
    return nil
  }

  /// The object with the same values of a constraint, which a new object becomes. Nil if there is none.
  private func target(of object: ManagedObject, _ unique: UniqueValues) -> Outcome? {
    if let existing = reported[object]?[unique.constraint.place] { return .becomes(existing, unique.constraint) }
    guard let holder = holders[unique] else { return nil }
    switch outcomes[holder] {
    case nil: return .becomes(holder.id, unique.constraint)
    // Then the object that it becomes has the same values.
    case .becomes(let id, unique.constraint): return .becomes(id, unique.constraint)
    case .becomes, .waits: return .waits
    }
  }

  private mutating func add(_ object: ManagedObject, _ existing: ManagedObjectID, _ place: Int) {
    duplicates.append(Duplicate(object: object, existing: existing, constraint: object.entity.uniquenessConstraints[place]))
  }

  // MARK: Chains

  /// Adds the changed objects that would get values which objects in conflict get back, and those that would get the former values of the
  /// added ones.
  ///
  /// Otherwise each attempt to save would revert only one object of a chain in which each gets the value of the next one.
  ///
  /// - Parameter found: Objects in conflict, each reverted if it isn't new.
  static func addingChains(to found: [Duplicate], in context: ContextCore) -> [Duplicate] {
    guard let first = found.first(where: { !$0.object.isInserted }) else { return found }
    let round = ConstraintRound(context), takers = round.takers(inStoreOf: first.object)
    var all = found, known = Set(found.map(\.object)), next = 0
    while next < all.count {
      let duplicate = all[next]
      next += 1
      guard let former = round.formerValues(of: duplicate) else { continue }
      for object in takers[former] ?? [] where known.insert(object).inserted {
        all.append(Duplicate(object: object, existing: duplicate.object.id, constraint: duplicate.constraint))
      }
    }
    return all
  }

  /// The changed objects of an object's store, by the values that they would get.
  private func takers(inStoreOf first: ManagedObject) -> [UniqueValues: [ManagedObject]] {
    let stores = context.persistentStoreCoordinator.storeSet, store = context.store(of: first, in: stores)
    var takers: [UniqueValues: [ManagedObject]] = [:]
    for object in context.changes.objects where !object.isInserted && !object.isDeleted && object.changesItsRow {
      if context.store(of: object, in: stores) !== store { continue }
      for unique in values(of: object) where !keeps(unique, object) { takers[unique, default: []].append(object) }
    }
    return takers
  }

  /// The stored values of a changed object in the constraint of its conflict.
  private func formerValues(of duplicate: Duplicate) -> UniqueValues? {
    let entity = duplicate.object.entity, names = Set(duplicate.constraint)
    guard let base = duplicate.object.committedRow, let place = entity.uniquenessConstraints.firstIndex(where: { Set($0) == names }) else {
      return nil
    }
    return unique(entity.uniqueSlots[place].map { base.value($0, entity.layout.columns[$0]).inConstraint }, place, entity)
  }

  // MARK: Values

  private mutating func hold(_ values: [UniqueValues], _ object: ManagedObject) {
    for unique in values {
      if let holder = holders[unique] { join(object.id, holder.id) } else { holders[unique] = object }
    }
    for existing in reported[object, default: [:]].values { join(object.id, existing) }
  }

  /// The values of an object in each constraint. Nil and NaN are equal to no value.
  private func values(of object: ManagedObject) -> [UniqueValues] {
    object.entity.uniqueSlots.enumerated().compactMap { place, slots in
      unique(slots.map { object.valueToSave($0).inConstraint }, place, object.entity)
    }
  }

  private func unique(_ values: [StoreValue], _ place: Int, _ entity: ManagedObjectModel.Entity) -> UniqueValues? {
    if values.contains(where: { $0 == .null || $0.isNaN }) { return nil }
    return UniqueValues(constraint: Constraint(entity: declaring(place, entity), place: place), values: values)
  }

  /// The entity that declares a constraint, which applies among all its objects.
  private func declaring(_ place: Int, _ entity: ManagedObjectModel.Entity) -> EntityIndex {
    var entity = entity
    while place < entity.inheritedConstraintCount, let above = entity.superentityIndex { entity = context.entities[above] }
    return entity.index
  }

  // MARK: Groups

  /// The root of an object's group.
  private mutating func group(of id: ManagedObjectID) -> ManagedObjectID {
    var id = id
    while let parent = parents[id] {
      // Shortens the path for the next call.
      if let next = parents[parent] { parents[id] = next }
      id = parent
    }
    return id
  }

  /// Makes one group of those of two objects.
  private mutating func join(_ one: ManagedObjectID, _ other: ManagedObjectID) {
    let root = group(of: one), joined = group(of: other)
    if root == joined { return }
    parents[joined] = root
    if waiting.remove(joined) != nil { waiting.insert(root) }
  }
}
