import HoldfastStore

extension TableGeneration {
  /// Whether another generation of the store cannot have come of this one, nor this one of it: an object has the same version in
  /// both and other values.
  ///
  /// Whoever copies a file and goes on with both makes such a pair, and versions then tell nothing about what was changed. Every
  /// change of a value makes a version, so generations of one history never contradict each other. Links and order are not
  /// looked at. Takes time in proportion to the rows.
  func contradicts(_ other: TableGeneration) -> Bool {
    let layouts = schema.model.entities.map(\.layout)
    for (table, others) in zip(tables, other.tables) {
      var contradicts = false
      table.forEachLocation { location in
        let row = table.pointer(location)
        guard !contradicts, let found = others.row(row.key), found.version == row.version else { return }
        let (entity, otherEntity) = (table.entity(location), others.entity(others.location(row.key)))
        contradicts = entity != otherEntity || !row.hasSameValues(as: found, layouts[entity])
      }
      if contradicts { return true }
    }
    return false
  }
}
