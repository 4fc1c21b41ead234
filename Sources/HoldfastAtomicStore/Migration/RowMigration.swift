import HoldfastStore

/// Makes rows of one entity of a new model from those of the former one.
struct RowMigration {
  /// The entity of the new model.
  let new: ManagedObjectModel.Entity
  private let origin: ManagedObjectModel.Entity
  private let entity: EntityMapping
  private let mapping: MappingModel
  private let identity: StoreIdentity
  private let former: TableGeneration?
  /// For each entity of the source, whether it is divided. Determined once, because each ID needs it. Empty if the new rows contain no IDs.
  private let isDivided: [Bool]

  /// - Parameters:
  ///   - identity: The store's identity.
  ///   - former: The former tables. Nil for a mapping that ``MappingModel/isRowByRow``, which needs none.
  /// - Returns: Nil for a new entity.
  init?(_ entity: EntityMapping, _ mapping: MappingModel, _ identity: StoreIdentity, _ former: TableGeneration?) {
    guard let source = entity.source else { return nil }
    (self.entity, self.mapping, self.identity, self.former) = (entity, mapping, identity, former)
    let new = mapping.destination.entities[entity.destination]
    (self.new, origin) = (new, mapping.source.entities[source])
    let hasIDs = new.attributes.contains { $0.type == .objectID }
    isDivided = hasIDs ? mapping.source.entities.map { mapping.dividesFamily(of: $0) } : []
  }

  /// Appends the row of an object.
  ///
  /// - Parameter target: Returns the destination of a to-one relationship.
  @inline(__always) func append(
    _ row: RowPointer, to builder: RowBatchBuilder, target: (ManagedObjectModel.Relationship, LinkMapping) throws -> ObjectKey?
  ) rethrows {
    builder.beginRow(key: row.key, version: max(row.version, 1))
    for (place, slot) in new.slots.enumerated() {
      switch slot {
      case .attribute(let attribute): append(attribute, entity.values[place], row, to: builder)
      case .toOne(let relationship):
        if let link = entity.links[relationship.index.rawValue], let target = try target(relationship, link) {
          builder.append(integer: target.rawValue)
        } else {
          builder.appendNull()
        }
      }
    }
    builder.endRow()
  }

  private func append(
    _ attribute: ManagedObjectModel.Attribute, _ value: ValueMapping, _ row: RowPointer, to builder: RowBatchBuilder
  ) {
    if let source = value.source, row.isPresent(source) {
      switch origin.layout.kinds[source] {
      case .bytes:
        // The ID of an object of another store may have no value, but its URI doesn't change.
        if attribute.type == .objectID, case .objectID(let id) = row.value(source, .objectID) { return append(renamed(id), to: builder) }
        builder.append(bytesOf: row, source)
      default: builder.append(cellOf: row, source)
      }
    } else if !builder.appendValue(value.fallback, .attribute(attribute.type)) {
      // Models accept only default values of the attribute's type.
      builder.appendNull()
    }
  }

  private func append(_ value: StoreValue, to builder: RowBatchBuilder) {
    if !builder.appendValue(value, .attribute(.objectID)) { builder.appendNull() }
  }

  /// The ID of an object of this store with the new name of its entity; null for a removed object.
  private func renamed(_ id: ManagedObjectID) -> StoreValue {
    guard id.storeIdentifier == identity.storeUUID, let entity = mapping.source.entity(named: id.entityName) else { return .objectID(id) }
    // An ID can name a superentity.
    let found = isDivided[entity.index.rawValue] ? former?.entity(of: id.key, root: entity.index) : entity.index
    guard let destination = found.flatMap({ mapping.destination(of: $0) }) else { return .null }
    return .objectID(identity.objectID(entity: mapping.destination.entities[destination], key: id.key))
  }
}

extension MappingModel {
  /// Whether the destination has attributes with IDs whose objects have to be found in the former tables.
  var looksForObjects: Bool {
    destination.entities.contains { entity in entity.attributes.contains { $0.type == .objectID } }
      && source.entities.contains { dividesFamily(of: $0) }
  }
}
