import HoldfastStore
import Testing

@testable import Holdfast

/// Saves of another client of the store, in which the coordinator takes no part. It learns of them by a conflict, by object IDs that the
/// program received, or by a report of the store.
@Suite struct OtherClientTests {
  typealias Policy = MergePolicyTests.Policy

  // A report contains the store's own keys, which `ReportTests` tests for the second store of a coordinator.
  private static let stores = TestStore.allCases.filter { $0 != .second }

  // MARK: Conflicts

  /// The cache of the coordinator has an older row than the store. A context that reads it is in conflict from the start.
  @Test(arguments: stores, Policy.allCases)
  func aRowThatIsOlderInTheCacheThanInTheStoreIsMergedAsThePolicySays(_ store: TestStore, _ policy: Policy) throws {
    let clients = try Clients(store), setup = try clients.context(), rex = setup.dog("Rex", age: 3)
    try setup.save()
    let id = rex.objectID, theirs = try clients.otherContext()
    try theirs.existingDog(id).age = 9
    try theirs.save()
    let ours = try clients.context(), mine = try ours.existingDog(id), isCached = !clients.hasResidentRows
    #expect(mine.age == (isCached ? 3 : 9))
    mine.name = "Ours"
    if isCached {
      let error = try #require(throws: PersistenceError.self) { try ours.save() }
      #expect(error.code == .conflict && error.coreDataCode == 133020 && error.objectIDs == [id])
      #expect(mine.name == "Ours" && mine.age == 3 && mine.isUpdated)
    }
    ours.mergePolicy = policy.policy
    try ours.save()
    let name = isCached && policy == .rollback ? "Rex" : "Ours", age = isCached && policy == .overwrite ? 3 : 9
    #expect(mine.name == name && mine.age == age && !ours.hasChanges)
    let saved = try clients.otherContext().fetch(FetchRequest<Dog>())
    #expect(saved.map(\.name) == [name] && saved.map(\.age) == [age])
    // The cache has the merged row.
    #expect(try clients.context().existingDog(id).age == age)
  }

  // MARK: Merging

  /// Ann with Fido and Rex, Bob without dogs, and Max, whom this context changes. The other client changes all dogs and inserts one.
  private struct Scene {
    let clients: Clients
    let context: ManagedObjectContext
    let fido: Dog, max: Dog, rex: Dog
    let ann: Person, bob: Person
    /// The other client's new dog.
    let new: ManagedObjectID

    init(_ store: TestStore) throws {
      let clients = try Clients(store), setup = try clients.context(), owner = setup.person("Ann")
      setup.person("Bob")
      setup.dog("Fido", age: 3, owner: owner)
      setup.dog("Rex", age: 5, owner: owner)
      setup.dog("Max", age: 7)
      try setup.save()
      let context = try clients.context()
      let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
      let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
      #expect(dogs.map(\.name) == ["Fido", "Max", "Rex"] && people.map { $0.dogs.count } == [2, 0])
      let theirs = try clients.otherContext(), theirFido = try theirs.existingDog(dogs[0].objectID)
      theirFido.name = "Fidelio"
      theirFido.owner = try theirs.existingObject(with: people[1].objectID) as? Person
      try theirs.existingDog(dogs[1].objectID).age = 8
      theirs.delete(try theirs.existingDog(dogs[2].objectID))
      let inserted = theirs.dog("New", owner: theirFido.owner)
      try theirs.save()
      dogs[1].notes = "ours"
      try context.processPendingChanges()
      (self.clients, self.context, new) = (clients, context, inserted.objectID)
      (fido, max, rex) = (dogs[0], dogs[1], dogs[2])
      (ann, bob) = (people[0], people[1])
    }

    /// Expects that nothing of the other client's save is known.
    func expectUnmerged() {
      #expect(fido.name == "Fido" && max.age == 7 && !rex.isInaccessible && ann.dogs.count == 2 && bob.dogs.isEmpty)
    }

    /// Expects that the objects and the cache have what the other client has saved, and that the unsaved change is kept.
    func expectMerged() throws {
      #expect(fido.name == "Fidelio" && fido.owner === bob && max.age == 8 && max.notes == "ours" && max.isUpdated)
      _ = rex.name
      #expect(rex.isInaccessible && ann.dogs.isEmpty && bob.dogs.map(\.name).sorted() == ["Fidelio", "New"])
      let fresh = try clients.context()
      #expect(try fresh.existingDog(fido.objectID).name == "Fidelio" && fresh.existingDog(max.objectID).age == 8)
      #expect(throws: PersistenceError.self) { try fresh.existingObject(with: rex.objectID) }
      try context.save()
      let saved = try clients.otherContext().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
      #expect(saved.map(\.name) == ["Fidelio", "Max", "New"] && saved.map(\.age) == [3, 8, 1] && saved[1].notes == "ours")
    }
  }

  /// The IDs come as text: another process has sent them, or a request that changes rows without a context has returned them.
  @Test(arguments: stores) func changesThatAreKnownByTheirIDsAreMerged(_ store: TestStore) throws {
    let scene = try Scene(store), coordinator = scene.clients.coordinator
    scene.expectUnmerged()
    func received(_ objects: ManagedObjectID...) -> [ManagedObjectID] {
      objects.compactMap { coordinator.managedObjectID(forURIRepresentation: $0.uriRepresentation) }
    }
    let changes = SavedChanges(
      storeIdentifier: coordinator.persistentStores[0].identifier, contextName: "", inserted: received(scene.new),
      updated: received(scene.fido.objectID, scene.max.objectID), deleted: received(scene.rex.objectID))
    #expect(changes.inserted == [scene.new] && changes.updated.count == 2 && changes.deleted == [scene.rex.objectID])
    var heard: [ObjectChanges] = []
    let observation = scene.context.onChange { _, changes in heard.append(changes) }
    try scene.context.mergeChanges(from: changes)
    #expect(heard.flatMap(\.inserted) == [scene.new] && heard.flatMap(\.deleted) == [scene.rex.objectID])
    #expect(Set(heard.flatMap(\.refreshed)).isSuperset(of: [scene.fido.objectID, scene.max.objectID]))
    try scene.expectMerged()
    withExtendedLifetime(observation) {}
  }

  /// The store knows the changed objects, or only that there are changes.
  @Test(arguments: stores, [true, false])
  func changesThatTheStoreReportsAreMergedAutomatically(_ store: TestStore, _ isNamed: Bool) throws {
    let scene = try Scene(store), fido = scene.fido.objectID, max = scene.max.objectID, rex = scene.rex.objectID
    scene.context.automaticallyMergesChanges = true
    try scene.context.processPendingChanges()
    scene.expectUnmerged()
    var heard: [ObjectChanges] = []
    let observation = scene.context.onChange { _, changes in heard.append(changes) }
    scene.clients.report(
      isNamed ? StoreChange(inserted: [scene.new], updated: [fido, max], deleted: [rex]) : StoreChange(mayIncludeOthers: true))
    try scene.context.processPendingChanges()
    #expect(heard.flatMap(\.inserted) == (isNamed ? [scene.new] : []) && heard.flatMap(\.deleted) == (isNamed ? [rex] : []))
    #expect(Set(heard.flatMap(\.refreshed)).isSuperset(of: [fido, max]))
    try scene.expectMerged()
    withExtendedLifetime(observation) {}
  }

  // MARK: The cache

  /// The store can't report what others change, but can find out that they have saved.
  @Test(arguments: stores) func aStoreThatNoticesOtherSavesLeavesNoOldRowInTheCache(_ store: TestStore) throws {
    let clients = try Clients(store, noticesOthers: true), setup = try clients.context(), rex = setup.dog("Rex", age: 3)
    try setup.save()
    let id = rex.objectID, theirs = try clients.otherContext(), theirRex = try theirs.existingDog(id)
    func age() throws -> Int { try #require(try clients.context().object(with: id) as? Dog).age }
    #expect(try age() == 3)
    for next in 4..<8 {
      theirRex.age = next
      try theirs.save()
      clients.noteOtherSave()
      #expect(try age() == next)
      // Until the next save, the row is taken from the cache.
      let before = clients.coordinator.requestCounts.rows
      #expect(try age() == next && (clients.hasResidentRows || clients.coordinator.requestCounts.rows == before))
    }
  }
}
