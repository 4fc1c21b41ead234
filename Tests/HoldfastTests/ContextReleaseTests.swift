import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// What stays when the program releases a context with unsaved changes.
@Suite struct ContextReleaseTests {
  /// The core, the coordinator and an object of a context that is released with a new, an updated and a deleted object.
  private struct Released {
    weak var core: ContextCore?
    weak var coordinator: PersistentStoreCoordinator?
    weak var object: ManagedObject?

    init(_ place: TestStore.Place, _ change: (ManagedObjectContext) throws -> Void = { _ in }) throws {
      let context = try place.context(), dogs = try context.fetch(Dog.self, sortedBy: \.name)
      dogs[0].name = "Changed"
      dogs[0].owner = context.person("Bob")
      context.delete(dogs[1])
      object = context.dog("New")
      try change(context)
      (core, coordinator) = (context.core, context.persistentStoreCoordinator)
    }
  }

  private func filled(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace(), context = try place.context()
    for name in ["Fido", "Rex", "Sam"] { context.dog(name).owner = context.person("Ann") }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return place
  }

  @Test(arguments: TestStore.allCases) func aReleasedContextWithChangesIsFreedWithItsCoordinatorAndStore(_ store: TestStore) throws {
    let place = try filled(store)
    for change in [{ _ in }, { try $0.processPendingChanges() }, { _ = $0.onChange { _, _ in } }]
      as [(ManagedObjectContext) throws -> Void]
    {
      let released = try Released(place, change)
      #expect(released.object == nil && released.core == nil && released.coordinator == nil)
    }
    // In memory, the test's place keeps the rows.
    #expect(try place.context().fetch(Dog.self, sortedBy: \.name).map(\.name) == ["Fido", "Rex", "Sam"])
  }

  @Test(arguments: TestStore.allCases) func anObjectKeepsItsValuesAndItsFaultsFireWithoutTheContext(_ store: TestStore) throws {
    func dog(_ place: TestStore.Place) throws -> Dog {
      let context = try place.context(), dog = try #require(try context.fetchOne(Dog.self, sortedBy: \.name))
      dog.age = 7
      return dog
    }
    let dog = try dog(try filled(store))
    #expect(dog.age == 7 && dog.name == "Fido" && dog.owner?.name == "Ann" && dog.isUpdated)
    dog.name = "Rover"
    #expect(dog.name == "Rover" && dog.hasChanges && !dog.isInaccessible)
  }

  @Test(arguments: TestStore.allCases) func changesOfAllObjectsThatAreLeftAreSaved(_ store: TestStore) throws {
    let place = try filled(store)
    func changed() throws -> [Dog] {
      let context = try place.context(), dogs = try context.fetch(Dog.self, sortedBy: \.name)
      dogs[0].age = 7
      context.delete(dogs[1])
      return [dogs[0], dogs[1], context.dog("A"), context.dog("B")]
    }
    let dogs = try changed(), context = dogs[0].managedObjectContext
    #expect(dogs.allSatisfy { $0.managedObjectContext === context })
    #expect(context.insertedObjects == [dogs[2], dogs[3]] && context.updatedObjects == [dogs[0]] && context.deletedObjects == [dogs[1]])
    dogs[2].name = "Later"
    try context.save()
    #expect(!context.hasChanges)
    let stored = try place.context().fetch(Dog.self, sortedBy: \.name)
    #expect(stored.map(\.name) == ["B", "Fido", "Later", "Sam"] && stored[1].age == 7)
  }

  @Test func aSaveWithoutTheChangesOfReleasedObjectsThrowsUntilARollback() throws {
    let place = try filled(.memory)
    func changed() throws -> Dog {
      let context = try place.context(), dog = context.dog("Kept")
      dog.owner = context.person("Lost")
      return dog
    }
    let dog = try changed(), context = dog.managedObjectContext
    #expect(dog.owner?.name == "" && (context.faultError as? PersistenceError)?.code == .lostChanges)
    #expect(throws: PersistenceError.self) { try context.reading { dog.owner?.name } }
    let error = #expect(throws: PersistenceError.self) { try context.save() }
    #expect(error?.code == .lostChanges && error?.coreDataCode == 134030 && error?.objectID?.isTemporaryID == true)
    #expect(context.hasChanges)
    context.rollback()
    context.dog("Next")
    try context.save()
    #expect(try context.count(Dog.self) { $0.name == "Next" } == 1)
  }

  @Test func objectsWithoutChangesAreNotALoss() throws {
    let place = try filled(.memory)
    func changed() throws -> Dog {
      let context = try place.context(), dogs = try context.fetch(Dog.self, sortedBy: \.name)
      dogs[0].age = 3
      context.delete(context.dog("Never"))
      try context.processPendingChanges()
      _ = dogs[2].owner?.name
      return dogs[0]
    }
    let dog = try changed()
    try dog.managedObjectContext.save()
    #expect(!dog.hasChanges)
  }

  @Test(arguments: OutcomeStore.Loss.allCases) func anUncertainSaveIsRolledBackAndNotRepeated(_ loss: OutcomeStore.Loss) throws {
    let place = try TestStore.memory.makePlace(losesOutcomes: true), filling = try place.context()
    filling.dog("Old", age: 3)
    try filling.save()
    func sent() throws -> [Dog] {
      let context = try place.context(), old = try #require(try context.fetchOne(Dog.self)), new = context.dog("New")
      old.age = 4
      try #require(place.outcomes).loseCommit(loss)
      #expect(throws: StoreError.self) { try context.save() }
      #expect(context.hasUncertainSave)
      return [old, new]
    }
    let dogs = try sent(), context = dogs[0].managedObjectContext
    let error = #expect(throws: PersistenceError.self) { try context.save() }
    #expect(error?.code == .lostChanges && context.hasChanges)
    context.rollback()
    #expect(dogs[0].age == (loss == .afterCommitting ? 4 : 3) && dogs[1].isInaccessible)
    #expect(try context.fetch(Dog.self).count == (loss == .afterCommitting ? 2 : 1))
    if loss == .beforeCommitting { return }
    dogs[0].age = 5
    try context.save()
    #expect(try place.context().fetchOne(Dog.self) { $0.name == "Old" }?.age == 5)
  }

  @Test func aContextWithoutAnyOfItsChangesStillHasThem() throws {
    let place = try filled(.memory)
    func read() throws -> Dog {
      let context = try place.context()
      context.dog("Lost")
      return try #require(try context.fetchOne(Dog.self, sortedBy: \.name))
    }
    let context = try read().managedObjectContext
    #expect(context.hasChanges && context.insertedObjects.isEmpty)
    #expect(throws: PersistenceError.self) { try context.save() }
  }

  @Test func aDeletedNewObjectWhoseRulesWereNotAppliedIsALoss() throws {
    let place = try filled(.memory)
    func changed() throws -> Dog {
      let context = try place.context(), dog = context.dog("Kept", owner: context.person("Gone"))
      context.delete(try #require(dog.owner))
      return dog
    }
    let dog = try changed()
    #expect(throws: PersistenceError.self) { try dog.managedObjectContext.save() }
  }

  @Test func aLinkThatIsStoredInAKeptObjectIsNotALoss() throws {
    let place = try filled(.sqlite)
    func changed() throws -> Dog {
      let context = try place.context(), dog = try #require(try context.fetchOne(Dog.self, sortedBy: \.name))
      // The former owner records the removal, too.
      dog.owner = nil
      return dog
    }
    let dog = try changed()
    try dog.managedObjectContext.save()
    #expect(try place.context().fetchOne(Dog.self, sortedBy: \.name)?.owner == nil)
  }

  /// Both ends have recorded the link, which is in the row of neither.
  @Test(arguments: TestStore.allCases) func aLinkThatIsStoredInNoRowIsALossWithOneOfItsEnds(_ store: TestStore) throws {
    let place = try filled(store)
    func changed() throws -> Dog {
      let context = try place.context(), dogs = try context.fetch(Dog.self, sortedBy: \.name)
      dogs[0].friends.insert(dogs[1])
      return dogs[0]
    }
    let dog = try changed()
    let error = #expect(throws: PersistenceError.self) { try dog.managedObjectContext.save() }
    #expect(error?.code == .lostChanges)
  }

  @Test func anObservationThatIsKeptKeepsNothingAlive() throws {
    let place = try filled(.memory)
    weak var core: ContextCore?
    func changed() throws -> ContextObservation {
      let context = try place.context(), observation = context.onChange { _, _ in }
      context.dog("Noted")
      core = context.core
      return observation
    }
    let observation = try changed()
    #expect(core == nil)
    observation.cancel()
  }

  @Test func aStoreCanBeOpenedAgainRightAfterItsContainerWasReleasedElsewhere() async throws {
    let place = try filled(.sqlite)
    for _ in 0..<3 {
      let container = try PersistentContainer(model: place.model, classes: place.classes, store: place.description)
      let count = try await MainActor.run { try container.viewContext.fetch(Dog.self).count }
      #expect(count == 3)
    }
  }

  @Test func handlersAreReleasedWithTheContext() throws {
    final class Token {}
    let place = try filled(.memory)
    weak var token: Token?
    func changed() throws -> (Dog, ContextObservation) {
      let context = try place.context(), made = Token()
      token = made
      return (context.dog("A"), context.onChange { _, _ in withExtendedLifetime(made) {} })
    }
    let (dog, observation) = try changed()
    #expect(token == nil && dog.name == "A")
    withExtendedLifetime(observation) {}
  }

  @Test func aBackgroundContextAndAContainerAreFreedWithUnsavedChanges() async throws {
    let place = try filled(.sqlite)
    weak var coordinator: PersistentStoreCoordinator?
    func use() async throws {
      let container = try PersistentContainer(model: place.model, classes: place.classes, store: place.description)
      coordinator = container.persistentStoreCoordinator
      await container.performBackgroundTask { context in _ = context.dog("A") }
      await MainActor.run { _ = container.viewContext.dog("B") }
    }
    try await use()
    // The main actor and the queue of the background context release what belongs to them.
    let isFreed = await eventually {
      await MainActor.run {}
      return coordinator == nil
    }
    #expect(isFreed)
  }
}
