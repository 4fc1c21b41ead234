/// Turns a save request into complete rows and links: the semantics of the model, which a row store doesn't know.
///
/// It reads the rows and links that the request concerns, applies the steps in the order of ``/HoldfastStore/SaveRequest``, and returns the
/// differences. Nothing is written.
struct RowSave<Source: RowSource> {
  let request: SaveRequest
  let model: ManagedObjectModel
  private let identity: StoreIdentity
  var rows: TouchedRows<Source>
  var links: TouchedLinks<Source>
  /// Rows whose version was raised because a reference was removed, by root entity.
  var raised: Set<TouchedRows<Source>.Place> = []
  private let comparesVersions: Bool

  init(
    _ request: SaveRequest, model: ManagedObjectModel, identity: StoreIdentity, comparesVersions: Bool, rows: TouchedRows<Source>,
    links: TouchedLinks<Source>
  ) {
    (self.request, self.model, self.identity, self.comparesVersions) = (request, model, identity, comparesVersions)
    (self.rows, self.links) = (rows, links)
  }

  /// The changes to apply.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with the codes `conflict`, `unstorableValue`, `damaged`, `general`, and the errors of reading.
  mutating func changes() throws -> RowChanges {
    try readRows()
    if comparesVersions { try compareVersions() }
    deleteRows()
    updateRows()
    try insertRows()
    try changeLinks()
    try severReferences()
    try removeOrderOfMovedRows()
    try setOrder()
    try setDerivedValues()
    var changes = RowChanges()
    (changes.savedRows, changes.deletedRows) = rows.changes()
    (changes.savedLinks, changes.deletedLinks) = links.changes()
    return changes
  }

  // MARK: Rows

  private mutating func readRows() throws {
    for changes in request.entities {
      var keys = Set(changes.deleted.keys).union(changes.locked.keys)
      for batch in changes.inserted + changes.updated.map(\.rows) + changes.derived.map(\.rows) {
        for index in 0..<batch.count { keys.insert(batch.pointer(index).key) }
      }
      try rows.read(keys, of: model.entities[changes.entity])
    }
  }

  private func compareVersions() throws {
    var conflicts: [SaveConflict] = []
    for changes in request.entities {
      let entity = model.entities[changes.entity]
      for updated in changes.updated {
        for index in 0..<updated.rows.count {
          try compare(updated.rows.pointer(index).key, updated.expectedVersions[index], entity, &conflicts)
        }
      }
      for (key, version) in zip(changes.deleted.keys, changes.deleted.expectedVersions) { try compare(key, version, entity, &conflicts) }
      for (key, version) in zip(changes.locked.keys, changes.locked.expectedVersions) {
        try compare(key, version, entity, isOnlyCompared: true, &conflicts)
      }
    }
    guard conflicts.isEmpty else {
      throw StoreError(
        .conflict, operation: "save", reason: "\(conflicts.count) rows were changed or deleted since they were read.", conflicts: conflicts)
    }
  }

  /// Compares the version of a row.
  ///
  /// A row of another entity counts as deleted, because it doesn't have the slots that are changed. Only requests that don't come from a
  /// context contain its key, such as those of a damaged recording.
  private func compare(
    _ key: ObjectKey, _ expected: RowVersion, _ entity: ManagedObjectModel.Entity, isOnlyCompared: Bool = false,
    _ conflicts: inout [SaveConflict]
  ) throws {
    let found = rows.stored(key, of: entity), stored = isOnlyCompared || found?.entity == entity.name ? found : nil
    if let stored, stored.version == expected { return }
    conflicts.append(
      SaveConflict(
        objectID: identity.objectID(entity: entity, key: key), expectedVersion: expected, persisted: try stored.map { try view($0) }))
  }

  private func view(_ row: StoredRow) throws -> RowView {
    guard let entity = model.entity(named: row.entity) else { throw RowStoreError.damaged("The entity isn't in the model.", row) }
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    try builder.append(key: row.key, version: row.version, values: row.values)
    return builder.seal()[0]
  }

  /// Whether no row of another entity has a key. Without a comparison of versions, such rows are skipped, as missing rows are.
  private func isOf(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey) -> Bool {
    rows.current(key, of: entity).map { $0.entity == entity.name } ?? true
  }

  private mutating func deleteRows() {
    for changes in request.entities {
      let entity = model.entities[changes.entity]
      for key in changes.deleted.keys where isOf(entity, key) { rows.change(key, of: entity) { $0 = nil } }
    }
  }

  private mutating func updateRows() {
    for changes in request.entities {
      let entity = model.entities[changes.entity]
      for updated in changes.updated {
        for index in 0..<updated.rows.count {
          let row = updated.rows.pointer(index)
          guard isOf(entity, row.key) else { continue }
          rows.change(row.key, of: entity) { stored in
            stored?.version = row.version
            for slot in entity.layout.slots where updated.isChanged(row: index, slot: slot) {
              stored?.values[slot] = row.value(slot, entity.slots[slot].columnType)
            }
          }
        }
      }
    }
  }

  private mutating func insertRows() throws {
    for changes in request.entities {
      let entity = model.entities[changes.entity]
      for batch in changes.inserted {
        for index in 0..<batch.count {
          let row = batch.pointer(index)
          guard rows.stored(row.key, of: entity) == nil else {
            throw StoreError(
              .general, operation: "insert an object of \(entity.name)",
              reason: "The store already has an object with the key \(row.key). Report this as a bug in the program that reserved the key.")
          }
          let values = entity.layout.slots.map { row.value($0, entity.slots[$0].columnType) }
          rows.change(row.key, of: entity) {
            $0 = StoredRow(entity: entity.name, key: row.key, version: row.version, values: values)
          }
        }
      }
    }
  }

  // MARK: Derived values

  private mutating func setDerivedValues() throws {
    for changes in request.entities {
      let entity = model.entities[changes.entity]
      for derived in changes.derived {
        for index in 0..<derived.rows.count {
          let key = derived.rows.pointer(index).key
          for slot in derived.slots(row: index) {
            guard let current = rows.current(key, of: entity), current.entity == entity.name else { continue }
            let value = try derived.value(row: index, slot: slot, after: current.values[slot])
            rows.change(key, of: entity) { $0?.values[slot] = value }
          }
        }
      }
    }
  }
}
