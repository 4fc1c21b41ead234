// Requests to stores that aren't open. `StoreDescription.administration` answers them. No model is needed.
//
// If this process has the store open, all of them throw `alreadyOpen` and change nothing.

/// A request for the metadata of a store that isn't open. Changes nothing.
public struct MetadataRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// The metadata.
  public typealias Answer = PersistentStoreMetadata
  /// A verb phrase for errors.
  public static var operation: String { "read the metadata" }
}

/// A request to replace the user's metadata of a store that isn't open. The change is durable after the request.
///
/// The store's own metadata is unchanged.
public struct MetadataChangeRequest: StoreRequest {
  /// The new metadata.
  public var userInfo: [String: StoreValue]

  /// Creates a request.
  public init(userInfo: [String: StoreValue]) { self.userInfo = userInfo }

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "write the metadata" }
}

/// A request for the model that a store contains. Changes nothing.
public struct StoredModelRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// The model; nil if the store contains none, for example because another program created it.
  public typealias Answer = ManagedObjectModel?
  /// A verb phrase for errors.
  public static var operation: String { "read the store's model" }
}

/// A request to rebuild a store's file without unused space. The new file is durable after the request.
///
/// ``StoreDescription/administration`` answers it for a closed store, and ``IncrementalStore/answers`` for an open one. If it fails, the
/// rows are unchanged.
public struct CompactionRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "compact the store" }
}

/// A request to remove a store with all its files.
///
/// - If there is no store at the location, nothing happens.
/// - A file that isn't a store of this type isn't removed: the request throws ``StoreError/Code/notAStore``. A damaged store is removed.
/// - While another process uses the store, the request throws ``StoreError/Code/locked``, as far as the store can detect that.
/// - If it is interrupted, the store still exists completely, or the next request removes the remaining files.
/// - A store that keeps previous versions of its file removes them as well, or moves them.
/// - If the store's file doesn't have the ``expectedState``, the request throws ``StoreError/Code/storeReplaced``, and nothing is changed.
public struct DestructionRequest: StoreRequest {
  /// The location of a copy of the store, of the same type, to which its backups are moved; nil to remove them. Stores without backups ignore it.
  ///
  /// They get the next numbers after the backups that are there. The copy isn't open. If the request fails, some may have been moved; it can be
  /// repeated.
  public var backupDestination: StoreLocation?
  /// The state that the file must have; nil for any. A store in a file must verify it while its lock excludes other processes, with
  /// ``StoreFileState/verify(fileAt:operation:)``.
  public var expectedState: StoreFileState?

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - backupDestination: Where the backups are moved. Defaults to nil: they are removed.
  ///   - expectedState: The state that the file must have. Defaults to nil: any.
  public init(movingBackupsTo backupDestination: StoreLocation? = nil, expecting expectedState: StoreFileState? = nil) {
    (self.backupDestination, self.expectedState) = (backupDestination, expectedState)
  }

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "destroy the store" }
}

/// A request to replace a store, or create it, with a copy of another store of the same type. The copy has the same UUID and object IDs.
///
/// - The source isn't changed. Its copy contains all its rows, metadata and external data, from one state.
/// - If it fails or is interrupted, the previous store is unchanged. The copy is durable after the request.
/// - A file that isn't a store of this type isn't replaced: the request throws ``StoreError/Code/notAStore``.
/// - If the file to replace doesn't have the ``expectedState``, the request throws ``StoreError/Code/storeReplaced``, and nothing is changed.
public struct ReplacementRequest: StoreRequest {
  /// The location of the store to copy.
  public var source: StoreLocation
  /// The state that the file to replace must have; nil for any. With ``StoreFileState/missing``, nothing is replaced. A store in a file
  /// must verify it while its lock excludes other processes, with ``StoreFileState/verify(fileAt:operation:)``.
  public var expectedState: StoreFileState?

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - source: The location of the store to copy.
  ///   - expectedState: The state that the file to replace must have. Defaults to nil: any.
  public init(source: StoreLocation, expecting expectedState: StoreFileState? = nil) {
    (self.source, self.expectedState) = (source, expectedState)
  }

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "replace the store" }
}

/// A request to complete or undo what an interrupted process left in a store that isn't open, as opening it for writing does.
public struct RecoveryRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "recover the store" }
}

/// A request to migrate a store that isn't open to another version of its model. The objects keep their keys, and the metadata of the user stays.
///
/// - If it fails or is interrupted, the store is as before. The migrated store is durable after the request.
/// - While another process uses the store, the request throws ``StoreError/Code/locked``, as far as the store can detect that.
/// - If the store already has the mapping's destination model, nothing happens.
/// - If the store's file doesn't have the ``expectedState``, the request throws ``StoreError/Code/storeReplaced``, and nothing is changed.
/// - If the store isn't one of the mapping's source model, it throws ``MigrationError`` with code
///   ``MigrationError/Code/missingMappingModel``. Objects that violate a rule of the new model are a
///   ``MigrationError/Code/constraintViolation``.
public struct MigrationRequest: StoreRequest {
  /// How the objects change.
  public var mapping: MappingModel
  /// The state that the file must have; nil for any. A store in a file must verify it while its lock excludes other processes, with
  /// ``StoreFileState/verify(fileAt:operation:)``.
  public var expectedState: StoreFileState?

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - mapping: How the objects change.
  ///   - expectedState: The state that the file must have. Defaults to nil: any.
  public init(_ mapping: MappingModel, expecting expectedState: StoreFileState? = nil) {
    (self.mapping, self.expectedState) = (mapping, expectedState)
  }

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "migrate the store" }
}

/// A request for what a migration of a store that isn't open would cost. Nothing is changed.
public struct MigrationEstimateRequest: StoreRequest {
  /// How the objects change.
  public var mapping: MappingModel
  /// The number of own objects of each source entity, by entity index.
  public var objectCounts: [Int]

  /// Creates a request.
  public init(_ mapping: MappingModel, objectCounts: [Int]) { (self.mapping, self.objectCounts) = (mapping, objectCounts) }

  /// The approximate size of the default values that existing objects get, in bytes, with their names in a text file.
  public var defaultValueByteCount: Int64 {
    mapping.entityMappings.reduce(0) { total, entity in
      guard let source = entity.source else { return total }
      let slots = zip(mapping.destination.entities[entity.destination].slots, entity.values)
      let added = slots.reduce(0) {
        $0 + ($1.1.source == nil && $1.1.fallback != .null ? $1.0.name.utf8.count + $1.1.fallback.byteCount : 0)
      }
      return total + Int64(added) * Int64(objectCounts[source.rawValue])
    }
  }

  /// The costs.
  public typealias Answer = MigrationEstimate
  /// A verb phrase for errors.
  public static var operation: String { "estimate a migration" }
}

/// What a migration costs, estimated by a store.
public struct MigrationEstimate: Sendable, Hashable, Codable {
  /// The number of objects whose rows are written again.
  public var rewrittenObjectCount: Int
  /// The free space that the migration needs for a time, in bytes, besides that of external files.
  public var byteCount: Int64

  /// Creates an estimate.
  public init(rewrittenObjectCount: Int, byteCount: Int64) {
    (self.rewrittenObjectCount, self.byteCount) = (rewrittenObjectCount, byteCount)
  }
}

extension StoreValue {
  /// The approximate size in a file, with punctuation.
  fileprivate var byteCount: Int {
    switch self {
    case .string(let text), .uri(let text): text.utf8.count + 32
    case .data(let bytes): bytes.count * 4 / 3 + 32
    default: 64
    }
  }
}
