import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Permanent IDs before the save.
@Suite struct PermanentIDTests {
  private func reservations(_ recorder: RecordingStore) -> [[KeyDemand]] {
    recorder.requests.compactMap { if case .reserveKeys(let demands) = $0 { demands } else { nil } }
  }

  @Test(arguments: TestStore.allCases) func newObjectsGetTheIDsWithWhichTheyAreSaved(_ store: TestStore) throws {
    let place = try store.makePlace(), (context, recorder) = try place.recording()
    let fido = context.dog("Fido"), rex = context.dog("Rex", owner: context.person("Ann")), later = context.dog("Later")
    fido.friends.insert(rex)
    fido.friends.insert(later)
    later.friends.insert(later)
    try context.obtainPermanentIDs(for: [rex, fido, rex])
    #expect(recorder.requests.count == 1 && reservations(recorder).map { $0.map(\.count) } == [[2]])
    #expect(!fido.objectID.isTemporaryID && !rex.objectID.isTemporaryID && later.objectID.isTemporaryID)
    #expect(fido.isInserted && context.hasChanges && context.registeredObject(for: rex.objectID) === rex)
    #expect(Set(fido.friends) == [rex, later] && rex.friendOf.map(\.name) == ["Fido"] && rex.owner?.name == "Ann")
    #expect(Set(later.friendOf.map(\.name)) == ["Fido", "Later"])
    let ids = [fido.objectID, rex.objectID]
    recorder.clear()
    try context.obtainPermanentIDs(for: [fido, rex])
    #expect(recorder.requests.isEmpty)
    try context.save()
    #expect(reservations(recorder).map { $0.map(\.count).sorted() } == [[1, 1]])
    #expect([fido.objectID, rex.objectID] == ids && !later.objectID.isTemporaryID)
    try context.persistentStoreCoordinator.close()
    let other = try place.context()
    let read = try ids.map { try #require(try other.existingObject(with: $0) as? Dog) }
    #expect(read.map(\.name) == ["Fido", "Rex"] && Set(read[0].friends.map(\.name)) == ["Rex", "Later"] && read[1].owner?.name == "Ann")
    #expect(Set(read[0].friends.first { $0.name == "Later" }?.friendOf.map(\.name) ?? []) == ["Fido", "Later"])
  }

  @Test(arguments: TestStore.allCases) func anObjectWithAPermanentIDCanBeDeletedOrRolledBack(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), saved = context.dog("Saved")
    try context.save()
    let deleted = context.dog("Deleted"), undone = context.dog("Undone")
    saved.friends.formUnion([deleted, undone])
    try context.obtainPermanentIDs(for: [deleted, undone, saved])
    context.delete(deleted)
    try context.processPendingChanges()
    #expect(saved.friends.map(\.name) == ["Undone"])
    context.rollback()
    #expect(undone.isInaccessible && saved.friends.isEmpty && !context.hasChanges)
    let kept = context.dog("Kept"), dropped = context.dog("Dropped")
    try context.obtainPermanentIDs(for: [kept, dropped])
    context.delete(dropped)
    try context.save()
    #expect(try Set(place.context().fetch(Dog.self).map(\.name)) == ["Saved", "Kept"])
  }

  /// A store has no links to an object that was never saved, so their removal isn't a change.
  @Test(arguments: TestStore.allCases) func linksToANewObjectWithAPermanentIDAreTakenBack(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Rex", owner: setup.person("Ann"))
    try setup.save()
    let context = try place.context(), rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }), fido = context.dog("Fido", owner: ann)
    try context.obtainPermanentIDs(for: [fido])
    fido.friends.insert(rex)
    rex.friends.insert(fido)
    #expect(rex.hasChanges)
    fido.owner = nil
    fido.friends.remove(rex)
    rex.friends.remove(fido)
    let version = try #require(rex.committedRow).version
    context.delete(fido)
    try context.save()
    #expect(rex.committedRow?.version == version && rex.friends.isEmpty && rex.friendOf.isEmpty && ann.dogs.map(\.name) == ["Rex"])
    #expect(try place.context().fetch(FetchRequest<Dog>()).map(\.name) == ["Rex"])
  }

  @Test func theIDIsOfTheStoreThatTheObjectWasAssignedTo() throws {
    let pack = try StorePack(.memories), context = try pack.context(), dog = context.dog("Fido")
    try context.assign(dog, to: pack.stores[1])
    try context.obtainPermanentIDs(for: [dog])
    #expect(dog.objectID.storeIdentifier == pack.stores[1].identifier)
    let error = #expect(throws: PersistenceError.self) { try context.assign(dog, to: pack.stores[0]) }
    #expect(error?.code == .invalidRequest)
    try context.save()
    #expect(pack.recorders.map(\.saves.count) == [0, 1])
  }

  @Test func aStoreThatRefusesLeavesTheTemporaryIDs() throws {
    let pack = try StorePack([.memory]), context = try pack.context(), dog = context.dog("Fido")
    pack.faults[0].fail(.reserveKeys, with: StoreError(.diskFull, operation: "reserve keys", reason: "A test said so."))
    #expect(throws: StoreError.self) { try context.obtainPermanentIDs(for: [dog]) }
    #expect(dog.objectID.isTemporaryID)
    try context.save()
    #expect(!dog.objectID.isTemporaryID)
  }

  @Test func aCallbackOfASaveCanNotRequestThem() throws {
    let context = try TestStore.memory.makePlace().context(), dog = context.dog("Fido")
    var error: (any Error)?
    let observation = context.onWillSave { context in
      do { try context.obtainPermanentIDs(for: [dog]) } catch let refusal { error = refusal }
    }
    defer { observation.cancel() }
    try context.save()
    #expect((error as? PersistenceError)?.code == .saveInProgress && !dog.objectID.isTemporaryID)
  }

  @Test(arguments: TestStore.allCases) func iteratingOverNewObjectsSurvivesASave(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), ann = context.person("Ann")
    let names = ["Fido", "Rex", "Sam"]
    for name in names { ann.dogs.insert(context.dog(name)) }
    var seen: [String] = []
    for (step, dog) in ann.dogs.enumerated() {
      if step == 0 { try context.obtainPermanentIDs(for: ann.dogs) }
      if step == 1 { try context.save() }
      #expect(!dog.objectID.isTemporaryID)
      seen.append(dog.name)
    }
    #expect(seen.sorted() == names)
  }

  /// The bug: the key of an object that is never saved was saved, and a store that was reopened could give it to another object.
  @Test func aLinkWithoutInverseToADeletedNewObjectIsNotSaved() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Node", attributes: [.init("name", .string)], relationships: [.toOne("next", to: "Node", inverse: nil)])
    ])
    for store in [TestStore.memory, .json, .sqlite] {
      let place = try store.makePlace(model: model, classes: []), context = try place.context()
      let a = try context.insert(entityNamed: "Node"), b = try context.insert(entityNamed: "Node")
      for (object, name) in [(a, "a"), (b, "b")] { try object.setValue(name, forKey: "name") }
      try a.setValue(b, forKey: "next")
      try context.obtainPermanentIDs(for: [b])
      context.delete(b)
      try context.save()
      try place.close()
      let read = try #require(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Node")).first)
      guard case .single(let next) = try read.value(forKey: "next") else { continue }
      #expect(next == .null, "\(store)")
    }
  }

  // MARK: Costs

  private static let owners = Result {
    try ManagedObjectModel(entities: [
      EntityDescription("Owner", relationships: [.toMany("pets", to: "Pet", inverse: "owner")]),
      EntityDescription("Pet", relationships: [.toOne("owner", to: "Owner", inverse: "pets")]),
    ])
  }

  /// New pets, each with a new owner.
  private func pets(_ count: Int, in context: ManagedObjectContext) throws -> [ManagedObject] {
    try (0..<count).map { _ in
      let owner = try context.insert(entityNamed: "Owner"), pet = try context.insert(entityNamed: "Pet")
      try pet.setValue(.objectID(owner.objectID), forKey: "owner")
      return pet
    }
  }

  /// Expects that pets have permanent IDs, and each an owner of its own.
  private func expectOwners(_ pets: [ManagedObject], in context: ManagedObjectContext) throws {
    for pet in pets {
      guard case .objectID(let id)? = try pet.value(forKey: "owner").storeValue else {
        Issue.record("\(pet) has no owner.")
        continue
      }
      let owner = try context.existingObject(with: id)
      #expect(try Array(owner.toMany(forKey: "pets")) == [pet] && !pet.objectID.isTemporaryID)
    }
  }

  /// The bug: each call passed over all changed objects.
  @Test func permanentIDsOfOneObjectTakeNoLongerWithManyChanges() throws {
    func time(_ count: Int) throws -> Duration {
      let context = try TestStore.memory.makePlace(model: Self.owners.get(), classes: []).context()
      let pets = try pets(count, in: context)
      let time = try processorTime { for pet in pets { try context.obtainPermanentIDs(for: [pet]) } }
      try expectOwners(pets, in: context)
      try context.save()
      try expectOwners(pets, in: context)
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 40, times: { try time(500) }) { try time(8_000) }
  }

  /// The bug: each request of a child after an insertion in its parent passed over all changes of the parent.
  @Test func identifyingNewObjectsOfAParentTakesNoLongerWithManyChanges() throws {
    func time(_ count: Int) throws -> Duration {
      let parent = try TestStore.memory.makePlace(model: Self.owners.get(), classes: []).context()
      let child = ManagedObjectContext(parent: parent)
      // Each request of the child calls it.
      let store = try #require(child.core.persistentStoreCoordinator.persistentStores[0].base as? ParentStore)
      var pets: [ManagedObject] = []
      let time = try processorTime {
        for _ in 0..<count {
          pets += try self.pets(1, in: parent)
          try store.identifyNewObjects()
        }
      }
      try expectOwners(pets, in: parent)
      try parent.save()
      try expectOwners(pets, in: parent)
      return time
    }
    try expectCost(below: 40, times: { try time(500) }) { try time(8_000) }
  }
}
