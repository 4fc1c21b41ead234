#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a store's file, which every save changes: the number, size and modification time of the file and its log.
///
/// A caller records it before it reads the store, and passes it in a ``DestructionRequest``, a ``ReplacementRequest`` or a
/// ``MigrationRequest``. The store verifies it while its lock excludes saves of other processes, so none of their saves is lost.
///
/// Equal states don't prove that two different stores have equal contents. Compare only states of the same store.
public struct StoreFileState: Sendable, Hashable, Codable {
  /// The state of a file that doesn't exist, or can't be examined.
  public static let missing = StoreFileState()

  private var values: [String] = []

  private init() {}

  /// Records the state of a file.
  ///
  /// - Parameter path: The path of the file, without symbolic links. The log is the file with the suffix `-wal`.
  public init(ofFileAt path: String) {
    for suffix in ["", "-wal"] {
      // What a former file left isn't the log of a missing one.
      guard let found = try? FileManager.default.attributesOfItem(atPath: path + suffix) else { return }
      let time = (found[.modificationDate] as? Date)?.timeIntervalSinceReferenceDate ?? 0, size = "\(found[.size] ?? 0)"
      // Readers create an empty log.
      if !suffix.isEmpty && size == "0" { return }
      values.append("\(suffix) \(found[.systemFileNumber] ?? 0) \(size) \(time)")
    }
  }

  /// Throws if a file no longer has this state. Stores call it while they hold the lock, before they change anything.
  ///
  /// - Parameters:
  ///   - path: The path of the file, without symbolic links.
  ///   - operation: The operation as a verb phrase, for the error: "destroy the store".
  /// - Throws: ``StoreError`` with code ``StoreError/Code/storeReplaced``, which is retryable.
  public func verify(fileAt path: String, operation: String) throws(StoreError) {
    if StoreFileState(ofFileAt: path) == self { return }
    throw StoreError(
      .storeReplaced, operation: operation, path: path,
      reason: "Another process has changed, created or removed the store in the meantime. Nothing was changed. Try again.",
      isRetryable: true)
  }
}
