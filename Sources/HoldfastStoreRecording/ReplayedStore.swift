import Holdfast
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An open store that receives the requests of a recorded store, translated.
final class ReplayedStore {
  /// Divides plans by the capabilities of the store.
  let coordinator: PersistentStoreCoordinator
  let store: any IncrementalStore
  let model: ManagedObjectModel
  /// The capabilities of the recorded store.
  let recordedCapabilities: StoreCapabilities
  private let identity: StoreIdentity
  private let names: ReplayedNames

  init(_ coordinator: PersistentStoreCoordinator, _ opening: RecordedOpening, _ names: ReplayedNames) {
    (self.coordinator, self.names) = (coordinator, names)
    (store, identity) = (coordinator.persistentStores[0].base, coordinator.persistentStores[0].identity)
    (model, recordedCapabilities) = (coordinator.model, opening.capabilities)
  }

  // MARK: Requests

  /// Returns a request with the keys, IDs and versions of this store, and the versions of the rows in a save. Requires ``fits(_:)``.
  func translated(_ request: RecordedRequest) throws -> (request: RecordedRequest, saved: [SaveTranslation.Saved]) {
    let translation = SaveTranslation(model: model, names: names, identity: identity) { [self] in try value($0, $1, $2) }
    func keys(_ keys: [ObjectKey], _ entity: EntityIndex) -> [ObjectKey] {
      keys.map { translation.key($0, model.entities[entity].rootIndex) }
    }
    switch request {
    case .fetch(let plan, let view): return (.fetch(plan.mappingIDs(translation.id), view: view), [])
    case .rows(var faults, let view):
      faults.keys = keys(faults.keys, faults.entity)
      return (.rows(faults, view: view), [])
    case .relationships(var relationship, let view):
      relationship.sources = keys(relationship.sources, relationship.entity)
      return (.relationships(relationship, view: view), [])
    case .prepare(let save):
      let (save, saved) = try translation.translated(save)
      return (.prepare(save), saved)
    case .externalData(var request):
      request.key = translation.key(request.key, model.entities[request.entity].rootIndex)
      return (.externalData(request), [])
    default: return (request, [])
    }
  }

  /// Whether a request from a file fits the model.
  func fits(_ request: RecordedRequest) -> Bool {
    switch request {
    case .fetch(let plan, _): model.fits(plan)
    case .rows(let faults, _): model.entity(at: faults.entity) != nil
    case .relationships(let request, _):
      model.relationship(request.entity, request.relationship)?.isToMany == true && request.sources.count <= 1_024
    case .reserveKeys(let demands): demands.allSatisfy { model.entity(at: $0.entity) != nil && $0.count >= 0 }
    case .prepare(let save): model.fits(save)
    case .externalData(let request): model.entity(at: request.entity)?.slotIndexes.contains(request.slot) == true
    default: true
    }
  }

  // MARK: Answers

  /// A digest of this store's rows.
  func digest(_ plan: FetchPlan? = nil) -> AnswerDigest { digest(names, storeNumber: identity.number, plan) }

  /// A digest of the recorded store's rows.
  func recordedDigest(_ plan: FetchPlan?) -> AnswerDigest {
    digest(nil, storeNumber: StoreIdentity.intern(storeUUID: RecordedIDs.storeUUID, model: model).number, plan)
  }

  private func digest(_ names: ReplayedNames?, storeNumber: UInt32, _ plan: FetchPlan?) -> AnswerDigest {
    AnswerDigest(model, names, storeNumber: storeNumber, hidesExternalValues: recordedCapabilities.externalData, plan: plan)
  }

  func failure(_ error: StoreError) -> RecordedFailure {
    RecordedFailure(error) { [self] id in
      guard let root = model.entity(named: id.entityName)?.rootIndex else { return nil }
      return RecordedObject(root: root, key: names.recordedKey(id.key, root))
    }
  }

  // MARK: External files

  /// Returns rows with values instead of the names of external files, unless the recorded store also has external files.
  func resolved(_ batch: RowBatch) throws -> RowBatch {
    guard store.capabilities.externalData, !recordedCapabilities.externalData, let entity = batch.entity(in: model),
      batch.layout == entity.layout, !entity.externalSlots.isEmpty
    else { return batch }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for index in 0..<batch.count {
      let row = batch[index]
      let values = try entity.layout.slots.map { slot in
        guard case .externalData(let id) = row[slot] else { return row.pointer.value(slot, batch.layout.columns[slot]) }
        return .data(try store.answers.perform(ExternalDataRequest(entity: entity.index, slot: slot, key: row.key, id: id)))
      }
      try builder.append(key: row.key, version: row.version, values: values)
    }
    return builder.seal()
  }

  /// The bytes of a value that was in an external file of the recorded store. In this store, it can be in a row.
  ///
  /// - Parameter value: The current value of the object.
  func externalData(_ request: ExternalDataRequest, _ value: StoreValue) throws -> Data {
    switch value {
    case .data(let data): return data
    case .externalData(let id):
      var request = request
      request.id = id
      return try store.answers.perform(request)
    default:
      throw StoreError(.missingExternalData, operation: request.description(in: model), reason: "The other store has no value.")
    }
  }

  /// The current value of an object.
  func value(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey, _ slot: SlotIndex) throws -> StoreValue {
    let view = try store.beginRead(.latest, options: .none), sink = FirstRow()
    defer { view.end() }
    try store.rows(FaultRequest(entity: entity.index, keys: [key]), in: view, options: .none, into: sink)
    guard let row = sink.row, row.batch.layout.slots.contains(slot) else { return .null }
    return row.pointer.value(slot, row.batch.layout.columns[slot])
  }
}

/// Keeps the first row that it receives.
private final class FirstRow: RowSink {
  private(set) var row: RowView?

  func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
    rows.forEach(in: batch) { row = row ?? batch[$0] }
    return .enough
  }
}
