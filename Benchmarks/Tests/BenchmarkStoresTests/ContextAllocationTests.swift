import BenchmarkRunner
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import Testing

/// The allocations of merging, and of saves through a child context.
///
/// Counts include all threads, so each test counts in a process of its own. Platforms without counts pass.
@Suite struct ContextAllocationTests {
  /// Making the ID. A fault or a request would be more.
  @Test("Merging a save takes at most one allocation for each object that the context doesn't have")
  func save() async {
    await #expect(processExitsWith: .success) {
      guard let counts = try ContextAllocations.ofMerges(areReceived: false) else { return }
      try #require(counts.many - counts.few < 9_999, "\(counts)")
    }
  }

  @Test("Merging IDs takes at most two allocations for each object that the context doesn't have")
  func receivedIDs() async {
    await #expect(processExitsWith: .success) {
      guard let counts = try ContextAllocations.ofMerges(areReceived: true) else { return }
      try #require(counts.many - counts.few < 2 * 9_900, "\(counts)")
    }
  }

  /// A quadratic cost would be 64 times as high.
  @Test("Saving eight times as many objects through a child takes about eight times as many allocations")
  func child() async {
    await #expect(processExitsWith: .success) {
      guard let counts = try ContextAllocations.ofChildren() else { return }
      try #require(counts.many < 10 * counts.few, "\(counts)")
    }
  }
}

/// What ``ContextAllocationTests`` counts.
enum ContextAllocations {
  /// The allocations for merging changes of 100 and of 10,000 objects; nil if they can't be counted.
  static func ofMerges(areReceived: Bool) throws -> (few: Int, many: Int)? {
    OperationCounts.start()
    // The first merge of a process also creates types and tables.
    _ = try ofMerge(100, isReceived: areReceived)
    guard let few = try ofMerge(100, isReceived: areReceived), let many = try ofMerge(10_000, isReceived: areReceived) else { return nil }
    return (few, many)
  }

  /// The allocations for making and saving 1,000 and 8,000 objects through a child; nil if they can't be counted.
  static func ofChildren() throws -> (few: Int, many: Int)? {
    OperationCounts.start()
    _ = try ofChild(1000)
    guard let few = try ofChild(1000), let many = try ofChild(8000) else { return nil }
    return (few, many)
  }

  private static func makeCoordinator() throws -> PersistentStoreCoordinator {
    let person = EntityDescription("Person", attributes: [AttributeDescription("age", .integer64, default: .int64(0))])
    return try PersistentStoreCoordinator(model: ManagedObjectModel(entities: [person]), store: .memory())
  }

  /// Merges a save of some of 10,000 people by a context that has read 100 of them.
  ///
  /// - Parameter isReceived: Whether the context gets the IDs only, as from another coordinator.
  private static func ofMerge(_ count: Int, isReceived: Bool) throws -> Int? {
    let coordinator = try makeCoordinator(), writer = try ManagedObjectContext(coordinator: coordinator)
    let people = try (0..<10_000).map { _ in try writer.insert(entityNamed: "Person") }
    try writer.save()
    let reader = try ManagedObjectContext(coordinator: coordinator)
    reader.automaticallyMergesChanges = !isReceived
    let held = try people.prefix(100).map { try reader.existingObject(with: $0.objectID) }
    for person in held { _ = try person.value(forKey: "age") }
    let changed = people.prefix(count)
    for person in changed { try person.setValue(StoreValue.int64(1), forKey: "age") }
    try writer.save()
    let received = SavedChanges(
      storeIdentifier: coordinator.persistentStores[0].identifier, contextName: "", updated: changed.map(\.objectID))
    let before = OperationCounts.now
    if isReceived { try reader.mergeChanges(from: received) } else { try reader.processPendingChanges() }
    let allocations = (OperationCounts.now - before).allocations
    // It was merged.
    try #require(held.allSatisfy { $0.isFault })
    withExtendedLifetime(people) {}
    return allocations
  }

  private static func ofChild(_ count: Int) throws -> Int? {
    let parent = try ManagedObjectContext(coordinator: makeCoordinator()), child = ManagedObjectContext(parent: parent)
    let before = OperationCounts.now
    let people = try (0..<count).map { _ in try child.insert(entityNamed: "Person") }
    try child.save()
    try parent.save()
    let allocations = (OperationCounts.now - before).allocations
    withExtendedLifetime(people) {}
    return allocations
  }
}
