import ExampleSupport
import Holdfast

/// Where the graph is kept, and where the index comes from. The questions are the same for every store.
struct IndexOptions {
  private let place: StoreOptions
  private let source: IndexSource
  private let explains: Bool

  /// Takes `--store`, `--at`, `--from` and `--explain` from a command line.
  init(_ arguments: inout Arguments) throws {
    place = try StoreOptions(&arguments)
    source = try arguments.option("--from").map(IndexSource.file) ?? .aptCache
    explains = arguments.flag("--explain")
  }

  /// Reads the index into the store.
  func importIndex() throws {
    let stack = try Stack(place.description())
    print(try stack.importIndex(source))
    if explains { stack.explain() }
  }

  /// Opens the store, prints the answer to a question and, if it is wanted, what the store was asked for it.
  ///
  /// Questions open files read-only: one that is not there is an error then, and none is made.
  func ask(_ question: (PackageGraph) throws -> [String]) throws {
    let stack = try Stack(place.description(isReadOnly: place.store != .memory))
    if place.store == .memory {
      // A store in memory is new and empty.
      try stack.importIndex(source)
      stack.counter.reset()
    }
    let graph = try PackageGraph(context: stack.makeContext())
    let lines = try question(graph)
    // Reading a property cannot throw; what went wrong meanwhile the context tells.
    if let error = graph.context.faultError { throw error }
    for line in lines { print(line) }
    if explains { stack.explain() }
  }
}
