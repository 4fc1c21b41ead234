import Holdfast
import HoldfastStore
import Synchronization
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

  /// Every change is delivered once and in order, or a gap is signalled before the next one, while several contexts save.
  @Test(arguments: [4, 2_000_000]) func RD8_noChangeIsLostSilently(_ limit: Int) async throws {
    let count = TestTier.count(300, full: 340_000), place = try TestStore.memory.makePlace(), coordinator = try place.coordinator()
    var changes = coordinator.savedChanges(bufferingNewest: limit).makeAsyncIterator()
    let writers = Task {
      await withTaskGroup(of: Void.self) { group in
        for writer in 0..<3 {
          group.addTask {
            guard let context = try? place.context() else { return }
            for number in 0..<count {
              context.person("\(writer) \(number)")
              try? context.save()
            }
          }
        }
      }
      let last = try place.context()
      last.name = "last"
      last.person("last")
      try last.save()
    }
    var keys: [ObjectKey] = [], gaps = 0
    while let next = await changes.next() {
      if next.contextName == "last" { break }
      if next.mayIncludeOthers { gaps += 1 } else { keys += next.inserted.map(\.key) }
    }
    try await writers.value
    #expect(Set(keys).count == keys.count)
    if gaps == 0 { #expect(keys.count == 3 * count) }
    if limit > 4 { #expect(gaps == 0) }
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
