import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

private final class FaultInjectingStoreBox: @unchecked Sendable {  // because each test reads it after the store was created
  var store: FaultInjectingStore?
}
private let readError = StoreError(.inputOutput, operation: "read", reason: "The test injected this error.")

/// A person class that counts its living instances.
private final class CountedPerson: ManagedObject {
  static let livingCount = Mutex(0)
  override class var entityName: String { "Person" }
  override class var properties: [PropertyBinding] { [] }
  required init(_ seed: ManagedObjectSeed) {
    super.init(seed)
    CountedPerson.livingCount.withLock { $0 += 1 }
  }
  deinit { CountedPerson.livingCount.withLock { $0 -= 1 } }
}

/// A dog class whose initializer sets a property.
private final class HastyDog: ManagedObject {
  override class var entityName: String { "Dog" }
  override class var properties: [PropertyBinding] { [] }
  required init(_ seed: ManagedObjectSeed) {
    super.init(seed)
    self[Dog.Slot.name] = "Hasty"
  }
}

/// A dog class that rolls its context back in `willSave`.
private final class RollingBackDog: ManagedObject {
  override class var entityName: String { "Dog" }
  override class var properties: [PropertyBinding] { [] }
  var hasRolledBack = false
  override func willSave() {
    if hasRolledBack { return }
    hasRolledBack = true
    managedObjectContext.rollback()
  }
}

extension TestStore.Place {
  /// A context on a store that fails on demand, and that store.
  func faulty() throws -> (ManagedObjectContext, FaultInjectingStore) {
    let box = FaultInjectingStoreBox()
    let (context, _) = try recording { base in
      let store = FaultInjectingStore(base)
      box.store = store
      return store
    }
    return (context, box.store!)
  }
}

/// One test per fixed bug. The name states the correct behavior; the comment describes the bug.
@Suite struct RegressionTests {
  /// A store with two people, Bob and Ann. Ann owns the dog "d0", Bob owns "d1".
  func makePeopleWithDogs(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace()
    let context = try place.context()
    let bob = context.person("Bob"), ann = context.person("Ann")
    context.dog("d0", owner: ann)
    context.dog("d1", owner: bob)
    try context.save()
    return place
  }

  // MARK: Prefetched and cached rows

  /// The bug: an object took its row from rows prefetched before the save, so it had its old values and its next save conflicted.
  @Test(arguments: TestStore.allCases)
  func `a save discards prefetched rows, so objects don't get their old values back`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let setup = try place.context()
    for number in 100..<180 { setup.dog("d\(number)", owner: setup.person("p\(number)")) }
    try setup.save()
    setup.reset()
    let context = try place.context()
    context.persistentStoreCoordinator.rowCache.removeAll()
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    for dog in dogs.prefix(60) { #expect(dog.owner?.name.isEmpty == false) }
    do {
      let lastPerson = try #require(try context.one(Person.self) { $0.name == "p179" })
      lastPerson.name = "Robert"
      try context.save()
    }
    #expect(dogs[79].owner?.name == "Robert")
    dogs[79].owner?.city = "Rome"
    try context.save()
  }

  /// The bug: rows read before a deletion, but published after it, entered the row cache. The deleted object could then be found.
  @Test func `rows read before a deletion don't enter the row cache after it`() throws {
    let place = try makePeopleWithDogs(.sqlite)
    let coordinator = try place.coordinator()
    let deletingContext = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = try deletingContext.one(Dog.self) { $0.name == "d0" }!
    let id = dog.objectID
    // Read the row, and delete the object before the row is published.
    let collector = RowCollector()
    let epoch = coordinator.rowCache.epoch
    try coordinator.persistentStores[0].reading(.latest, "test", .none) {
      try coordinator.persistentStores[0].base.rows(
        FaultRequest(entity: dog.entity.index, keys: [id.key]), in: $0, options: .none, into: collector)
    }
    deletingContext.delete(dog)
    try deletingContext.save()
    for run in collector.runs { coordinator.publish(run.batch, in: coordinator.rowCache, readIn: epoch) }
    let readingContext = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    #expect(throws: PersistenceError.self) { try readingContext.existingObject(with: id) }
  }

  /// The bug: when another context refreshed an object while it was being saved, the saved row didn't enter the row cache. A row that was
  /// read before the commit stayed in it, so contexts read old values.
  @Test(arguments: TestStore.allCases) func `a save replaces rows that were read during its commit`(_ store: TestStore) throws {
    let place = try store.makePlace(), hook = CommitHook()
    let filling = try place.context()
    filling.dog("rex", age: 1)
    try filling.save()
    let (saving, _) = try place.recording { HookedStore($0, hook) }
    let reading = try ManagedObjectContext(coordinator: saving.persistentStoreCoordinator, classes: Kennel.classes)
    let dog = try #require(try saving.one(Dog.self) { $0.name == "rex" }),
      other = try #require(try reading.one(Dog.self) { $0.name == "rex" })
    var ageDuringCommit = 0
    hook.beforeCommit = {
      try? reading.refresh(other, mergeChanges: false)
      ageDuringCommit = other.age
    }
    dog.age = 2
    try saving.save()
    #expect(ageDuringCommit == 1)
    let later = try ManagedObjectContext(coordinator: saving.persistentStoreCoordinator, classes: Kennel.classes)
    let found = try #require(try later.existingObject(with: dog.objectID) as? Dog)
    #expect(found.age == 2)
  }

  /// The bug: a context that began to merge while a save was being prepared received its changes without the owners that lose deleted objects,
  /// and kept their lists.
  @Test(arguments: TestStore.allCases) func `a context that begins to merge during a save reads lists of deleted objects again`(
    _ store: TestStore
  ) throws {
    let place = try store.makePlace(), hook = CommitHook(), filling = try place.context(), owner = filling.person("Ann")
    for name in ["rex", "max"] { filling.dog(name, owner: owner) }
    try filling.save()
    let (saving, _) = try place.recording { HookedStore($0, hook) }
    let merging = try ManagedObjectContext(coordinator: saving.persistentStoreCoordinator, classes: Kennel.classes)
    let ann = try #require(try merging.one(Person.self) { $0.name == "Ann" })
    #expect(ann.dogs.count == 2)
    hook.beforeCommit = { merging.automaticallyMergesChanges = true }
    saving.delete(try #require(try saving.one(Dog.self) { $0.name == "rex" }))
    try saving.save()
    try merging.processPendingChanges()
    #expect(ann.dogs.count == 1 && ann.dogs.map(\.name) == ["max"])
  }

  /// The bug: SQLite delivered the rows of a limited fetch in the order of an index if it couldn't evaluate the entire predicate, so the
  /// limit selected other objects than in other stores.
  @Test(arguments: TestStore.allCases) func `a limit without sort descriptors selects the first objects by key`(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    for number in 0..<20 { filling.dog("d\(number)", age: number).chip = Int64(100 - number) }
    try filling.save()
    // Nested more deeply than SQLite evaluates.
    var isYoung = FetchPredicate<Dog> { $0.age >= 0 }
    for _ in 0..<10 { isYoung = (isYoung || FetchPredicate<Dog> { $0.age == -1 }) && FetchPredicate<Dog> { $0.age < 100 } }
    let isChipped = FetchPredicate<Dog> { $0.chip > 0 && $0.chip < 1000 }
    for predicate in [isChipped, isChipped && isYoung] {
      let request = FetchRequest<Dog>(where: predicate, offset: 2, limit: 3)
      #expect(try place.context().fetch(request).map(\.name) == ["d2", "d3", "d4"])
    }
  }

  /// The bug: after a fetch had read new values, a to-many relationship read earlier still returned objects with the old values.
  @Test(arguments: TestStore.allCases, [1, 3])
  func `a relationship read before a fetch doesn't return older values than the fetch`(_ store: TestStore, _ friendCount: Int) throws {
    let place = try store.makePlace()
    let savingContext = try place.context()
    let savedDog = savingContext.dog("rex")
    for number in 0..<friendCount { savedDog.friends.insert(savingContext.dog("f\(number)", age: 3)) }
    try savingContext.save()
    let readingContext = try place.context()
    let readDog = try #require(try readingContext.one(Dog.self) { $0.name == "rex" })
    #expect(readDog.friends.map(\.age) == Array(repeating: 3, count: friendCount))
    for friend in savedDog.friends { friend.age = 9 }
    try savingContext.save()
    #expect(try readingContext.one(Dog.self) { $0.name == "f0" }?.age == 9)
    #expect(readDog.friends.map(\.age) == Array(repeating: 9, count: friendCount))
  }

  /// The bug: the JSON store reused one row for all rows and didn't clear its cells. A missing value was read as a value of the
  /// previous row, and setting it overwrote another value of the object.
  @Test(arguments: TestStore.allCases)
  func `a missing value isn't read as the value of the previous row`(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    let complete = setup.dog("Argos")
    (complete.notes, complete.chip, complete.weight) = ("a long note about a dog", 77, 4.5)
    setup.dog("Fido")
    try setup.save()
    try place.close()
    let context = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    let (notes, chip, weight): (String, Int64, Double) = (fido[Dog.Slot.notes], fido[Dog.Slot.chip], fido[Dog.Slot.weight])
    #expect(notes == "" && chip == 0 && weight == 0)
    fido.notes = "good"
    #expect(fido.name == "Fido" && fido.notes == "good")
  }

  // MARK: Rollback

  /// The bug: a rollback restored the relationship from before the save, without the saved dog.
  @Test(arguments: TestStore.allCases)
  func `a rollback doesn't remove saved objects from a relationship`(_ store: TestStore) throws {
    let context = try makePeopleWithDogs(store).context()
    context.firesFaultsInBatches = true
    let people = try context.fetch(FetchRequest<Person>())
    for person in people { #expect(person.dogs.count == 1) }
    let bob = people.first { $0.name == "Bob" }!
    context.dog("d2", owner: bob)
    try context.save()
    #expect(bob.dogs.count == 2)
    bob.name = "x"
    context.rollback()
    #expect(bob.dogs.count == 2)
  }

  /// The bug: a rollback in a callback changed the objects that the save was working on.
  @Test(.ownThreads) func `a rollback in a callback of the same save traps`() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let place = try TestStore.memory.makePlace()
        let context = try ManagedObjectContext(coordinator: place.coordinator(), classes: [RollingBackDog.self])
        _ = context.insert(RollingBackDog.self)
        try? context.save()
      }
    }
  }

  // MARK: Failed reads

  /// The bug: a relationship that couldn't be read counted as empty, so the Deny rule didn't prevent the deletion.
  @Test(arguments: TestStore.allCases)
  func `a failed read of a relationship doesn't bypass its Deny rule`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let setup = try place.context()
    let holder = setup.person("P")
    let licence = setup.insert(Licence.self)
    licence.number = 1
    licence.holder = holder
    try setup.save()
    let (context, failing) = try place.faulty()
    let person = try #require(try context.one(Person.self) { $0.name == "P" })
    context.delete(person)
    try context.processPendingChanges()
    failing.fail(.relationships, with: readError)
    #expect(throws: (any Error).self) { try context.save() }
    let checkingContext = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try checkingContext.count(for: FetchRequest<Person>()) == 1)
    #expect(try checkingContext.fetch(FetchRequest<Licence>()).first?.holder != nil)
  }

  /// The bug: a relationship that couldn't be read counted as empty from then on, and the next save could store that.
  @Test(arguments: TestStore.allCases)
  func `a failed read of a relationship doesn't lose pending removals`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let setup = try place.context()
    let owner = setup.dog("a"), removedFriend = setup.dog("b"), keptFriend = setup.dog("x")
    owner.friends.insert(removedFriend)
    owner.friends.insert(keptFriend)
    try setup.save()
    let (context, failing) = try place.faulty()
    let dog = try #require(try context.one(Dog.self) { $0.name == "a" }),
      formerFriend = try #require(try context.one(Dog.self) { $0.name == "b" })
    dog.friends.remove(formerFriend)
    failing.fail(.relationships, onCall: 1, with: readError)
    _ = formerFriend.friendOf.count
    failing.fail(.relationships, onCall: 1, with: readError)
    _ = dog.friends.count
    failing.clear()
    #expect(dog.friends.count == 1)
    context.acknowledgeFaultErrors()
    try context.save()
    let checkingContext = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try checkingContext.one(Dog.self) { $0.name == "a" }?.friends.map(\.name) == ["x"])
  }

  /// The bug: the fetch returned the stored order, because only the predicate was checked for unsaved changes of other objects.
  @Test(arguments: TestStore.allCases)
  func `a fetch sorted by another object's property uses its unsaved value`(_ store: TestStore) throws {
    let context = try store.makePlace().context()
    for name in ["A", "B"] { context.dog("of \(name)", age: 1, owner: context.person(name)) }
    try context.save()
    context.reset()
    let byOwner = FetchRequest<Dog>(sortedBy: [.ascending(\.owner.name)])
    #expect(try context.fetch(byOwner).map(\.name) == ["of A", "of B"])
    let owner = try #require(try context.fetch(byOwner).first?.owner)
    owner.name = "Z"
    #expect(try context.fetch(byOwner).map(\.name) == ["of B", "of A"])
  }

  /// The bug: after a failed read, a fetch replaced the object's private row, which holds its pending changes, by a shared one.
  /// The object was still marked as the owner of its row, so freeing it freed memory inside a shared batch.
  @Test(arguments: TestStore.allCases)
  func `a fetched row doesn't replace the row of a changed object`(_ store: TestStore) throws {
    let place = try makePeopleWithDogs(store)
    let (context, failing) = try place.faulty()
    let dog = try #require(try context.one(Dog.self) { $0.name == "d1" })
    failing.fail(.rows, with: readError)
    let owner = try #require(dog.owner)
    #expect(owner.name == "" && owner.isInaccessible)
    failing.clear()
    owner.name = "Zed"
    var request = FetchRequest<Person>()
    request.includesPendingChanges = false
    _ = try context.fetch(request)
    let ownsItsRow = owner.flags.contains(.hasPrivateRow)
    let usesSharedRow = owner.row?.base == owner.group.flatMap { $0.row(owner.id.key)?.0.base }
    #expect(!(ownsItsRow && usesSharedRow))
  }

  /// The bug: the rollback freed memory inside a shared batch of rows, because a fetch had replaced the object's private row.
  @Test(.ownThreads) func `a rollback after a failed read and a fetch doesn't free a shared row`() async {
    await #expect(processExitsWith: .success) {
      let place = try RegressionTests().makePeopleWithDogs(.memory)
      let (context, failing) = try place.faulty()
      guard let dog = try context.one(Dog.self, where: { $0.name == "d1" }) else { fatalError() }
      failing.fail(.rows, with: readError)
      guard let owner = dog.owner else { fatalError() }
      _ = owner.name
      owner.name = "Zed"
      var request = FetchRequest<Person>()
      request.includesPendingChanges = false
      _ = try context.fetch(request)
      context.rollback()
    }
  }

  /// The bug: for an object whose row couldn't be read, `existingObject(with:)` discarded values set since.
  @Test(arguments: TestStore.allCases)
  func `looking up an object by its ID doesn't discard changes made after a failed read`(_ store: TestStore) throws {
    let place = try makePeopleWithDogs(store)
    let (context, failing) = try place.faulty()
    let dog = try #require(try context.one(Dog.self) { $0.name == "d1" })
    failing.fail(.rows, with: readError)
    let owner = try #require(dog.owner)
    _ = owner.name
    owner.name = "Zed"
    _ = try context.existingObject(with: owner.objectID)
    #expect(owner.name == "Zed")
  }

  /// The bug: when the context applied pending changes to a fetch and a read failed, the fetch returned a wrong result without an error.
  @Test(arguments: TestStore.allCases)
  func `a fetch throws if it can't read what it needs to apply pending changes`(_ store: TestStore) throws {
    let place = try makePeopleWithDogs(store)
    let (context, failing) = try place.faulty()
    let bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    bob.dogs.insert(context.dog("d9"))
    // Bob has changed, so the context evaluates the predicate itself. For that, it reads his dogs.
    failing.fail(.relationships, onCall: 1, with: readError)
    #expect(throws: (any Error).self) {
      _ = try context.fetch(FetchRequest<Person> { $0.dogs.any { $0.name == "d1" } })
    }
  }

  /// The bug: in a cancelled task, reading a fault was cancelled too, so the object appeared to have no values.
  @Test(arguments: TestStore.allCases)
  func `an object read in a cancelled task doesn't lose its values`(_ store: TestStore) async throws {
    let place = try makePeopleWithDogs(store)
    let task = Task {
      let context = try ManagedObjectContext(coordinator: place.coordinator(), classes: Kennel.classes)
      let dog = try context.one(Dog.self) { $0.name == "d1" }
      withUnsafeCurrentTask { $0?.cancel() }
      return dog?.owner?.name
    }
    let name = try await task.value
    #expect(name == "Bob")
  }

  // MARK: Deletions

  /// The bug: a dog fetched while its owner's deletion was pending kept its old row after the save. Its next save conflicted.
  @Test(arguments: TestStore.allCases)
  func `saving a dog after its owner was deleted doesn't conflict`(_ store: TestStore) throws {
    let context = try makePeopleWithDogs(store).context()
    let bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    context.delete(bob)
    try context.processPendingChanges()
    var request = FetchRequest<Dog> { $0.name == "d1" }
    request.includesPendingChanges = true
    let dog = try #require(try context.fetch(request).first)
    try context.save()
    #expect(dog.owner == nil)
    dog.age = 9
    try context.save()
    dog.age = 10
    try context.save()
  }

  /// The bug: a dog changed in the save that deleted its owner kept an old version number. Its next save conflicted.
  @Test(arguments: TestStore.allCases)
  func `saving a dog again after it was changed with its owner's deletion doesn't conflict`(_ store: TestStore) throws {
    let context = try makePeopleWithDogs(store).context()
    let bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    context.delete(bob)
    try context.processPendingChanges()
    let dog = try #require(try context.one(Dog.self) { $0.name == "d1" })
    dog.age = 8
    try context.save()
    dog.age = 9
    try context.save()
  }

  /// The bug: a dog whose row the save itself read kept its deleted owner, and an old version number. Its next save conflicted.
  @Test(arguments: TestStore.allCases)
  func `saving a dog again whose links changed with its owner's deletion doesn't conflict`(_ store: TestStore) throws {
    let place = try makePeopleWithDogs(store)
    let ids = try place.context().fetchObjectIDs(FetchRequest<Dog> { $0.owner.name == "Bob" })
    let context = try place.context()
    let dog = try #require(try context.object(with: ids[0]) as? Dog)
    dog.friends.insert(context.dog("friend"))
    context.delete(try #require(try context.one(Person.self) { $0.name == "Bob" }))
    #expect(dog.isFault)
    try context.save()
    #expect(dog.owner == nil && !dog.readRow.isPresent(Dog.Slot.owner))
    dog.age = 9
    try context.save()
    let saved = try #require(try place.context().existingObject(with: dog.objectID) as? Dog)
    #expect(saved.age == 9 && saved.owner == nil && saved.friends.map(\.name) == ["friend"])
  }

  /// The bug: a team that the save read to count its members kept its deleted captain, and an old version number. Its next save conflicted.
  @Test(arguments: TestStore.allCases)
  func `saving a team after its captain was deleted doesn't conflict`(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Team", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [
          .toMany("members", to: "Member", inverse: "team", isOptional: false, minCount: 1),
          .toOne("captain", to: "Member", inverse: "captainOf"),
        ]),
      EntityDescription(
        "Member", relationships: [.toOne("team", to: "Team", inverse: "members"), .toMany("captainOf", to: "Team", inverse: "captain")]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let team = try setup.insert(entityNamed: "Team"), members = try (0..<2).map { _ in try setup.insert(entityNamed: "Member") }
    try team.setValue(members, forKey: "members")
    try team.setValue(.objectID(members[0].objectID), forKey: "captain")
    try setup.save()
    let context = try place.context(), ourTeam = try context.object(with: team.objectID)
    context.delete(try context.existingObject(with: members[0].objectID))
    try context.processPendingChanges()
    #expect(ourTeam.isFault)
    try context.save()
    try ourTeam.setValue("renamed", forKey: "name")
    try context.save()
    #expect(try place.context().existingObject(with: team.objectID).value(forKey: "captain") == StoreValue.null)
  }

  /// The bug: a required relationship could be set to an object that was already marked as deleted, and the save succeeded.
  @Test(arguments: TestStore.allCases)
  func `a save throws if a required relationship points to a deleted object`(_ store: TestStore) throws {
    let context = try makePeopleWithDogs(store).context()
    let dog = try #require(try context.one(Dog.self) { $0.name == "d0" })
    context.delete(dog)
    try context.processPendingChanges()
    let vaccination = context.insert(Vaccination.self)
    vaccination.kind = "k"
    vaccination.dog = dog
    #expect(throws: PersistenceError.self) { try context.save() }
  }

  /// The bug: the save stored an object whose required relationship pointed to a deleted object.
  @Test(arguments: TestStore.allCases)
  func `an object whose required relationship points to a deleted object isn't stored`(_ store: TestStore) throws {
    let place = try makePeopleWithDogs(store)
    let context = try place.context()
    let dog = try #require(try context.one(Dog.self) { $0.name == "d0" })
    context.delete(dog)
    try context.processPendingChanges()
    let vaccination = context.insert(Vaccination.self)
    vaccination.kind = "k"
    vaccination.dog = dog
    try? context.save()
    let storedVaccination = try place.context().fetch(FetchRequest<Vaccination>()).first
    #expect(storedVaccination == nil)
  }

  /// The bug: the key of the deleted object passed the validation, and the save stored no destination.
  @Test(arguments: TestStore.withChild, [false, true])
  func `a save throws if a required relationship points to a deleted new object`(_ store: TestStore, _ hasPermanentID: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Customer", attributes: [AttributeDescription("name", .string, isOptional: true)]),
      EntityDescription("Order", relationships: [.toOne("customer", to: "Customer", inverse: nil, isOptional: false)]),
    ])
    let place = try store.makePlace(model: model, classes: []), context = try place.context()
    let customer = try context.insert(entityNamed: "Customer"), order = try context.insert(entityNamed: "Order")
    try order.setValue(.objectID(customer.objectID), forKey: "customer")
    if hasPermanentID { try context.obtainPermanentIDs(for: [customer]) }
    context.delete(customer)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingMandatoryValue && error.objectID == order.objectID && error.property == "customer")
    let other = try context.insert(entityNamed: "Customer")
    try order.setValue(.objectID(other.objectID), forKey: "customer")
    try context.save()
    let saved = try place.context().existingObject(with: order.objectID)
    #expect(try saved.value(forKey: "customer") == StoreValue.objectID(other.objectID))
  }

  /// The same for a relationship that was set after the delete rules were applied.
  @Test(arguments: TestStore.withChild)
  func `a save throws if a required relationship was set to a deleted new object`(_ store: TestStore) throws {
    let context = try store.makePlace().context(), person = context.person("p"), licence = context.insert(Licence.self)
    licence.number = 1
    context.delete(person)
    try context.processPendingChanges()
    licence.holder = person
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingMandatoryValue && error.objectID == licence.objectID)
  }

  /// The bug: a new object that was deleted before the save stayed in the relationship, so its count was too high.
  @Test(arguments: TestStore.allCases, [false, true])
  func `a new object deleted before the save doesn't stay in relationships`(_ store: TestStore, _ savesAnotherNewObject: Bool) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      setup.dog("a").friends.insert(setup.dog("z"))
      try setup.save()
    }
    let context = try place.context()
    let dog = try #require(try context.one(Dog.self) { $0.name == "a" })
    #expect(dog.friends.count == 1)
    let discardedFriend = context.dog("b")
    dog.friends.insert(discardedFriend)
    context.delete(discardedFriend)
    if savesAnotherNewObject { context.dog("c") }
    try context.save()
    #expect(dog.friends.count == 1)
    #expect(dog.friends.map(\.name) == ["z"])
    dog.friends.insert(context.dog("y"))
    try context.save()
    #expect(Set(dog.friends.map(\.name)) == ["z", "y"])
    dog.friends.removeAll()
    try context.save()
    #expect(dog.friends.isEmpty)
  }

  /// The bug: a team that needs a member could lose its last one, unless the context had already loaded the team.
  ///
  /// Each team but the last has two members, one of which is deleted. The last team loses its only member.
  @Test(arguments: TestStore.allCases, [false, true])
  func `deleting the last member of a team is refused even if the team isn't loaded`(_ store: TestStore, _ loadsTeams: Bool) throws {
    for teamCount in 2...8 {
      let coordinator = try PersistentStoreCoordinator(model: Self.teams(.nullify), store: try store.makePlace().description)
      let setup = try ManagedObjectContext(coordinator: coordinator)
      for teamNumber in 0..<teamCount {
        let team = try setup.insert(entityNamed: "Team")
        for memberNumber in 0..<(teamNumber == teamCount - 1 ? 1 : 2) {
          let member = try setup.insert(entityNamed: "Member")
          try member.setValue(.int64(Int64(memberNumber)), forKey: "number")
          try team.toMany(forKey: "members").insert(member)
        }
      }
      try setup.save()
      let context = try ManagedObjectContext(coordinator: coordinator)
      let members = try context.fetch(FetchRequest<ManagedObject>(entityName: "Member"))
      for member in members where try member.value(forKey: "number") == .int64(0) { context.delete(member) }
      let teams = loadsTeams ? try context.fetch(FetchRequest<ManagedObject>(entityName: "Team")) : []
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.coreDataCode == 1580 && error.property == "members")
      withExtendedLifetime(teams) {}
    }
  }

  /// The bug: a team whose deleted members belonged to two entities failed validation once per entity. The save reported several
  /// errors (1560) instead of one (1580).
  @Test(arguments: TestStore.allCases)
  func `a team that loses members of two entities isn't reported twice`(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Team", relationships: [.toMany("members", to: "Member", inverse: "team", isOptional: false, minCount: 1)]),
      EntityDescription("Member", relationships: [.toOne("team", to: "Team", inverse: "members")]),
      EntityDescription("Captain", superentity: "Member"),
    ])
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: try store.makePlace(model: model, classes: []).description))
    let team = try context.insert(entityNamed: "Team")
    let members = try ["Member", "Captain"].map { try context.insert(entityNamed: $0) }
    try team.setValue(members, forKey: "members")
    try context.save()
    members.forEach(context.delete)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1580 && error.objectID == team.objectID && error.failures.isEmpty)
  }

  /// The bug: deleting a member failed validation, because its team, which another context had deleted, had too few members.
  @Test(arguments: TestStore.allCases)
  func `deleting a member isn't refused because of a team that another context deleted`(_ store: TestStore) throws {
    for rule in [DeleteRule.noAction, .nullify] {
      let coordinator = try PersistentStoreCoordinator(model: Self.teams(rule), store: try store.makePlace().description)
      let context = try ManagedObjectContext(coordinator: coordinator)
      let team = try context.insert(entityNamed: "Team"), member = try context.insert(entityNamed: "Member")
      try team.toMany(forKey: "members").insert(member)
      try context.save()
      let otherContext = try ManagedObjectContext(coordinator: coordinator)
      let sameMember = try otherContext.existingObject(with: member.objectID)
      context.delete(team)
      try context.save()
      otherContext.delete(sameMember)
      if rule == .noAction {
        try otherContext.save()
      } else {
        // Deleting the team changed the member's row, so this is a conflict.
        #expect(try #require(throws: PersistenceError.self) { try otherContext.save() }.coreDataCode == 133020)
      }
    }
  }

  private static func teams(_ rule: DeleteRule) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Team", relationships: [.toMany("members", to: "Member", inverse: "team", isOptional: false, deleteRule: rule, minCount: 1)]),
      EntityDescription(
        "Member", attributes: [AttributeDescription("number", .integer64, isOptional: true)],
        relationships: [.toOne("team", to: "Team", inverse: "members")]),
    ])
  }

  // MARK: Fetches

  /// The bug: the sum of the limit and the offset overflowed, and the fetch trapped.
  @Test(.ownThreads, arguments: TestStore.allCases)
  func `the maximum limit with an offset doesn't overflow`(_ store: TestStore) async {
    await #expect(processExitsWith: .success) { [store = store as TestStore] in try RegressionTests.fetchWithMaximumLimit(store) }
  }

  static func fetchWithMaximumLimit(_ store: TestStore) throws {
    let context = try RegressionTests().makePeopleWithDogs(store).context()
    let request = FetchRequest<Dog>(sortedBy: [.ascending(\.name)], offset: 1, limit: .max)
    let dogCount = try context.fetch(request).count
    precondition(dogCount == 1)
  }

  /// The bug: applying pending changes to a fetch sent one store request for each changed object that wasn't loaded.
  @Test(arguments: TestStore.allCases)
  func `a fetch doesn't load changed objects one by one`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let setup = try place.context()
    for number in 0..<200 { setup.dog("d\(number)", owner: setup.person("p\(number)")) }
    try setup.save()
    let (context, recorder) = try place.recording()
    let dogs = try context.fetch(FetchRequest<Dog>())
    for dog in dogs { dog.owner = nil }
    recorder.clear()
    _ = try context.fetch(FetchRequest<Person>())
    #expect(recorder.requests.count < 10)
  }

  /// The bug: comparing changed objects with others by a property of another object sent one store request for each of these.
  @Test(arguments: TestStore.allCases, [false, true])
  func `a fetch doesn't load the destinations of changed objects one by one`(_ store: TestStore, _ isSorted: Bool) throws {
    let place = try store.makePlace(), setup = try place.context()
    for number in 10..<60 { setup.dog("d\(number)", owner: setup.person("p\(number)")) }
    try setup.save()
    let (context, recorder) = try place.recording(), dogs = try context.fetch(FetchRequest<Dog>())
    func requestCount() throws -> Int {
      recorder.clear()
      if isSorted {
        let sorted = try context.fetch(FetchRequest<Dog>(sortedBy: [.descending(\.owner.name)]))
        #expect(sorted.map(\.name) == (10..<60).reversed().map { "d\($0)" })
      } else {
        #expect(try context.fetch(FetchRequest<Dog> { $0.owner.name == "p17" }).map(\.name) == ["d17"])
      }
      return recorder.requests.count
    }
    let before = try requestCount()
    for dog in dogs.prefix(isSorted ? 1 : 50) { dog.age = 9 }
    #expect(try requestCount() <= before + 4)
    withExtendedLifetime(dogs) {}
  }

  /// The bug: the hash of a group put all multiples of a power of two into one bucket. Grouping 20,000 of them took 15 seconds.
  @Test func `grouping by multiples of a power of two isn't slower than grouping by consecutive numbers`() throws {
    func makeDogs(_ chip: (Int64) -> Int64) throws -> ManagedObjectContext {
      let context = try TestStore.weakest.makePlace().context()
      for number in 0..<20_000 { context.dog("d").chip = chip(Int64(number)) }
      try context.save()
      return context
    }
    func groupingTime(_ context: ManagedObjectContext) throws -> Duration {
      let request = DictionaryFetchRequest<Dog>(columns: ["chip": .property("chip"), "count": .count()], groupedBy: ["chip"])
      return try processorTime {
        let groupCount = try context.fetch(request).count
        #expect(groupCount == 20_000)
      }
    }
    let consecutive = try makeDogs { $0 }, multiples = try makeDogs { ($0 / 2) << 20 + $0 % 2 }
    try expectCost(below: 5, times: { try groupingTime(consecutive) }) { try groupingTime(multiples) }
  }

  // MARK: Object IDs

  /// The bug: after 65,536 entity names in URIs, numbers of entities were reused, and a URI named the wrong entity.
  @Test func `many unknown entity names in URIs don't resolve to another entity`() throws {
    let context = try makePeopleWithDogs(.memory).context()
    let coordinator = context.persistentStoreCoordinator
    let uuid = coordinator.storeIdentifier
    for number in 0..<65_540 { _ = ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/N\(number)/p1") }
    var resolvedCount = 0
    for number in 65_530..<65_540 {
      if coordinator.managedObjectID(forURIRepresentation: "x-coredata://\(uuid)/N\(number)/p1") != nil { resolvedCount += 1 }
    }
    #expect(resolvedCount == 0)
  }

  /// The bug: each UUID in a URI took memory for the lifetime of the process, and each entity's name.
  @Test func `URIs of unknown stores and entities keep nothing`() throws {
    let coordinator = try makePeopleWithDogs(.memory).context().persistentStoreCoordinator, uuid = coordinator.storeIdentifier
    func uri(_ store: String, _ entity: String) -> String { "x-coredata://\(store)/\(entity)/p1" }
    func id(_ store: String, _ entity: String) throws -> ManagedObjectID {
      try #require(ManagedObjectID(uriRepresentation: uri(store, entity)))
    }
    // Numbers are given in the order in which stores and entities become known.
    let (unknown, later) = (UUID().uuidString, UUID().uuidString)
    #expect(coordinator.managedObjectID(forURIRepresentation: uri(unknown, "Dog")) == nil)
    let laterNumber = try id(later, "Dog").storeNumber
    #expect(try id(unknown, "Dog").storeNumber > laterNumber)
    #expect(coordinator.managedObjectID(forURIRepresentation: uri(uuid, "Unknown")) == nil)
    let laterEntity = try id(uuid, "Later").entityNumber
    #expect(try id(uuid, "Unknown").entityNumber > laterEntity)
    #expect(try coordinator.managedObjectID(forURIRepresentation: uri(uuid, "Dog")) == id(uuid, "Dog"))
  }

  /// The bug: queries compared only keys, so object 7 of another store or another entity matched object 7 of this one.
  @Test(arguments: TestStore.allCases)
  func `an object of another store or entity doesn't match an object with an equal key`(_ store: TestStore) throws {
    let (place, otherPlace) = (try store.makePlace(), try store.makePlace())
    for setupPlace in [place, otherPlace] {
      let setup = try setupPlace.context()
      setup.dog("rex", owner: setup.person("person 0"))
      try setup.save()
    }
    let (context, otherContext) = (try place.context(), try otherPlace.context())
    let owner = try #require(try context.one(Person.self) { $0.name == "person 0" })
    let stranger = try #require(try otherContext.one(Person.self) { $0.name == "person 0" }),
      dog = try #require(try context.one(Dog.self) { $0.name == "rex" })
    #expect(owner.objectID.key == stranger.objectID.key)
    func count(_ path: PropertyPath?, _ comparison: ComparisonOperator, _ id: ManagedObjectID) throws -> Int {
      let value = path.map { QueryExpression.property($0) } ?? .object
      return try context.count(for: FetchRequest<Dog>(where: FetchPredicate(.comparison(value, comparison, .constant(.objectID(id)), []))))
    }
    // The first round queries the store. In the second round, the context also applies a pending change.
    for _ in 0..<2 {
      #expect(try count("owner", .equalTo, owner.objectID) == 1)
      #expect(try count("owner", .equalTo, stranger.objectID) == 0)
      #expect(try count("owner", .notEqualTo, stranger.objectID) == 1)
      #expect(try count("owner", .equalTo, dog.objectID.withKey(owner.objectID.key)) == 0)
      #expect(try count(nil, .equalTo, dog.objectID) == 1)
      #expect(try count(nil, .equalTo, owner.objectID.withKey(dog.objectID.key)) == 0)
      let list = FetchPredicate<Dog>(.membership(.property("owner"), [.objectID(stranger.objectID)]))
      #expect(try context.fetch(FetchRequest(where: list)).isEmpty)
      #expect(try context.fetch(FetchRequest(where: !list)).count == 1)
      let owners = FetchPredicate<Person>(.any("dogs", .comparison(.object, .equalTo, .constant(.objectID(stranger.objectID)), [])))
      #expect(try context.count(for: FetchRequest(where: owners)) == 0)
      dog.age += 1
    }
  }

  /// The bug: new objects of two contexts had equal temporary IDs, so a query for one matched the other.
  @Test(arguments: TestStore.allCases)
  func `a new object doesn't match a new object of another context`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let (context, otherContext) = (try place.context(), try place.context())
    let (owner, stranger) = (context.person("owner"), otherContext.person("stranger"))
    context.dog("rex", owner: owner)
    #expect(owner.objectID != stranger.objectID)
    #expect(try context.count(Dog.self) { $0.owner == owner } == 1)
    let value = QueryExpression.constant(.objectID(stranger.objectID))
    let request = FetchRequest<Dog>(where: FetchPredicate(.comparison(.property("owner"), .equalTo, value, [])))
    #expect(try context.count(for: request) == 0)
  }

  // MARK: Memory

  /// The bug: 4,000 assignments of growing text took 8 MB, because a changed object's row kept every replaced value.
  @Test func `a row doesn't keep the values that later assignments replaced`() throws {
    let context = try TestStore.memory.makePlace().context()
    let dog = context.dog("")
    dog.notes = ""
    var expected = ""
    for number in 0..<4000 {
      let letter = String(UnicodeScalar(UInt8(97 + number % 26)))
      dog.name += letter
      dog.notes! += letter
      dog.photo = Data(repeating: UInt8(number % 251), count: number % 100)
      expected += letter
    }
    #expect(dog.name == expected && dog.notes == expected && dog.photo == Data(repeating: UInt8(3999 % 251), count: 99))
    #expect(PrivateRow(existing: try #require(dog.row)).byteCount < 20_000)
    try context.save()
    #expect(dog.name == expected && dog.notes == expected && dog.age == 1)
  }

  /// The bug to prevent: setting a value can move the row, while the bytes to copy are still expected at their old address.
  @Test func `copying a value to another slot of the same row doesn't read moved memory`() throws {
    let context = try TestStore.memory.makePlace().context()
    let dog = context.dog(String(repeating: "woof ", count: 100))
    dog.setBytes(Dog.Slot.notes, dog.readRow.bytes(Dog.Slot.name))
    dog.setBytes(Dog.Slot.photo, dog.readRow.bytes(Dog.Slot.name))
    #expect(dog.notes == dog.name && dog.photo == Data(dog.name.utf8))
  }

  /// The bug: the memory of the bytes was freed, and the second dog got it.
  @Test func `bytes of a text stay valid while a closure that reads them sets, saves and refreshes`() throws {
    let context = try TestStore.memory.makePlace().context()
    let text = String(repeating: "woof ", count: 40), dog = context.dog(text)
    dog.withUTF8(Dog.Slot.name) { bytes in
      dog.name = String(repeating: "a longer name ", count: 400)
      let other = context.dog(String(repeating: "meow ", count: 40))
      #expect(bytes.elementsEqual(text.utf8) && other.name.hasPrefix("meow"))
    }
    try context.save()
    let name = dog.name
    try dog.withUTF8(Dog.Slot.name) { bytes in
      dog.name = "Rex"
      try context.save()
      try context.refresh(dog, mergeChanges: false)
      #expect(bytes.elementsEqual(name.utf8) && dog.name == "Rex")
    }
  }

  /// The bug: the value was lost, and the object counted as deleted. A fetched object changed the shared row of others.
  @Test(.ownThreads) func `an initializer that sets a property traps`() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let context = try TestStore.memory.makePlace(classes: [HastyDog.self]).context()
        _ = context.insert(HastyDog.self)
      }
    }
  }

  /// The bug: objects of a background task stayed in memory when the task's save threw an error.
  @Test func `objects of a background task whose save fails don't stay in memory`() async throws {
    let place = try TestStore.memory.makePlace()
    let container = try PersistentContainer(model: Kennel.model, classes: [CountedPerson.self], store: place.description)
    await #expect(throws: (any Error).self) {
      try await container.performBackgroundTask { context in
        _ = context.insert(CountedPerson.self)
        try context.save()
      }
    }
    // The context is released on its own queue, after the task has returned.
    let areReleased = await eventually { CountedPerson.livingCount.withLock { $0 } == 0 }
    #expect(areReleased)
  }
}

/// What a ``HookedStore`` does before it commits a save.
private final class CommitHook: @unchecked Sendable {  // because tests use it on one thread
  var beforeCommit: () -> Void = {}
}

/// A store that calls a hook before it commits a save.
private final class HookedStore: ForwardingStore {
  let base: any IncrementalStore
  private let hook: CommitHook

  init(_ base: any IncrementalStore, _ hook: CommitHook) { (self.base, self.hook) = (base, hook) }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    HookedSave(try base.prepare(request, options: options), hook)
  }

  private final class HookedSave: PreparedSave {
    let base: any PreparedSave
    let hook: CommitHook

    init(_ base: any PreparedSave, _ hook: CommitHook) { (self.base, self.hook) = (base, hook) }

    func commit() throws -> SaveReceipt {
      hook.beforeCommit()
      return try base.commit()
    }

    func abort() { base.abort() }
  }
}
