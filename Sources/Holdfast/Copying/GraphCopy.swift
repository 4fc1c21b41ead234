import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Copies all objects of a store to an empty store of any type.
struct GraphCopy {
  private let reader: GraphReader
  private let destination: any IncrementalStore
  private let identity: StoreIdentity
  /// The keys in the destination, by root entity and rank.
  private(set) var keys: [[ObjectKey]] = []
  /// Whether each save costs only its own rows. Otherwise everything is saved at once.
  private let savesInParts: Bool

  /// The size of the rows of one save in bytes, if there are several.
  private static let partByteCount = 16 << 20
  /// The number of links and order keys of one save, if there are several.
  private let partLinkCount: Int
  /// The maximum size of a row with its values in external files, in bytes. A batch of 2 GiB traps, and has other rows, too.
  private let maximumRowByteCount: Int

  init(
    _ reader: GraphReader, to destination: any IncrementalStore, _ identity: StoreIdentity, partLinkCount: Int = 500_000,
    maximumRowByteCount: Int = 1 << 31 - 1 << 20
  ) {
    (self.reader, self.destination, self.identity, self.partLinkCount) = (reader, destination, identity, partLinkCount)
    self.maximumRowByteCount = maximumRowByteCount
    // A store with all rows in memory writes them all in each save.
    savesInParts = !destination.capabilities.residentRows
  }

  private var model: ManagedObjectModel { reader.model }

  mutating func run() throws {
    try reserveKeys()
    var save = Self.emptySave, byteCount = 0
    for entity in model.entities where !entity.isAbstract { try copyRows(of: entity, &save, &byteCount) }
    // The order keys of a link are saved with it or after it, on both sides of a many-to-many pair.
    let relationships = reader.linkRelationships
    for relationship in relationships where relationship.storesLinks { try copyLinks(relationship, &save) }
    for relationship in relationships where !relationship.storesLinks { try copyLinks(relationship, &save) }
    try commit(&save)
  }

  /// A save without changes. The history of the destination begins after the copy.
  private static var emptySave: SaveRequest {
    var save = SaveRequest()
    save.isKeptInHistory = false
    return save
  }

  private mutating func reserveKeys() throws {
    keys = model.entities.map { _ in [] }
    for root in model.entities where root.rootIndex == root.index {
      let count = reader.keys[root.index.rawValue].count
      guard count > 0, let entity = root.concreteIndexes.first else { continue }
      let reserved = try destination.reserveKeys([KeyDemand(entity: entity, count: count)], options: .none)
      guard reserved.map(\.count) == [count] else {
        throw StoreError(
          .damaged, operation: "obtain permanent IDs",
          reason: "The store reserved \(reserved.map(\.count)) keys instead of [\(count)] (rule K1).")
      }
      keys[root.index.rawValue] = reserved[0].sorted()
    }
  }

  /// The key of an object in the destination; nil if the source has no such object.
  func key(_ key: ObjectKey, _ root: EntityIndex) -> ObjectKey? { reader.rank(key, root).map { keys[root.rawValue][$0] } }

  private func commit(_ save: inout SaveRequest) throws {
    if save.isEmpty { return }
    try destination.prepare(save, options: .none).commit()
    save = Self.emptySave
  }

  // MARK: Rows

  /// A row of the source with its key in the destination, and those of its external values that are read already.
  private struct Row {
    let key: ObjectKey
    let row: RowView
    let files: [SlotIndex: Data]
  }

  private func copyRows(of entity: ManagedObjectModel.Entity, _ save: inout SaveRequest, _ byteCount: inout Int) throws {
    var rows: [Row] = [], part = save, size = byteCount
    func flush() throws {
      if rows.isEmpty { return }
      part.entities.append(try inserting(&rows, entity))
      guard savesInParts, size > Self.partByteCount else { return }
      try commit(&part)
      size = 0
    }
    try reader.forEachRow(of: entity) { row in
      guard let key = self.key(row.key, entity.rootIndex) else { return }
      // A store that saves everything at once reads its files last.
      let files = savesInParts ? try self.files(row.pointer, entity) : [:]
      rows.append(Row(key: key, row: row, files: files))
      size += self.byteCount(row.pointer, entity) + files.values.reduce(0) { $0 + $1.count }
      if savesInParts && size > Self.partByteCount { try flush() }
    }
    try flush()
    (save, byteCount) = (part, size)
  }

  /// The values of a row in external files.
  private func files(_ row: RowPointer, _ entity: ManagedObjectModel.Entity) throws -> [SlotIndex: Data] {
    var files: [SlotIndex: Data] = [:]
    for slot in entity.externalSlots where row.isExternal(slot) {
      files[slot] = try reader.bytes(row, slot, of: entity)
    }
    return files
  }

  /// The approximate size of a row in bytes, without values in external files.
  private func byteCount(_ row: RowPointer, _ entity: ManagedObjectModel.Entity) -> Int {
    var size = entity.layout.fixedByteCount
    for slot in entity.layout.slots where entity.layout.kinds[slot] == .bytes && row.isPresent(slot) {
      size += row.isExternal(slot) ? 0 : row.bytes(slot).count
    }
    return size
  }

  /// The rows of an entity as part of a save, which requires ascending keys.
  private func inserting(_ rows: inout [Row], _ entity: ManagedObjectModel.Entity) throws -> SaveRequest.EntityChanges {
    var changes = SaveRequest.EntityChanges(entity: entity.index)
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    rows.sort { $0.key > $1.key }
    // Each is released when it is appended, because its files may be large.
    while let row = rows.popLast() {
      try append(row, entity, to: builder)
      if builder.isFull { changes.inserted.append(builder.seal()) }
    }
    if builder.count > 0 { changes.inserted.append(builder.seal()) }
    return changes
  }

  private func append(_ source: Row, _ entity: ManagedObjectModel.Entity, to builder: RowBatchBuilder) throws {
    let row = source.row.pointer
    // The values were saved one after the other, and can together be larger than a row.
    var size = entity.externalSlots.contains { row.isExternal($0) } ? byteCount(row, entity) : 0
    // Core Data's files can have rows with version 0.
    builder.beginRow(key: source.key, version: max(row.version, 1))
    for slot in entity.layout.slots {
      guard row.isPresent(slot) else {
        builder.appendNull()
        continue
      }
      switch entity.layout.columns[slot] {
      case .toOne(let destination):
        let target = self.key(ObjectKey(row.integer(slot)), model.entities[destination].rootIndex)
        if let target { builder.append(integer: target.rawValue) } else { builder.appendNull() }
      case .attribute(.objectID):
        let value = row.value(slot, .attribute(.objectID))
        // The ID of an object of another store may have no value, but its URI doesn't change.
        if case .objectID(let id) = value {
          builder.append(text: translated(id).uriRepresentation)
        } else {
          builder.append(bytesOf: row, slot)
        }
      case .attribute:
        if entity.layout.kinds[slot] != .bytes {
          builder.append(cellOf: row, slot)
        } else if row.isExternal(slot), let bytes = try source.files[slot] ?? reader.bytes(row, slot, of: entity) {
          size += bytes.count
          guard size <= maximumRowByteCount else {
            throw StoreError(
              .tooLarge, operation: StoreCopier.operation,
              reason: "The values of \(entity.name) with the key \(row.key) have more than \(maximumRowByteCount) bytes together. Set one "
                + "of them to a shorter value. The destination wasn't changed.")
          }
          _ = builder.appendValue(.data(bytes), entity.layout.columns[slot])
        } else {
          builder.append(bytesOf: row, slot)
        }
      }
    }
    builder.endRow()
  }

  /// The ID in the destination of one of the source's objects. Other IDs don't change.
  private func translated(_ id: ManagedObjectID) -> ManagedObjectID {
    guard id.storeIdentifier == reader.identity.storeUUID, let entity = model.entity(named: id.entityName),
      let key = key(id.key, entity.rootIndex)
    else { return id }
    return identity.objectID(entity: entity, key: key)
  }

  /// A value of the user's metadata in the destination.
  func translated(_ value: StoreValue) -> StoreValue { if case .objectID(let id) = value { .objectID(translated(id)) } else { value } }

  // MARK: Links

  private func copyLinks(_ relationship: ManagedObjectModel.Relationship, _ save: inout SaveRequest) throws {
    let source = model.entities[relationship.entityIndex].rootIndex, target = model.destination(of: relationship).rootIndex
    var links: [SaveRequest.Link] = [], orders: [(link: SaveRequest.Link, key: Int64)] = []
    func flush(_ save: inout SaveRequest) throws {
      if relationship.storesLinks, !links.isEmpty {
        var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
        changes.added = links.sorted()
        save.links.append(changes)
      }
      if !orders.isEmpty {
        orders.sort { $0.link < $1.link }
        var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
        (changes.links, changes.keys) = (orders.map(\.link), orders.map(\.key))
        save.orders.append(changes)
      }
      (links, orders) = ([], [])
    }
    try reader.forEachOwner(of: relationship) { owner, targets in
      guard let near = key(owner, source) else { return }
      for (other, order) in targets {
        guard let far = key(other, target) else { continue }
        let link = SaveRequest.Link(source: near, target: far)
        if relationship.storesLinks { links.append(link) }
        if let order, order != .max { orders.append((link, order)) }
      }
      guard savesInParts, links.count + orders.count > partLinkCount else { return }
      try flush(&save)
      try commit(&save)
    }
    try flush(&save)
  }
}
