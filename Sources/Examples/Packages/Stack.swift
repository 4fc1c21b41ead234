import Foundation
import Holdfast

/// A coordinator with a store that counts its requests.
struct Stack {
  let counter = RequestCounter()
  private let coordinator: PersistentStoreCoordinator

  init(_ store: StoreDescription) throws {
    coordinator = try PersistentStoreCoordinator(model: Stack.makeModel(), store: store.counted(by: counter))
  }

  func makeContext() throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: coordinator, classes: [Package.self, Maintainer.self])
  }

  @discardableResult func importIndex(_ source: IndexSource) throws -> ImportSummary {
    var indexImport = try PackageImport(into: makeContext())
    return try indexImport.run(source)
  }

  /// Prints the number of requests to the store, on standard error.
  func explain() { FileHandle.standardError.write(Data("\(counter.requests)\n".utf8)) }
}
