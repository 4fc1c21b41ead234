import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// The cost of merging depends on the objects that the context has, and not on the size of the save.
///
/// The benchmarks' `ContextAllocationTests` count allocations.
@Suite struct MergeCostTests {
  enum Sender: CaseIterable, Sendable { case sameCoordinator, otherCoordinator }

  /// Merges changes of 100 dogs that the context has, five of them with unsaved changes, and of other dogs that it doesn't have.
  ///
  /// - Returns: The requests of the merge, without their arguments.
  private func requests(_ store: TestStore, _ sender: Sender, others: Int) throws -> [String] {
    let place = try store.makePlace()
    let (ours, recorder) = try place.recording()
    let coordinator = ours.persistentStoreCoordinator
    let theirs = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dogs = (0..<100).map { theirs.dog("Dog \($0)", age: $0) }
    try theirs.save()
    let held = try ours.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)]))
    for dog in held.prefix(5) { dog.notes = "ours" }
    for dog in dogs { dog.name += "!" }
    try theirs.save()

    let identifier = try #require(coordinator.persistentStores.last).identifier
    let unknown = try (0..<others).map { number in
      try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(identifier)/Dog/p\(1_000_000 + number)"))
    }
    var changes = SavedChanges(storeIdentifier: identifier, contextName: "", updated: held.map(\.objectID) + unknown)
    if sender == .sameCoordinator { changes.announcer.value = ObjectIdentifier(coordinator) }
    recorder.clear()
    try ours.mergeChanges(from: changes)
    let requests = recorder.requests.map { "\($0)".prefix { $0 != "(" }.description }
    #expect(held.count == 100 && held.dropFirst(5).allSatisfy(\.isFault))
    #expect(held.allSatisfy { $0.name.hasSuffix("!") } && held.prefix(5).allSatisfy { $0.notes == "ours" })
    return requests
  }

  @Test(arguments: TestStore.allCases, Sender.allCases)
  func mergingTenThousandIDsSendsTheRequestsOfAHundred(_ store: TestStore, _ sender: Sender) throws {
    let few = try requests(store, sender, others: 0), many = try requests(store, sender, others: 9_900)
    // One for the five with unsaved changes.
    #expect(few == ["beginRead", "rows"] && many == few)
  }
}
