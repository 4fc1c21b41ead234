import ArgumentParser
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore

/// Where the graph is kept, and where the index comes from. The questions are the same for every store.
struct StoreOptions: ParsableArguments {
  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case memory, json, sqlite
  }

  @Option(help: "What keeps the graph; memory reads the index anew for each question.") var store: Kind
  @Option(help: ArgumentHelp("The file; memory needs none.", valueName: "path")) var at: String?
  @Option(help: ArgumentHelp("A file of control stanzas; this machine's own index unless said.", valueName: "file")) var from: String?
  @Flag(help: "Tell on standard error how many requests of each kind the store was sent.") var explain = false

  func validate() throws {
    if store != .memory && (at ?? "").isEmpty {
      throw ValidationError("A \(store.rawValue) store lies in a file. Say in which one with --at PATH.")
    }
  }

  var source: IndexSource { from.map(IndexSource.file) ?? .aptCache }

  /// What the stack makes its store of. Questions open files read-only: one that is not there is an error then, and none is made.
  func description(isReadOnly: Bool) -> StoreDescription {
    switch store {
    case .memory: .memory()
    case .json: .json(at: at ?? "", isReadOnly: isReadOnly)
    case .sqlite: .sqlite(at: at ?? "", options: SQLiteStoreOptions(isReadOnly: isReadOnly))
    }
  }

  /// Opens the store, prints the answer to a question and, if it is wanted, what the store was asked for it.
  func ask(_ question: (PackageGraph) throws -> [String]) throws {
    let stack = try Stack(description(isReadOnly: store != .memory))
    if store == .memory {
      // A store in memory is new and empty.
      try stack.importIndex(source)
      stack.counter.reset()
    }
    let graph = try PackageGraph(context: stack.makeContext())
    let lines = try question(graph)
    // Reading a property cannot throw; what went wrong meanwhile the context tells.
    if let error = graph.context.faultError { throw error }
    for line in lines { print(line) }
    if explain { stack.explain() }
  }
}
