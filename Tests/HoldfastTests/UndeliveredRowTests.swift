import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Stores that deliver some rows of a batch. The others can be former versions of rows, or rows of deleted objects.
@Suite struct UndeliveredRowTests {
  /// Delivers rows of a store's pages, like the store itself, but doesn't declare that they stay in memory.
  private final class UndeclaredStore: ForwardingStore {
    let base: any IncrementalStore
    var capabilities: StoreCapabilities {
      var capabilities = base.capabilities
      capabilities.residentRows = false
      return capabilities
    }

    init(_ base: any IncrementalStore) { self.base = base }
  }

  enum Reading: CaseIterable { case byKey, byFetch, bySortedFetch }

  /// Changes one of ten dogs and deletes another. Most of their page stays as it is, so the page isn't compacted.
  private func change(
    _ context: ManagedObjectContext
  ) throws -> (changed: ManagedObjectID, deleted: ManagedObjectID, other: ManagedObjectID) {
    let dogs = (0..<10).map { context.dog("d\($0)", age: 3) }
    try context.save()
    dogs[0].age = 4
    try context.save()
    // A save with a deletion empties the cache.
    context.delete(dogs[9])
    try context.save()
    return (dogs[0].objectID, dogs[9].objectID, dogs[5].objectID)
  }

  @Test(arguments: TestStore.allCases + [.spilled], Reading.allCases)
  func rowsThatAStoreDoesNotDeliverAreNotCached(_ store: TestStore, _ reading: Reading) throws {
    let (changing, _) = try store.makePlace().recording { UndeclaredStore($0) }
    let (changed, deleted, other) = try change(changing)
    let coordinator = changing.persistentStoreCoordinator
    for _ in 0..<2 {
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      switch reading {
      case .byKey: #expect((try context.existingObject(with: other) as? Dog)?.name == "d5")
      case .byFetch: #expect(try context.fetch(FetchRequest<Dog> { $0.name == "d5" }).count == 1)
      case .bySortedFetch:
        let request = FetchRequest<Dog>(sortedBy: [.descending(\.name)], limit: 2)
        #expect(try context.fetch(request).map(\.name) == ["d8", "d7"])
      }
      let error = #expect(throws: PersistenceError.self) { try context.existingObject(with: deleted) }
      #expect(error?.code == .missingObject)
      let dog = try #require(try context.existingObject(with: changed) as? Dog)
      #expect(dog.age == 4)
      dog.weight = (dog.weight ?? 0) + 1
      try context.save()
    }
  }
}
