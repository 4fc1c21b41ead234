import HoldfastStore
import HoldfastSupport

/// The rows and destinations of some objects of one entity.
struct ObjectChunk {
  /// The maximum number of objects that are read at once.
  static let maximumCount = 1_024

  let reader: GraphReader
  let entity: ManagedObjectModel.Entity
  let keys: [ObjectKey]
  /// The row of each object. Nil if a store without snapshots lost it meanwhile.
  private var rows: [RowView?]
  /// The destinations of each object, by ``ManagedObjectModel/Relationship/toManyIndex``.
  private var targets: [[[ObjectKey]]] = []

  /// Reads the objects of an entity with some ranks in the root entity's family, at most ``maximumCount``.
  ///
  /// - Throws: `cancelled` in a cancelled task, besides the errors of the store.
  init(_ reader: GraphReader, _ entity: ManagedObjectModel.Entity, _ ranks: some Collection<Int>) throws {
    try GraphReader.checkCancellation("compare the stores")
    (self.reader, self.entity) = (reader, entity)
    let all = reader.keys[entity.rootIndex], keys = ranks.map { all[$0] }
    self.keys = keys
    var found: [ObjectKey: RowView] = [:]
    try reader.forEachRow(keys, of: entity.index) { _, row in found[row.key] = row }
    rows = keys.map { found[$0] }
    targets = try entity.toManyRelationships.map { try reader.targets(of: keys, $0).map { $0.map(\.target) } }
  }

  /// The object's ID.
  func objectID(_ index: Int) -> ManagedObjectID { reader.identity.objectID(entity: entity, key: keys[index]) }

  /// The value of a slot; null if there is none.
  func value(_ index: Int, _ slot: SlotIndex) -> StoreValue { rows[index]?[slot] ?? .null }

  /// The value of a property.
  func content(_ index: Int, _ property: GraphProperty) throws -> GraphProperty.Content {
    switch property {
    case .attribute(let attribute): return try rows[index].map { try reader.content(of: $0.pointer, attribute, entity) } ?? .none
    case .toOne(let relationship):
      let root = reader.model.destination(of: relationship).rootIndex
      guard let row = rows[index]?.pointer, row.isPresent(relationship.slot), let rank = reader.rank(row.key(relationship.slot), root)
      else { return .none }
      return .objects(root, [rank], isOrdered: true)
    case .toMany(let relationship):
      let root = reader.model.destination(of: relationship).rootIndex
      let ranks = targets[relationship.toManyIndex][index].compactMap { reader.rank($0, root) }
      return ranks.isEmpty ? .none : .objects(root, ranks, isOrdered: relationship.isOrdered)
    }
  }

  /// Whether the rows of objects in two stores contain the same bits for an attribute. If not, the values may still be equal.
  func hasSameBits(_ index: Int, as other: ObjectChunk, _ otherIndex: Int, _ attribute: ManagedObjectModel.Attribute) -> Bool {
    guard let row = rows[index]?.pointer, let otherRow = other.rows[otherIndex]?.pointer else { return false }
    // The same name of an external file can belong to different files.
    return !row.isExternal(attribute.slot, entity.layout)
      && !row.differs(from: otherRow, attribute.slot, entity.layout.kinds[attribute.slot])
  }
}

extension GraphReader {
  /// The value of an attribute.
  func content(
    of row: RowPointer, _ attribute: ManagedObjectModel.Attribute, _ entity: ManagedObjectModel.Entity
  ) throws -> GraphProperty.Content {
    let slot = attribute.slot
    guard row.isPresent(slot) else { return .none }
    if attribute.type == .objectID, let (root, rank) = object(in: row, slot) { return .objects(root, [rank], isOrdered: true) }
    switch entity.layout.kinds[slot] {
    case .bytes: return .bytes(try bytes(row, slot, of: entity).map { Array($0) } ?? [])
    case .real: return .number(row.comparableBits(slot, entity.layout.columns[slot]))
    default: return .number(UInt64(bitPattern: row.integer(slot)))
    }
  }

  /// The object of this store that an attribute has as its value.
  private func object(in row: RowPointer, _ slot: SlotIndex) -> (root: EntityIndex, rank: Int)? {
    guard case .objectID(let id) = row.value(slot, .attribute(.objectID)), id.storeIdentifier == identity.storeUUID,
      let root = model.entity(named: id.entityName)?.rootIndex, let rank = rank(id.key, root)
    else { return nil }
    return (root, rank)
  }

  /// The ranks of an entity's own objects in the root entity's family, ascending.
  func ranks(of entity: ManagedObjectModel.Entity) -> [Int] {
    let all = keys[entity.rootIndex]
    var ranks: [Int] = [], rank = 0
    ranks.reserveCapacity(ownKeys[entity.index].count)
    for key in ownKeys[entity.index] {
      while rank < all.count && all[rank] < key { rank += 1 }
      ranks.append(rank)
    }
    return ranks
  }

  /// The concrete entity of the object with a rank in a root entity's family.
  func entity(_ root: EntityIndex, _ rank: Int) -> ManagedObjectModel.Entity? {
    let key = keys[root][rank]
    return model.entities[root].concreteIndexes.first { ownKeys[$0].rank(of: key) != nil }.map { model.entities[$0] }
  }

  /// Reads objects of an entity by their ranks, and calls a closure with each chunk and the range of its objects in the list.
  func forEachChunk(
    _ ranks: [Int], of entity: ManagedObjectModel.Entity, _ body: (ObjectChunk, Range<Int>) throws -> Void
  ) throws {
    for start in stride(from: 0, to: ranks.count, by: ObjectChunk.maximumCount) {
      let range = start..<min(start + ObjectChunk.maximumCount, ranks.count)
      try body(try ObjectChunk(self, entity, ranks[range]), range)
    }
  }
}
