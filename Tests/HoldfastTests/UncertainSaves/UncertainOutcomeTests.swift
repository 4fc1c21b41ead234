import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// What a context does while the outcome of a save is unknown, and how that ends.
@Suite struct UncertainOutcomeTests {
  typealias Loss = OutcomeStore.Loss

  // MARK: Repeated failures

  @Test(arguments: Loss.allCases) func anOutcomeThatStaysUnknownChangesNothing(_ loss: Loss) throws {
    let stack = try LossyStack(.sqlite), context = stack.context
    let dog = context.dog("rex")
    stack.saveInVain(loss)
    stack.store.answerUnknown(times: 2)
    for _ in 0..<2 {
      let error = stack.expectUnknown()
      #expect(error?.isRetryable == true && error?.reason.contains("Save again later") == true)
      #expect(context.hasUncertainSave && dog.isInserted)
    }
    #expect(stack.recorder.savingRequests == [2, 0, 0])
    dog.age = 9
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [9])
  }

  @Test(arguments: Loss.allCases) func aRequestForTheOutcomeThatFailsChangesNothing(_ loss: Loss) throws {
    final class Made: @unchecked Sendable { var stores: (OutcomeStore, FaultInjectingStore)? }  // because only this test uses it
    let made = Made()
    let (context, _) = try TestStore.memory.makePlace().recording { base in
      let lossy = OutcomeStore(base), faults = FaultInjectingStore(lossy)
      made.stores = (lossy, faults)
      return faults
    }
    let (lossy, faults) = try #require(made.stores), dog = context.dog("rex")
    lossy.loseCommit(loss)
    #expect(throws: StoreError.self) { try context.save() }
    faults.fail(.optional, with: StoreError(.connectionLost, operation: "ask", reason: "There is no network."))
    // The caller must not conclude from the request's code that nothing was saved.
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .outcomeUnknown && (error.cause as? StoreError)?.code == .connectionLost && error.isRetryable)
    try context.save()
    #expect(!context.hasChanges && !dog.isInserted && faults.count(of: .optional) == 2)
  }

  @Test(arguments: Loss.allCases, Loss.allCases) func aRetryCanLoseItsOutcomeToo(_ first: Loss, _ second: Loss) throws {
    let stack = try LossyStack(.sqlite), context = stack.context
    let rex = context.dog("rex")
    stack.saveInVain(first)
    let max = context.dog("max")
    rex.friends.insert(max)
    stack.saveInVain(second)
    rex.age = 7
    max.owner = context.person("Ada")
    try context.save()
    let other = try stack.another()
    #expect(try other.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.age) == [1, 7])
    #expect(try other.one(Dog.self) { $0.name == "rex" }?.friends.map(\.name) == ["max"])
    #expect(try other.one(Dog.self) { $0.name == "max" }?.owner?.name == "Ada")
  }

  @Test func aRetryWhoseOwnChangesAreRefusedKeepsThem() throws {
    let stack = try LossyStack(.sqlite), context = stack.context
    let rex = context.dog("rex")
    stack.saveInVain(.afterCommitting)
    rex.age = 40_000
    let max = context.dog("max")
    #expect(throws: PersistenceError.self) { try context.save() }
    // The lost save is complete; the later changes remain.
    #expect(!context.hasUncertainSave && !rex.isInserted && rex.isUpdated && max.isInserted)
    rex.age = 4
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.age) == [1, 4])
  }

  @Test func anotherContextThatChangedTheRowsCausesAConflict() throws {
    let stack = try LossyStack(.memory), context = stack.context
    let rex = context.dog("rex")
    stack.saveInVain(.afterCommitting)
    let other = try stack.another()
    try other.one(Dog.self) { $0.name == "rex" }?.age = 8
    try other.save()
    rex.name = "maxi"
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && error.objectIDs == [rex.objectID])
    try context.refresh(rex, mergeChanges: true)
    try context.save()
    #expect(rex.age == 8 && rex.name == "maxi")
  }

  // MARK: Other ways to continue

  @Test(arguments: [TestStore.memory, .sqlite, .weakest, .second], Loss.allCases)
  func aRollbackShowsWhatTheStoreHas(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let old = context.dog("old", age: 3), gone = context.dog("gone")
    old.friends.insert(gone)
    try context.save()
    old.age = 4
    let new = context.dog("new")
    old.friends.insert(new)
    context.delete(gone)
    stack.saveInVain(loss)
    old.name = "renamed"
    context.rollback()
    #expect(!context.hasUncertainSave && !context.hasChanges && stack.recorder.requests.isEmpty && new.isInaccessible)
    let isCommitted = loss == .afterCommitting
    // A fault is read by the first access.
    #expect(gone.name == (isCommitted ? "" : "gone"))
    #expect(old.age == (isCommitted ? 4 : 3) && old.name == "old" && gone.isInaccessible == isCommitted)
    #expect(old.friends.map(\.name) == [isCommitted ? "new" : "gone"])
    #expect(try context.fetch(FetchRequest<Dog>()).map(\.name).sorted() == (isCommitted ? ["new", "old"] : ["gone", "old"]))
    if loss == .beforeCommitting { return }
    old.age = 5
    try context.save()
    #expect(try stack.another().one(Dog.self) { $0.name == "old" }?.age == 5)
  }

  /// Lists of songs without an inverse, so that a song that gets another list leaves the former one.
  private static let lists: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "List", relationships: [.toMany("songs", to: "Song", inverse: nil, isOrdered: true), .toMany("loose", to: "Song", inverse: nil)]),
        EntityDescription("Song", attributes: [AttributeDescription("name", .string, isOptional: true)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  /// The bug: the former owner of an object isn't part of the save that gives the object to another owner. So it kept the object.
  @Test(arguments: TestStore.allCases, [Loss.withoutCommitting, .afterCommitting])
  func aRollbackShowsTheOwnersThatTheStoreHas(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store, model: Self.lists, classes: []), context = stack.context
    let former = context.make("List"), owner = context.make("List")
    let songs = (0..<3).map { context.make("Song", ["name": .string("\($0)")]) }
    try former.ordered(forKey: "songs").append(contentsOf: songs)
    try former.toMany(forKey: "loose").formUnion(songs)
    try context.save()
    try owner.ordered(forKey: "songs").append(songs[1])
    try owner.toMany(forKey: "loose").insert(songs[1])
    stack.saveInVain(loss)
    context.rollback()
    let (kept, taken): ([String], [String]) = loss == .afterCommitting ? (["0", "2"], ["1"]) : (["0", "1", "2"], [])
    for name in ["songs", "loose"] {
      func names(_ list: ManagedObject) throws -> [String] { try Lists.names(of: list.value(forKey: name).objects ?? []).sorted() }
      #expect(try names(former) == kept && names(owner) == taken, "\(name)")
    }
    #expect(!context.hasChanges)
    try former.ordered(forKey: "songs").move(from: kept.count - 1, to: 0)
    try context.save()
    let saved = try stack.another().all("List")
    #expect(try Lists.names(of: saved[0].ordered(forKey: "songs")) == ["2"] + kept.dropLast())
    #expect(try Lists.names(of: saved[1].ordered(forKey: "songs")) == taken)
  }

  /// The bug: after the former owner had lost the object, a rollback didn't revert the order that it had got since the save was sent.
  @Test(arguments: TestStore.allCases, Loss.allCases)
  func aRollbackRevertsTheOrderThatTheFormerOwnerGotSinceTheSave(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store, model: Self.lists, classes: []), context = stack.context
    let former = try context.make("List").ordered(forKey: "songs"), owner = try context.make("List").ordered(forKey: "songs")
    let songs = (0..<4).map { context.make("Song", ["name": .string("\($0)")]) }
    former.append(contentsOf: songs)
    try context.save()
    owner.append(songs[1])
    stack.saveInVain(loss)
    former.move(from: 3, to: 0)
    // This requests the outcome.
    try context.refresh(songs[0], mergeChanges: true)
    let kept = loss.isCommitted ? ["0", "2", "3"] : ["0", "1", "2", "3"]
    #expect(try Lists.names(of: former) == ["3"] + kept.dropLast() && context.hasChanges && !context.hasUncertainSave)
    context.rollback()
    #expect(try Lists.names(of: former) == kept && Lists.names(of: owner) == (loss.isCommitted ? ["1"] : []) && !context.hasChanges)
    former.move(from: 1, to: 0)
    try context.save()
    let saved = try #require(try stack.another().all("List").first)
    #expect(try Lists.names(of: saved.ordered(forKey: "songs")) == Lists.names(of: former))
  }

  /// Only the deletion changes the lists, so their owners aren't part of the save.
  @Test(arguments: TestStore.allCases, [Loss.withoutCommitting, .afterCommitting])
  func aRollbackShowsTheListsThatTheStoreHas(_ store: TestStore, _ loss: Loss) throws {
    let stack = try LossyStack(store), context = stack.context
    let ada = context.person("Ada"), rex = context.dog("rex", owner: ada), gone = context.dog("gone", owner: ada)
    rex.friends.insert(gone)
    try context.save()
    context.delete(gone)
    stack.saveInVain(loss)
    context.rollback()
    let isCommitted = loss == .afterCommitting
    #expect(ada.dogs.map(\.name).sorted() == (isCommitted ? ["rex"] : ["gone", "rex"]))
    #expect(rex.friends.map(\.name) == (isCommitted ? [] : ["gone"]))
    rex.friends.removeAll()
    ada.city = "Rome"
    try context.save()
    let saved = try #require(try stack.another().one(Person.self) { $0.name == "Ada" })
    #expect(saved.city == "Rome" && saved.dogs.count == (isCommitted ? 1 : 2))
  }

  @Test func aResetDiscardsTheLostSave() throws {
    let stack = try LossyStack(.memory), context = stack.context
    context.dog("rex")
    stack.saveInVain(.afterCommitting)
    context.reset()
    #expect(!context.hasUncertainSave)
    context.dog("max")
    try context.save()
    #expect(stack.recorder.savingRequests == [0, 1, 1])
    #expect(try context.count(for: FetchRequest<Dog>()) == 2)
  }

  /// Another context reads the row before the lost save takes effect.
  @Test(arguments: TestStore.allCases, [false, true])
  func whatOthersReadBeforeADiscardedSaveTookEffectIsReadAgain(_ store: TestStore, _ isReset: Bool) throws {
    let stack = try LossyStack(store), context = stack.context
    let rex = context.dog("rex", age: 3), max = context.dog("max")
    try context.save()
    let id = rex.objectID
    rex.age = 4
    stack.saveInVain(.beforeCommitting)
    let other = try stack.another()
    #expect(try other.existingDog(id).age == 3)
    // The lost save takes effect before this one.
    try other.existingDog(max.objectID).age = 9
    try other.save()
    if isReset { context.reset() } else { context.rollback() }
    #expect(try context.existingDog(id).age == 4)
  }

  @Test(arguments: Loss.allCases, [true, false]) func aRefreshAsksForTheOutcomeFirst(_ loss: Loss, _ mergesChanges: Bool) throws {
    let stack = try LossyStack(.sqlite), context = stack.context
    let dog = context.dog("rex", age: 3)
    try context.save()
    dog.age = 4
    stack.saveInVain(loss)
    stack.store.answerUnknown(times: 1)
    #expect(throws: StoreError.self) { try context.refresh(dog, mergeChanges: mergesChanges) }
    #expect(dog.age == 4 && dog.isUpdated)
    dog.name = "maxi"
    try context.refresh(dog, mergeChanges: mergesChanges)
    #expect(!context.hasUncertainSave)
    #expect(dog.age == (mergesChanges || loss.isCommitted ? 4 : 3) && dog.name == (mergesChanges ? "maxi" : "rex"))
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.name) == [mergesChanges ? "maxi" : "rex"])
  }

  @Test(arguments: [Loss.withoutCommitting, .afterCommitting])
  func aStoreThatCannotReportTheOutcomeLeavesTheDecisionToTheCaller(_ loss: Loss) throws {
    let stack = try LossyStack(.sqlite, reportsOutcomes: false), context = stack.context
    let dog = context.dog("rex")
    stack.saveInVain(loss)
    let error = stack.expectUnknown()
    #expect(error?.isRetryable == false && error?.reason.contains("resolveUncertainSave") == true)
    #expect(error?.reason.contains("compare") == true && stack.recorder.requests.isEmpty)
    dog.age = 2
    let isThere = try stack.another().count(for: FetchRequest<Dog>()) == 1
    context.resolveUncertainSave(wasCommitted: isThere)
    #expect(!context.hasUncertainSave && dog.isInserted != isThere && dog.hasChanges)
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [2])
    context.resolveUncertainSave(wasCommitted: true)
    #expect(!context.hasChanges)
  }

  /// The bug: a fetch requested the outcome to merge the changes, and failed if the store couldn't report it.
  @Test(arguments: [Loss.withoutCommitting, .afterCommitting], [false, true])
  func aContextThatMergesFetchesBeforeTheOutcomeIsKnown(_ loss: Loss, _ reportsOutcomes: Bool) throws {
    let stack = try LossyStack(.sqlite, reportsOutcomes: reportsOutcomes), context = stack.context
    let rex = context.dog("rex"), max = context.dog("max")
    try context.save()
    context.automaticallyMergesChanges = true
    rex.age = 5
    stack.saveInVain(loss)
    let other = try stack.another()
    try #require(try other.one(Dog.self) { $0.name == "max" }).age = 7
    try other.save()
    stack.recorder.clear()
    #expect(try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])) == [max, rex])
    try context.processPendingChanges()
    #expect(context.hasUncertainSave && rex.age == 5 && max.age == 1 && stack.recorder.savingRequests == [0, 0, 0])
    context.resolveUncertainSave(wasCommitted: loss.isCommitted)
    try context.processPendingChanges()
    #expect(max.age == 7 && rex.age == 5 && rex.hasChanges != loss.isCommitted)
    try context.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.age) == [7, 5])
  }

  /// The bug: the object left the parent with the deletion that the store had saved, and the child's changes were lost.
  @Test(arguments: Loss.allCases) func aChildKeepsAnObjectWhoseDeletionMayBeSaved(_ loss: Loss) throws {
    let stack = try LossyStack(.sqlite), parent = stack.context, rex = parent.dog("rex")
    try parent.save()
    let child = ManagedObjectContext(parent: parent), own = try child.existingDog(rex.objectID)
    own.age = 5
    parent.delete(rex)
    stack.saveInVain(loss)
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    #expect(!parent.hasUncertainSave && parent.hasChanges)
    try parent.save()
    #expect(try stack.another().fetch(FetchRequest<Dog>()).map(\.age) == [5])
  }

  @Test func aStoreThatWasRemovedIsReported() throws {
    let pack = try LossyPack(), context = try pack.context()
    context.dog("rex")
    pack.lossy[0].loseCommit(.afterCommitting)
    #expect(throws: StoreError.self) { try context.save() }
    try pack.coordinator.remove(pack.coordinator.persistentStores[0])
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .missingStore)
    context.rollback()
    context.dog("max")
    try context.save()
  }

  // MARK: Callbacks and messages

  @Test(arguments: Loss.allCases) func everyChangeIsAnnouncedOnce(_ loss: Loss) async throws {
    let stack = try LossyStack(.memory), context = stack.context
    let old = context.dog("old")
    try context.save()
    let announced = context.persistentStoreCoordinator.savedChanges()
    final class Heard { var changes: [ObjectChanges] = [] }
    let heard = Heard()
    let observation = context.onSave { _, changes in heard.changes.append(changes) }
    defer { observation.cancel() }
    let new = context.dog("new")
    old.age = 5
    stack.saveInVain(loss)
    #expect(heard.changes.isEmpty)
    new.age = 6
    try context.save()
    let first = ObjectChanges(inserted: [new.objectID], updated: [old.objectID])
    #expect(heard.changes == (loss.isCommitted ? [first, ObjectChanges(updated: [new.objectID])] : [first]))
    var iterator = announced.makeAsyncIterator()
    for change in heard.changes {
      let saved = await iterator.next()
      #expect(saved?.inserted == change.inserted && saved?.updated == change.updated)
    }
  }

  /// The save looks for the owner of the deleted dog only if there are listeners.
  ///
  /// The bug: the report left the owner out, as if it were complete.
  @Test(arguments: [false, true]) func aLostSaveThatHadNoListenersIsReportedAsPossiblyIncomplete(_ deletes: Bool) async throws {
    let stack = try LossyStack(.memory), context = stack.context, rex = context.dog("rex", owner: context.person("Ann"))
    try context.save()
    if deletes { context.delete(rex) } else { rex.age = 5 }
    stack.saveInVain(.afterCommitting)
    var announced = context.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try context.save()
    let saved = await announced.next()
    #expect(saved?.deleted == (deletes ? [rex.objectID] : []) && saved?.updated == (deletes ? [] : [rex.objectID]))
    #expect(saved?.mayIncludeOthers == deletes)
  }

  /// The bug: the store may have the changes, and listeners did not learn of it.
  @Test(arguments: [Loss.withoutCommitting, .afterCommitting], [false, true])
  func aSaveThatIsDiscardedBeforeItsOutcomeIsKnownIsAnnouncedAsPossible(_ loss: Loss, _ resets: Bool) async throws {
    let stack = try LossyStack(.memory), context = stack.context, rex = context.dog("rex", age: 3)
    try context.save()
    let other = try stack.another(), same = try other.existingDog(rex.objectID)
    other.automaticallyMergesChanges = true
    #expect(same.age == 3)
    let announced = context.persistentStoreCoordinator.savedChanges()
    rex.age = 5
    stack.saveInVain(loss)
    if resets { context.reset() } else { context.rollback() }
    try other.processPendingChanges()
    #expect(same.age == (loss.isCommitted ? 5 : 3))
    let max = context.dog("max")
    try context.save()
    var iterator = announced.makeAsyncIterator()
    let possible = await iterator.next(), next = await iterator.next()
    #expect(possible?.mayIncludeOthers == true && possible?.inserted == [] && possible?.updated == [] && possible?.deleted == [])
    #expect(next?.mayIncludeOthers == false && next?.inserted == [max.objectID])
  }

  final class CountingDog: ManagedObject {
    override class var entityName: String { "Dog" }
    var saves = 0
    override func didSave() { saves += 1 }
  }

  @Test(arguments: Loss.allCases) func didSaveIsCalledOnceForEachSaveThatTookEffect(_ loss: Loss) throws {
    let stack = try LossyStack(.memory, classes: [CountingDog.self]), context = stack.context
    let (rex, max) = (context.insert(CountingDog.self), context.insert(CountingDog.self))
    rex["name"] = .string("rex")
    max["name"] = .string("max")
    stack.saveInVain(loss)
    #expect(rex.saves == 0)
    max["name"] = .string("maxi")
    try context.save()
    #expect(rex.saves == 1 && max.saves == (loss.isCommitted ? 2 : 1))
  }

  @MainActor @Test(arguments: Loss.allCases) func aBackgroundContextRetriesToo(_ loss: Loss) async throws {
    let lossy = OutcomeStore(MemoryStore())
    let container = try PersistentContainer(
      model: Kennel.model, classes: Kennel.classes, store: StoreDescription(type: "lossy") { lossy })
    let background = container.newBackgroundContext()
    lossy.loseCommit(loss)
    await #expect(throws: StoreError.self) {
      try await background.perform { context in
        context.dog("rex")
        try context.save()
      }
    }
    let ages = try await background.perform { context in
      try context.one(Dog.self) { $0.name == "rex" }?.age = 3
      try context.save()
      return try context.fetch(FetchRequest<Dog>()).map(\.age)
    }
    #expect(ages == [3])
    // Releasing a context with an uncertain save doesn't keep the store.
    weak var released: BackgroundContext?
    do {
      let other = container.newBackgroundContext()
      released = other
      lossy.loseCommit(loss)
      await #expect(throws: StoreError.self) {
        try await other.perform { context in
          context.dog("max")
          try context.save()
        }
      }
    }
    #expect(released == nil)
  }

  // MARK: Several stores

  /// Memory stores under one coordinator that can lose the outcome of commits.
  private struct LossyPack {
    let lossy: [OutcomeStore]
    let recorders: [RecordingStore]
    let coordinator: PersistentStoreCoordinator

    init(_ count: Int = 3) throws {
      let lossy = (0..<count).map { _ in OutcomeStore(MemoryStore()) }, recorders = lossy.map { RecordingStore($0) }
      (self.lossy, self.recorders) = (lossy, recorders)
      coordinator = try PersistentStoreCoordinator(
        model: Kennel.model, stores: recorders.map { recorder in StoreDescription(type: "lossy") { recorder } })
    }

    func context() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes) }

    /// A dog with an owner in each store.
    func dogs(in context: ManagedObjectContext) throws -> [Dog] {
      try coordinator.persistentStores.enumerated().map { place, store in
        let dog = context.dog("dog \(place)", owner: context.person("person \(place)"))
        for object in [dog, dog.owner!] { try context.assign(object, to: store) }
        return dog
      }
    }
  }

  @Test(arguments: [0, 1, 2], Loss.allCases) func oneOfSeveralStoresLosesTheOutcome(_ place: Int, _ loss: Loss) throws {
    let pack = try LossyPack(), context = try pack.context(), dogs = try pack.dogs(in: context)
    pack.lossy[place].loseCommit(loss)
    do {
      try context.save()
      Issue.record("The save didn't throw.")
    } catch let error as PersistenceError {
      #expect(place > 0 && error.code == .incompleteSave && (error.cause as? StoreError)?.code == .outcomeUnknown)
      #expect(error.savedStoreIdentifiers == pack.coordinator.persistentStores[..<place].map(\.identifier))
      #expect(error.reason.contains("It is unknown whether they were saved in lossy store"))
      #expect(error.reason.contains("but not in") == (place < 2))
    } catch let error as StoreError { #expect(place == 0 && error.code == .outcomeUnknown) }
    // Stores before it have committed. The object that was sent has a permanent ID, those after it don't.
    #expect(dogs.map(\.isInserted) == [0, 1, 2].map { $0 >= place } && dogs.map(\.objectID.isTemporaryID) == [0, 1, 2].map { $0 > place })
    for dog in dogs { dog.age = 9 }
    for recorder in pack.recorders { recorder.clear() }
    try context.save()
    #expect(!context.hasChanges && !context.hasUncertainSave)
    let other = try pack.context(), found = try other.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(found.map(\.objectID) == dogs.map(\.objectID) && found.map(\.age) == [9, 9, 9])
    #expect(found.map(\.owner?.name) == ["person 0", "person 1", "person 2"])
    #expect(pack.recorders[place].savingRequests == [1, 0, 1])
    #expect(try other.count(for: FetchRequest<Person>()) == 3)
  }

  @Test func anObjectThatWasSentCanNotBeAssignedToAnotherStore() throws {
    let pack = try LossyPack(2), context = try pack.context(), dog = context.dog("rex")
    pack.lossy[0].loseCommit(.withoutCommitting)
    #expect(throws: StoreError.self) { try context.save() }
    let error = try #require(throws: PersistenceError.self) { try context.assign(dog, to: pack.coordinator.persistentStores[1]) }
    #expect(error.code == .invalidRequest)
    try context.assign(dog, to: pack.coordinator.persistentStores[0])
    try context.save()
    #expect(pack.coordinator.persistentStore(for: dog.objectID) == pack.coordinator.persistentStores[0])
  }

  @Test(arguments: [true, false]) func anIDOfAnObjectInTheOtherStoreIsKeptByAnIncompleteSave(_ isLost: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("about", .objectID, isOptional: true)])
    ])
    let pack = try StorePack([.memory, .memory], model: model), context = try ManagedObjectContext(coordinator: pack.coordinator)
    let (a, b) = (context.make("Note"), context.make("Note"))
    try context.assign(b, to: pack.stores[1])
    b["about"] = .objectID(a.objectID)
    a["about"] = .objectID(b.objectID)
    pack.faults[1].fail(.commit, with: StoreError(isLost ? .outcomeUnknown : .diskFull, operation: "save", reason: "A test said so."))
    #expect(throws: PersistenceError.self) { try context.save() }
    #expect(b["about"] == .objectID(a.objectID))
    context.resolveUncertainSave(wasCommitted: false)
    try context.save()
    let other = try ManagedObjectContext(coordinator: pack.coordinator)
    #expect(try other.existingObject(with: b.objectID)["about"] == .objectID(a.objectID))
  }

  // MARK: Costs

  @Test func aSaveWithAKnownOutcomeSendsNoRequestForIt() throws {
    let stack = try LossyStack(.memory)
    stack.context.dog("rex")
    try stack.context.save()
    #expect(stack.recorder.savingRequests == [0, 1, 1])
    try stack.context.refreshAllObjects()
    #expect(stack.recorder.savingRequests == [0, 1, 1])
  }
}
