import HoldfastStore

/// Makes the transaction of a save for the history.
struct HistoryRecorder {
  private let request: SaveRequest
  private let plan: HistoryPlan
  private let base: TableGeneration
  private let next: TableGeneration
  private var model: ManagedObjectModel { base.schema.model }

  /// The updated objects of an entity, ascending by key, and which properties changed: a number of ``sets``.
  private struct Updates {
    var keys: [ObjectKey] = []
    var sets: [Int] = []

    mutating func add(_ others: Updates) {
      if others.keys.isEmpty { return }
      let all = zip(keys + others.keys, sets + others.sets).sorted { $0.0 < $1.0 }
      (keys, sets) = (all.map(\.0), all.map(\.1))
    }
  }

  private struct Object: Hashable {
    let root: EntityIndex
    let key: ObjectKey
  }

  /// By entity.
  private var updates: [Updates]
  /// Sets of properties, which many objects share.
  private var sets: [Set<Int>] = []
  private var numbers: [Set<Int>: Int] = [:]
  /// The added and removed links of objects whose values are kept.
  private var links: [Object: KeptLinks] = [:]

  /// - Parameters:
  ///   - base: The rows before the save.
  ///   - next: The rows after it.
  init(_ request: SaveRequest, _ plan: HistoryPlan, from base: TableGeneration, to next: TableGeneration) {
    (self.request, self.plan, self.base, self.next) = (request, plan, base, next)
    updates = base.schema.model.entities.map { _ in Updates() }
    for changes in request.entities { noteUpdates(changes) }
    for changes in request.links { noteLinks(changes) }
    for changes in request.orders {
      let relationship = model.entities[changes.entity].relationships[changes.relationship]
      for link in changes.links { note(link.source, relationship) }
    }
    noteSeveredReferences()
  }

  /// The transaction with a number.
  func transaction(_ number: Int64) -> KeptTransaction {
    let updated = model.entityIndexes.flatMap { updates($0) }
    return KeptTransaction(
      number: number, request.origin,
      changes: request.entities.compactMap(insertions) + updated + request.entities.compactMap(deletions))
  }

  // MARK: Updates

  private mutating func number(of set: Set<Int>) -> Int {
    if let known = numbers[set] { return known }
    sets.append(set)
    numbers[set] = sets.count - 1
    return sets.count - 1
  }

  private mutating func noteUpdates(_ changes: SaveRequest.EntityChanges) {
    let bits = plan.entities[changes.entity.rawValue].slotBits
    // Many rows have the same changed slots.
    var lastWords: ArraySlice<UInt64> = [], lastSet = -1
    for updated in changes.updated {
      for row in 0..<updated.rows.count {
        let words = updated.changedSlots[row * updated.wordsPerRow..<(row + 1) * updated.wordsPerRow]
        if lastSet < 0 || !words.elementsEqual(lastWords) {
          let slots = updated.rows.layout.slots.filter { updated.isChanged(row: row, slot: $0) }
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
      let set = sets[updates[entity].sets[place]].union([plan.entities[entity.rawValue].relationshipBits[relationship.index.rawValue]])
      updates[entity].sets[place] = number(of: set)
    }
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

  /// Notes links at both ends. The rows of both are updated.
  private mutating func noteLinks(_ changes: SaveRequest.LinkChanges) {
    let relationship = model.entities[changes.entity].relationships[changes.relationship], inverse = model.inverse(of: relationship)
    for link in changes.added + changes.removed {
      note(link.source, relationship)
      if let inverse { note(link.target, inverse) }
    }
    if !plan.keepsValues { return }
    for (list, isAddition) in [(changes.added, true), (changes.removed, false)] {
      for link in list {
        keep(link.source, relationship, link.target, isAddition)
        if let inverse { keep(link.target, inverse, link.source, isAddition) }
      }
    }
  }

  private mutating func keep(
    _ owner: ObjectKey, _ relationship: ManagedObjectModel.Relationship, _ target: ObjectKey, _ isAddition: Bool
  ) {
    let id = base.schema.prefixes[relationship.destinationIndex].withKey(target)
    let object = Object(root: model.entities[relationship.entityIndex].rootIndex, key: owner)
    if isAddition {
      links[object, default: KeptLinks()].added[relationship.name, default: []].append(id)
    } else {
      links[object, default: KeptLinks()].removed[relationship.name, default: []].append(id)
    }
  }

  /// Notes the objects whose references to deleted objects were cleared.
  private mutating func noteSeveredReferences() {
    if request.entities.allSatisfy(\.deleted.keys.isEmpty) { return }
    for entity in model.entityIndexes {
      let slots = model.entities[entity].relationships.filter { !$0.isToMany }.map(\.slot)
      if slots.isEmpty { continue }
      var found: [(key: ObjectKey, slots: [SlotIndex])] = []
      next.forEachChange(since: base, of: entity, keys: TableLoader.keys) { old, new in
        guard let old, let new, old.version != new.version else { return }
        let severed = slots.filter { old.isPresent($0) && !new.isPresent($0) }
        if !severed.isEmpty { found.append((new.key, severed)) }
      }
      let bits = plan.entities[entity.rawValue].slotBits
      var others = Updates()
      for (key, slots) in found {
        let bits = Set(slots.map { bits[$0.rawValue] })
        if let place = place(of: key, entity) {
          updates[entity].sets[place] = number(of: sets[updates[entity].sets[place]].union(bits))
        } else {
          others.keys.append(key)
          others.sets.append(number(of: bits))
        }
      }
      updates[entity].add(others)
    }
  }

  // MARK: Changes

  private func insertions(_ changes: SaveRequest.EntityChanges) -> KeptTransaction.Changes? {
    let keys = changes.inserted.flatMap { batch in (0..<batch.count).map { batch.pointer($0).key } }
    return kept(.inserted, changes.entity, keys)
  }

  private func updates(_ entity: EntityIndex) -> [KeptTransaction.Changes] {
    let updates = updates[entity]
    var keys: [[ObjectKey]] = sets.map { _ in [] }
    for (key, set) in zip(updates.keys, updates.sets) { keys[set].append(key) }
    return sets.indices.compactMap { kept(.updated, entity, keys[$0], sets[$0]) }
  }

  private func deletions(_ changes: SaveRequest.EntityChanges) -> KeptTransaction.Changes? {
    kept(.deleted, changes.entity, changes.deleted.keys)
  }

  private func kept(
    _ kind: HistoryTransaction.Change.Kind, _ entity: EntityIndex, _ keys: [ObjectKey], _ bits: Set<Int>? = nil
  ) -> KeptTransaction.Changes? {
    if keys.isEmpty { return nil }
    let plan = plan.entities[entity.rawValue]
    let hasValues = plan.keepsValues || kind == .deleted && !plan.preserved.isEmpty
    return KeptTransaction.Changes(
      entity: model.entities[entity].name, kind: kind, properties: bits.map { $0.sorted().map { plan.properties[$0] } },
      keys: KeyRanges(keys), values: hasValues ? keys.map { values(kind, entity, $0, bits) } : nil)
  }

  private func values(
    _ kind: HistoryTransaction.Change.Kind, _ entity: EntityIndex, _ key: ObjectKey, _ bits: Set<Int>?
  ) -> KeptTransaction.Values {
    let plan = plan.entities[entity.rawValue], prefix = base.schema.prefixes[entity], described = model.entities[entity]
    let former = kind == .inserted ? nil : base.row(entity: entity, key: key)
    var values = KeptTransaction.Values()
    if kind == .deleted && !plan.preserved.isEmpty {
      let all = former.map { described.historyValues(of: $0, idPrefix: prefix, where: plan.preserved.contains) }
      values.tombstone = all?.filter { $0.value != .null }
    }
    if !plan.keepsValues { return values }
    func isIncluded(_ slot: SlotIndex) -> Bool { bits?.contains(plan.slotBits[slot.rawValue]) != false }
    values.former = former.map { described.historyValues(of: $0, idPrefix: prefix, where: isIncluded) }
    if kind != .deleted {
      values.new = next.row(entity: entity, key: key).map { described.historyValues(of: $0, idPrefix: prefix, where: isIncluded) }
    }
    values.links = links[Object(root: described.rootIndex, key: key)]
    return values
  }
}
