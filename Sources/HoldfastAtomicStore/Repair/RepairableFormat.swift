package import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A format that can read a part of a damaged file.
package protocol RepairableFormat: StoreFileFormat {
  /// Passes what can be read to a loader.
  ///
  /// - Parameter model: The caller's model; nil for the one in the file.
  /// - Throws: `damaged` if there is no model, or nothing can be read. `incompatibleModel` if the model isn't that of the file, `newerFormat`
  ///   and errors of reading.
  func recover(_ reader: FileReader, _ model: ManagedObjectModel?) throws -> RecoveredContents
}

/// What a format read of a damaged file.
package struct RecoveredContents {
  /// The loader, which has all rows, links and orders.
  package var loader: TableLoader
  /// The header, with a new UUID if the file's header can't be read.
  package var header: StoreFileHeader
  /// What was damaged.
  package var report: RepairReport

  package init(_ loader: TableLoader, _ header: StoreFileHeader, _ report: RepairReport) {
    (self.loader, self.header, self.report) = (loader, header, report)
  }
}

extension StoreFileHeader {
  /// The header of a store whose header is lost.
  ///
  /// - Parameter storeUUID: The store's UUID; nil if that is lost as well.
  package static func replacement(of model: ManagedObjectModel, storeUUID: String?) -> StoreFileHeader {
    let hashes = ModelHashes(model), roots = model.entities.filter { $0.rootIndex == $0.index }
    return StoreFileHeader(
      storeUUID: storeUUID ?? UUID().uuidString, generation: 1, versionHashes: hashes.version, layoutHashes: hashes.layout,
      nextKeys: Dictionary(uniqueKeysWithValues: roots.map { ($0.name, 1) }))
  }
}

extension StoreImage {
  /// The state of a store without objects.
  package init(header: StoreFileHeader, emptyFor model: ManagedObjectModel, keySpace: KeySpace = .family) throws {
    let schema = try TableLoader(model: model, path: nil, keySpace: keySpace).beginTables(header)
    self.init(header: header, generation: TableGeneration(empty: schema))
  }
}

extension Array<UInt8> {
  /// All bytes of a file.
  package init(_ reader: FileReader) throws(StoreError) {
    self.init()
    reserveCapacity(Int(clamping: reader.byteCount))
    while let chunk = try reader.next() { self += chunk }
  }
}

extension StoreError {
  /// The error for a damaged file whose model is lost.
  package static func lacksModel(_ path: String) -> StoreError {
    StoreError(
      .damaged, operation: RepairRequest.operation, path: path,
      reason: "The store's model can't be read. Pass the model with which the store was created.")
  }
}
