import HoldfastStore

/// Makes the transaction of a save for the history.
struct HistoryRecorder {
  private let request: SaveRequest
  private let plan: HistoryPlan
  private let base: TableGeneration
  private let next: TableGeneration
  private var model: ManagedObjectModel { base.schema.model }
  private var updates: HistoryUpdates
  private var links: HistoryLinks

  /// - Parameters:
  ///   - base: The rows before the save.
  ///   - next: The rows after it.
  init(_ request: SaveRequest, _ plan: HistoryPlan, from base: TableGeneration, to next: TableGeneration) {
    (self.request, self.plan, self.base, self.next) = (request, plan, base, next)
    updates = HistoryUpdates(request, plan, base.schema.model)
    links = HistoryLinks(request, plan, base.schema.model, prefixes: base.schema.prefixes)
    links.addPlaces(next.relationships)
    updates.addFormerOwners(request) { entity, key, slot in
      base.row(entity: entity, key: key).flatMap { $0.pointer.isPresent(slot) ? $0.pointer.key(slot) : nil }
    }
    if !request.entities.allSatisfy(\.deleted.keys.isEmpty) { addSeveredReferences() }
  }

  /// The transaction with a number.
  func transaction(_ number: Int64) -> KeptTransaction {
    let inserted = request.entities.compactMap { changes in
      kept(.inserted, changes.entity, changes.inserted.flatMap { batch in (0..<batch.count).map { batch.pointer($0).key } })
    }
    let updated = model.entityIndexes.flatMap { entity in
      updates.groups(of: entity).compactMap { kept(.updated, entity, $0.keys, $0.properties) }
    }
    let deleted = request.entities.compactMap { kept(.deleted, $0.entity, $0.deleted.keys) }
    return KeptTransaction(number: number, request.origin, changes: inserted + updated + deleted)
  }

  /// Adds the objects whose references to deleted objects were cleared.
  private mutating func addSeveredReferences() {
    for entity in model.entityIndexes {
      let slots = model.entities[entity].relationships.filter { !$0.isToMany }.map(\.slot)
      if slots.isEmpty { continue }
      var found: [(key: ObjectKey, slots: [SlotIndex])] = []
      next.forEachChange(since: base, of: entity, keys: TableLoader.keys) { old, new in
        guard let old, let new, old.version != new.version else { return }
        let severed = slots.filter { old.isPresent($0) && !new.isPresent($0) }
        if !severed.isEmpty { found.append((new.key, severed)) }
      }
      updates.add(found, of: entity)
    }
  }

  // MARK: Changes

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
    values.links = links.links(of: entity, key)
    return values
  }
}
