internal import HoldfastBinaryStore
internal import HoldfastJSONStore
internal import HoldfastMemoryStore
internal import HoldfastSQLiteStore
public import HoldfastStore
internal import HoldfastXMLStore

/// A kind of store: its name on the command line, its description, and its statement count.
public struct StoreKind: Sendable {
  let name: String
  let describe: @Sendable (_ path: String) -> StoreDescription
  /// The number of statements that a store executed since it was opened; nil if it has no statements.
  let statements: @Sendable (any IncrementalStore) -> Int?

  /// Creates a kind of store.
  public init(
    _ name: String, statements: @escaping @Sendable (any IncrementalStore) -> Int? = { _ in nil },
    describe: @escaping @Sendable (_ path: String) -> StoreDescription
  ) {
    self.name = name
    self.statements = statements
    self.describe = describe
  }

  /// An in-memory store without a file.
  public static let memory = StoreKind("memory") { _ in .memory() }

  /// A JSON file with the default options, except for an unlimited size.
  public static let json = json()
  /// An XML file with the default options, except for an unlimited size.
  public static let xml = xml()
  /// A binary file with the default options, except for an unlimited size.
  public static let binary = binary()
  /// A SQLite file with the default options.
  public static let sqlite = sqlite()

  static func json(_ history: HistoryTracking = .ifPresent) -> StoreKind {
    StoreKind("json") { .json(at: $0, options: JSONStoreOptions(wholeFile: wholeFile(history))) }
  }

  static func xml(_ history: HistoryTracking = .ifPresent) -> StoreKind {
    StoreKind("xml") { .xml(at: $0, options: XMLStoreOptions(wholeFile: wholeFile(history))) }
  }

  static func binary(_ history: HistoryTracking = .ifPresent) -> StoreKind {
    StoreKind("binary") { .binary(at: $0, options: BinaryStoreOptions(wholeFile: wholeFile(history))) }
  }

  static func sqlite(_ history: HistoryTracking = .ifPresent) -> StoreKind {
    StoreKind("sqlite", statements: { ($0 as? SQLiteStore)?.statementCount }) { path in
      var options = SQLiteStoreOptions()
      options.historyTracking = history
      return .sqlite(at: path, options: options)
    }
  }

  private static func wholeFile(_ history: HistoryTracking) -> WholeFileOptions {
    var options = WholeFileOptions()
    options.file.maximumByteCount = .max
    options.historyTracking = history
    return options
  }

  /// The same kind with every store wrapped, to test the effect of a defective store.
  public func wrapping(_ wrap: @escaping @Sendable (any IncrementalStore) -> any IncrementalStore) -> StoreKind {
    StoreKind(name, statements: statements) { path in
      var description = describe(path)
      let makeStore = description.makeStore
      description.makeStore = { wrap(makeStore()) }
      return description
    }
  }
}
