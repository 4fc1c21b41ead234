/// The rows that a save reads and changes.
struct TouchedRows<Source: RowSource> {
  /// A row's root entity and key.
  struct Place: Hashable {
    let root: EntityIndex
    let key: ObjectKey
  }

  /// A row before and after the save; nil if there is none.
  private struct Touched {
    var stored: StoredRow?
    var current: StoredRow?
    var isChanged = false
  }

  private let source: Source
  private let snapshot: Source.Snapshot
  private let model: ManagedObjectModel
  private let options: RequestOptions
  private var touched: [Place: Touched] = [:]

  init(_ source: Source, _ snapshot: Source.Snapshot, _ model: ManagedObjectModel, _ options: RequestOptions) {
    self.source = source
    self.snapshot = snapshot
    self.model = model
    self.options = options
  }

  func place(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> Place { Place(root: entity.rootIndex, key: key) }

  // MARK: Reading

  /// Reads rows of a family, unless they have been read.
  mutating func read(_ keys: Set<ObjectKey>, of entity: ManagedObjectModel.Entity) throws {
    let root = model.entities[entity.rootIndex]
    var query = RowQuery(model.concreteEntities(of: root), of: root, options: options)
    query.keys = keys.filter { touched[place($0, of: root)] == nil }
    guard let missing = query.keys, !missing.isEmpty else { return }
    for key in missing { touched[place(key, of: root)] = Touched() }
    try take(query)
  }

  /// Reads the rows whose to-one relationship references some keys.
  mutating func read(referencing keys: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship) throws {
    let entity = model.entities[relationship.entityIndex]
    var query = RowQuery(model.concreteEntities(of: entity), of: entity, options: options)
    query.references = RowQuery.References(slot: relationship.slot, keys: keys)
    try take(query)
  }

  /// Keeps the selected rows. A row that the save has changed stays as it is.
  private mutating func take(_ query: RowQuery) throws {
    var found: [StoredRow] = []
    try source.forEachRow(query, in: snapshot) { row, _ in
      found.append(row)
      return .more
    }
    for row in found {
      let place = place(row.key, of: query.declaredEntity)
      if touched[place]?.isChanged == true || touched[place]?.stored != nil { continue }
      touched[place] = Touched(stored: row, current: row)
    }
  }

  // MARK: Rows

  /// Whether it is known whether the row exists.
  func isRead(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> Bool { touched[place(key, of: entity)] != nil }

  /// The row before the save.
  func stored(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> StoredRow? { touched[place(key, of: entity)]?.stored }

  /// The row after the changes so far.
  func current(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> StoredRow? { touched[place(key, of: entity)]?.current }

  mutating func change(_ key: ObjectKey, of entity: ManagedObjectModel.Entity, _ body: (inout StoredRow?) -> Void) {
    let place = place(key, of: entity)
    body(&touched[place, default: Touched()].current)
    touched[place]?.isChanged = true
  }

  /// The keys of the rows of an entity and its subentities that satisfy a condition, ascending.
  func keys(of entity: ManagedObjectModel.Entity, where condition: (StoredRow) -> Bool) -> [ObjectKey] {
    touched.filter { place, row in
      guard place.root == entity.rootIndex, let current = row.current else { return false }
      return model.entity(named: current.entity)?.isKind(of: entity) == true && condition(current)
    }.map(\.key.key).sorted()
  }

  /// The rows whose to-one relationship no longer has its former destination, with that destination.
  func lostTargets(
    _ relationship: ManagedObjectModel.Relationship, _ entity: ManagedObjectModel.Entity
  ) -> [(key: ObjectKey, source: ObjectKey)] {
    touched.compactMap { place, row in
      guard row.isChanged, place.root == entity.rootIndex, let stored = row.stored, let actual = model.entity(named: stored.entity),
        actual.isKind(of: entity), let source = stored.target(in: relationship.slot),
        row.current?.target(in: relationship.slot) != source
      else { return nil }
      return (place.key, source)
    }
  }

  // MARK: Result

  /// The rows to save and to delete, by entity and key.
  func changes() -> (saved: [StoredRow], deleted: [RowChanges.DeletedRow]) {
    var saved: [StoredRow] = [], deleted: [RowChanges.DeletedRow] = []
    for (_, row) in touched where row.isChanged {
      if let current = row.current {
        saved.append(current)
      } else if let stored = row.stored {
        deleted.append(RowChanges.DeletedRow(entity: stored.entity, key: stored.key))
      }
    }
    return (saved.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) }, deleted.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) })
  }
}
