import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Links whose ends a context has read at different times: it has changed one, and the other context has removed the link.
@Suite struct LinkEndMergeTests {
  typealias Policy = MergePolicyTests.Policy

  private struct Collared {
    let place: TestStore.Place
    let ours: ManagedObjectContext, theirs: ManagedObjectContext
    let fido: Dog, theirFido: Dog
    let collar: Collar

    /// - Parameter changeOurs: What our context changes before the other one saves.
    init(_ store: TestStore, changeOurs: (Dog) -> Void) throws {
      place = try store.makePlace()
      let setup = try place.context()
      setup.dog("Fido", age: 3).collar = setup.insert(Collar.self)
      try setup.save()
      (ours, theirs) = try place.twoContexts()
      ours.automaticallyMergesChanges = true
      fido = try #require(try ours.one(Dog.self) { $0.name == "Fido" })
      collar = try #require(fido.collar)
      theirFido = try #require(try theirs.one(Dog.self) { $0.name == "Fido" })
      #expect(collar.dog === fido)
      changeOurs(fido)
      theirFido.collar = nil
      theirFido.age = 5
    }

    func saveOurs(_ policy: Policy) throws {
      ours.mergePolicy = policy.policy
      try ours.save()
      #expect(!ours.hasChanges)
    }

    /// Whether both ends have the link, in our context and in the store.
    func expectLink(_ isLinked: Bool, age: Int) throws {
      #expect((fido.collar === collar) == isLinked && (collar.dog === fido) == isLinked && fido.age == age)
      try place.close()
      let saved = try place.context(), dog = try #require(try saved.one(Dog.self) { $0.name == "Fido" })
      #expect((dog.collar != nil) == isLinked && dog.age == age)
      let collars = try saved.fetch(FetchRequest<Collar>())
      #expect(collars.count { $0.dog === dog } == (isLinked ? 1 : 0))
    }
  }

  /// The policy `error` leaves Fido in conflict while the collar could be merged.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func aLinkThatIsSetAgainAfterTheOtherSideRemovedItIsSavedAtBothEnds(_ store: TestStore, _ policy: Policy) throws {
    let scene = try Collared(store) { $0.collar = $0.managedObjectContext.insert(Collar.self) }
    try scene.theirs.save()
    try scene.ours.processPendingChanges()
    #expect(scene.fido.collar !== scene.collar && scene.fido.collar?.dog === scene.fido && scene.collar.dog == nil)
    scene.fido.collar = scene.collar
    #expect(scene.collar.dog === scene.fido)
    try scene.saveOurs(policy)
    try scene.expectLink(true, age: 5)
  }

  /// The collar was read again, and Fido is in conflict because of his age.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func aLinkThatIsSetAtTheEndThatWasReadAgainIsMergedAsThePolicySays(_ store: TestStore, _ policy: Policy) throws {
    let scene = try Collared(store) { $0.age = 9 }
    try scene.theirs.save()
    try scene.ours.processPendingChanges()
    scene.collar.dog = scene.fido
    try scene.saveOurs(policy)
    try scene.expectLink(policy != .rollback, age: policy.prefersOurs ? 9 : 5)
  }

  /// Fido is in conflict, so the list of his owner is read again before he is.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func aListDoesNotKeepAnObjectThatWasLinkedAgainAndIsNotSaved(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido", owner: setup.person("Ann"))
    setup.person("Bob")
    try setup.save()
    let (ours, theirs) = try place.twoContexts()
    ours.automaticallyMergesChanges = true
    let fido = try #require(try ours.fetch(FetchRequest<Dog>()).first), ann = try #require(fido.owner)
    let bob = try #require(try ours.one(Person.self) { $0.name == "Bob" })
    #expect(ann.dogs.count == 1 && bob.dogs.isEmpty)
    fido.owner = bob
    let theirFido = try #require(try theirs.fetch(FetchRequest<Dog>()).first)
    theirFido.owner = nil
    try theirs.save()
    try ours.processPendingChanges()
    #expect(fido.owner === bob && Array(bob.dogs) == [fido] && ann.dogs.isEmpty)
    fido.owner = ann
    #expect(Array(ann.dogs) == [fido] && bob.dogs.isEmpty)
    ours.mergePolicy = policy.policy
    try ours.save()
    let owner = fido.owner?.name
    #expect(ann.dogs.count == (owner == "Ann" ? 1 : 0) && bob.dogs.isEmpty && !ours.hasChanges)
    try place.close()
    #expect(try place.context().fetch(FetchRequest<Dog>()).map { $0.owner?.name } == [owner])
  }

  /// The save reads the ordered list again, and compares the version of the item because its place changes.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func anOrderedListDoesNotKeepAnObjectThatWasLinkedAgainAndIsNotSaved(_ store: TestStore, _ policy: Policy) throws {
    let lists = try Lists(store, ["a"], also: "other")
    let (ours, theirs) = try lists.place.twoContexts()
    ours.automaticallyMergesChanges = true
    let list = try lists.list("list", ours), other = try lists.list("other", ours), item = try lists.item("a", ours)
    let items = try lists.items(ours)
    #expect(Array(items) == [item])
    try other.ordered(forKey: "items").append(item)
    #expect(items.isEmpty)
    try lists.items(theirs).removeAll()
    try theirs.save()
    try ours.processPendingChanges()
    try item.setValue(list, forKey: "list")
    #expect(Array(items) == [item])
    ours.mergePolicy = policy.policy
    try ours.save()
    let isLinked = try item.value(forKey: "list") != StoreValue.null
    #expect(Array(items) == (isLinked ? [item] : []) && !ours.hasChanges)
    #expect(try other.ordered(forKey: "items").isEmpty)
    #expect(try lists.items(lists.reopened()).count == (isLinked ? 1 : 0))
  }
}
