import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Merging of what batch requests have changed: the store changes rows without a context, and returns their IDs.
@Suite struct BatchMergeTests {
  typealias Policy = MergePolicyTests.Policy

  /// Ann with Bella (3), Fido (4) and Rex (5), and Bob with Max (9). A context has read all of them.
  private struct Scene {
    let place: TestStore.Place
    let context: ManagedObjectContext
    /// The store, which answers batch requests.
    let recorder: RecordingStore
    let ann: Person, bob: Person
    let bella: Dog, fido: Dog, max: Dog, rex: Dog

    init(_ store: TestStore, _ policy: MergePolicy = .error) throws {
      let place = try store.makePlace(), (context, recorder) = try place.recording { BatchStore($0) }
      context.mergePolicy = policy
      let setup = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
      let owner = setup.person("Ann")
      setup.dog("Bella", age: 3, owner: owner)
      setup.dog("Fido", age: 4, owner: owner)
      setup.dog("Rex", age: 5, owner: owner)
      setup.dog("Max", age: 9, owner: setup.person("Bob"))
      try setup.save()
      let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
      let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
      #expect(dogs.map(\.age) == [3, 4, 9, 5] && people.map { $0.dogs.count } == [3, 1])
      (self.place, self.context, self.recorder) = (place, context, recorder)
      (ann, bob) = (people[0], people[1])
      (bella, fido, max, rex) = (dogs[0], dogs[1], dogs[2], dogs[3])
    }

    /// A plan for rows of an entity.
    func plan(_ entity: ManagedObjectModel.Entity, _ predicate: QueryExpression) -> FetchPlan {
      FetchPlan(entity: entity.index, concreteEntities: [entity.index], predicate: predicate)
    }

    /// Sends a batch request to the store. Nothing else is sent, and the context isn't notified.
    func send<Request: StoreRequest>(_ request: Request) throws -> BatchResult where Request.Answer == BatchResult {
      try context.processPendingChanges()
      recorder.clear()
      let result = try recorder.answers.perform(request)
      try context.processPendingChanges()
      #expect(recorder.requests == [.optional(OptionalRequest(request))])
      return result
    }

    /// Merges the results of batch requests, and returns the requests that this sends to the store.
    func merge(inserted: BatchResult? = nil, updated: BatchResult? = nil, deleted: BatchResult? = nil) throws -> [RecordedRequest] {
      let store = try #require(context.persistentStoreCoordinator.persistentStores.last)
      recorder.clear()
      try context.mergeChanges(
        from: SavedChanges(
          storeIdentifier: store.identifier, contextName: "", inserted: inserted?.objectIDs ?? [], updated: updated?.objectIDs ?? [],
          deleted: deleted?.objectIDs ?? []))
      return recorder.requests
    }

    /// The dogs as another coordinator reads them: name, age, notes and owner.
    func saved() throws -> [String] {
      try context.persistentStoreCoordinator.close()
      return try place.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map {
        "\($0.name) \($0.age) \($0.notes ?? "-") \($0.owner?.name ?? "-")"
      }
    }
  }

  /// The requests that read the rows of some objects of one entity.
  private func reading(_ objects: ManagedObject...) -> [RecordedRequest] {
    [.beginRead(.latest), .rows(FaultRequest(entity: objects[0].entity.index, keys: objects.map { $0.objectID.key }.sorted()))]
  }

  /// The names of a person's dogs, sorted.
  private func names(of person: Person) -> [String] { person.dogs.map(\.name).sorted() }

  private static let policies: [Policy?] = [nil, .storeTrump, .objectTrump, .overwrite, .rollback]

  // MARK: Updates

  /// Bella, Fido and Rex become ten years older. The context has changed another property of Rex, and the same one of Fido.
  @Test(arguments: TestStore.allCases, policies)
  func aBatchUpdateIsMergedAsThePolicySays(_ store: TestStore, _ policy: Policy?) throws {
    let scene = try Scene(store, policy?.policy ?? .error), (bella, fido, max, rex) = (scene.bella, scene.fido, scene.max, scene.rex)
    (fido.age, rex.notes) = (50, "ours")
    let result = try scene.send(growth(scene))
    #expect(result.rowCount == 3 && Set(result.objectIDs ?? []) == [bella.objectID, fido.objectID, rex.objectID])
    #expect(bella.age == 3 && fido.age == 50 && rex.age == 5)
    // Only objects with unsaved changes are read.
    let expected = reading(fido, rex)
    #expect(try scene.merge(updated: result) == expected)
    #expect(bella.isFault && !max.isFault)
    let fidoAge = policy == nil || policy?.prefersOurs == true ? 50 : 14, rexAge = policy == .overwrite ? 5 : 15
    let notes = policy == .rollback ? nil : "ours"
    #expect(fido.age == fidoAge && rex.age == rexAge && rex.notes == notes)
    scene.recorder.clear()
    #expect(bella.age == 13 && scene.recorder.requests == reading(bella))
    // The cache has no row from before the request.
    let fresh = try ManagedObjectContext(coordinator: scene.context.persistentStoreCoordinator, classes: Kennel.classes)
    let ages = try [bella, fido, max, rex].map { try fresh.existingDog($0.objectID).age }
    #expect(ages == [13, 14, 9, 15])
    if policy == nil {
      let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
      #expect(error.code == .conflict && error.objectIDs == [fido.objectID])
      try scene.context.discardChanges(of: error.objectIDs)
      #expect(fido.age == 14 && rex.notes == "ours")
    }
    // The merged objects aren't in conflict any more.
    scene.context.mergePolicy = .error
    try scene.context.save()
    let savedAge = policy == nil ? 14 : fidoAge
    #expect(try scene.saved() == ["Bella 13 - Ann", "Fido \(savedAge) - Ann", "Max 9 - Bob", "Rex \(rexAge) \(notes ?? "-") Ann"])
  }

  /// All dogs below the age of nine become ten years older.
  private func growth(_ scene: Scene) -> BatchUpdateRequest {
    BatchUpdateRequest(
      plan: scene.plan(scene.fido.entity, .comparison(.property("age"), .lessThan, .constant(.int16(9)), [])),
      assignments: [.init(slot: Dog.Slot.age, value: .sum(.slot(Dog.Slot.age), .constant(.int64(10))))], returnsObjectIDs: true)
  }

  @Test(arguments: TestStore.allCases) func aChildMergesTheBatchUpdateThatItsParentMerges(_ store: TestStore) throws {
    let scene = try Scene(store), child = ManagedObjectContext(parent: scene.context)
    child.automaticallyMergesChanges = true
    let bella = try child.existingDog(scene.bella.objectID), rex = try child.existingDog(scene.rex.objectID)
    #expect(bella.age == 3 && rex.age == 5)
    rex.notes = "ours"
    _ = try scene.merge(updated: try scene.send(growth(scene)))
    try child.processPendingChanges()
    #expect(bella.age == 13 && rex.age == 15 && rex.notes == "ours")
    try child.save()
    try scene.context.save()
    #expect(try scene.saved() == ["Bella 13 - Ann", "Fido 14 - Ann", "Max 9 - Bob", "Rex 15 ours Ann"])
  }

  // MARK: Deletions

  /// The request deletes Fido and Rex, whom the context has changed.
  @Test(arguments: TestStore.allCases, policies)
  func aBatchDeletionIsMergedAsThePolicySays(_ store: TestStore, _ policy: Policy?) throws {
    let scene = try Scene(store, policy?.policy ?? .error), (fido, rex) = (scene.fido, scene.rex), ids = [fido.objectID, rex.objectID]
    rex.notes = "ours"
    let plan = scene.plan(fido.entity, .between(.property("age"), .int16(4), .int16(5)))
    let result = try scene.send(BatchDeleteRequest(plan: plan, returnsObjectIDs: true))
    #expect(result.rowCount == 2 && Set(result.objectIDs ?? []) == Set(ids))
    #expect(!fido.isInaccessible && !rex.isInaccessible && names(of: scene.ann) == ["Bella", "Fido", "Rex"])
    var removed: [ManagedObjectID] = []
    let observation = scene.context.onChange { _, changes in removed += changes.deleted }
    let expected = reading(fido, rex)
    #expect(try scene.merge(deleted: result) == expected)
    let staysUntilTheSave = policy == nil || policy?.prefersOurs == true
    #expect(fido.isInaccessible && rex.isInaccessible != staysUntilTheSave && Set(removed) == Set(staysUntilTheSave ? [ids[0]] : ids))
    #expect(!scene.bella.isFault && !scene.max.isFault && scene.context.hasChanges == staysUntilTheSave)
    #expect(names(of: scene.ann).filter { $0 != "Rex" } == ["Bella"])
    if policy == nil {
      let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
      #expect(error.code == .conflict && error.objectIDs == [ids[1]] && rex.notes == "ours")
      try scene.context.resolveConflicts(of: error, using: .rollback)
      #expect(rex.isInaccessible)
    }
    try scene.context.save()
    var (remaining, saved) = (["Bella"], ["Bella 3 - Ann", "Max 9 - Bob"])
    if policy?.prefersOurs == true {
      // The save has inserted it again.
      remaining.append("Rex")
      saved.append("Rex 5 ours Ann")
    }
    #expect(names(of: scene.ann) == remaining)
    #expect(try scene.saved() == saved)
    withExtendedLifetime(observation) {}
  }

  /// The request deletes Ann. The store clears the references of her dogs, whose IDs the result doesn't contain.
  ///
  /// The bug: their rows came from the coordinator's cache, with the reference and the former version.
  @Test(arguments: TestStore.allCases) func referencesThatABatchDeletionClearsAreReadAgain(_ store: TestStore) throws {
    let scene = try Scene(store), (ann, bella, rex) = (scene.ann, scene.bella, scene.rex), id = ann.objectID
    rex.notes = "ours"
    let plan = scene.plan(ann.entity, .comparison(.property("name"), .equalTo, .constant(.string("Ann")), []))
    let result = try scene.send(BatchDeleteRequest(plan: plan, returnsObjectIDs: true))
    #expect(result.objectIDs == [id] && bella.owner === ann)
    let expected = reading(ann) + reading(rex)
    let requests = try scene.merge(deleted: result)
    #expect(requests.count == expected.count && Set(requests) == Set(expected))
    #expect(ann.isInaccessible && [bella, scene.fido, rex].allSatisfy { $0.owner == nil } && rex.notes == "ours")
    #expect(names(of: scene.bob) == ["Max"])
    // The cache has no row with the former reference.
    let fresh = try ManagedObjectContext(coordinator: scene.context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try fresh.existingDog(scene.fido.objectID).owner == nil)
    // The versions of the rows that the store has changed are those that the context has read.
    bella.age = 4
    try scene.context.save()
    #expect(try scene.saved() == ["Bella 4 - -", "Fido 4 - -", "Max 9 - Bob", "Rex 5 ours -"])
  }

  // MARK: Insertions

  @Test(arguments: TestStore.allCases) func objectsThatABatchInsertsAppearInListsWithUnsavedChanges(_ store: TestStore) throws {
    let scene = try Scene(store), (ann, bob) = (scene.ann, scene.bob)
    scene.rex.owner = bob
    scene.context.dog("Mine", owner: ann)
    let result = try scene.send(
      BatchInsertRequest(
        entity: scene.fido.entity.index, slots: [Dog.Slot.name, Dog.Slot.owner], rows: [[.string("New"), .objectID(ann.objectID)]],
        returnsObjectIDs: true))
    let new = try #require(result.objectIDs?.first)
    #expect(result.rowCount == 1 && names(of: ann) == ["Bella", "Fido", "Mine"])
    var inserted: [ManagedObjectID] = []
    let observation = scene.context.onChange { _, changes in inserted += changes.inserted }
    let requests = try scene.merge(inserted: result)
    #expect(requests.isEmpty && inserted.filter { !$0.isTemporaryID } == [new])
    #expect(names(of: ann) == ["Bella", "Fido", "Mine", "New"] && names(of: bob) == ["Max", "Rex"])
    #expect(try scene.context.existingDog(new).owner === ann)
    try scene.context.save()
    #expect(
      try scene.saved()
        == ["Bella 3 - Ann", "Fido 4 - Ann", "Max 9 - Bob", "Mine 1 - Ann", "New 1 - Ann", "Rex 5 - Bob"])
    withExtendedLifetime(observation) {}
  }
}
