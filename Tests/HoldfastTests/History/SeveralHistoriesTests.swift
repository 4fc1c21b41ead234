import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import TestSupport
import Testing

/// The histories of several stores of one coordinator.
@Suite struct SeveralHistoriesTests {
  private let folder = TemporaryFolder()

  /// A store of another kind.
  private func other(_ store: HistoryStore) -> HistoryStore {
    HistoryStore.allCases[(HistoryStore.allCases.firstIndex(of: store) ?? 0) ^ 3]
  }

  private func description(_ store: HistoryStore, _ name: String) -> StoreDescription { store.description(store.path(folder, name)) }

  private func context(_ coordinator: PersistentStoreCoordinator) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
  }

  /// A save that changes several stores has a transaction in the history of each. The store in memory has none.
  @Test(arguments: HistoryStore.allCases) func aSaveOfSeveralStoresIsInTheHistoryOfEach(_ store: HistoryStore) throws {
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model, stores: [description(store, "first"), .memory(), description(other(store), "third")])
    let stores = coordinator.persistentStores, writer = try context(coordinator), reader = try context(coordinator)
    writer.transactionAuthor = "writer"
    let dogs = try stores.enumerated().map { number, store in
      let dog = writer.dog("Dog \(number)", age: 1)
      try writer.assign(dog, to: store)
      return dog
    }
    try writer.save()
    let held = try dogs.map { try reader.existingDog($0.objectID) }
    #expect(held.map(\.age) == [1, 1, 1])
    let token = try coordinator.currentPersistentHistoryToken()
    for dog in dogs { dog.age = 2 }
    try writer.save()
    dogs[2].age = 3
    try writer.save()

    let history = try coordinator.fetchHistory(after: token)
    #expect(history.transactions.allSatisfy { $0.author == "writer" })
    for (place, numbers) in [(0, [2]), (1, []), (2, [2, 3])] as [(Int, [Int64])] {
      let found = history.transactions.filter { $0.storeIdentifier == stores[place].identifier }
      #expect(found.map(\.transactionNumber) == numbers)
      #expect(found.allSatisfy { $0.changes.map(\.changedObjectID) == [dogs[place].objectID] })
    }
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
    // The IDs are those of the coordinator.
    for transaction in history.transactions { try reader.mergeChanges(from: transaction.savedChanges) }
    #expect(held.map(\.age) == [2, 1, 3])

    // The token of a transaction is of one store.
    let first = try #require(history.transactions.first { $0.storeIdentifier == stores[0].identifier })
    #expect(try coordinator.deleteHistory(upTo: first.token) == 2)
    #expect(try coordinator.fetchHistory().transactions.map(\.transactionNumber) == [1, 2, 3])
    let error = try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: token) }
    #expect(error.code == .stateUnavailable)
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
    try coordinator.close()
  }

  /// The bug: the first store threw, and the history of the second one was kept.
  @Test(arguments: HistoryStore.allCases)
  func deletionGoesOnBehindAStoreWhoseHistoryWasAlreadyDeleted(_ store: HistoryStore) throws {
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model, stores: [description(store, "first"), description(other(store), "second")])
    let writer = try context(coordinator), stores = coordinator.persistentStores
    for number in 0..<4 { try writer.assign(writer.dog("Dog \(number)"), to: stores[number % 2]) }
    try writer.save()
    let token = try coordinator.currentPersistentHistoryToken()
    for number in 4..<6 { try writer.assign(writer.dog("Dog \(number)"), to: stores[number % 2]) }
    try writer.save()
    let last = try #require(coordinator.fetchHistory().transactions.last { $0.storeIdentifier == stores[0].identifier })
    #expect(try coordinator.deleteHistory(upTo: last.token) == 2)
    #expect(try coordinator.deleteHistory(upTo: token) == 1)
    let rest = try coordinator.fetchHistory().transactions
    #expect(rest.map(\.storeIdentifier) == [stores[1].identifier] && rest.map(\.transactionNumber) == [2])
    try coordinator.close()
  }

  /// The bug: the read-only store threw, and the history of the second one could never be deleted.
  @Test(arguments: HistoryStore.allCases) func deletionGoesOnBehindAReadOnlyStore(_ store: HistoryStore) throws {
    let path = store.path(folder, "fixed"), filling = try PersistentStoreCoordinator(model: Kennel.model, store: store.description(path))
    let first = try context(filling)
    first.dog("Rex")
    try first.save()
    try filling.close()
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model, stores: [store.description(path, isReadOnly: true), description(other(store), "second")])
    let stores = coordinator.persistentStores, writer = try context(coordinator)
    try writer.assign(writer.dog("Fido"), to: stores[1])
    try writer.save()
    #expect(try coordinator.deleteHistory(upTo: coordinator.currentPersistentHistoryToken()) == 1)
    #expect(try coordinator.fetchHistory().transactions.map(\.storeIdentifier) == [stores[0].identifier])
    try coordinator.remove(stores[1])
    #expect(try #require(throws: StoreError.self) { try coordinator.deleteHistory(upTo: nil) }.code == .readOnly)
    try coordinator.close()
  }

  @Test(arguments: HistoryStore.allCases)
  func theHistoryOfAStoreThatATokenDoesNotIncludeIsReadFromTheStart(_ store: HistoryStore) throws {
    let added = description(other(store), "added"), former = try PersistentStoreCoordinator(model: Kennel.model, store: added)
    let filling = try context(former), rex = filling.dog("Rex")
    try filling.save()
    let id = rex.objectID
    try former.close()
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: description(store, "first"))
    let first = try context(coordinator)
    first.dog("Fido")
    try first.save()
    let token = try coordinator.currentPersistentHistoryToken(), only = try #require(coordinator.persistentStores.first)
    #expect(try coordinator.fetchHistory(after: token).transactions.isEmpty)
    try coordinator.addPersistentStore(added)
    let history = try coordinator.fetchHistory(after: token)
    #expect(history.transactions.count == 1 && history.transactions.first?.storeIdentifier == id.storeIdentifier)
    #expect(history.changes.map(\.changedObjectID) == [id])
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
    // Now the token includes none of the stores.
    try coordinator.remove(only)
    #expect(try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: token) }.code == .stateUnavailable)
    #expect(try #require(throws: StoreError.self) { try coordinator.deleteHistory(upTo: token) }.code == .stateUnavailable)
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
    try coordinator.close()
  }

  /// The bug: the history of the other store was returned, as if the repaired store hadn't changed.
  @Test(arguments: [HistoryStore.json, .xml, .binary]) func aTokenOfAStoreThatHasLostItsHistoryIsRefused(_ store: HistoryStore) throws {
    let second = description(other(store), "second")
    let former = try PersistentStoreCoordinator(model: Kennel.model, stores: [description(store, "first"), second])
    let writer = try context(former)
    for (number, place) in former.persistentStores.enumerated() { try writer.assign(writer.dog("Dog \(number)"), to: place) }
    try writer.save()
    let token = try former.currentPersistentHistoryToken()
    try former.close()
    let mended = store.description(store.path(folder, "mended"), .ifPresent)
    try PersistentStoreCoordinator.repairPersistentStore(description(store, "first"), to: mended, model: Kennel.model)
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [mended, second])
    let error = try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: token) }
    #expect(error.code == .stateUnavailable && error.path?.contains("mended") == true, "\(error)")
    // The program does what the error advises.
    let current = try coordinator.currentPersistentHistoryToken()
    #expect(try coordinator.fetchHistory(after: current).transactions.isEmpty && coordinator.fetchHistory().transactions.count == 1)
    try coordinator.close()
  }

  @Test(arguments: [TestStore.memory, .weakest]) func aStoreWithoutAHistoryRefusesRequestsForIt(_ store: TestStore) throws {
    let context = try store.makePlace().context(), coordinator = context.persistentStoreCoordinator
    context.dog("Fido")
    try context.save()
    let requests: [() throws -> Void] = [
      { _ = try coordinator.fetchHistory() }, { _ = try coordinator.currentPersistentHistoryToken() },
      { _ = try coordinator.deleteHistory(upTo: nil) },
    ]
    for request in requests {
      let error = try #require(throws: StoreError.self) { try request() }
      #expect(error.code == .unsupportedRequest)
    }
    #expect(try namesOfDogs(context) == ["Fido"])
  }
}
