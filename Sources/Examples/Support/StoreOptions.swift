public import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastXMLStore

/// Where the graph is kept. This is all that a program has to know of its store.
public struct StoreOptions {
  /// The kinds of stores among which the user chooses.
  public enum Kind: String, CaseIterable, Sendable {
    case memory, json, xml, binary, sqlite
  }

  /// What keeps the graph; memory forgets it when the program ends.
  public let store: Kind
  /// The file, which is made when there is none; memory has none.
  public let path: String

  /// Takes `--store` and `--at` from a command line.
  ///
  /// - Parameter usual: the store when none is named; nil means that one has to be.
  public init(_ arguments: inout Arguments, usual: Kind? = nil) throws {
    let (name, path) = (try arguments.option("--store"), try arguments.option("--at"))
    guard let store = name.map({ Kind(rawValue: $0) }) ?? usual else {
      let kinds = Kind.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(name.map { "There is no store '\($0)'. Stores: \(kinds)." } ?? "Say with --store what keeps the graph: \(kinds).")
    }
    if store != .memory && (path ?? "").isEmpty {
      throw UsageError("A \(store.rawValue) store lies in a file. Say in which one with --at PATH.")
    }
    (self.store, self.path) = (store, path ?? "")
  }

  /// What the stack makes its store of.
  ///
  /// - Parameter isReadOnly: whether a file that is not there is an error, and none is changed.
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
