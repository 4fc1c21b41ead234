import HoldfastStore

/// Builds the tables of a new version of a model from those of the former one.
struct TableMigration {
  private let mapping: MappingModel
  private let former: TableGeneration
  private let loader: TableLoader
  /// The schema of the new tables.
  private let schema: TableSchema
  private let path: String

  /// - Parameters:
  ///   - loader: A loader of the new model, which has begun.
  ///   - schema: The schema that it returned.
  init(_ mapping: MappingModel, _ former: TableGeneration, to loader: TableLoader, _ schema: TableSchema, path: String) {
    (self.mapping, self.former, self.loader, self.schema, self.path) = (mapping, former, loader, schema, path)
  }

  /// Passes all rows, links and orders to the loader.
  func run() throws {
    for entity in mapping.entityMappings where !mapping.destination.entities[entity.destination].isAbstract { try copyRows(entity) }
    for relationship in mapping.destination.entities.flatMap(\.ownRelationships) {
      if relationship.storesLinks { try copyLinks(relationship) }
      if relationship.isOrdered { copyOrder(relationship) }
    }
  }

  /// Builds the tables after a migration, for writing them. The former ones may be released before, so that their memory can be used again.
  static func finish(_ loader: TableLoader, path: String) throws -> LoadedStore {
    do {
      var loaded = try loader.finish()
      loaded.generation = loaded.generation.withoutUniqueIndexes()
      return loaded
    } catch let error as StoreError {
      guard let cause = error.cause as? StoreError, cause.code == .constraintConflict else {
        throw StoreError(
          .general, operation: MigrationRequest.operation, path: path,
          reason: "The migrated objects contradict each other, which is a mistake of Holdfast. Nothing was changed. Please report it.",
          cause: error)
      }
      let names = cause.constraintConflicts.first?.constraint.joined(separator: ", ") ?? ""
      let entity = cause.constraintConflicts.first?.objectID.entityName ?? ""
      throw violation(
        entity, "Objects have the same values in a uniqueness constraint (\(names)). Change them before migrating, or drop the constraint.",
        path, cause)
    }
  }

  // MARK: Rows

  private func copyRows(_ entity: EntityMapping) throws {
    guard let source = entity.source, let rows = RowMigration(entity, mapping, former.schema.identity, former) else { return }
    let builder = RowBatchBuilder(layout: rows.new.layout, idPrefix: schema.prefixes[entity.destination])
    var owned: [RelationshipIndex: KeySet] = [:]
    try former.forEachRow(of: source) { row in
      try rows.append(row, to: builder) { relationship, link in
        let path = "\(rows.new.name).\(relationship.name)"
        guard let target = try single(link, row, path) else { return nil }
        if link.needsSingleOwner, !owned[relationship.index, default: KeySet()].insert(target.rawValue) {
          throw violation(path, Self.tooMany)
        }
        return target
      }
      if builder.isFull { try loader.take(builder.seal(), of: entity.destination) }
    }
    if builder.count > 0 { try loader.take(builder.seal(), of: entity.destination) }
  }

  private static let tooMany = "An object would have several destinations or owners, but the relationship allows one."

  private func single(_ link: LinkMapping, _ row: RowPointer, _ path: String) throws -> ObjectKey? {
    let others = others(link, row.key, row)
    if others.count > 1 { throw violation(path, Self.tooMany) }
    return others.first
  }

  // MARK: Links

  /// The destinations of an owner, except for removed ones.
  ///
  /// - Parameter row: The owner's row in the former model.
  private func others(_ link: LinkMapping, _ key: ObjectKey, _ row: RowPointer) -> [ObjectKey] {
    let relationship = mapping.relationship(link)
    let found = link.isReversed ? owners(key, row, relationship) : destinations(key, row, relationship)
    if !link.losesDestinations { return found }
    return found.filter { former.entity(of: $0, root: link.target(mapping)).map(link.destinations.contains) ?? false }
  }

  private func destinations(_ key: ObjectKey, _ row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    if relationship.isToMany { return former.targets(of: key, relationship) }
    return row.isPresent(relationship.slot) ? [ObjectKey(row.integer(relationship.slot))] : []
  }

  private func owners(_ key: ObjectKey, _ row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    if let inverse = mapping.source.inverse(of: relationship) { return destinations(key, row, inverse) }
    switch former.schema.storage(of: relationship) {
    case .slot(let index), .links(_, let index): return former.adjacencies[index].withTargets(of: key) { Array($0) }
    case .inverseSlot: return []
    }
  }

  /// Calls a closure with each owner of a relationship of the new model, and its destinations.
  private func forEachOwner(
    of relationship: ManagedObjectModel.Relationship, _ body: (LinkMapping, ObjectKey, [ObjectKey]) throws -> Void
  ) rethrows {
    for index in mapping.destination.entities[relationship.entityIndex].concreteIndexes {
      let entity = mapping.mapping(of: index)
      guard let source = entity.source, let link = entity.links[relationship.index.rawValue] else { continue }
      try former.forEachRow(of: source) { row in
        let others = others(link, row.key, row)
        if !others.isEmpty { try body(link, row.key, others) }
      }
    }
  }

  private func copyLinks(_ relationship: ManagedObjectModel.Relationship) throws {
    var links: [SaveRequest.Link] = [], owned = KeySet()
    try forEachOwner(of: relationship) { link, owner, others in
      for other in others {
        if link.needsSingleOwner && !owned.insert(other.rawValue) {
          throw violation("\(mapping.destination.entities[relationship.entityIndex].name).\(relationship.name)", Self.tooMany)
        }
        links.append(SaveRequest.Link(source: owner, target: other))
      }
    }
    loader.take(links: links, of: relationship)
  }

  /// Copies the order of an ordered relationship. If it had none, that of the keys.
  private func copyOrder(_ relationship: ManagedObjectModel.Relationship) {
    var links: [SaveRequest.Link] = [], keys: [Int64] = []
    forEachOwner(of: relationship) { link, owner, others in
      links += others.map { SaveRequest.Link(source: owner, target: $0) }
      if let place = mapping.ordering(link).flatMap({ former.schema.order(of: $0) }) {
        keys += former.orders[place].keys(of: others, source: owner)
      } else {
        keys += others.map(\.rawValue)
      }
    }
    loader.take(order: links, keys: keys, of: relationship)
  }

  private func violation(_ subject: String, _ reason: String) -> MigrationError { Self.violation(subject, reason, path) }

  private static func violation(_ subject: String, _ reason: String, _ path: String, _ cause: (any Error)? = nil) -> MigrationError {
    MigrationError(
      .constraintViolation, path: path, reason: "Existing objects don't fit the new model. Nothing was changed.",
      problems: [MigrationError.Problem(subject, reason)], cause: cause)
  }
}

extension TableGeneration {
  /// The concrete entity of an object of a family; nil if the object doesn't exist.
  func entity(of key: ObjectKey, root: EntityIndex) -> EntityIndex? {
    let table = table(of: root), location = table.location(key)
    return location.isNone ? nil : table.entity(location)
  }
}

extension LinkMapping {
  /// The entity of the source whose objects are the destinations.
  fileprivate func target(_ mapping: MappingModel) -> EntityIndex { isReversed ? entity : mapping.relationship(self).destinationIndex }
}
