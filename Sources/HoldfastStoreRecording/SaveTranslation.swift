import HoldfastStore

/// Translates recorded saves for another store: keys, object IDs and versions.
struct SaveTranslation {
  let model: ManagedObjectModel
  let names: ReplayedNames
  /// The identity of the other store.
  let identity: StoreIdentity
  /// Returns the stored value of an object in the other store, which replaces the name of an external file of the recorded store.
  let storedValue: (ManagedObjectModel.Entity, _ key: ObjectKey, SlotIndex) throws -> StoreValue

  /// The version of a saved row in both stores.
  typealias Saved = (object: RecordedObject, recorded: RowVersion, replayed: RowVersion)

  /// Returns the save for the other store, with the versions of its rows. Requires ``isValid(_:)``.
  func translated(_ request: SaveRequest) throws -> (request: SaveRequest, saved: [Saved]) {
    var translated = request, saved: [Saved] = []
    for (index, changes) in request.entities.enumerated() {
      let entity = model.entities[changes.entity]
      translated.entities[index].inserted = try inserted(changes.inserted, entity, &saved)
      translated.entities[index].updated = try updated(changes.updated, entity, &saved)
      translated.entities[index].deleted = keyed(changes.deleted, entity)
      translated.entities[index].locked = keyed(changes.locked, entity)
      translated.entities[index].derived = try changes.derived.map { part in
        var part = part
        part.rows = try batch(part.rows, entity)
        return part
      }
    }
    translated.links = request.links.map { changes in
      var changes = changes
      let map = linkMap(changes.entity, changes.relationship)
      changes.added = changes.added.map(map).sorted()
      changes.removed = changes.removed.map(map).sorted()
      return changes
    }
    translated.orders = request.orders.map { changes in
      var changes = changes
      let map = linkMap(changes.entity, changes.relationship)
      let pairs = zip(changes.links.map(map), changes.keys).sorted { $0.0 < $1.0 }
      (changes.links, changes.keys) = (pairs.map(\.0), pairs.map(\.1))
      return changes
    }
    return (translated, saved)
  }

  /// Returns an ID of the other store for one of the recorded store.
  func id(_ id: ManagedObjectID) -> ManagedObjectID {
    guard id.storeIdentifier == RecordedIDs.storeUUID, let entity = model.entity(named: id.entityName) else { return id }
    return identity.objectID(entity: entity, key: key(id.key, entity.rootIndex))
  }

  func key(_ key: ObjectKey, _ root: EntityIndex) -> ObjectKey { names.replayedKey(key, root) }

  // MARK: Rows

  /// A row, its position in a list of batches, and its key in the other store.
  private struct Row {
    var part: Int
    var index: Int
    var pointer: RowPointer
    var key: ObjectKey
  }

  /// The rows of batches in the order of their keys in the other store.
  private func sorted(_ batches: [RowBatch], _ entity: ManagedObjectModel.Entity) -> [Row] {
    var rows: [Row] = []
    for (part, batch) in batches.enumerated() {
      for index in 0..<batch.count {
        let row = batch.pointer(index)
        rows.append(Row(part: part, index: index, pointer: row, key: key(row.key, entity.rootIndex)))
      }
    }
    return rows.sorted { $0.key < $1.key }
  }

  private func inserted(_ batches: [RowBatch], _ entity: ManagedObjectModel.Entity, _ saved: inout [Saved]) throws -> [RowBatch] {
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    var result: [RowBatch] = []
    for row in sorted(batches, entity) {
      let version = row.pointer.version
      try builder.append(key: row.key, version: version, values: values(row.pointer, entity))
      saved.append((RecordedObject(root: entity.rootIndex, key: row.pointer.key), version, version))
      if builder.isFull { result.append(builder.seal()) }
    }
    if builder.count > 0 { result.append(builder.seal()) }
    return result
  }

  private func updated(
    _ parts: [SaveRequest.UpdatedRows], _ entity: ManagedObjectModel.Entity, _ saved: inout [Saved]
  ) throws -> [SaveRequest.UpdatedRows] {
    // The parts of an entity without slots may have 0 or 1 words per row.
    let builder = RowBatchBuilder(entity: entity, identity: identity), words = entity.layout.wordCount
    var result: [SaveRequest.UpdatedRows] = [], expectedVersions: [RowVersion] = [], changedSlots: [UInt64] = []
    func seal() {
      result.append(
        SaveRequest.UpdatedRows(
          rows: builder.seal(), expectedVersions: expectedVersions, changedSlots: changedSlots, wordsPerRow: words))
      (expectedVersions, changedSlots) = ([], [])
    }
    for row in sorted(parts.map(\.rows), entity) {
      let part = parts[row.part], object = RecordedObject(root: entity.rootIndex, key: row.pointer.key)
      let expected = part.expectedVersions[row.index], stored = names.replayedVersion(expected, object)
      let version = stored == expected ? row.pointer.version : stored.next
      try builder.append(key: row.key, version: version, values: values(row.pointer, entity))
      expectedVersions.append(stored)
      changedSlots += part.changedSlots[row.index * words..<(row.index + 1) * words]
      saved.append((object, row.pointer.version, version))
      if builder.isFull { seal() }
    }
    if builder.count > 0 { seal() }
    return result
  }

  private func batch(_ rows: RowBatch, _ entity: ManagedObjectModel.Entity) throws -> RowBatch {
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    for index in 0..<rows.count {
      let row = rows.pointer(index)
      try builder.append(key: key(row.key, entity.rootIndex), version: row.version, values: values(row, entity))
    }
    return builder.seal()
  }

  private func values(_ row: RowPointer, _ entity: ManagedObjectModel.Entity) throws -> [StoreValue] {
    try entity.layout.slots.map { slot in
      let column = entity.layout.columns[slot], value = row.value(slot, column)
      switch (column, value) {
      case (.toOne(let destination), .int64(let target)): return .key(key(ObjectKey(target), model.entities[destination].rootIndex))
      case (_, .externalData): return try storedValue(entity, key(row.key, entity.rootIndex), slot)
      default: return value.mappingIDs(id)
      }
    }
  }

  // MARK: Keys

  private func keyed(_ rows: SaveRequest.KeyedRows, _ entity: ManagedObjectModel.Entity) -> SaveRequest.KeyedRows {
    let pairs = zip(rows.keys, rows.expectedVersions).map { recorded, version in
      let object = RecordedObject(root: entity.rootIndex, key: recorded)
      return (key: key(recorded, entity.rootIndex), version: names.replayedVersion(version, object))
    }.sorted { $0.key < $1.key }
    return SaveRequest.KeyedRows(keys: pairs.map(\.key), expectedVersions: pairs.map(\.version))
  }

  private func linkMap(_ entity: EntityIndex, _ index: RelationshipIndex) -> (SaveRequest.Link) -> SaveRequest.Link {
    let relationship = model.entities[entity].relationships[index]
    let (source, target) = (model.entities[entity].rootIndex, model.destination(of: relationship).rootIndex)
    return { SaveRequest.Link(source: key($0.source, source), target: key($0.target, target)) }
  }
}

// MARK: Checks

extension ManagedObjectModel {
  /// Whether a save from a file fits the model.
  func fits(_ request: SaveRequest) -> Bool {
    request.entities.allSatisfy(fits)
      && request.links.allSatisfy { relationship($0.entity, $0.relationship)?.storesLinks == true }
      && request.orders.allSatisfy { relationship($0.entity, $0.relationship)?.isOrdered == true && $0.links.count == $0.keys.count }
  }

  private func fits(_ changes: SaveRequest.EntityChanges) -> Bool {
    guard let entity = entity(at: changes.entity), !entity.isAbstract else { return false }
    let wordCount = entity.layout.wordCount, wordCounts = wordCount...max(1, wordCount)
    func fits(_ rows: RowBatch, _ words: Int, _ slots: [UInt64]...) -> Bool {
      rows.layout == entity.layout && wordCounts.contains(words)
        && slots.allSatisfy { $0.count == rows.count * words }
    }
    return changes.inserted.allSatisfy { $0.layout == entity.layout }
      && changes.updated.allSatisfy { fits($0.rows, $0.wordsPerRow, $0.changedSlots) && $0.expectedVersions.count == $0.rows.count }
      && changes.derived.allSatisfy { fits($0.rows, $0.wordsPerRow, $0.setSlots, $0.addedSlots) }
      && [changes.deleted, changes.locked].allSatisfy { $0.keys.count == $0.expectedVersions.count }
  }

  /// Whether a plan from a file fits the model. Names in predicates and sorts are checked when they are resolved.
  func fits(_ plan: FetchPlan) -> Bool {
    guard let entity = entity(at: plan.entity), plan.offset >= 0, plan.limit ?? 0 >= 0,
      plan.concreteEntities.allSatisfy({ entity.familyIndexes.contains($0) })
    else { return false }
    guard case .aggregates(let aggregates) = plan.output else { return true }
    return (aggregates.groupBy + aggregates.columns.compactMap(\.slot)).allSatisfy { entity.slotIndexes.contains($0) }
  }
}

extension RowLayout {
  /// The number of words with a bit for each slot.
  fileprivate var wordCount: Int { (columns.count + 63) / 64 }
}
