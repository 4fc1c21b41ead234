public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A format that can read a part of a damaged file, so that its stores can be repaired (``/HoldfastStore/RepairRequest``).
///
/// The store builds consistent tables from what the format finds: it removes references to missing objects and repeated keys.
public protocol RepairableFormat: StoreFileFormat {
  /// Passes what can be read to a loader.
  ///
  /// - Parameters:
  ///   - reader: The file.
  ///   - model: The caller's model; nil for the one in the file.
  /// - Throws: `damaged` if there is no model, or nothing can be read. `incompatibleModel` if the model isn't that of the file, `newerFormat`
  ///   and errors of reading.
  func recover(_ reader: FileReader, _ model: ManagedObjectModel?) throws -> RecoveredContents
}

/// What a format read of a damaged file.
public struct RecoveredContents {
  /// The loader, on which ``TableLoader/begin(_:)`` was called, and which has all rows, links and orders that can be read.
  public var loader: TableLoader
  /// What was damaged. The store adds the numbers of objects and references.
  public var report: RepairReport

  /// Creates contents.
  ///
  /// - Parameters:
  ///   - loader: The loader.
  ///   - report: What was damaged.
  public init(_ loader: TableLoader, _ report: RepairReport) { (self.loader, self.report) = (loader, report) }
}

extension StoreFileHeader {
  /// The header of a store whose header is lost.
  ///
  /// - Parameters:
  ///   - model: The store's model.
  ///   - storeUUID: The store's UUID; nil for a new one, if that is lost as well.
  public static func replacement(of model: ManagedObjectModel, storeUUID: String?) -> StoreFileHeader {
    let hashes = ModelHashes(model), roots = model.entities.filter { $0.rootIndex == $0.index }
    return StoreFileHeader(
      storeUUID: storeUUID ?? SaveOrigin.newID().uuidString, generation: 1, versionHashes: hashes.version, layoutHashes: hashes.layout,
      nextKeys: Dictionary(uniqueKeysWithValues: roots.map { ($0.name, 1) }))
  }

  /// Compares a header with the model, and gives it the hashes of the model if only these can be damaged.
  ///
  /// - Parameters:
  ///   - given: The caller's model; nil for the one in the file.
  ///   - kept: The model in the file; nil if it can't be read.
  ///   - path: The path of the file, for errors.
  /// - Returns: Whether hashes were damaged.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged` if the file's hashes and model differ, and there is no other model.
  public mutating func mendHashes(given: ManagedObjectModel?, kept: ManagedObjectModel?, path: String) throws -> Bool {
    guard let model = given ?? kept else { return false }
    let hashes = ModelHashes(model)
    if versionHashes == hashes.version, (layoutHashes ?? hashes.layout) == hashes.layout { return false }
    // Either may be damaged.
    guard given != nil else { throw StoreError.lacksModel(path) }
    guard kept?.versionDigest == model.versionDigest else { return false }
    (versionHashes, layoutHashes) = (hashes.version, hashes.layout)
    return true
  }
}

extension StoreFileFormat {
  /// Reads a file that isn't damaged, as the result of a repair.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the file.
  ///   - given: The caller's model; nil for the one in the file.
  ///   - path: The path of the file, for errors.
  ///   - memory: The memory limit of the rows.
  public func undamaged(
    _ bytes: [UInt8], _ given: ManagedObjectModel?, path: String, memory: RowMemory
  ) throws -> RecoveredContents {
    guard let model = try given ?? readModel(FileReader(bytes, path: path)) else { throw StoreError.lacksModel(path) }
    let loader = TableLoader(model: model, path: path, keySpace: keySpace, memory: memory)
    try read(FileReader(bytes, path: path), into: loader)
    return RecoveredContents(loader, RepairReport())
  }
}

extension StoreImage {
  /// Creates the state of a store without objects.
  ///
  /// - Parameters:
  ///   - header: The header.
  ///   - model: The model.
  ///   - keySpace: The scope in which keys are unique.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `incompatibleModel` if the header is another model's.
  public init(header: StoreFileHeader, emptyFor model: ManagedObjectModel, keySpace: KeySpace = .family) throws {
    let schema = try TableLoader(model: model, path: nil, keySpace: keySpace).beginTables(header)
    self.init(header: header, generation: TableGeneration(empty: schema))
  }
}

extension StoreError {
  /// The error of a repair without a model: the caller has none, and that of the file can't be read. Its code is `damaged`.
  ///
  /// - Parameter path: The path of the file.
  public static func lacksModel(_ path: String) -> StoreError {
    StoreError(
      .damaged, operation: RepairRequest.operation, path: path,
      reason: "The store's model can't be read. Pass the model with which the store was created.")
  }
}
