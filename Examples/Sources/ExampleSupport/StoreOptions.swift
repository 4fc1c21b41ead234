public import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastXMLStore

/// The store that the user chose: the only part of a program that depends on the store.
public struct StoreOptions {
  /// The stores that the user can choose.
  public enum Kind: String, CaseIterable, Sendable {
    case memory, json, xml, binary, sqlite
  }

  /// The kind of store. A store in memory is lost when the program ends.
  public let store: Kind
  /// The path of the file, which is created if it's missing. Empty for a store in memory.
  public let path: String

  /// Takes `--store` and `--at` from a command line.
  ///
  /// - Parameter usual: the default store; nil if `--store` is required.
  public init(_ arguments: inout Arguments, usual: Kind? = nil) throws {
    let (name, path) = (try arguments.option("--store"), try arguments.option("--at"))
    guard let store = name.map({ Kind(rawValue: $0) }) ?? usual else {
      let kinds = Kind.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(name.map { "Unknown store '\($0)'. Stores: \(kinds)." } ?? "Choose a store with --store: \(kinds).")
    }
    if store != .memory && (path ?? "").isEmpty {
      throw UsageError("A \(store.rawValue) store needs a file. Name it with --at PATH.")
    }
    if store == .memory && path != nil {
      throw UsageError("A memory store has no file, and is lost when the program ends. Remove --at, or choose another store.")
    }
    (self.store, self.path) = (store, path ?? "")
  }

  /// The description from which the coordinator opens the store.
  ///
  /// - Parameter isReadOnly: whether to open the file read-only. A missing file is an error then.
  public func description(isReadOnly: Bool = false) -> StoreDescription {
    switch store {
    case .memory: .memory()
    case .json: .json(at: path, isReadOnly: isReadOnly)
    case .xml: .xml(at: path, isReadOnly: isReadOnly)
    case .binary: .binary(at: path, isReadOnly: isReadOnly)
    case .sqlite: .sqlite(at: path, options: SQLiteStoreOptions(isReadOnly: isReadOnly))
    }
  }
}
