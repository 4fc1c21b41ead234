import HoldfastStore

/// Checks whether one of two versions of a store descends from the other through saves.
///
/// If a file is copied and both copies are saved, the versions diverge. Taking one for a later version of the other would silently
/// lose saves. In one history:
/// 1. The version of a row never decreases, and increases with each change of its values. Derived values are an exception, because
///    they follow from other rows.
/// 2. A later version has allocated all keys that an earlier one uses.
/// 3. Adding or removing a link increments the versions of the rows at both ends, unless one of them is deleted. Without an
///    inverse, only the new owner's version is incremented; a previous owner loses the destination without a new version.
/// 4. Moving a destination in a list increments the version of the owner.
/// 5. Versions with the same generation number are equal.
///
/// If the other version has the larger generation number, two kinds of changes here can't be detected: deletions, and changes of
/// rows that the other version changed at least as often or deleted.
///
/// Takes time proportional to the number of rows and links. Needed only if another process has replaced the file, which is then
/// read entirely anyway.
struct HistoryCheck {
  private let older: TableGeneration
  private let newer: TableGeneration
  /// For each table, the next key that the newer version would allocate.
  private let newerKeys: [Int64]
  /// Whether both versions have the same generation number.
  private let isSame: Bool
  private var schema: TableSchema { newer.schema }

  private struct Contradiction: Error {}

  /// - Parameters:
  ///   - tables: The rows that this process last read or saved.
  ///   - number: The generation number of their file.
  ///   - found: The contents of the current file.
  init(_ tables: TableStore, number: Int64, found: LoadedStore) throws {
    let known = try tables.source.generation()
    let isLater = found.header.generation >= number
    isSame = found.header.generation == number
    (older, newer) = isLater ? (known, found.generation) : (found.generation, known)
    newerKeys = isLater ? found.nextKeys : tables.nextKeys
  }

  /// Whether neither version descends from the other.
  func contradicts() -> Bool {
    do {
      for table in older.tables.indices { try compareRows(table) }
      for relationship in schema.model.entities.flatMap(\.ownRelationships) where relationship.isToMany {
        if relationship.storesLinks { try compareLinks(relationship) }
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
        // The version after the largest one is the first one.
        try require(!isSame && (later.version > row.version || row.version == .max))
      }
    }
  }

  /// Compares values, but treats all NaNs as equal: they have many bit patterns, and a format may preserve only one.
  private func hasSameValues(_ row: RowPointer, _ later: RowPointer, _ layout: RowLayout, butFor slots: [Int]) -> Bool {
    if row.hasSameValues(as: later, layout) { return true }
    return layout.kinds.enumerated().allSatisfy { slot, kind in
      if !row.differs(from: later, slot, kind) || slots.contains(slot) { return true }
      return kind == .real && row.isPresent(slot) && later.isPresent(slot) && row.real(slot).isNaN && later.real(slot).isNaN
    }
  }

  /// Whether a row is in both versions and neither the row nor its links changed.
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

  /// Requires that each link which only `one` contains has an owner, and with an inverse a destination, whose row changed.
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
