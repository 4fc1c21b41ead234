import HoldfastStore

// The links of a save: those that it adds and removes, those of deleted rows, and the order of destinations.
extension TableSave {
  private mutating func apply(_ index: Int, added: [SaveRequest.Link], removed: [SaveRequest.Link]) {
    adjacencies[index].apply(added: added, removed: removed)
    if let order = schema.orderOfAdjacency[index] { losing[order].formUnion(removed.lazy.map(\.source)) }
  }

  /// Adds and removes links.
  mutating func applyLinks() {
    if hasManyRows {
      for index in adjacencies.indices where !fillFromFile(index) {
        collectInsertedLinks(index)
        applyKeyLinks(index)
      }
      insertedPages = []
    } else {
      applyKeyLinks()
    }
    for changes in request.links {
      let relationship = schema.model.entities[changes.entity].relationships[changes.relationship]
      guard case .links(let forward, let backward) = schema.storage(of: relationship) else { continue }
      var changes = changes
      if relationship.hasTargetsToItself { takeAway(&changes, backward) }
      // A request that doesn't come from a context may break the rule that links are sorted. The index then must not be damaged.
      apply(forward, added: LinkOrder.sorted(changes.added), removed: LinkOrder.sorted(changes.removed))
      if changes.removed.isEmpty, adjacencies[backward].fill(changes.added, isExchanged: true) { continue }
      apply(backward, added: LinkOrder.reversed(changes.added), removed: LinkOrder.reversed(changes.removed))
    }
  }

  /// Enforces that a destination of a to-many relationship without an inverse has one owner. If the save names several, the last one wins.
  private func takeAway(_ changes: inout SaveRequest.LinkChanges, _ backward: Int) {
    let last = Dictionary(changes.added.map { ($0.target, $0.source) }, uniquingKeysWith: { _, last in last })
    changes.added.removeAll { last[$0.target] != $0.source }
    var removed = Set(changes.removed)
    for link in changes.added {
      adjacencies[backward].withTargets(of: link.target) { sources in
        for source in sources where source != link.source { removed.insert(SaveRequest.Link(source: source, target: link.target)) }
      }
    }
    changes.removed = removed.sorted()
  }

  private mutating func applyKeyLinks() { for index in adjacencies.indices { applyKeyLinks(index) } }

  private mutating func applyKeyLinks(_ index: Int) {
    if added[index].isEmpty && removed[index].isEmpty { return }
    if !removed[index].isEmpty || !adjacencies[index].fill(added[index], isExchanged: false) {
      apply(index, added: LinkOrder.sorted(added[index]), removed: LinkOrder.sorted(removed[index]))
    }
    added[index] = []
    removed[index] = []
  }

  /// Collects the links of new rows in a slot.
  mutating func collectLinks(_ link: TableSchema.KeySlot, _ batch: RowBatch) {
    // Appending to a nested array checks two arrays each time.
    var links: [SaveRequest.Link] = []
    swap(&links, &added[link.adjacency])
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      if row.isPresent(link.slot) { links.append(SaveRequest.Link(source: row.key(link.slot), target: row.key)) }
    }
    swap(&links, &added[link.adjacency])
  }

  /// The pages of new rows with links of an index.
  private func insertedPages(_ index: Int) -> [(link: TableSchema.KeySlot, batch: RowBatch)] {
    insertedPages.compactMap { page in
      schema.keySlots[page.entity].first { $0.adjacency == index }.map { (link: $0, batch: page.batch) }
    }
  }

  /// Fills an empty index with the links of many new rows that are in a file. A list of the links would take more memory than the index.
  ///
  /// - Returns: Whether the links were added.
  private mutating func fillFromFile(_ index: Int) -> Bool {
    let pages = insertedPages(index)
    guard added[index].isEmpty, removed[index].isEmpty, pages.contains(where: \.batch.isEvictable) else { return false }
    return adjacencies[index].fill { body in
      // A page that couldn't be read once has no links from then on, so that all calls pass the same ones.
      for (link, batch) in pages where batch.load() {
        for index in 0..<batch.count {
          let row = batch.pointer(index)
          if row.isPresent(link.slot) { body(row.key(link.slot), row.key) }
        }
        batch.evict()
      }
    }
  }

  /// Collects the links of many new rows for one index.
  private mutating func collectInsertedLinks(_ index: Int) {
    let pages = insertedPages(index)
    added[index].reserveCapacity(added[index].count + pages.reduce(0) { $0 + $1.batch.count })
    for (link, batch) in pages {
      batch.load()
      collectLinks(link, batch)
      batch.evict()
    }
  }

  // MARK: References to deleted rows

  /// Removes the references to deleted rows.
  mutating func severDeletedRows() {
    if request.entities.allSatisfy({ $0.deleted.keys.isEmpty }) { return }
    var emptied: [Int: [ObjectKey: Set<SlotIndex>]] = [:]
    var links: [[SaveRequest.Link]] = Array(repeating: [], count: adjacencies.count)
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      for relationship in schema.model.entities[changes.entity].relationships where relationship.deleteRule != .noAction {
        switch schema.storage(of: relationship) {
        case .links(let forward, let backward):
          collectLinks(of: changes.deleted.keys, forward, backward, &links)
          if relationship.isReflexive { collectLinks(of: changes.deleted.keys, backward, forward, &links) }
        case .inverseSlot, .slot:
          if let inverse = schema.model.inverse(of: relationship) { collectRows(pointingTo: changes.deleted.keys, by: inverse, &emptied) }
        }
      }
      for relationship in schema.model.entities[changes.entity].linksWithoutInverse {
        if case .links(let forward, let backward) = schema.storage(of: relationship) {
          collectLinks(of: changes.deleted.keys, backward, forward, &links)
        }
      }
    }
    for (forward, links) in links.enumerated() where !links.isEmpty {
      // The backward index immediately follows the forward index.
      apply(forward, added: [], removed: LinkOrder.sorted(links))
      apply(forward + 1, added: [], removed: LinkOrder.reversed(links))
    }
    // Saves that clear no keys needn't create the types for iterating over the rows.
    if emptied.isEmpty { return }
    for (table, rows) in emptied { empty(rows, table) }
    applyKeyLinks()
  }

  /// Collects the links of some objects from one side's index, in the direction of the side that stores the links.
  private func collectLinks(of keys: [ObjectKey], _ forward: Int, _ backward: Int, _ links: inout [[SaveRequest.Link]]) {
    var found: [SaveRequest.Link] = []
    for key in keys {
      adjacencies[forward].withTargets(of: key) { targets in
        for target in targets {
          found.append(forward < backward ? SaveRequest.Link(source: key, target: target) : SaveRequest.Link(source: target, target: key))
        }
      }
    }
    links[min(forward, backward)] += found
  }

  /// Collects the rows whose to-one relationship points to one of the keys, and the slots to set to nil.
  private func collectRows(
    pointingTo keys: [ObjectKey], by relationship: ManagedObjectModel.Relationship, _ emptied: inout [Int: [ObjectKey: Set<SlotIndex>]]
  ) {
    guard case .slot(let index) = schema.storage(of: relationship) else { return }
    let table = schema.tableOfEntity[relationship.entityIndex]
    for key in keys {
      adjacencies[index].withTargets(of: key) { rows in
        for row in rows { emptied[table, default: [:]][row, default: []].insert(relationship.slot) }
      }
    }
  }

  /// Replaces rows with copies in which some slots are nil and the version is incremented.
  private mutating func empty(_ rows: [ObjectKey: Set<SlotIndex>], _ table: Int) {
    let byEntity = Dictionary(grouping: rows.keys.sorted()) { tables[table].entity(tables[table].location($0)) }
    for (entity, keys) in byEntity where entity >= 0 {
      let builder = RowBatchBuilder(entity: schema.model.entities[entity], identity: schema.identity)
      var copies: [RowBatch] = []
      for key in keys {
        guard let row = tables[table].row(key), let slots = rows[key] else { continue }
        RowCopy.append(row, emptying: slots, to: builder)
        if builder.isFull { copies.append(builder.seal()) }
      }
      if builder.count > 0 { copies.append(builder.seal()) }
      // Setting values to nil can't violate a constraint, so the new values needn't be indexed.
      for copy in copies { replace(by: copy, entity) }
      newValues = []
    }
  }

  // MARK: Order

  /// Sets the order keys of new destinations and removes those of removed links.
  mutating func putInOrder() {
    for (place, relationship) in schema.ordered.enumerated() {
      let changes = request.orders.first { $0.entity == relationship.entityIndex && $0.relationship == relationship.index }
      let (links, keys) = (changes?.links ?? [], changes?.keys ?? [])
      var start = 0
      while start < links.count {
        var end = start
        while end < links.count, links[end].source == links[start].source { end += 1 }
        put(links[start].source, place, links[start..<end], keys[start..<end])
        start = end
      }
      let named = Set(links.map(\.source))
      for source in losing[place] where !named.contains(source) { put(source, place, [], []) }
    }
  }

  private mutating func put(_ source: ObjectKey, _ place: Int, _ links: ArraySlice<SaveRequest.Link>, _ keys: ArraySlice<Int64>) {
    let relationship = schema.ordered[place]
    let forward: Int
    switch schema.storage(of: relationship) {
    case .inverseSlot(let index), .links(let index, _): forward = index
    case .slot: return
    }
    orders[place].set(source, targets: adjacencies[forward].withTargets(of: source) { Array($0) }, links, keys)
  }
}
