import ExampleSupport
import Holdfast

/// The store of the graph and the source of the index.
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

  /// Opens the store and prints the answer to a question and, with `--explain`, the number of requests.
  ///
  /// A question opens the file read-only, so a missing file is an error and isn't created.
  func ask(_ question: (PackageGraph) throws -> [String]) throws {
    let stack = try Stack(place.description(isReadOnly: place.store != .memory))
    if place.store == .memory {
      // A store in memory starts empty.
      try stack.importIndex(source)
      stack.counter.reset()
    }
    let graph = try PackageGraph(context: stack.makeContext())
    let lines = try question(graph)
    // A property can't throw. If one couldn't be read, the context has the error.
    if let error = graph.context.faultError { throw error }
    for line in lines { print(line) }
    if explains { stack.explain() }
  }
}
