import Holdfast
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

  @Test func aSlowReaderMissesTheOldestAndNeverTheNewest() async throws {
    let place = try TestStore.memory.makePlace(), coordinator = try place.coordinator()
    var changes = coordinator.savedChanges(bufferingNewest: 3).makeAsyncIterator()
    let context = try place.context()
    var last: [ManagedObjectID] = []
    for number in 0..<10 {
      let person = context.person("p\(number)")
      try context.save()
      last.append(person.objectID)
    }
    for number in 7..<10 { #expect(await changes.next()?.inserted == [last[number]]) }
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
