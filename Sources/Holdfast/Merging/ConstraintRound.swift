import HoldfastStore

/// The conflicts that one attempt to save resolves, if entities have several uniqueness constraints.
///
/// An object can have a value of one object and another value of a second one, which itself becomes a third one. What the first becomes
/// depends on the values that the second one leaves behind. So an object waits for the next attempt if its conflict depends on an object
/// that this attempt changes by another constraint. The result is the same as if changed objects had been saved first, and then one new
/// object after the other, whatever the store reports: some stores report the conflicts of rows that they have refused, others don't.
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

  /// What becomes of an object whose values aren't certain.
  private enum Outcome {
    /// A new object becomes another one, because both have the same values of the constraint.
    case becomes(ManagedObjectID, Constraint)
    /// A changed object is reverted, or a new one waits for the next attempt.
    case uncertain
  }

  private let context: ContextCore
  /// The saved objects with the values of an object, by the place of the constraint.
  private var reported: [ManagedObject: [Int: ManagedObjectID]] = [:]
  /// The first object of the save with each of the values.
  private var holders: [UniqueValues: ManagedObject] = [:]
  private var outcomes: [ManagedObject: Outcome] = [:]
  /// The objects that new objects become, each with the only constraint by which this attempt merges others into it.
  private var targets: [ManagedObjectID: Constraint] = [:]
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
    for object in changed where !object.isInserted { round.addChanged(object) }
    for object in changed where object.isInserted { round.addNew(object) }
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
    if let conflict = reported[object]?.min(by: { $0.key < $1.key }) {
      add(object, conflict.value, conflict.key)
      outcomes[object] = .uncertain
    }
    hold(values(of: object), object)
  }

  private mutating func addNew(_ object: ManagedObject) {
    let values = values(of: object)
    outcomes[object] = outcome(of: object, values)
    if case .becomes(let target, let constraint) = outcomes[object] {
      targets[target] = constraint
      add(object, target, constraint.place)
    }
    hold(values, object)
  }

  /// What becomes of a new object: the first constraint with a conflict decides. Nil if there is none.
  private func outcome(of object: ManagedObject, _ values: [UniqueValues]) -> Outcome? {
    for unique in values {
      guard let target = target(of: object, unique) else { continue }
      guard case .becomes(let id, let constraint) = target, targets[id] ?? constraint == constraint else { return .uncertain }
      return target
    }
    return nil
  }

  /// The object with the same values of a constraint, which a new object becomes. Nil if there is none.
  private func target(of object: ManagedObject, _ unique: UniqueValues) -> Outcome? {
    if let existing = reported[object]?[unique.constraint.place] {
      let isCertain = context.registeredObject(for: existing).map { outcomes[$0] == nil } ?? true
      return isCertain ? Outcome.becomes(existing, unique.constraint) : .uncertain
    }
    guard let holder = holders[unique] else { return nil }
    switch outcomes[holder] {
    case nil: return .becomes(holder.id, unique.constraint)
    // Then the object that it becomes has the same values.
    case .becomes(let id, unique.constraint): return .becomes(id, unique.constraint)
    case .becomes, .uncertain: return .uncertain
    }
  }

  private mutating func add(_ object: ManagedObject, _ existing: ManagedObjectID, _ place: Int) {
    duplicates.append(Duplicate(object: object, existing: existing, constraint: object.entity.uniquenessConstraints[place]))
  }

  // MARK: Values

  private mutating func hold(_ values: [UniqueValues], _ object: ManagedObject) {
    for unique in values where holders[unique] == nil { holders[unique] = object }
  }

  /// The values of an object in each constraint. Nil and NaN are equal to no value.
  private func values(of object: ManagedObject) -> [UniqueValues] {
    object.entity.uniqueSlots.enumerated().compactMap { place, slots in
      let values = slots.map { object.valueToSave($0) }
      if values.contains(where: { $0 == .null || $0.isNaN }) { return nil }
      return UniqueValues(constraint: Constraint(entity: declaring(place, object.entity), place: place), values: values)
    }
  }

  /// The entity that declares a constraint, which applies among all its objects.
  private func declaring(_ place: Int, _ entity: ManagedObjectModel.Entity) -> EntityIndex {
    var entity = entity
    while place < entity.inheritedConstraintCount, let above = entity.superentityIndex { entity = context.entities[above] }
    return entity.index
  }
}
