import HoldfastStore

/// Whether one version of a store can have come of another by saves, as far as rows and links tell.
///
/// Whoever copies a file and goes on with both makes two versions of which neither came of the other. If one were taken for a later
/// version of the other, what was saved in that would be lost unseen. In one history:
/// 1. The version of a row never falls, and rises with each change of its values but for derived ones, which follow from other rows.
/// 2. What has been an object has had its key handed out, so a later version knows all keys of an earlier one as handed out.
/// 3. A link that comes or goes raises the versions of the rows at both ends, unless a row goes with it. Without an inverse only the
///    row that names the target: the one that named it before loses it as it is.
/// 4. A target that gets another place raises the version of the row whose list it is in.
/// 5. Versions with the same generation are the same.
///
/// It does *not* find what rows do not tell, when the other version bears the larger generation: that an object was deleted here
/// alone, and a change of rows of which the other version has changed each as often or more, or deleted it.
///
/// Takes time in proportion to rows and links. It is needed only when somebody else has replaced the file, which is then read as a
/// whole anyhow.
struct HistoryCheck {
  private let older: TableGeneration
  private let newer: TableGeneration
  /// For each table the least key that the newer version has not handed out.
  private let newerKeys: [Int64]
  /// Whether both have the same generation.
  private let isSame: Bool
  private var schema: TableSchema { newer.schema }

  private struct Contradiction: Error {}

  /// - Parameters:
  ///   - tables: what this process has read or saved last.
  ///   - number: the generation that its file bore.
  ///   - found: what lies there now.
  init(_ tables: TableStore, number: Int64, found: LoadedStore) throws {
    let known = try tables.source.generation()
    let isLater = found.header.generation >= number
    isSame = found.header.generation == number
    (older, newer) = isLater ? (known, found.generation) : (found.generation, known)
    newerKeys = isLater ? found.nextKeys : tables.nextKeys
  }

  /// Whether neither came of the other.
  func contradicts() -> Bool {
    do {
      for table in older.tables.indices { try compareRows(table) }
      for relationship in schema.model.entities.flatMap(\.ownRelationships) where relationship.isToMany {
        if relationship.isManyToMany && relationship.namesLinks { try compareLinks(relationship) }
        if let place = schema.order(of: relationship) { try compareOrder(relationship, place) }
      }
      return false
    } catch {
      return true
    }
  }

  private func require(_ condition: Bool) throws {
    if !condition { throw Contradiction() }
  }

  // MARK: Rows

  private func compareRows(_ number: Int) throws {
    let (old, new) = (older.tables[number], newer.tables[number])
    try require(newerKeys[number] > old.largestKey)
    if isSame { try require(old.count == new.count) }
    let layouts = schema.model.entities.map(\.layout), derived = schema.model.entities.map { $0.derivedAttributes.map(\.slot) }
    try old.forEachLocation { location in
      let row = old.pointer(location), entity = old.entity(location)
      guard let later = new.row(row.key) else { return try require(!isSame) }
      try require(new.entity(new.location(row.key)) == entity)
      if later.version == row.version {
        try require(hasSameValues(row, later, layouts[entity], butFor: isSame ? [] : derived[entity]))
      } else {
        // After the largest version comes the first.
        try require(!isSame && (later.version > row.version || row.version == .max))
      }
    }
  }

  /// What equals no number has many bit patterns, of which a format may keep one.
  private func hasSameValues(_ row: RowPointer, _ later: RowPointer, _ layout: RowLayout, butFor slots: [Int]) -> Bool {
    if row.hasSameValues(as: later, layout) { return true }
    return layout.kinds.enumerated().allSatisfy { slot, kind in
      if !row.differs(from: later, slot, kind) || slots.contains(slot) { return true }
      return kind == .real && row.isPresent(slot) && later.isPresent(slot) && row.real(slot).isNaN && later.real(slot).isNaN
    }
  }

  /// Whether a row is in both versions and nobody changed it or its links.
  private func isUntouched(_ key: Int64, _ entity: Int) -> Bool {
    let table = schema.tableOfEntity[entity]
    guard let row = older.tables[table].row(key), let later = newer.tables[table].row(key) else { return false }
    return row.version == later.version
  }

  /// Whether a row is in both versions.
  private func exists(_ key: Int64, _ entity: Int) -> Bool {
    let table = schema.tableOfEntity[entity]
    return older.tables[table].row(key) != nil && newer.tables[table].row(key) != nil
  }

  // MARK: Links

  private func compareLinks(_ relationship: ManagedObjectModel.Relationship) throws {
    let forward = newer.forwardIndex(of: relationship)
    if isSame || !relationship.hasTargetsToItself { try requireLinks(of: older, in: newer, forward, relationship) }
    try requireLinks(of: newer, in: older, forward, relationship)
  }

  /// Looks in one version for the links of the other that only a change of their rows could have made or removed.
  private func requireLinks(
    of one: TableGeneration, in other: TableGeneration, _ forward: Int, _ relationship: ManagedObjectModel.Relationship
  ) throws {
    try one.adjacencies[forward].forEach { link in
      let isThere = other.adjacencies[forward].withTargets(of: link.source) { LinkOrder.contains($0, link.target) }
      if isThere { return }
      if !exists(link.source, relationship.entityIndex) || !exists(link.target, relationship.destinationIndex) { return }
      try require(!isUntouched(link.source, relationship.entityIndex))
      if relationship.hasInverse { try require(!isUntouched(link.target, relationship.destinationIndex)) }
    }
  }

  private func compareOrder(_ relationship: ManagedObjectModel.Relationship, _ place: Int) throws {
    let forward = newer.forwardIndex(of: relationship)
    let table = older.tables[schema.tableOfEntity[relationship.entityIndex]]
    try table.forEachLocation { location in
      let source = table.pointer(location).key
      guard isUntouched(source, relationship.entityIndex) else { return }
      let targets = older.adjacencies[forward].withTargets(of: source) { targets in
        newer.adjacencies[forward].withTargets(of: source) { later in
          targets.filter { isUntouched($0, relationship.destinationIndex) && LinkOrder.contains(later, $0) }
        }
      }
      try require(older.orders[place].keys(of: targets, source: source) == newer.orders[place].keys(of: targets, source: source))
    }
  }
}
