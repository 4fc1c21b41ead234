import ExampleSupport
import Foundation
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
    let container = try open(place.description())
    try explaining(container) { print(try container.importIndex(source)) }
  }

  /// Opens the store and prints the answer to a question and, with `--explain`, the number of requests.
  ///
  /// A question opens the file read-only, so a missing file is an error and isn't created.
  func ask(_ question: (PackageGraph) throws -> [String]) throws {
    let container = try open(place.description(isReadOnly: place.store != .memory))
    // A store in memory starts empty.
    if place.store == .memory { try container.importIndex(source) }
    try explaining(container) {
      let context = container.newContext()
      for line in try context.reading({ try question(PackageGraph(context: context)) }) { print(line) }
    }
  }

  private func open(_ store: StoreDescription) throws -> PersistentContainer {
    try PersistentContainer(for: Package.self, Maintainer.self, store: store)
  }

  /// With `--explain`, prints the number of requests that a closure sends to the store, on standard error.
  private func explaining(_ container: PersistentContainer, _ body: () throws -> Void) throws {
    let coordinator = container.persistentStoreCoordinator
    let before = coordinator.requestCounts
    try body()
    if explains { FileHandle.standardError.write(Data("Requests: \(coordinator.requestCounts - before)\n".utf8)) }
  }
}

extension PersistentContainer {
  /// Reads an index into the store.
  @discardableResult func importIndex(_ source: IndexSource) throws -> ImportSummary {
    var indexImport = PackageImport(into: newContext())
    return try indexImport.run(source)
  }
}
