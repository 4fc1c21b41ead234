import HoldfastStore

extension ParentStore {
  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try parent.applyDeleteRules()
    try identifyNewObjects()
    let save = ParentSave(self, request)
    try save.prepare(options)
    return save
  }
}

/// A save of a child context: makes its changes unsaved changes of the parent.
///
/// Everything that can fail is done before the commit: the parent's objects are read, and their versions compared with those that the child
/// has read.
final class ParentSave: PreparedSave, @unchecked Sendable {  // because a child uses it only in the isolation that both share
  let store: ParentStore
  let request: SaveRequest
  var parent: ContextCore { store.parent }
  /// Keeps the objects that were read for the save.
  var objects: [ManagedObject] = []
  /// The objects with changes of the parent itself.
  private var mixed: Set<ManagedObject> = []
  /// Objects that the commit inserts again, with their rows.
  var again: [(object: ManagedObject, row: RowView)] = []
  /// Objects that the commit inserts.
  var new: NewObjects
  /// The objects at the other ends of one-to-one relationships that the commit may change.
  var partners: [ManagedObject] = []
  /// Objects from whose lists the commit takes others. The request doesn't name them.
  var formerOwners: [ManagedObject] = []
  /// Links that the child had removed from objects before it deleted them. The request doesn't contain them.
  var removedLinks: [RemovedLink] = []

  struct RemovedLink {
    let owner: ManagedObject
    let relationship: ManagedObjectModel.Relationship
    let target: ObjectKey
  }

  init(_ store: ParentStore, _ request: SaveRequest) {
    (self.store, self.request) = (store, request)
    new = NewObjects(entityCount: store.parent.entities.count)
  }

  func abort() {}

  // MARK: Before the commit

  func prepare(_ options: RequestOptions) throws {
    // The store may have saved the deletion of an object that is inserted again. The object would be lost when the outcome is known.
    if parent.hasUncertainSave, request.entities.contains(where: insertsDeleted) { try parent.settleUncertainSave() }
    let expected = expectedRows
    try read(expected, options)
    try compare(expected)
    try forgetDeletedLinks()
    mixed = Set(objects.filter(store.children.hasOwnChanges))
    findRemovedLinks()
    try readDerived(options)
    try readPartners(options)
  }

  /// Whether an object is inserted again that the parent is deleting or has deleted.
  private func insertsDeleted(_ changes: SaveRequest.EntityChanges) -> Bool {
    changes.inserted.contains { $0.keys.contains { parent.isDeleted(changes.entity, $0) } }
  }

  /// A row that the child has read, and that the save changes or requires to be unchanged.
  private struct ExpectedRow {
    let entity: EntityIndex
    let key: ObjectKey
    let version: RowVersion
  }

  private var expectedRows: [ExpectedRow] {
    request.entities.flatMap { changes in
      changes.expectedVersions.map { ExpectedRow(entity: changes.entity, key: $0, version: $1) }
    }
  }

  /// Reads the parent's objects that the save changes. Unchanged objects whose rows are older than those that the child has read are read
  /// again.
  private func read(_ expected: [ExpectedRow], _ options: RequestOptions) throws {
    for row in expected where !parent.isDeleted(row.entity, row.key) {
      let object = parent.registered(row.entity, row.key) ?? parent.make(row.entity, row.key)
      if object.row != nil, !object.hasChanges, !parent.merging.isLocked(object), store.children.version(of: object) < row.version {
        parent.turnIntoFault(object, keepingTransients: true)
      }
      objects.append(object)
    }
    try readFaults(expected.map { ($0.entity, $0.key) }, options)
  }

  /// Reads the faults among the objects, including those with some keys.
  private func readFaults(_ needed: [(entity: EntityIndex, key: ObjectKey)], _ options: RequestOptions) throws {
    try parent.fire(together: ContiguousArray(objects.filter(\.isFault)), options)
    if objects.allSatisfy({ $0.mapIndex != .max }) { return }
    // Faults of superentities have left the parent, because their rows are of subentities.
    let left = needed.filter { parent.registered($0.entity, $0.key) == nil && !parent.isDeleted($0.entity, $0.key) }
    let found = ContiguousArray(left.map { parent.make($0.entity, $0.key) })
    objects += found
    try parent.fire(together: found, options)
  }

  private func compare(_ expected: [ExpectedRow]) throws {
    var conflicts: [SaveConflict] = []
    for row in expected {
      let known = parent.registered(row.entity, row.key)
      let object = known.flatMap { $0.isDeleted || $0.isFault || $0.isInaccessible ? nil : $0 }
      if let object, store.children.accepts(row.version, of: object, from: store) { continue }
      // If the parent has changed an object while its row couldn't be read, no policy resolves that. The object must be refreshed.
      if let known, !known.isDeleted, known.flags.isSuperset(of: [.inaccessible, .hasPrivateRow]) { try parent.refuseUnreadValues() }
      conflicts.append(
        SaveConflict(
          objectID: parent.places.objectID(row.entity, row.key), expectedVersion: row.version, persisted: try object.flatMap(presentRow)))
    }
    if conflicts.isEmpty { return }
    throw StoreError(
      .conflict, operation: "save", reason: "The parent context or another child of it has changed or deleted the objects.",
      conflicts: conflicts)
  }

  /// Makes lists of the parent be read again that have objects which the commit inserts again. The links were deleted with the objects, but
  /// lists keep the keys of deleted ones, hidden.
  ///
  /// Not those of objects that the parent is deleting: the commit removes their links.
  private func forgetDeletedLinks() throws {
    var keys: [ManagedObjectModel.Relationship: Set<ObjectKey>] = [:]
    for changes in request.entities {
      var again: Set<ObjectKey> = []
      for batch in changes.inserted {
        for place in 0..<batch.count where batch.pointer(place).version != 1 { again.insert(batch.pointer(place).key) }
      }
      again = again.filter { parent.registered(changes.entity, $0)?.isDeleted != true }
      if again.isEmpty { continue }
      let entity = parent.entities[changes.entity]
      for relationship in entity.relationships.compactMap(parent.inverse(of:)) + entity.linksWithoutInverse where relationship.isToMany {
        keys[relationship, default: []].formUnion(again)
      }
    }
    for (owner, relationship) in parent.owners(referencing: keys) where !owner.isInserted {
      try parent.forgetList(of: owner, relationship.toManyIndex)
    }
  }

  private func presentRow(of object: ManagedObject) throws -> RowView? {
    let collector = RowCollector(), rows = ParentRows(store, isKeys: false, collector)
    _ = try rows.append(object)
    _ = try rows.flush()
    return collector.first.map { $0.batch[0] }
  }

  /// Reads the parent's objects whose derived values the save changes.
  private func readDerived(_ options: RequestOptions) throws {
    let needed = derivedKeys
    objects += needed.map { parent.registered($0.entity, $0.key) ?? parent.make($0.entity, $0.key) }
    try readFaults(needed, options)
  }

  /// The objects whose derived values the commit changes.
  private var derivedKeys: [(entity: EntityIndex, key: ObjectKey)] {
    var found: [(entity: EntityIndex, key: ObjectKey)] = []
    for changes in request.entities {
      for derived in changes.derived {
        for key in derived.rows.keys where !parent.isDeleted(changes.entity, key) { found.append((changes.entity, key)) }
      }
    }
    return found
  }

  /// Finds links that the child had removed from objects before it deleted them.
  ///
  /// The parent applies its delete rules to the objects, and these rules must not follow the links. A link in the row of the other end is
  /// part of the request, because that row has changed.
  private func findRemovedLinks() {
    guard let child = store.child else { return }
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      let relationships = parent.entities[changes.entity].relationships.filter { relationship in
        (relationship.deleteRule == .cascade || relationship.deleteRule == .deny)
          && parent.graph.model.inverse(of: relationship)?.isToMany != false
      }
      if relationships.isEmpty { continue }
      for key in changes.deleted.keys {
        guard let owner = parent.registered(changes.entity, key), let known = child.registered(changes.entity, key) else { continue }
        for relationship in relationships {
          removedLinks += removedTargets(of: owner, known, relationship).map {
            RemovedLink(owner: owner, relationship: relationship, target: $0)
          }
        }
      }
    }
  }

  /// The destinations that the parent's object may still have, and that the child has removed from its own object.
  private func removedTargets(
    of owner: ManagedObject, _ known: ManagedObject, _ relationship: ManagedObjectModel.Relationship
  ) -> [ObjectKey] {
    if relationship.isToMany { return known.toMany?[relationship.toManyIndex].removed ?? [] }
    let slot = relationship.slot
    guard let now = known.row, let read = known.committedRow, now.differs(from: read, slot, .key) else { return [] }
    return owner.row?.destinationKey(slot).map { [$0] } ?? []
  }

  // MARK: Commit

  func commit() throws -> SaveReceipt {
    parent.holdingAwakening {
      for changes in request.entities { delete(changes) }
      for changes in request.entities { insert(changes) }
      for link in removedLinks { remove(link) }
      for changes in request.entities { relate(changes) }
      for changes in request.entities { update(changes) }
      for changes in request.links { link(changes) }
      for changes in request.orders { order(changes) }
      for changes in request.entities { for rows in changes.derived { derive(rows, changes.entity) } }
      for changes in request.entities { finish(changes) }
      for (object, row) in again { store.children.setVersion(of: object, to: row.pointer.version) }
      store.children.noteInsertion(of: new.objects)
    }
    store.children.report(change, except: store)
    return SaveReceipt()
  }

  /// Notes the new versions, and what the parent's save must compare, too.
  private func finish(_ changes: SaveRequest.EntityChanges) {
    for updated in changes.updated {
      for (key, version) in zip(updated.rows.keys, updated.expectedVersions) {
        guard let object = parent.registered(changes.entity, key) else { continue }
        store.children.noteChange(of: object, by: store, after: version, isMixed: mixed.contains(object))
      }
    }
    // Not the unchanged ends of pairs: the parent's save compares those of its own changes, and its policy resolves such conflicts.
    for key in changes.locked.keys where isRequested(changes.entity, key) {
      // Also those whose links have changed in the rows of other objects: otherwise the parent's save doesn't compare their versions.
      if let object = parent.registered(changes.entity, key), !object.changesItsRow { parent.merging.lock(object, isRequested: true) }
    }
  }

  /// Whether the child's program requires that an object is unchanged.
  private func isRequested(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    guard let child = store.child else { return true }
    return child.registered(entity, key).map(child.merging.isRequested) ?? false
  }

  /// The changes, for the other children of the parent.
  private var change: StoreChange {
    var change = StoreChange()
    for changes in request.entities {
      func id(_ key: ObjectKey) -> ManagedObjectID { parent.places.objectID(changes.entity, key) }
      for batch in changes.inserted { change.inserted += batch.keys.map(id) }
      for updated in changes.updated { change.updated += updated.rows.keys.map(id) }
      change.deleted += changes.deleted.keys.map(id)
    }
    var named = Set(change.inserted + change.updated)
    // The parent may have linked other partners than the child knew, and the derived values of further objects may have changed.
    var others = formerOwners.map(\.id)
    others += partners.filter { $0.hasChanges && !$0.isDeleted }.map(\.id)
    others += derivedKeys.map { parent.places.objectID($0.entity, $0.key) }
    change.updated += others.filter { named.insert($0).inserted }
    return change
  }
}
