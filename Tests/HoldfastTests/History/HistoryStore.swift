import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastXMLStore
import TestSupport

/// The stores that keep a history.
enum HistoryStore: String, CaseIterable, Codable, Sendable {
  case json
  case xml
  case binary
  case sqlite

  /// The path of a store's file in a folder.
  func path(_ folder: TemporaryFolder, _ name: String = "Kennel") -> String { folder.file("\(name).\(rawValue)") }

  /// A store in a file.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of changes in SQLite's history, and of bytes in that of other stores.
  ///   - reports: Whether saves of other processes are reported.
  ///   - threshold: The maximum size of a value that isn't stored in an external file; nil for the default.
  func description(
    _ path: String, _ tracking: HistoryTracking = .always, limit: Int? = nil, reports: Bool = false, isReadOnly: Bool = false,
    threshold: Int? = nil
  ) -> StoreDescription {
    let external = threshold.map { ExternalDataOptions(threshold: $0) } ?? ExternalDataOptions()
    var shared = WholeFileOptions(externalData: external)
    shared.file.durability = .normal
    // On a busy machine, another process or the watch of the file can have a lock for longer than the default of five seconds.
    shared.file.lockTimeout = .seconds(3600)
    shared.file.isReadOnly = isReadOnly
    (shared.historyTracking, shared.maximumHistoryByteCount, shared.reportsOtherProcesses) = (tracking, limit, reports)
    switch self {
    case .json: return .json(at: path, options: JSONStoreOptions(wholeFile: shared))
    case .xml: return .xml(at: path, options: XMLStoreOptions(wholeFile: shared))
    case .binary: return .binary(at: path, options: BinaryStoreOptions(wholeFile: shared))
    case .sqlite:
      var options = SQLiteStoreOptions()
      (options.isReadOnly, options.busyTimeout, options.externalData) = (isReadOnly, .seconds(3600), external)
      (options.historyTracking, options.maximumHistoryChangeCount, options.reportsOtherProcesses) = (tracking, limit, reports)
      return .sqlite(at: path, options: options)
    }
  }

  /// A coordinator with a store in a folder.
  func coordinator(
    _ model: ManagedObjectModel, _ folder: TemporaryFolder, _ tracking: HistoryTracking = .always, limit: Int? = nil
  ) throws -> PersistentStoreCoordinator {
    try PersistentStoreCoordinator(model: model, store: description(path(folder), tracking, limit: limit))
  }
}
