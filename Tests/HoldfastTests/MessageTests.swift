import TestSupport
import Testing

@testable import Holdfast

/// The messages that a context sends to its observers, on every store.
@Suite struct MessageTests {
  /// The received messages.
  private final class Ear {
    var messages: [ObjectChanges] = []
    var observations: [ContextObservation] = []

    /// The only message since the last call; empty if there was none.
    func last() -> ObjectChanges {
      defer { messages = [] }
      #expect(messages.count <= 1)
      return messages.first ?? ObjectChanges()
    }
  }

  private func listening(_ store: TestStore) throws -> (TestStore.Place, ManagedObjectContext, Ear) {
    let place = try store.makePlace(), context = try place.context(), ear = Ear()
    let ann = context.person("Ann"), fido = context.dog("Fido", age: 3, owner: ann)
    fido.collar = context.insert(Collar.self)
    context.dog("Rex", age: 5)
    try context.save()
    ear.observations = [context.onChange { [unowned ear] _, changes in ear.messages.append(changes) }]
    return (place, context, ear)
  }

  @Test(arguments: TestStore.allCases) func changesAreReportedOnceAtTheEndOfProcessing(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    #expect(ear.messages.isEmpty)
    let new = context.dog("New")
    fido.age = 4
    fido.age = 5
    #expect(ear.messages.isEmpty)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(inserted: [new.objectID], updated: [fido.objectID]))
    try context.processPendingChanges()
    #expect(ear.messages.isEmpty)
    // Objects that were already reported change again.
    fido.age = 6
    new.name = "Newer"
    rex.friends.insert(fido)
    _ = try context.fetch(FetchRequest<Dog>())
    let changes = ear.last()
    #expect(changes.inserted.isEmpty && Set(changes.updated) == [fido.objectID, new.objectID, rex.objectID] && changes.deleted.isEmpty)
    try context.save()
    #expect(ear.messages.isEmpty && !new.objectID.isTemporaryID)
    fido.age = 7
    new.age = 2
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(updated: [fido.objectID, new.objectID]))
  }

  @Test(arguments: TestStore.allCases) func deletionsAreReportedWithThoseOfTheirCascades(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner),
      collar = try #require(fido.collar)
    fido.age = 9
    context.delete(fido)
    try context.processPendingChanges()
    let changes = ear.last()
    #expect(Set(changes.deleted) == [fido.objectID, collar.objectID] && changes.inserted.isEmpty && changes.updated == [ann.objectID])
    try context.save()
    #expect(ear.messages.isEmpty)
    // A new object that is deleted before it was reported is in no list. One that was reported is in the deleted objects.
    let told = context.dog("told")
    try context.processPendingChanges()
    #expect(ear.last().inserted == [told.objectID])
    let temporary = told.objectID
    context.delete(told)
    context.delete(context.dog("never told"))
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(deleted: [temporary]))
  }

  @Test(arguments: TestStore.allCases) func refreshingRollingBackAndResettingAreReported(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    fido.age = 9
    try context.refresh(fido, mergeChanges: false)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(refreshed: [fido.objectID]))
    fido.age = 9
    try context.refresh(fido, mergeChanges: true)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(updated: [fido.objectID], refreshed: [fido.objectID]))
    try context.refresh(rex, mergeChanges: false)
    _ = try context.count(for: FetchRequest<Dog>())
    #expect(ear.last() == ObjectChanges(refreshed: [rex.objectID]))
    let new = context.dog("New")
    context.delete(rex)
    let temporary = new.objectID
    context.rollback()
    #expect(ear.last() == ObjectChanges(refreshed: [fido.objectID, rex.objectID], invalidated: [temporary]))
    context.rollback()
    #expect(ear.messages.isEmpty)
    // A change that was rolled back is reported again.
    context.delete(rex)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(deleted: [rex.objectID]))
    context.rollback()
    _ = ear.last()
    context.delete(rex)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(deleted: [rex.objectID]))
    let registered = Set(context.registeredObjects.map(\.objectID))
    context.reset()
    let changes = ear.last()
    #expect(Set(changes.invalidated) == registered && changes.deleted.isEmpty && changes.refreshed.isEmpty)
    withExtendedLifetime((fido, rex)) {}
  }

  /// The bug: handlers didn't receive that the owner had the dog again.
  @Test(arguments: TestStore.withChild) func discardingADeletionReportsTheObjectsThatRegainADestination(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner),
      collar = try #require(fido.collar)
    context.delete(fido)
    try context.processPendingChanges()
    #expect(ear.last().updated == [ann.objectID])
    try context.discardChanges(of: [fido.objectID, collar.objectID])
    #expect(ear.last() == ObjectChanges(updated: [ann.objectID], refreshed: [fido.objectID, collar.objectID]))
    #expect(ann.dogs.contains(fido) && fido.collar === collar && !context.hasChanges)
    // One that was not processed has changed nothing else.
    context.delete(fido)
    try context.discardChanges(of: [fido.objectID])
    #expect(ear.last() == ObjectChanges(refreshed: [fido.objectID]))
  }

  /// The bug: the new object was also reported as refreshed, by its former, temporary ID.
  @Test(arguments: TestStore.withChild) func aNewObjectThatGotAPermanentIDIsOnlyInvalidatedByARollback(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }), new = context.person("New")
    rex.owner = new
    context.delete(rex)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(inserted: [new.objectID], deleted: [rex.objectID]))
    try context.obtainPermanentIDs(for: [new])
    let id = new.objectID
    context.rollback()
    #expect(ear.last() == ObjectChanges(refreshed: [rex.objectID], invalidated: [id]))
  }

  @Test(arguments: TestStore.allCases) func aSaveNotifiesBeforeAndAfter(_ store: TestStore) throws {
    let (place, context, ear) = try listening(store)
    let saved = Ear()
    var before = 0
    let willSave = context.onWillSave { context in
      before += 1
      // Its changes are saved, including deletions and their cascades.
      for dog in context.insertedObjects.compactMap({ $0 as? Dog }) { dog.notes = "checked" }
      for object in context.updatedObjects.compactMap({ $0 as? Dog }) where object.age > 100 { context.delete(object) }
    }
    let didSave = context.onSave { context, changes in
      #expect(!context.hasChanges)
      saved.messages.append(changes)
    }
    ear.observations += [willSave, didSave]
    let new = context.dog("New")
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }), collar = try #require(fido.collar)
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }), ann = try #require(fido.owner)
    ear.messages = []
    fido.age = 101
    rex.age = 6
    try context.save()
    let changes = saved.last()
    #expect(before == 1 && changes.inserted == [new.objectID] && !new.objectID.isTemporaryID)
    // Ann has lost a dog.
    #expect(changes.updated == [rex.objectID, ann.objectID])
    #expect(Set(changes.deleted) == [fido.objectID, collar.objectID] && changes.refreshed.isEmpty && changes.invalidated.isEmpty)
    #expect(
      Set(ear.messages.flatMap(\.deleted)) == [fido.objectID, collar.objectID]
        && Set(ear.messages.flatMap(\.updated)).contains(rex.objectID))
    #expect(try place.context().one(Dog.self) { $0.name == "New" }?.notes == "checked")
    // Nothing was changed, changes had no effect, or the save was refused.
    try context.save()
    #expect(before == 1 && saved.messages.isEmpty)
    rex.age = 7
    rex.age = 6
    try context.save()
    #expect(before == 2 && saved.messages.isEmpty)
    context.insert(Vaccination.self).kind = "without a dog"
    #expect(throws: PersistenceError.self) { try context.save() }
    #expect(before == 3 && saved.messages.isEmpty)
  }

  @Test func whatAHandlerChangesComesWithTheNextMessageAndIsSaved() throws {
    let (place, context, ear) = try listening(.memory)
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    ear.observations.append(
      context.onChange { context, changes in
        if changes.updated.contains(rex.objectID) && rex.weight == nil { rex.weight = 12 }
      })
    rex.age = 6
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(updated: [rex.objectID]) && rex.weight == 12)
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(updated: [rex.objectID]))
    try context.save()
    #expect(try place.context().one(Dog.self) { $0.weight == 12 }?.age == 6)
  }

  /// The bug: a rollback dropped the last change, although it was saved.
  @Test func whatAHandlerChangesDuringASaveIsReportedAlsoAfterARollback() throws {
    let (place, context, ear) = try listening(.memory)
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    ear.observations.append(context.onChange { _, _ in rex.weight = (rex.weight ?? 0) + 1 })
    rex.age = 6
    try context.save()
    let count = ear.messages.count
    #expect(count > 0 && !context.hasChanges)
    #expect(try place.context().one(Dog.self) { $0.name == "Rex" }?.weight == Double(count))
    context.rollback()
    #expect(ear.messages.count == count + 1 && ear.messages.last == ObjectChanges(updated: [rex.objectID]))
  }

  @Test func observersReceiveNothingBeforeTheyStartOrAfterTheyCancel() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context(), ear = Ear(), other = Ear()
    let early = context.dog("early"), gone = context.dog("gone")
    try context.save()
    early.age = 2
    context.delete(gone)
    let new = context.dog("new")
    let first = context.onChange { _, changes in ear.messages.append(changes) }
    try context.processPendingChanges()
    #expect(ear.messages.isEmpty)
    early.age = 3
    new.age = 4
    try context.processPendingChanges()
    #expect(ear.last() == ObjectChanges(updated: [early.objectID, new.objectID]))
    other.observations = [context.onChange { _, changes in other.messages.append(changes) }]
    early.age = 5
    first.cancel()
    first.cancel()
    try context.processPendingChanges()
    #expect(ear.messages.isEmpty && other.last() == ObjectChanges(updated: [early.objectID]))
  }

  @Test func withoutObserversNothingIsRecorded() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context()
    let dog = context.dog("Fido")
    try context.processPendingChanges()
    #expect(context.core.observers == nil && dog.flags.contains(.listed))
    let first = context.onChange { _, _ in }
    #expect(!dog.flags.contains(.listed) && dog.flags.contains(.inList))
    dog.age = 2
    first.cancel()
    try context.processPendingChanges()
    dog.age = 3
    try context.refresh(dog, mergeChanges: false)
    #expect(context.core.observers?.take().isEmpty == true && dog.flags.contains(.listed))
    try context.save()
    #expect(try place.context().one(Dog.self) { $0.age == 3 } != nil)
  }

  /// Each message equals the random changes since the previous one.
  @Test(arguments: TestStore.allCases) func randomChangesAreReportedExactly(_ store: TestStore) throws {
    var random = SeededGenerator()
    print("messages on \(store): HOLDFAST_SEED=\(random.seed)")
    let (place, context, ear) = try listening(store)
    withExtendedLifetime(place) {}
    var dogs = try context.fetch(FetchRequest<Dog>())
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    for _ in 0..<60 {
      var (inserted, updated, deleted): (Set<Dog>, Set<Dog>, Set<Dog>) = ([], [], [])
      var updatedOwners: Set<ManagedObjectID> = []
      for _ in 0..<Int.random(in: 0..<6, using: &random) {
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
          let dog = context.dog("dog")
          dogs.append(dog)
          inserted.insert(dog)
        case 1, 2, 3:
          guard let dog = dogs.randomElement(using: &random) else { continue }
          dog.age += 1
          if !inserted.contains(dog) { updated.insert(dog) }
        default:
          guard dogs.count > 2 else { continue }
          let dog = dogs.remove(at: Int.random(in: 0..<dogs.count, using: &random))
          if dog.owner == ann { updatedOwners.insert(ann.objectID) }
          context.delete(dog)
          if inserted.remove(dog) == nil { deleted.insert(dog) }
          updated.remove(dog)
        }
      }
      let ids = (Set(inserted.map(\.objectID)), Set(updated.map(\.objectID)).union(updatedOwners), Set(deleted.map(\.objectID)))
      if Bool.random(using: &random) { try context.save() } else { try context.processPendingChanges() }
      let changes = ear.last()
      #expect(Set(changes.inserted) == ids.0 && Set(changes.updated) == ids.1)
      // Objects deleted by a cascade, and objects that lost a link, are reported as well.
      #expect(Set(changes.deleted).isSuperset(of: ids.2))
    }
  }

  @Test func handlersRunInTheIsolationOfABackgroundContext() async throws {
    let place = try TestStore.memory.makePlace()
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: place.description)
    let told = try await container.performBackgroundTask { context in
      var told: [ObjectChanges] = []
      let observations = [
        context.onChange { _, changes in told.append(changes) }, context.onSave { _, changes in told.append(changes) },
      ]
      context.dog("Fido")
      try context.save()
      withExtendedLifetime(observations) {}
      return told
    }
    #expect(told.count == 2 && told[0].inserted[0].isTemporaryID && !told[1].inserted[0].isTemporaryID)
  }

  @Test @MainActor func aHandlerOfTheViewContextMayTouchWhatIsOnTheMainActor() throws {
    let place = try TestStore.memory.makePlace()
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: place.description)
    let screen = Screen()
    screen.observation = container.viewContext.onChange { [unowned screen] _, changes in screen.count += changes.inserted.count }
    container.viewContext.dog("Fido")
    try container.viewContext.processPendingChanges()
    #expect(screen.count == 1)
  }

  @MainActor private final class Screen {
    var count = 0
    var observation: ContextObservation?
  }

  /// The bug: handlers were released while the lists of handlers changed.
  @Test func whatAHandlerCapturedMayAddAHandlerWhenItIsReleased() throws {
    final class Leaving {
      let context: ManagedObjectContext, ear: Ear
      init(_ context: ManagedObjectContext, _ ear: Ear) { (self.context, self.ear) = (context, ear) }
      deinit { ear.observations = [context.onChange { [unowned ear] _, changes in ear.messages.append(changes) }] }
    }
    let place = try TestStore.memory.makePlace(), context = try place.context(), ear = Ear()
    do {
      let leaving = Leaving(context, ear)
      ear.observations = [context.onChange { _, _ in withExtendedLifetime(leaving) {} }]
    }
    ear.observations = []
    context.dog("Fido")
    try context.processPendingChanges()
    #expect(ear.observations.count == 1)
    let dog = context.dog("Rex")
    try context.processPendingChanges()
    #expect(ear.messages.last?.inserted == [dog.objectID])
  }

  @Test func aReleasedObservationIsCancelledAndItsHandlerReleased() throws {
    final class Captured {}
    let place = try TestStore.memory.makePlace(), context = try place.context(), ear = Ear()
    weak var captured: Captured?
    do {
      let kept = Captured()
      captured = kept
      ear.observations = [
        context.onChange { [unowned ear] _, changes in withExtendedLifetime(kept) { ear.messages.append(changes) } },
        context.onWillSave { _ in withExtendedLifetime(kept) {} }, context.onSave { _, _ in withExtendedLifetime(kept) {} },
      ]
    }
    let dog = context.dog("Fido")
    try context.save()
    #expect(ear.messages.count == 1)
    ear.messages = []
    dog.age = 2
    ear.observations = []
    #expect(captured != nil)
    try context.processPendingChanges()
    #expect(ear.messages.isEmpty && captured == nil)
    // A handler that is added later doesn't receive changes that were recorded for one that is gone.
    dog.age = 3
    var first: ContextObservation? = context.onChange { _, _ in }
    dog.age = 4
    first = nil
    ear.observations = [context.onChange { [unowned ear] _, changes in ear.messages.append(changes) }]
    try context.processPendingChanges()
    #expect(ear.messages.isEmpty)
    withExtendedLifetime(first) {}
  }

  /// Vaccinates Fido and saves. Deleting Fido cascades to the vaccination.
  private func vaccinated(_ context: ManagedObjectContext) throws -> (fido: Dog, rex: Dog, shot: Vaccination) {
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = fido
    }
    try context.save()
    return (fido, rex, shot)
  }

  /// No class of the model overrides a callback of saves.
  @Test(arguments: TestStore.allCases) func whatAHandlerDeletesDuringASaveIsCascaded(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), context = try place.context()
    let (fido, rex, _) = try vaccinated(context)
    let observation = context.onChange { context, _ in if !fido.isDeleted && !fido.isInaccessible { context.delete(fido) } }
    rex.age += 1
    try context.save()
    let fresh = try place.context()
    #expect(try namesOfDogs(fresh) == ["Rex"] && fresh.fetch(FetchRequest<Vaccination>()).isEmpty)
    withExtendedLifetime(observation) {}
  }

  @Test(arguments: TestStore.withChild) func aFetchReturnsNothingThatADeletionInItsHandlerCascades(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), context = try place.context()
    let (fido, rex, shot) = try vaccinated(context)
    var deleted: [ManagedObjectID] = []
    let observation = context.onChange { context, changes in
      deleted += changes.deleted
      if !fido.isDeleted { context.delete(fido) }
    }
    rex.age += 1
    #expect(try context.fetch(FetchRequest<Vaccination>()).isEmpty && shot.isDeleted)
    #expect(try context.count(for: FetchRequest<Vaccination>()) == 0 && Set(deleted) == [fido.objectID, shot.objectID])
    withExtendedLifetime(observation) {}
  }

  /// The bug: the delete rules of an object that was already among the changes weren't applied, and its vaccination stayed.
  @Test(arguments: TestStore.allCases) func whatAHandlerDeletesWhenItReceivesTheLastChangesOfASaveIsCascaded(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), context = try place.context()
    let (fido, rex, _) = try vaccinated(context)
    var messages: [ObjectChanges] = []
    let observation = context.onChange { context, changes in
      messages.append(changes)
      if messages.count == 1 { rex.weight = 12 }
      if messages.count == 2 { context.delete(fido) }
    }
    (fido.age, rex.age) = (4, 6)
    try context.save()
    #expect(messages.count == 3 && messages.last?.deleted.count == 2 && !context.hasChanges)
    let fresh = try place.context()
    #expect(try namesOfDogs(fresh) == ["Rex"] && fresh.fetch(FetchRequest<Vaccination>()).isEmpty)
    withExtendedLifetime(observation) {}
  }
}
