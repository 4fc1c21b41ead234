import HoldfastAtomicStore
import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where the rows of a ``MemoryStore`` live: what a file is to other stores. Whoever holds the contents can close the
/// store and open another on the same rows; one store has them open at a time.
public final class MemoryStoreContents: Sendable {
  /// Guards all of the contents. Rows are read and saved through the open store's own lock, not through this one.
  private let state = Mutex(State())

  private struct State {
    var storeUUID = UUID().uuidString
    var metadata: [String: StoreValue] = [:]
    var isOpen = false
    /// What was there when the contents were closed last; nil before they are made by the first opening.
    var saved: Saved?
  }

  private struct Saved {
    var generation: TableGeneration
    var nextKeys: [Int64]
  }

  /// Makes contents that no store has opened yet.
  public init() {}

  func open(model: ManagedObjectModel, isReadOnly: Bool) throws -> (TableStore, StoreMetadata) {
    try state.withLock { state throws in
      guard !state.isOpen else { throw MemoryStoreError.alreadyOpen() }
      guard state.saved != nil || !isReadOnly else { throw MemoryStoreError.notFound() }
      if let made = state.saved?.generation.schema.model {
        try ModelCompatibility.check(made.entityVersionHashesByName, layouts: made.entityLayoutHashesByName, model)
      }
      let identity = StoreIdentity.intern(storeUUID: state.storeUUID, model: model)
      let schema = TableSchema(model: model, identity: identity)
      let generation = state.saved.map { TableGeneration($0.generation, schema: schema) } ?? TableGeneration(empty: schema)
      let tables = TableStore(generation, nextKeys: state.saved?.nextKeys ?? [], isReadOnly: isReadOnly)
      state.saved = Saved(generation: generation, nextKeys: tables.nextKeys)
      state.isOpen = true
      return (tables, StoreMetadata(identity: identity, userInfo: state.metadata))
    }
  }

  func close(_ tables: TableStore) {
    tables.close()
    state.withLock { state in
      if let generation = tables.generation { state.saved = Saved(generation: generation, nextKeys: tables.nextKeys) }
      state.isOpen = false
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) { state.withLock { $0.metadata = metadata } }

  /// What the contents tell while no store has them open.
  func closedMetadata() throws -> PersistentStoreMetadata {
    try state.withLock { state in
      let model = try MemoryStoreContents.closedModel(state, "read the metadata")
      return PersistentStoreMetadata(
        storeUUID: state.storeUUID, type: MemoryStore.type, entityVersionHashes: model.entityVersionHashesByName,
        entityLayoutHashes: model.entityLayoutHashesByName, userInfo: state.metadata)
    }
  }

  /// Replaces the user's metadata while no store has the contents open.
  func setClosedMetadata(_ metadata: [String: StoreValue]) throws {
    try state.withLock { state in
      _ = try MemoryStoreContents.closedModel(state, "write the metadata")
      state.metadata = metadata
    }
  }

  private static func closedModel(_ state: State, _ operation: String) throws -> ManagedObjectModel {
    guard !state.isOpen else { throw MemoryStoreError.alreadyOpen(operation) }
    guard let saved = state.saved else { throw MemoryStoreError.notFound(operation) }
    return saved.generation.schema.model
  }

  /// The model with which the contents were made.
  func closedModel() throws -> ManagedObjectModel {
    try state.withLock { try MemoryStoreContents.closedModel($0, "read the store's model") }
  }
}

/// Errors of the memory store, each built in one place.
enum MemoryStoreError {
  static func notOpen(_ operation: String) -> StoreError {
    StoreError(.notOpen, operation: operation, reason: "The store is not open; open it first.")
  }

  static func readOnly(_ operation: String) -> StoreError {
    StoreError(.readOnly, operation: operation, reason: "The store was opened read-only.")
  }

  static func alreadyOpen(_ operation: String = "open the store") -> StoreError {
    StoreError(.alreadyOpen, operation: operation, reason: "Its contents are open in another store; close that one first.")
  }

  static func notFound(_ operation: String = "open the store") -> StoreError {
    StoreError(.notFound, operation: operation, reason: "Its contents were never opened for writing, so there is nothing to read.")
  }
}
