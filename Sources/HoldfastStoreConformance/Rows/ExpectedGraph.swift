import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A simple model of a store's contents, with which the store's answers are compared. It never queries the store.
final class ExpectedGraph: EvaluationSource {
  let model: ManagedObjectModel
  let identity: StoreIdentity
  /// The rows by entity index and key.
  private(set) var rows: [[ObjectKey: RowView]]
  /// The links of many-to-many relationships, by the entity and the index of the relationship that names them.
  private(set) var links: [RelationshipPlace: Set<SaveRequest.Link>] = [:]
  /// The order keys of links, by the entity and the index of the ordered relationship.
  private(set) var orders: [RelationshipPlace: [SaveRequest.Link: Int64]] = [:]

  init(_ store: TestedStore) {
    model = store.model
    identity = store.identity
    rows = model.entities.map { _ in [:] }
  }

  init(_ other: ExpectedGraph) {
    model = other.model
    identity = other.identity
    rows = other.rows
    links = other.links
    orders = other.orders
  }

  func rows(of entity: ManagedObjectModel.Entity) -> [ObjectKey: RowView] { rows[entity.index] }
  func rows(_ entity: String) -> [ObjectKey: RowView] { rows[model.entity(named: entity)!.index] }

  func makeRow(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey, version: RowVersion, _ values: [StoreValue]) -> RowView {
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    do {
      try builder.append(key: key, version: version, values: values)
    } catch {
      preconditionFailure("A row of the conformance kit doesn't fit \(entity.name): \(error)")
    }
    return builder.seal()[0]
  }

  func put(_ row: RowView, _ entity: EntityIndex) { rows[entity][row.key] = row }
  func remove(_ key: ObjectKey, _ entity: EntityIndex) { rows[entity][key] = nil }
  func link(_ change: SaveRequest.LinkChanges) {
    let place = RelationshipPlace(entity: change.entity, relationship: change.relationship)
    links[place, default: []].subtract(change.removed)
    for link in change.added {
      if model.entities[place.entity].relationships[place.relationship].hasTargetsToItself {
        links[place] = links[place]?.filter { $0.target != link.target }
      }
      links[place, default: []].insert(link)
    }
  }

  /// Sets order keys, and removes those of links that no longer exist.
  func order(_ changes: [SaveRequest.OrderChanges]) {
    for change in changes {
      for (link, key) in zip(change.links, change.keys) {
        orders[RelationshipPlace(entity: change.entity, relationship: change.relationship), default: [:]][link] = key
      }
    }
    for place in Array(orders.keys) {
      let relationship = model.entities[place.entity].relationships[place.relationship]
      orders[place] = orders[place]?.filter { link, _ in targets(of: link.source, relationship).contains(link.target) }
    }
  }

  /// The order keys of an ordered relationship's targets, by target.
  func orderKeys(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey: Int64] {
    let known = orders[RelationshipPlace(relationship)] ?? [:]
    return Dictionary(
      uniqueKeysWithValues: targets(of: key, relationship).map { ($0, known[SaveRequest.Link(source: key, target: $0)] ?? .max) })
  }

  // MARK: Relationships

  func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? {
    for member in model.entities[entity].familyIndexes { if let row = rows[member][key] { return row.pointer } }
    return nil
  }

  /// The rows whose to-one relationship points to an object, each with its entity.
  func rows(pointingTo key: ObjectKey, by relationship: ManagedObjectModel.Relationship) -> [(entity: EntityIndex, row: RowView)] {
    model.entities[relationship.entityIndex].familyIndexes.flatMap { entity in
      rows[entity].values.filter { $0.pointer.isPresent(relationship.slot) && $0.pointer.key(relationship.slot) == key }.map {
        (entity, $0)
      }
    }
  }

  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] { targets(of: row.key, relationship) }

  /// The targets of a to-many relationship, sorted.
  func targets(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    if relationship.storesLinks {
      return (links[RelationshipPlace(relationship)] ?? []).filter { $0.source == key }.map(\.target).sorted()
    }
    guard let inverse = model.inverse(of: relationship) else { return [] }
    if relationship.isManyToMany {
      return (links[RelationshipPlace(inverse)] ?? []).filter { $0.target == key }.map(\.source).sorted()
    }
    return rows(pointingTo: key, by: inverse).map(\.row.key).sorted()
  }
}

/// Changes of an ``ExpectedGraph``. They can be applied to the graph, or converted to a save request.
final class GraphEdit {
  private let graph: ExpectedGraph
  private var inserted: [EntityIndex: [RowView]] = [:]
  private var updated: [EntityIndex: [(row: RowView, expected: RowVersion, mask: [UInt64])]] = [:]
  private var deleted: [EntityIndex: [(key: ObjectKey, expected: RowVersion)]] = [:]
  private var locked: [EntityIndex: [(key: ObjectKey, expected: RowVersion)]] = [:]
  private var added: [RelationshipPlace: Set<SaveRequest.Link>] = [:]
  private var removed: [RelationshipPlace: Set<SaveRequest.Link>] = [:]
  private var ordered: [RelationshipPlace: [SaveRequest.Link: Int64]] = [:]
  private var derived: [EntityIndex: [(key: ObjectKey, set: [SlotIndex: StoreValue], added: [SlotIndex: StoreValue])]] = [:]

  init(_ graph: ExpectedGraph) { self.graph = graph }

  private func entity(_ name: String) -> ManagedObjectModel.Entity { graph.model.entity(named: name)! }

  private func row(
    _ entity: ManagedObjectModel.Entity, _ key: ObjectKey, _ version: RowVersion, _ base: [StoreValue]?, _ values: [String: StoreValue]
  ) -> RowView {
    var all = base ?? Array(repeating: .null, count: entity.slots.count)
    for (name, value) in values { all[entity.slot(named: name)!] = value }
    return graph.makeRow(entity, key, version: version, all)
  }

  func insert(_ name: String, _ key: ObjectKey, version: RowVersion = 1, _ values: [String: StoreValue]) {
    inserted[entity(name).index, default: []].append(row(entity(name), key, version, nil, values))
  }

  /// Changes some values, or only the version if there are none.
  ///
  /// - Parameter stale: Values in the row for derived attributes that aren't marked as changed.
  func update(
    _ name: String, _ key: ObjectKey, expected: RowVersion? = nil, _ values: [String: StoreValue], stale: [String: StoreValue] = [:]
  ) {
    let entity = entity(name)
    let before = graph.rows(of: entity)[key]
    let version = expected ?? before?.version ?? 1
    let row = row(entity, key, version.next, before?.values, values.merging(stale) { changed, _ in changed })
    var mask = [UInt64](repeating: 0, count: GraphEdit.wordCount(entity))
    for name in values.keys {
      let slot = entity.slot(named: name)!
      mask[slot.word] |= slot.bit
    }
    updated[entity.index, default: []].append((row, version, mask))
  }

  /// The number of words for one bit per slot.
  private static func wordCount(_ entity: ManagedObjectModel.Entity) -> Int { max(1, (entity.slots.count + 63) / 64) }

  func delete(_ name: String, _ key: ObjectKey) {
    deleted[entity(name).index, default: []].append((key, graph.rows(name)[key]?.version ?? 1))
  }

  /// Sets some derived values, and adds to others.
  func derive(_ name: String, _ key: ObjectKey, set: [String: StoreValue] = [:], add: [String: StoreValue] = [:]) {
    let entity = entity(name)
    func bySlot(_ values: [String: StoreValue]) -> [SlotIndex: StoreValue] {
      Dictionary(uniqueKeysWithValues: values.map { (entity.slot(named: $0)!, $1) })
    }
    derived[entity.index, default: []].append((key, bySlot(set), bySlot(add)))
  }

  func lock(_ name: String, _ key: ObjectKey, expected: RowVersion? = nil) {
    locked[entity(name).index, default: []].append((key, expected ?? graph.rows(name)[key]?.version ?? 1))
  }

  func link(_ name: String, _ relationship: String, _ source: ObjectKey, _ target: ObjectKey) {
    change(name, relationship, source, target) { added[$0, default: []].insert($1) }
  }
  func unlink(_ name: String, _ relationship: String, _ source: ObjectKey, _ target: ObjectKey) {
    change(name, relationship, source, target) { removed[$0, default: []].insert($1) }
  }

  /// Sets the order key of a link in an ordered relationship.
  func order(_ name: String, _ relationship: String, _ source: ObjectKey, _ target: ObjectKey, _ key: Int64) {
    let described = entity(name).relationship(named: relationship)!
    ordered[RelationshipPlace(described), default: [:]][SaveRequest.Link(source: source, target: target)] = key
  }

  private func change(
    _ name: String, _ relationship: String, _ source: ObjectKey, _ target: ObjectKey, _ body: (RelationshipPlace, SaveRequest.Link) -> Void
  ) {
    let described = entity(name).relationship(named: relationship)!
    if described.namesLinks {
      body(RelationshipPlace(described), SaveRequest.Link(source: source, target: target))
    } else {
      let inverse = graph.model.inverse(of: described)!
      body(RelationshipPlace(inverse), SaveRequest.Link(source: target, target: source))
    }
  }

  // MARK: The save request

  func request() -> SaveRequest {
    let entities = Set(inserted.keys).union(updated.keys).union(deleted.keys).union(locked.keys).union(derived.keys).sorted().map(changes)
    let links = Set(added.keys).union(removed.keys).sorted().map { place in
      var changes = SaveRequest.LinkChanges(entity: place.entity, relationship: place.relationship)
      changes.added = (added[place] ?? []).sorted()
      changes.removed = (removed[place] ?? []).sorted()
      return changes
    }
    let orders = ordered.keys.sorted().map { place in
      var changes = SaveRequest.OrderChanges(entity: place.entity, relationship: place.relationship)
      changes.links = (ordered[place] ?? [:]).keys.sorted()
      changes.keys = changes.links.compactMap { ordered[place]?[$0] }
      return changes
    }
    return SaveRequest(entities: entities, links: links, orders: orders)
  }

  private func changes(_ entity: EntityIndex) -> SaveRequest.EntityChanges {
    var changes = SaveRequest.EntityChanges(entity: entity)
    changes.inserted = batches(inserted[entity] ?? [], entity)
    changes.updated = GraphEdit.parts((updated[entity] ?? []).sorted { $0.row.key < $1.row.key }).map { updates in
      let builder = RowBatchBuilder(entity: graph.model.entities[entity], identity: graph.identity)
      for update in updates { builder.append(update.row.pointer) }
      return SaveRequest.UpdatedRows(
        rows: builder.seal(), expectedVersions: updates.map(\.expected), changedSlots: updates.flatMap(\.mask),
        wordsPerRow: GraphEdit.wordCount(graph.model.entities[entity]))
    }
    changes.deleted = keyed(deleted[entity] ?? [])
    changes.locked = keyed(locked[entity] ?? [])
    let derivations = (derived[entity] ?? []).sorted { $0.key < $1.key }
    changes.derived = GraphEdit.parts(derivations).map { derivedRows($0, graph.model.entities[entity]) }
    return changes
  }

  /// Divides rows into the parts of a request. Requests for many rows have several parts, and a store must apply all of them.
  private static func parts<Row>(_ rows: [Row]) -> [ArraySlice<Row>] {
    [rows.prefix(rows.count / 2), rows.dropFirst(rows.count / 2)].filter { !$0.isEmpty }
  }

  /// Rows of derived values, with a version that no row has.
  private func derivedRows(
    _ rows: ArraySlice<(key: ObjectKey, set: [SlotIndex: StoreValue], added: [SlotIndex: StoreValue])>, _ entity: ManagedObjectModel.Entity
  ) -> SaveRequest.DerivedRows {
    let builder = RowBatchBuilder(entity: entity, identity: graph.identity)
    for row in rows {
      let values = entity.slotIndexes.map { row.set[$0] ?? row.added[$0] ?? .null }
      let made = graph.makeRow(entity, row.key, version: 4711, values)
      withExtendedLifetime(made) { builder.append(made.pointer) }
    }
    let wordCount = GraphEdit.wordCount(entity)
    func mask(_ slots: some Sequence<SlotIndex>) -> [UInt64] {
      var mask = [UInt64](repeating: 0, count: wordCount)
      for slot in slots { mask[slot.word] |= slot.bit }
      return mask
    }
    return SaveRequest.DerivedRows(
      rows: builder.seal(), setSlots: rows.flatMap { mask($0.set.keys) }, addedSlots: rows.flatMap { mask($0.added.keys) },
      wordsPerRow: wordCount)
  }

  private func batches(_ rows: [RowView], _ entity: EntityIndex) -> [RowBatch] {
    let builder = RowBatchBuilder(entity: graph.model.entities[entity], identity: graph.identity)
    var batches: [RowBatch] = []
    for row in rows.sorted(by: { $0.key < $1.key }) {
      builder.append(row.pointer)
      if builder.isFull { batches.append(builder.seal()) }
    }
    return builder.count > 0 ? batches + [builder.seal()] : batches
  }

  private func keyed(_ rows: [(key: ObjectKey, expected: RowVersion)]) -> SaveRequest.KeyedRows {
    let sorted = rows.sorted { $0.key < $1.key }
    return SaveRequest.KeyedRows(keys: sorted.map(\.key), expectedVersions: sorted.map(\.expected))
  }

  // MARK: The graph

  func apply() {
    let request = request()
    for changes in request.entities {
      for batch in changes.inserted { for index in 0..<batch.count { graph.put(batch[index], changes.entity) } }
      for updated in changes.updated {
        for index in 0..<updated.rows.count { replace(by: updated, index, graph.model.entities[changes.entity]) }
      }
    }
    for change in request.links { graph.link(change) }
    for changes in request.entities { for key in changes.deleted.keys { graph.remove(key, changes.entity) } }
    var raised: Set<[Int64]> = []
    for changes in request.entities { for key in changes.deleted.keys { sever(key, graph.model.entities[changes.entity], &raised) } }
    graph.order(request.orders)
    for (entity, rows) in derived { for row in rows { derive(row, graph.model.entities[entity]) } }
  }

  /// Replaces a changed row. Derived values that aren't marked as changed stay the same.
  private func replace(by updated: SaveRequest.UpdatedRows, _ index: Int, _ entity: ManagedObjectModel.Entity) {
    var values = updated.rows[index].values
    for attribute in entity.derivedAttributes where !updated.isChanged(row: index, slot: attribute.slot) {
      if let before = graph.rows(of: entity)[updated.rows[index].key] { values[attribute.slot] = before[attribute.slot] }
    }
    graph.put(graph.makeRow(entity, updated.rows[index].key, version: updated.rows[index].version, values), entity.index)
  }

  private func derive(
    _ row: (key: ObjectKey, set: [SlotIndex: StoreValue], added: [SlotIndex: StoreValue]), _ entity: ManagedObjectModel.Entity
  ) {
    guard let before = graph.rows(of: entity)[row.key] else { return }
    var values = before.values
    for (slot, value) in row.set { values[slot] = value }
    for (slot, added) in row.added {
      switch (values[slot], added) {
      case (.null, _): continue
      case (.decimal(let number), .decimal(let more)): values[slot] = .decimal(number + more)
      case (let number, let more): values[slot] = .int64((number.integer ?? 0) + (more.integer ?? 0))
      }
    }
    graph.put(graph.makeRow(entity, row.key, version: before.version, values), entity.index)
  }

  /// Removes references to a deleted object, unless the delete rule is `noAction`. A row's version increases once, even if several
  /// of its references are removed.
  private func sever(_ key: ObjectKey, _ entity: ManagedObjectModel.Entity, _ raised: inout Set<[Int64]>) {
    for relationship in entity.relationships where relationship.deleteRule != .noAction {
      let inverse = graph.model.inverse(of: relationship)
      if relationship.isManyToMany {
        let naming = relationship.namesLinks ? relationship : inverse ?? relationship
        var change = SaveRequest.LinkChanges(entity: naming.entityIndex, relationship: naming.index)
        change.removed = (graph.links[RelationshipPlace(naming)] ?? []).filter {
          (relationship.namesLinks ? $0.source : $0.target) == key || (relationship.isReflexive && $0.target == key)
        }
        graph.link(change)
      } else if let inverse, !inverse.isToMany {
        for (entity, row) in graph.rows(pointingTo: key, by: inverse) {
          var values = row.values
          values[inverse.slot] = .null
          let version = raised.insert([Int64(entity.rawValue), row.key.rawValue]).inserted ? row.version.next : row.version
          graph.put(graph.makeRow(graph.model.entities[entity], row.key, version: version, values), entity)
        }
      }
    }
    for relationship in entity.linksWithoutInverse {
      var change = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
      change.removed = (graph.links[RelationshipPlace(entity: change.entity, relationship: change.relationship)] ?? []).filter {
        $0.target == key
      }
      graph.link(change)
    }
  }
}
