import HoldfastStore

extension SaveRequest {
  /// The index of an entity's changes, which are added if there are none.
  mutating func place(of entity: EntityIndex) -> Int {
    let place = entities.firstIndex { $0.entity >= entity } ?? entities.endIndex
    if place == entities.endIndex || entities[place].entity != entity { entities.insert(EntityChanges(entity: entity), at: place) }
    return place
  }
}

extension SaveRequest.EntityChanges {
  /// The keys of the rows whose versions are compared, with the versions that the context read.
  var expectedVersions: [(ObjectKey, RowVersion)] {
    var expected: [(ObjectKey, RowVersion)] = []
    for updated in updated { expected += zip(updated.rows.keys, updated.expectedVersions) }
    for rows in [deleted, locked] { expected += zip(rows.keys, rows.expectedVersions) }
    return expected
  }
}

extension RowBatch {
  /// The keys of the rows, in order.
  var keys: some Collection<ObjectKey> { (0..<count).lazy.map { self.pointer($0).key } }
}
