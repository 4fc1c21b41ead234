import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Forwards every request to another store, but adds a year to the age in one saved row.
final class AlteringStore: IncrementalStore {
  private let store: any IncrementalStore

  init(_ store: any IncrementalStore) { self.store = store }

  var capabilities: StoreCapabilities { store.capabilities }

  func open(model: ManagedObjectModel) throws -> StoreMetadata { try store.open(model: model) }

  func close() throws { try store.close() }

  func beginRead(_ kind: ReadViewKind) throws -> any ReadView { try store.beginRead(kind) }

  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws { try store.fetch(plan, in: view, into: sink) }

  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    try store.rows(request, in: view, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    try store.relationships(request, in: view)
  }

  func allocateKeys(entity: Int, count: Int) throws -> [Int64] { try store.allocateKeys(entity: entity, count: count) }

  func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    var request = request
    for place in request.entities.indices { try alter(&request.entities[place].inserted) }
    return try store.prepare(request)
  }

  func perform(_ request: BatchRequest) throws -> BatchResult { try store.perform(request) }

  func externalData(_ request: ExternalDataRequest) throws -> Data { try store.externalData(request) }

  func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try store.history(request) }

  func setMetadata(_ metadata: [String: StoreValue]) throws { try store.setMetadata(metadata) }

  /// Adds 1 to the first 16-bit integer, which is an age.
  private func alter(_ batches: inout [RowBatch]) throws {
    guard let batch = batches.first, let slot = batch.layout.columns.firstIndex(of: .attribute(.integer16)) else { return }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for index in 0..<batch.count {
      let row = batch[index]
      var values = row.values
      if index == 0, case .int16(let age) = values[slot] { values[slot] = .int16(age + 1) }
      try builder.append(key: row.key, version: row.version, values: values)
    }
    batches[0] = builder.seal()
  }
}
