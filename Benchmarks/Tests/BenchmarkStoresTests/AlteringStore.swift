import HoldfastStore

/// Forwards every request to another store, but adds a year to the age in one row that is inserted, or in one row of each update.
final class AlteringStore: ForwardingStore {
  let base: any IncrementalStore

  private let altersUpdates: Bool

  init(_ base: any IncrementalStore, altersUpdates: Bool = false) { (self.base, self.altersUpdates) = (base, altersUpdates) }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    var request = request
    for place in request.entities.indices {
      if altersUpdates {
        for number in request.entities[place].updated.indices { try alter(&request.entities[place].updated[number].rows) }
      } else if !request.entities[place].inserted.isEmpty {
        try alter(&request.entities[place].inserted[0])
      }
    }
    return try base.prepare(request, options: options)
  }

  /// Adds 1 to the first 16-bit integer, which is an age.
  private func alter(_ batch: inout RowBatch) throws {
    guard let slot = batch.layout.columns.firstIndex(of: .attribute(.integer16)) else { return }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for index in 0..<batch.count {
      let row = batch[index]
      var values = row.values
      if index == 0, case .int16(let age) = values[slot] { values[slot] = .int16(age + 1) }
      try builder.append(key: row.key, version: row.version, values: values)
    }
    batch = builder.seal()
  }
}
