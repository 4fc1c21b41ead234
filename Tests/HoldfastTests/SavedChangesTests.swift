import Holdfast
import HoldfastStore
import TestSupport
import Testing

@Suite struct SavedChangesTests {
  @Test(arguments: TestStore.allCases) func everyObserverReceivesEverySaveOnceInOrder(_ store: TestStore) async throws {
    let place = try store.makePlace(), coordinator = try place.coordinator()
    var first = coordinator.savedChanges().makeAsyncIterator(), second = coordinator.savedChanges().makeAsyncIterator()
    let context = try place.context()
    context.name = "one"
    let ann = context.person("Ann"), fido = context.dog("Fido", owner: ann)
    try context.save()
    // Nothing was changed, or changes had no effect: no message.
    try context.save()
    fido.age = 7
    fido.age = 1
    try context.save()
    fido.age = 8
    let other = try place.context()
    other.name = "two"
    try context.save()
    let same = try #require(try other.one(Dog.self) { $0.age == 8 })
    other.delete(same)
    let rex = other.dog("Rex")
    try other.save()
    let inserted = SavedChanges(
      storeIdentifier: try #require(coordinator.persistentStores.last).identifier, contextName: "one",
      inserted: [ann.objectID, fido.objectID], updated: [], deleted: [])
    #expect(await first.next() == inserted && inserted.inserted.allSatisfy { !$0.isTemporaryID })
    #expect(await second.next() == inserted)
    let updated = try #require(await first.next())
    #expect(updated.updated == [fido.objectID] && updated.inserted.isEmpty && updated.deleted.isEmpty)
    let last = try #require(await first.next())
    #expect(last.contextName == "two" && last.deleted == [fido.objectID] && last.inserted == [rex.objectID])
    #expect(await second.next() == updated)
    #expect(await second.next() == last)
  }

  /// The new object can have a permanent ID already.
  @Test(arguments: TestStore.allCases, [false, true])
  func theOwnerOfANewObjectThatIsDeletedBeforeTheSaveIsNotReported(_ store: TestStore, _ isIdentified: Bool) async throws {
    let place = try store.makePlace(), context = try place.context(), ann = context.person("Ann"), rex = context.dog("Rex")
    try context.save()
    var changes = try place.coordinator().savedChanges().makeAsyncIterator()
    let new = context.dog("New", owner: ann)
    if isIdentified { try context.obtainPermanentIDs(for: [new]) }
    context.delete(new)
    rex.age = 5
    try context.save()
    let saved = try #require(await changes.next())
    #expect(saved.updated == [rex.objectID] && saved.inserted.isEmpty && saved.deleted.isEmpty)
  }

  @Test func aRefusedSaveIsNotReported() async throws {
    let place = try TestStore.memory.makePlace(), coordinator = try place.coordinator()
    var changes = coordinator.savedChanges().makeAsyncIterator()
    let context = try place.context()
    context.insert(Vaccination.self).kind = "without a dog"
    #expect(throws: PersistenceError.self) { try context.save() }
    context.rollback()
    let ann = context.person("Ann")
    try context.save()
    #expect(await changes.next()?.inserted == [ann.objectID])
  }

  @Test func aSlowReaderLearnsOfTheGapAndMissesNeverTheNewest() async throws {
    let place = try TestStore.memory.makePlace(), coordinator = try place.coordinator()
    var changes = coordinator.savedChanges(bufferingNewest: 3).makeAsyncIterator()
    let context = try place.context()
    var last: [ManagedObjectID] = []
    for number in 0..<10 {
      let person = context.person("p\(number)")
      try context.save()
      last.append(person.objectID)
    }
    let gap = try #require(await changes.next())
    #expect(gap.mayIncludeOthers && gap.inserted.isEmpty && gap.storeIdentifier == coordinator.persistentStores[0].identifier)
    for number in 7..<10 {
      let next = try #require(await changes.next())
      #expect(next.inserted == [last[number]] && !next.mayIncludeOthers)
    }
  }

  // MARK: Several contexts

  /// Adds one to a dog's chip again and again, each time in a save whose context has the new number as its name.
  ///
  /// So the names show the order of the saves of several contexts.
  static func countUp(_ coordinator: PersistentStoreCoordinator, _ dog: ManagedObjectID, times: Int) throws {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes), dog = try context.existingDog(dog)
    var saved = 0
    while saved < times {
      let number = (dog.chip ?? 0) + 1
      dog.chip = number
      context.name = "\(number)"
      do {
        try context.save()
        saved += 1
      } catch let error as PersistenceError where error.code == .conflict {
        try context.refresh(dog, mergeChanges: false)
      }
    }
  }

  /// Counts up in three contexts at the same time.
  static func countUpInThreeContexts(_ coordinator: PersistentStoreCoordinator, _ dog: ManagedObjectID, times: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { try await onThread { try Self.countUp(coordinator, dog, times: times) } } }
      try await group.waitForAll()
    }
  }

  /// What a reader has received.
  struct Received: Equatable {
    var saves = 0
    var gaps = 0
    /// The first save that came twice, too late or after a gap that wasn't signalled, or whose objects are wrong.
    var wrong: SavedChanges?
  }

  /// Reads the saves of ``countUp(_:_:times:)`` until the last one.
  static func read(_ changes: AsyncStream<SavedChanges>, of dog: ManagedObjectID, through last: Int) async -> Received {
    var received = Received(), known = 0, followsGap = false
    for await next in changes {
      if next.mayIncludeOthers {
        received.gaps += 1
        followsGap = true
        continue
      }
      let number = Int(next.contextName) ?? 0
      let isNext = followsGap ? number > known + 1 : number == known + 1
      if !isNext || next.updated != [dog] || !next.inserted.isEmpty || !next.deleted.isEmpty { received.wrong = received.wrong ?? next }
      received.saves += 1
      (known, followsGap) = (number, false)
      if number == last { break }
    }
    return received
  }

  /// Readers that keep up receive each save once and in order. The others learn of each gap, and at most as many saves wait for them as
  /// they want. All of them receive the last save.
  @Test(arguments: TestStore.allCases) func RD8_everyReaderReceivesTheSavesOnceAndInOrder(_ store: TestStore) async throws {
    let times = store == .memory ? TestTier.count(200, full: 340_000) : TestTier.count(30, full: 3000), all = 3 * times
    let place = try store.makePlace(), coordinator = try place.coordinator(), setup = try place.context(), fido = setup.dog("Fido")
    try setup.save()
    let dog = fido.objectID
    let streams = [all, all, 4, 4].map { coordinator.savedChanges(bufferingNewest: $0) }
    async let first = Self.read(streams[0], of: dog, through: all)
    async let second = Self.read(streams[1], of: dog, through: all)
    async let slow = Self.read(streams[2], of: dog, through: all)
    try await Self.countUpInThreeContexts(coordinator, dog, times: times)
    let quick = await [first, second], behind = await slow
    #expect(quick == [Received(saves: all), Received(saves: all)])
    #expect(behind.wrong == nil && (behind.gaps > 0 || behind.saves == all), "\(behind)")
    // One that reads nothing until the end: four saves have waited for it.
    let late = await Self.read(streams[3], of: dog, through: all)
    #expect(late == Received(saves: 4, gaps: 1))
    try coordinator.close()
  }

  @Test func theSequenceEndsWithTheCoordinatorAndWithItsTask() async throws {
    let place = try TestStore.memory.makePlace()
    var coordinator: PersistentStoreCoordinator? = try PersistentStoreCoordinator(model: Kennel.model, store: place.description)
    var changes = try #require(coordinator?.savedChanges()).makeAsyncIterator()
    let stream = try #require(coordinator?.savedChanges())
    let task = Task { for await _ in stream {} }
    task.cancel()
    await task.value
    coordinator = nil
    #expect(await changes.next() == nil)
  }
}
