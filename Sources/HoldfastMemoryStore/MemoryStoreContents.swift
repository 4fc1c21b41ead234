import HoldfastAtomicStore
import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The rows and metadata of a ``MemoryStore``, which correspond to a store's file.
///
/// Keep the contents to close the store and open another one with the same rows. Only one store at a time can have them open.
public final class MemoryStoreContents: Sendable {
  /// Guards the contents. Rows are read and saved through the lock of the open store, not through this one.
  private let state = Mutex(State())

  private struct State {
    var storeUUID = SaveOrigin.newID().uuidString
    var metadata: [String: StoreValue] = [:]
    var isOpen = false
    /// Identifies the current rows.
    var token = GenerationToken(session: .random(in: 0...UInt64.max), number: 1)
    /// The rows when the contents were last closed; nil before that, and while they are open. Rows that a save deletes or replaces would
    /// stay in memory otherwise.
    var saved: Saved?
  }

  private struct Saved {
    var generation: TableGeneration
    var nextKeys: [ObjectKey]
  }

  /// Creates contents without rows.
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
      let tables = TableStore(
        generation, nextKeys: state.saved?.nextKeys ?? [], isReadOnly: isReadOnly, token: state.token)
      state.saved = nil
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

  /// A token for the next commit.
  func nextToken() -> GenerationToken {
    state.withLock { state in
      state.token.number += 1
      return state.token
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) { state.withLock { $0.metadata = metadata } }

  /// The metadata while no store has the contents open.
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

  /// The model that the contents were created with.
  func closedModel() throws -> ManagedObjectModel {
    try state.withLock { try MemoryStoreContents.closedModel($0, "read the store's model") }
  }
}

/// The errors of the memory store.
enum MemoryStoreError {
  static func notOpen(_ operation: String) -> StoreError {
    StoreError(.notOpen, operation: operation, reason: "The store isn't open. Open it first.")
  }

  static func readOnly(_ operation: String) -> StoreError {
    StoreError(.readOnly, operation: operation, reason: "The store was opened read-only.")
  }

  static func alreadyOpen(_ operation: String = "open the store") -> StoreError {
    StoreError(.alreadyOpen, operation: operation, reason: "The contents are already open in a store. Close that store first.")
  }

  static func notFound(_ operation: String = "open the store") -> StoreError {
    StoreError(.notFound, operation: operation, reason: "The contents were never opened for writing, so there is nothing to read.")
  }
}
