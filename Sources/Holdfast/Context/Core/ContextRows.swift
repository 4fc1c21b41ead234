import HoldfastStore

/// Rows as seen by a context: those of its objects, otherwise the store's, read in batches.
final class ContextRows: EvaluationSource {
  private let context: ContextCore
  private var stored: RelatedRows?

  private let options: RequestOptions

  init(_ context: ContextCore, _ options: RequestOptions) { (self.context, self.options) = (context, options) }

  /// Reads ahead the destinations of rows.
  func prepare(_ rows: [RowPointer], _ relationshipPaths: [RelationshipPath]) throws {
    let coordinator = context.persistentStoreCoordinator
    let reader = StoreReader(try context.pinnedStores() ?? coordinator.storeSet, .latest, options)
    defer { reader.end() }
    let source = RelatedRows(reader, coordinator.model, relationshipPaths)
    try source.prepare(rows)
    stored = source
  }

  /// Reads ahead the destinations of rows along to-one relationships, if the context doesn't have those of several rows.
  ///
  /// Otherwise each destination would be read by a request of its own.
  func prepareUnread(_ rows: [RowPointer], _ relationshipPaths: [RelationshipPath]) throws {
    let paths = relationshipPaths.filter { path in path.relationships.allSatisfy { !$0.isToMany } }
    let unread = rows.filter { row in paths.contains { !isRead(row, $0) } }
    if unread.count > 1 { try prepare(unread, paths) }
  }

  /// Whether the context has the rows along a path of to-one relationships.
  private func isRead(_ row: RowPointer, _ path: RelationshipPath) -> Bool {
    var row = row
    for relationship in path.relationships {
      guard let key = row.destinationKey(relationship.slot) else { return true }
      guard let next = context.registeredOwner(relationship.destinationIndex, key)?.row else { return false }
      row = next
    }
    return true
  }

  func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? {
    if let registered = context.registered(entity, key) {
      if registered.isDeleted { return nil }
      if registered.row != nil {
        // Only a damaged file references an object of an entity that the relationship doesn't allow. A query treats it as a missing row.
        let isAllowed = context.graph.entities[entity].family.contains(registered.flags.entityIndex)
        return isAllowed && !registered.isInaccessible ? registered.readRow : nil
      }
    }
    if context.isDeleted(entity, key) { return nil }
    if let row = stored?.row(entity: entity, key: key) { return row }
    guard let object = context.target(entity, key) else { return nil }
    keep.append(object)
    // A query treats a missing row as no value, as stores do.
    return context.presentRow(object)
  }

  /// Keeps the objects alive whose rows were returned.
  private var keep: [ManagedObject] = []

  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    let index = relationship.toManyIndex
    let known = context.registeredOwner(relationship.entityIndex, row.key)
    let keys: [ObjectKey]
    if let known, known.isInserted || (known.toMany?[index].base ?? .untouched) != .untouched {
      keys = known.targets(index).withKeys { Array($0) }
    } else if let found = stored?.knownTargets(of: row.key, relationship) {
      keys = found
    } else if let object = context.target(relationship.entityIndex, row.key) {
      keep.append(object)
      keys = object.targets(index).withKeys { Array($0) }
    } else {
      keys = []
    }
    guard context.hasDeleted(relationship.destinationIndex) else { return keys }
    return keys.filter { !context.isDeleted(relationship.destinationIndex, $0) }
  }
}
