/// The objects that a save updates, and which of their properties, for stores that keep a history.
///
/// Objects that the save inserts or deletes aren't included, nor are derived attributes. Both ends of an added or removed many-to-many link
/// are updated.
public struct HistoryUpdates {
  /// Objects of an entity whose same properties changed.
  public struct Group {
    /// The bits of the properties in a ``HistoryPlan``.
    public var properties: Set<Int>
    /// The keys, ascending.
    public var keys: [ObjectKey]
  }

  /// The updated objects of an entity, ascending by key, and which properties changed: a number of ``sets``.
  private struct Updates {
    var keys: [ObjectKey] = []
    var sets: [Int] = []
  }

  private let plan: HistoryPlan
  private let model: ManagedObjectModel
  /// By entity.
  private var updates: [Updates]
  /// Sets of properties, which many objects share.
  private var sets: [Set<Int>] = []
  private var numbers: [Set<Int>: Int] = [:]

  /// Finds the objects that a request updates.
  ///
  /// - Parameters:
  ///   - request: The save.
  ///   - plan: What the history keeps.
  ///   - model: The model of both.
  public init(_ request: SaveRequest, _ plan: HistoryPlan, _ model: ManagedObjectModel) {
    (self.plan, self.model) = (plan, model)
    updates = model.entities.map { _ in Updates() }
    for changes in request.entities { note(changes) }
    for changes in request.links {
      let relationship = model.entities[changes.entity].relationships[changes.relationship], inverse = model.inverse(of: relationship)
      for link in changes.added + changes.removed {
        note(link.source, relationship)
        if let inverse { note(link.target, inverse) }
      }
    }
    for changes in request.orders {
      let relationship = model.entities[changes.entity].relationships[changes.relationship]
      for link in changes.links { note(link.source, relationship) }
    }
  }

  /// The updated objects of an entity, without subentities.
  public func groups(of entity: EntityIndex) -> [Group] {
    var groups = sets.map { Group(properties: $0, keys: []) }
    for (key, set) in zip(updates[entity].keys, updates[entity].sets) { groups[set].keys.append(key) }
    return groups.filter { !$0.keys.isEmpty }
  }

  /// Adds objects whose references to deleted objects the store cleared.
  ///
  /// - Parameters:
  ///   - objects: Each object once, and the slots of its cleared references.
  ///   - entity: The objects' entity.
  public mutating func add(_ objects: [(key: ObjectKey, slots: [SlotIndex])], of entity: EntityIndex) {
    let bits = plan.entities[entity.rawValue].slotBits
    var new: [(key: ObjectKey, set: Int)] = []
    for (key, slots) in objects {
      let properties = Set(slots.map { bits[$0.rawValue] })
      if let place = place(of: key, entity) {
        add(properties, at: place, entity)
      } else {
        new.append((key, number(of: properties)))
      }
    }
    if new.isEmpty { return }
    let all = (zip(updates[entity].keys, updates[entity].sets).map { (key: $0, set: $1) } + new).sorted { $0.key < $1.key }
    updates[entity] = Updates(keys: all.map(\.key), sets: all.map(\.set))
  }

  /// Adds the ordered relationships that lose objects to updated owners. Call it before the changes.
  ///
  /// In a one-to-many pair, only the row of an object that leaves an owner names the owner, and only before the save.
  ///
  /// - Parameters:
  ///   - request: The save.
  ///   - former: Returns the destination of a to-one relationship before the save, by the entity, key and slot of an updated object. Called
  ///     for changed relationships whose inverse is ordered.
  public mutating func addFormerOwners(
    _ request: SaveRequest, _ former: (EntityIndex, ObjectKey, SlotIndex) throws -> ObjectKey?
  ) rethrows {
    for changes in request.entities where !changes.updated.isEmpty {
      for relationship in model.entities[changes.entity].relationships where !relationship.isToMany {
        guard let inverse = model.inverse(of: relationship), inverse.isOrdered else { continue }
        for updated in changes.updated {
          for row in 0..<updated.rows.count where updated.isChanged(row: row, slot: relationship.slot) {
            if let owner = try former(changes.entity, updated.rows.pointer(row).key, relationship.slot) { note(owner, inverse) }
          }
        }
      }
    }
  }

  // MARK: Noting

  private mutating func number(of set: Set<Int>) -> Int {
    if let known = numbers[set] { return known }
    sets.append(set)
    numbers[set] = sets.count - 1
    return sets.count - 1
  }

  private mutating func note(_ changes: SaveRequest.EntityChanges) {
    if changes.updated.isEmpty { return }
    let bits = plan.entities[changes.entity.rawValue].slotBits
    // A save computes them again. Those that depend on other objects are written without an update, so none of them is a change.
    let derived = Set(model.entities[changes.entity].derivedAttributes.map(\.slot))
    // Many rows have the same changed slots.
    var lastWords: ArraySlice<UInt64> = [], lastSet = -1
    for updated in changes.updated {
      for row in 0..<updated.rows.count {
        let words = updated.changedSlots[row * updated.wordsPerRow..<(row + 1) * updated.wordsPerRow]
        if lastSet < 0 || !words.elementsEqual(lastWords) {
          let slots = updated.rows.layout.slots.filter { updated.isChanged(row: row, slot: $0) && !derived.contains($0) }
          (lastWords, lastSet) = (words, number(of: Set(slots.map { bits[$0.rawValue] })))
        }
        updates[changes.entity].keys.append(updated.rows.pointer(row).key)
        updates[changes.entity].sets.append(lastSet)
      }
    }
  }

  /// Notes a relationship of an object, if it is among the updated ones.
  private mutating func note(_ key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) {
    for entity in model.entities[relationship.entityIndex].familyIndexes {
      guard let place = place(of: key, entity) else { continue }
      add([plan.entities[entity.rawValue].relationshipBits[relationship.index.rawValue]], at: place, entity)
    }
  }

  private mutating func add(_ properties: Set<Int>, at place: Int, _ entity: EntityIndex) {
    let set = sets[updates[entity].sets[place]]
    if !properties.isSubset(of: set) { updates[entity].sets[place] = number(of: set.union(properties)) }
  }

  private func place(of key: ObjectKey, _ entity: EntityIndex) -> Int? {
    let keys = updates[entity].keys
    var low = 0, high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key ? low : nil
  }
}
