import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Persistent history, on every store that keeps one.
@Suite struct HistoryTests {
  private let folder = TemporaryFolder()

  @Test(arguments: HistoryStore.allCases) func savesAreKeptWithTheirChanges(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), context = try HistoryModel.context(coordinator, author: "test")
    context.name = "import"
    let start = try coordinator.currentPersistentHistoryToken()
    let ann = try HistoryModel.insert("Person", "Ann", context), fido = try HistoryModel.insert("Dog", "Fido", context),
      rex = try HistoryModel.insert("Dog", "Rex", context)
    try fido.setValue(ann, forKey: "owner")
    try context.save()
    try fido.setValue(7, forKey: "age")
    try fido.toMany(forKey: "friends").insert(rex)
    try context.save()
    context.delete(ann)
    try rex.setValue(Date(timeIntervalSinceReferenceDate: 5), forKey: "born")
    try context.save()
    context.delete(rex)
    try context.save()

    let history = try coordinator.fetchHistory(after: start), transactions = history.transactions
    #expect(transactions.map(\.transactionNumber) == [1, 2, 3, 4])
    #expect(transactions.allSatisfy { $0.author == "test" && $0.contextName == "import" && $0.processID != nil })
    #expect(transactions.allSatisfy { abs($0.timestamp.timeIntervalSinceNow) < 600 })
    #expect(Set(transactions[0].changes.map(\.changedObjectID)) == [ann.objectID, fido.objectID, rex.objectID])
    #expect(transactions[0].changes.allSatisfy { $0.changeType == .insert && $0.updatedProperties == nil })
    let second = Dictionary(uniqueKeysWithValues: transactions[1].changes.map { ($0.changedObjectID, $0.updatedProperties ?? []) })
    #expect(second == [fido.objectID: ["age", "friends"], rex.objectID: ["friendOf"]])
    // The store clears the reference to the deleted owner.
    let third = Dictionary(uniqueKeysWithValues: transactions[2].changes.map { ($0.changedObjectID, $0) })
    #expect(third.count == 3 && third[ann.objectID]?.changeType == .delete)
    #expect(third[fido.objectID]?.updatedProperties == ["owner"] && third[rex.objectID]?.updatedProperties == ["born"])
    #expect(transactions[3].changes.map(\.tombstone) == [["name": .string("Rex"), "born": .date(5)]])
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
    #expect(try coordinator.fetchHistory(after: transactions[2].token).transactions == [transactions[3]])
    #expect(transactions[0].savedChanges.inserted.count == 3)
  }

  @Test(arguments: HistoryStore.allCases) func aSaveThroughAChildHasTheAuthorAndNameOfTheParent(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), parent = try HistoryModel.context(coordinator, author: "parent")
    let child = ManagedObjectContext(parent: parent)
    (parent.name, child.name, child.transactionAuthor) = ("editor", "draft", "child")
    let fido = try HistoryModel.insert("Dog", "Fido", child)
    try child.save()
    #expect(try coordinator.fetchHistory().transactions.isEmpty)
    try parent.save()
    let transactions = try coordinator.fetchHistory().transactions
    #expect(transactions.map(\.author) == ["parent"] && transactions.map(\.contextName) == ["editor"])
    #expect(transactions.flatMap(\.changes).map(\.changedObjectID) == [fido.objectID])
  }

  @Test(arguments: HistoryStore.allCases) func valuesBeforeAndAfterAreKeptOnRequest(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(keepsValues: true), folder), context = try HistoryModel.context(coordinator)
    let fido = try HistoryModel.insert("Dog", "Fido", context), ann = try HistoryModel.insert("Person", "Ann", context)
    try fido.setValue(ann, forKey: "owner")
    try context.save()
    try fido.setValue(7, forKey: "age")
    try fido.setValue("Max", forKey: "name")
    try context.save()
    context.delete(ann)
    try context.save()
    context.delete(fido)
    try context.save()
    let changes = try coordinator.fetchHistory { $0.changedObjectID == fido.objectID }.changes
    #expect(changes.map(\.changeType) == [.insert, .update, .update, .delete])
    #expect(changes[0].valuesBefore == nil && changes[0].valuesAfter?["age"] == .int16(1))
    #expect(changes[0].valuesAfter?["owner"] == .objectID(ann.objectID) && changes[0].valuesAfter?["born"] == .null)
    #expect(changes[1].valuesBefore == ["age": .int16(1), "name": .string("Fido")])
    #expect(changes[1].valuesAfter == ["age": .int16(7), "name": .string("Max")])
    #expect(changes[2].valuesBefore == ["owner": .objectID(ann.objectID)] && changes[2].valuesAfter == ["owner": .null])
    #expect(changes[3].valuesBefore?["name"] == .string("Max") && changes[3].valuesAfter == nil)
    // Other entities keep none.
    #expect(try coordinator.fetchHistory { $0.changedObjectID == ann.objectID }.changes.allSatisfy { $0.valuesAfter == nil })
  }

  /// A count is written without an update of its object. The bug: a value that is derived from the updated object was an updated property.
  @Test(arguments: HistoryStore.allCases) func derivedAttributesAreNotAmongTheChanges(_ store: HistoryStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        attributes: [
          AttributeDescription("name", .string), .derived("call", .string, "uppercase:(name)"), .derived("changed", .date, "now()"),
        ],
        relationships: [.toOne("owner", to: "Person", inverse: "dogs")], userInfo: [EntityDescription.historyValuesKey: "YES"]),
      EntityDescription(
        "Person", attributes: [AttributeDescription("name", .string), .derived("dogCount", .integer64, "dogs.@count")],
        relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
    ])
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator)
    let ann = try HistoryModel.insert("Person", "Ann", context), fido = try HistoryModel.insert("Dog", "Fido", context)
    try context.save()
    try fido.setValue(ann, forKey: "owner")
    try fido.setValue("Max", forKey: "name")
    try context.save()
    let changes = try coordinator.fetchHistory().transactions.last?.changes ?? []
    #expect(changes.map(\.changedObjectID) == [fido.objectID])
    #expect(changes.map(\.updatedProperties) == [["name", "owner"]])
    #expect(changes.first?.valuesAfter == ["name": .string("Max"), "owner": .objectID(ann.objectID)])
    try coordinator.close()
  }

  @Test(arguments: HistoryStore.allCases) func aSaveThatFailsLeavesNoHistory(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), first = try HistoryModel.context(coordinator),
      second = try HistoryModel.context(coordinator)
    let fido = try HistoryModel.insert("Dog", "Fido", first)
    try first.save()
    let same = try second.existingObject(with: fido.objectID)
    try fido.setValue(2, forKey: "age")
    try first.save()
    let end = try coordinator.currentPersistentHistoryToken()
    try same.setValue(3, forKey: "age")
    #expect(throws: PersistenceError.self) { try second.save() }
    #expect(try coordinator.fetchHistory(after: end).transactions.isEmpty)
    #expect(try coordinator.currentPersistentHistoryToken() == end)
  }

  /// The first save adds the table of values, and its transaction is rolled back.
  @Test(arguments: HistoryStore.allCases) func aStoreWhoseFirstSaveFailsKeepsValues(_ store: HistoryStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string)], uniquenessConstraints: [["name"]],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    let first = try store.coordinator(model, folder, .never), filling = try HistoryModel.context(first)
    _ = try HistoryModel.insert("Dog", "Fido", filling)
    try filling.save()
    try first.close()
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator)
    let twin = try HistoryModel.insert("Dog", "Fido", context)
    #expect(throws: PersistenceError.self) { try context.save() }
    try twin.setValue("Rex", forKey: "name")
    try context.save()
    #expect(try coordinator.fetchHistory().changes.map(\.valuesAfter) == [["name": .string("Rex")]])
  }

  @Test(arguments: HistoryStore.allCases) func aLinkOfARelationshipThatIsItsOwnInverseIsKeptOnce(_ store: HistoryStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("friends", to: "Dog", inverse: "friends")],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator)
    let dogs = try ["Fido", "Rex"].map { try HistoryModel.insert("Dog", $0, context) }
    try context.save()
    try dogs[0].toMany(forKey: "friends").insert(dogs[1])
    try context.save()
    try dogs[1].toMany(forKey: "friends").remove(dogs[0])
    try context.save()
    let (fido, rex) = (dogs[0].objectID, dogs[1].objectID), changes = try coordinator.fetchHistory().changes.dropFirst(2)
    #expect(changes.map(\.changedObjectID) == [fido, rex, fido, rex])
    #expect(changes.map(\.addedDestinations) == [["friends": [rex]], ["friends": [fido]], [:], [:]])
    #expect(changes.map(\.removedDestinations) == [[:], [:], ["friends": [rex]], ["friends": [fido]]])
  }

  /// The bug: whole-file stores compared the characters of authors.
  @Test(arguments: HistoryStore.allCases) func authorsAreComparedByTheirCodePoints(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), authors = ["Ren\u{E9}", "Rene\u{301}"]
    for author in authors {
      let context = try HistoryModel.context(coordinator, author: author)
      _ = try HistoryModel.insert("Dog", "Fido", context)
      try context.save()
    }
    #expect(try authors.map { try coordinator.fetchHistory(author: $0).transactions.map(\.transactionNumber) } == [[1], [2]])
  }

  /// The bug: the error was reported as an unknown one of the store.
  @Test(arguments: HistoryStore.allCases) func anErrorOfThePredicateIsThrown(_ store: HistoryStore) throws {
    struct Refusal: Error {}
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    _ = try HistoryModel.fill(coordinator, 2)
    #expect(throws: Refusal.self) { try coordinator.fetchHistory { _ in throw Refusal() } }
    #expect(try coordinator.fetchHistory { _ in false }.transactions.isEmpty && coordinator.fetchHistory().transactions.count == 2)
  }

  @Test(arguments: HistoryStore.allCases) func aPageOfNothingHasAValidToken(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), tokens = try HistoryModel.fill(coordinator, 3)
    try coordinator.deleteHistory(upTo: tokens[1])
    let token = try coordinator.fetchHistory(limit: 0).token
    #expect(try coordinator.fetchHistory(after: token).transactions.map(\.transactionNumber) == [3])
  }

  @Test(arguments: HistoryStore.allCases) func transactionsAreFoundByAuthorTimeAndPredicate(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    let before = Date.now.addingTimeInterval(-1)
    for (number, author) in ["a", "b", "a", "c"].enumerated() {
      let context = try HistoryModel.context(coordinator, author: author)
      _ = try HistoryModel.insert(number == 3 ? "Person" : "Dog", "\(number)", context)
      try context.save()
    }
    #expect(try coordinator.fetchHistory(author: "a").transactions.map(\.transactionNumber) == [1, 3])
    #expect(try coordinator.fetchHistory(author: "x").transactions.isEmpty)
    #expect(try coordinator.fetchHistory(since: before).transactions.count == 4)
    #expect(try coordinator.fetchHistory(since: Date.now.addingTimeInterval(60)).transactions.isEmpty)
    #expect(try coordinator.fetchHistory { $0.changedObjectID.entityName == "Person" }.transactions.map(\.transactionNumber) == [4])
    // Pages.
    var token: PersistentHistoryToken?, numbers: [Int64] = []
    for _ in 0..<6 {
      let page = try coordinator.fetchHistory(after: token, limit: 1)
      token = page.token
      numbers += page.transactions.map(\.transactionNumber)
    }
    #expect(numbers == [1, 2, 3, 4])
    #expect(try coordinator.fetchHistory(after: token).transactions.isEmpty)
    let coded = try JSONDecoder().decode(PersistentHistoryToken.self, from: JSONEncoder().encode(token))
    #expect(coded == token)
  }

  /// The time of a transaction includes it in a fetch, and ends a deletion before it.
  @Test(arguments: HistoryStore.allCases) func transactionsAreFetchedAndDeletedByTheirTimes(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    _ = try HistoryModel.fill(coordinator, 5)
    let all = try coordinator.fetchHistory().transactions
    for transaction in all {
      // The clock may have been set back meanwhile.
      let time = transaction.timestamp, later = all.filter { $0.timestamp >= time }
      let found = try coordinator.fetchHistory(since: time)
      #expect(found.transactions == later)
      #expect(try coordinator.fetchHistory(since: time, limit: 1).transactions == Array(later.prefix(1)))
      let next = later.filter { $0.transactionNumber > transaction.transactionNumber }
      #expect(try coordinator.fetchHistory(after: transaction.token, since: time).transactions == next)
      // It is the position after all transactions.
      #expect(try coordinator.fetchHistory(after: found.token).transactions.isEmpty)
    }
    // No transaction is earlier than NaN.
    #expect(try coordinator.deleteHistory(upTo: nil, before: Date(timeIntervalSinceReferenceDate: .nan)) == 0)
    let limit = all[3].timestamp, deleted = all.prefix { $0.timestamp < limit }
    #expect(try coordinator.deleteHistory(upTo: nil, before: limit) == deleted.count)
    #expect(try coordinator.fetchHistory().transactions == Array(all.dropFirst(deleted.count)))
    // Both limits hold.
    #expect(try coordinator.deleteHistory(upTo: all[4].token, before: limit) == 0)
    #expect(try coordinator.deleteHistory(upTo: all[3].token, before: Date.now.addingTimeInterval(600)) == 4 - deleted.count)
    #expect(try coordinator.fetchHistory().transactions == [all[4]])
  }

  /// Its token is encoded. Another process saves meanwhile, and so does the program before it reads the history.
  @Test(.ownThreads, arguments: HistoryStore.allCases) func aProgramThatWasAwayGetsEachTransactionOnce(_ store: HistoryStore) async throws {
    let first = try store.coordinator(HistoryModel.model(), folder)
    try HistoryModel.save("known", first)
    let encoded = try JSONEncoder().encode(first.currentPersistentHistoryToken())
    try HistoryModel.save("own", first)
    try first.close()
    await #expect(processExitsWith: .success) { [path = store.path(folder) as String, store = store as HistoryStore] in
      let other = try PersistentStoreCoordinator(model: HistoryModel.model(), store: store.description(path))
      for name in ["elsewhere", "again"] { try HistoryModel.save(name, other) }
      try other.close()
    }
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    try HistoryModel.save("last", coordinator)
    let token = try JSONDecoder().decode(PersistentHistoryToken.self, from: encoded)
    let history = try coordinator.fetchHistory(after: token), context = try HistoryModel.context(coordinator)
    #expect(history.transactions.map(\.transactionNumber) == [2, 3, 4, 5])
    let names = try history.changes.map { try context.existingObject(with: $0.changedObjectID).value(forKey: "name") }
    #expect(names == ["own", "elsewhere", "again", "last"].map { PropertyValue.single(.string($0)) })
    #expect(try coordinator.fetchHistory(after: history.token).transactions.isEmpty)
  }

  /// The program does what the error advises. Transactions that are committed after that aren't missed.
  @Test(arguments: HistoryStore.allCases) func theErrorOfADeletedTokenSaysWhatToDo(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), tokens = try HistoryModel.fill(coordinator, 3)
    try coordinator.deleteHistory(upTo: tokens[1])
    let error = try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: tokens[0]) }
    #expect(error.reason.contains("Take the current token, then read the objects, and continue with it"), "\(error)")
    let token = try coordinator.currentPersistentHistoryToken()
    try HistoryModel.save("meanwhile", coordinator)
    let objects = try HistoryModel.context(coordinator).fetch(FetchRequest<ManagedObject>(entityName: "Dog"))
    #expect(objects.count == 4)
    #expect(try coordinator.fetchHistory(after: token).transactions.map(\.transactionNumber) == [4])
  }

  @Test(arguments: HistoryStore.allCases) func tokensOfDeletedTransactionsAreRefused(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), start = try coordinator.currentPersistentHistoryToken(),
      tokens = try HistoryModel.fill(coordinator, 5)
    #expect(try coordinator.deleteHistory(upTo: tokens[2]) == 3)
    for token in [start, tokens[0], tokens[1]] {
      let error = try #require(throws: StoreError.self) { try coordinator.fetchHistory(after: token) }
      #expect(error.code == .stateUnavailable && error.coreDataCode == 134301)
    }
    #expect(try coordinator.fetchHistory(after: tokens[2]).transactions.map(\.transactionNumber) == [4, 5])
    #expect(try coordinator.fetchHistory().transactions.count == 2)
    #expect(try coordinator.deleteHistory(upTo: nil) == 2 && coordinator.deleteHistory(upTo: nil) == 0)
    #expect(try coordinator.fetchHistory(after: tokens[4]).transactions.isEmpty)
    #expect(throws: StoreError.self) { try coordinator.fetchHistory(after: tokens[3]) }
    let before = Date.now.addingTimeInterval(-60)
    _ = try HistoryModel.fill(coordinator, 1)
    #expect(try coordinator.fetchHistory(after: tokens[4]).transactions.map(\.transactionNumber) == [6])
    #expect(try coordinator.deleteHistory(upTo: nil, before: before) == 0)
    #expect(try coordinator.deleteHistory(upTo: nil, before: Date.now.addingTimeInterval(60)) == 1)
  }

  /// The bug: with the option `.always`, the history contained the saves that made the copy.
  @Test(arguments: HistoryStore.allCases) func theHistoryOfACopyOfAnotherTypeBeginsAfterTheCopy(_ store: HistoryStore) throws {
    let other = HistoryStore.allCases[(HistoryStore.allCases.firstIndex(of: store) ?? 0) ^ 3]
    let source = try other.coordinator(HistoryModel.model(), folder)
    _ = try HistoryModel.fill(source, 3)
    try source.close()
    let copy = store.description(store.path(folder, "Copy"))
    try PersistentStoreCoordinator.copyPersistentStore(other.description(other.path(folder)), to: copy, model: HistoryModel.model())
    let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: copy)
    #expect(try coordinator.fetchHistory().transactions.isEmpty)
    let start = try coordinator.currentPersistentHistoryToken()
    try HistoryModel.save("after the copy", coordinator)
    let history = try coordinator.fetchHistory(after: start)
    #expect(history.transactions.count == 1 && history.changes.map(\.changeType) == [.insert])
    #expect(try coordinator.fetchHistory() == history)
    try coordinator.close()
  }

  /// The bug: a program that deleted what another one had already deleted got an error, although its token was of this history.
  @Test(arguments: HistoryStore.allCases) func transactionsThatAreAlreadyDeletedCanBeDeletedAgain(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder), start = try coordinator.currentPersistentHistoryToken(),
      tokens = try HistoryModel.fill(coordinator, 4)
    #expect(try coordinator.deleteHistory(upTo: tokens[2]) == 3)
    for token in [start] + Array(tokens[...2]) { #expect(try coordinator.deleteHistory(upTo: token) == 0) }
    #expect(try coordinator.deleteHistory(upTo: tokens[0], before: Date.now.addingTimeInterval(60)) == 0)
    #expect(try coordinator.fetchHistory().transactions.map(\.transactionNumber) == [4])
    #expect(try coordinator.deleteHistory(upTo: tokens[3]) == 1 && coordinator.deleteHistory(upTo: tokens[1]) == 0)
    #expect(throws: StoreError.self) { try coordinator.fetchHistory(after: tokens[1]) }
  }

  @Test(arguments: HistoryStore.allCases) func tokensOfOtherStoresAndLaterStatesAreRefused(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    let tokens = try HistoryModel.fill(coordinator, 2)
    let other = try store.coordinator(HistoryModel.model(), TemporaryFolder())
    let foreign = try #require(throws: StoreError.self) { try other.fetchHistory(after: tokens[1]) }
    #expect(foreign.code == .stateUnavailable)
    #expect(throws: StoreError.self) { try other.deleteHistory(upTo: tokens[1]) }
    let backup = store.path(folder, "Backup")
    try coordinator.close()
    try FileManager.default.copyItem(atPath: store.path(folder), toPath: backup)
    let again = try store.coordinator(HistoryModel.model(), folder)
    let later = try HistoryModel.fill(again, 1)[0]
    try again.close()
    let restored = try PersistentStoreCoordinator(model: HistoryModel.model(), store: store.description(backup, .ifPresent))
    let error = try #require(throws: StoreError.self) { try restored.fetchHistory(after: later) }
    #expect(error.code == .stateUnavailable)
    // Also when the copy has as many transactions of its own.
    _ = try HistoryModel.fill(restored, 3)
    #expect(throws: StoreError.self) { try restored.fetchHistory(after: later) }
    #expect(try restored.fetchHistory(after: tokens[0]).transactions.count == 4)
  }

  /// The program deletes what it has read, and fetches again, which finds nothing. Then a backup is restored, and has saves of its own.
  ///
  /// The bug: the answer's token didn't have the time of the deleted transaction, so the restored file skipped transactions.
  @Test(arguments: HistoryStore.allCases) func aTokenOfADeletedTransactionIsRefusedByARestoredBackup(_ store: HistoryStore) throws {
    let first = try store.coordinator(HistoryModel.model(), folder), backup = store.path(folder, "Backup")
    _ = try HistoryModel.fill(first, 1)
    try first.close()
    try FileManager.default.copyItem(atPath: store.path(folder), toPath: backup)
    let coordinator = try store.coordinator(HistoryModel.model(), folder), last = try HistoryModel.fill(coordinator, 2)[1]
    #expect(try coordinator.deleteHistory(upTo: last) == 3)
    let token = try coordinator.fetchHistory(after: last).token
    #expect(try token == last && coordinator.fetchHistory(after: last, limit: 0).token == last)
    try coordinator.close()
    let restored = try PersistentStoreCoordinator(model: HistoryModel.model(), store: store.description(backup, .ifPresent))
    _ = try HistoryModel.fill(restored, 3)
    let error = try #require(throws: StoreError.self) { try restored.fetchHistory(after: token) }
    #expect(error.code == .stateUnavailable)
    #expect(try restored.fetchHistory().transactions.map(\.transactionNumber) == [1, 2, 3, 4])
  }

  /// The bug: the token had no time, because its transaction was deleted, so the restored file skipped transactions.
  @Test(arguments: HistoryStore.allCases) func theCurrentTokenOfAnEmptyHistoryIsRefusedByARestoredBackup(_ store: HistoryStore) throws {
    let first = try store.coordinator(HistoryModel.model(), folder), backup = store.path(folder, "Backup")
    _ = try HistoryModel.fill(first, 1)
    try first.close()
    try FileManager.default.copyItem(atPath: store.path(folder), toPath: backup)
    let coordinator = try store.coordinator(HistoryModel.model(), folder)
    _ = try HistoryModel.fill(coordinator, 2)
    #expect(try coordinator.deleteHistory(upTo: nil) == 3)
    let token = try coordinator.currentPersistentHistoryToken()
    try HistoryModel.save("later", coordinator)
    #expect(try coordinator.fetchHistory(after: token).transactions.map(\.transactionNumber) == [4])
    try coordinator.close()
    let restored = try PersistentStoreCoordinator(model: HistoryModel.model(), store: store.description(backup, .ifPresent))
    _ = try HistoryModel.fill(restored, 3)
    #expect(try #require(throws: StoreError.self) { try restored.fetchHistory(after: token) }.code == .stateUnavailable)
    #expect(try #require(throws: StoreError.self) { try restored.deleteHistory(upTo: token) }.code == .stateUnavailable)
    #expect(try restored.fetchHistory().transactions.map(\.transactionNumber) == [1, 2, 3, 4])
    try restored.close()
  }

  @Test(arguments: HistoryStore.allCases) func aFileWithHistoryKeepsItUnlessTheOptionsSayNever(_ store: HistoryStore) throws {
    let first = try store.coordinator(HistoryModel.model(), folder)
    _ = try HistoryModel.fill(first, 1)
    try first.close()
    let second = try store.coordinator(HistoryModel.model(), folder, .ifPresent)
    _ = try HistoryModel.fill(second, 1)
    #expect(try second.fetchHistory().transactions.count == 2)
    try second.close()
    let third = try store.coordinator(HistoryModel.model(), folder, .never)
    _ = try HistoryModel.fill(third, 1)
    #expect(try third.fetchHistory().transactions.count == 2)
    try third.close()
  }

  @Test(arguments: HistoryStore.allCases) func aFileWithoutHistoryGetsNoneByItself(_ store: HistoryStore) throws {
    let first = try store.coordinator(HistoryModel.model(), folder, .ifPresent), context = try HistoryModel.context(first)
    _ = try HistoryModel.insert("Dog", "Fido", context)
    try context.save()
    let error = try #require(throws: StoreError.self) { try first.fetchHistory() }
    #expect(error.code == .unsupportedRequest)
    #expect(throws: StoreError.self) { try first.currentPersistentHistoryToken() }
    // Another process that wants history adds it while the store is open.
    try first.close()
    let second = try store.coordinator(HistoryModel.model(), folder)
    #expect(try second.fetchHistory().transactions.isEmpty)
    _ = try HistoryModel.fill(second, 1)
    #expect(try second.fetchHistory().transactions.count == 1)
  }

  @Test(arguments: HistoryStore.allCases) func aMigrationKeepsTheHistory(_ store: HistoryStore) throws {
    let first = try store.coordinator(HistoryModel.model(keepsValues: true), folder), context = try HistoryModel.context(first)
    let fido = try HistoryModel.insert("Dog", "Fido", context), ann = try HistoryModel.insert("Person", "Ann", context)
    try context.save()
    try fido.setValue(3, forKey: "age")
    try ann.setValue("Anna", forKey: "name")
    try context.save()
    let token = try first.currentPersistentHistoryToken(), (fidoID, annID) = (fido.objectID.key, ann.objectID.key)
    try first.close()
    // A new entity shifts the numbers of the others, and Dog gets an attribute.
    var model = try HistoryModel.model().declarations
    model.append(EntityDescription("Aardvark", attributes: [AttributeDescription("name", .string, isOptional: true)]))
    let dog = try #require(model.firstIndex { $0.name == "Dog" })
    model[dog].attributes.append(AttributeDescription("weight", .double, isOptional: true))
    let second = try store.coordinator(ManagedObjectModel(entities: model), folder, .ifPresent)
    let history = try second.fetchHistory()
    let changes = history.transactions[1].changes
    #expect(Set(changes.map(\.changedObjectID.entityName)) == ["Dog", "Person"])
    let changedDog = try #require(changes.first { $0.changedObjectID.entityName == "Dog" && $0.changedObjectID.key == fidoID })
    #expect(
      changedDog.updatedProperties == nil
        && changes.first { $0.changedObjectID.key == annID && $0 != changedDog }?.updatedProperties == ["name"])
    #expect(try second.fetchHistory(after: token).transactions.isEmpty)
    let again = try HistoryModel.context(second)
    again.delete(try again.existingObject(with: changedDog.changedObjectID))
    try again.save()
    let last = try second.fetchHistory(after: token).changes
    #expect(last.map(\.changeType) == [.delete] && last[0].tombstone == ["name": .string("Fido")])
  }

  @Test(arguments: HistoryStore.allCases) func keptValuesMayBeInfinite(_ store: HistoryStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Star", attributes: [AttributeDescription("distance", .double), AttributeDescription("seen", .date, isOptional: true)],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator),
      star = try context.insert(entityNamed: "Star")
    try star.setValue(.double(.infinity), forKey: "distance")
    try context.save()
    try star.setValue(.double(-.infinity), forKey: "distance")
    try context.save()
    let changes = try coordinator.fetchHistory().changes
    #expect(changes.map(\.valuesAfter?["distance"]) == [.double(.infinity), .double(-.infinity)])
  }

  /// The bug: the history named an ordered relationship only if it got objects or a new order.
  @Test(arguments: HistoryStore.allCases, [false, true])
  func anOrderedRelationshipThatLosesObjectsIsAnUpdatedProperty(_ store: HistoryStore, _ keepsValues: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Tour", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [
          .toMany("stops", to: "Stop", inverse: "tour", isOrdered: true),
          .toMany("starts", to: "Stop", inverse: "startOf", isOrdered: true),
        ]),
      EntityDescription(
        "Stop", relationships: [.toOne("tour", to: "Tour", inverse: "stops"), .toOne("startOf", to: "Tour", inverse: "starts")],
        userInfo: keepsValues ? [EntityDescription.historyValuesKey: "YES"] : [:]),
    ])
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator)
    let tours = try (0..<2).map { _ in try context.insert(entityNamed: "Tour") }
    let stops = try (0..<3).map { _ in try context.insert(entityNamed: "Stop") }
    let list = try tours[0].ordered(forKey: "stops"), starts = try tours[0].ordered(forKey: "starts")
    list.append(contentsOf: stops)
    starts.append(stops[0])
    try context.save()
    list.remove(at: 2)
    try context.save()
    try tours[1].ordered(forKey: "stops").append(stops[1])
    try tours[0].setValue("short", forKey: "name")
    try context.save()
    starts.removeAll()
    try context.save()
    // The owner of an object that is deleted isn't saved.
    context.delete(stops[1])
    try context.save()
    let updates = try coordinator.fetchHistory().changes.filter { $0.changeType == .update }
    func names(_ object: ManagedObject) -> [[String]?] {
      updates.filter { $0.changedObjectID == object.objectID }.map(\.updatedProperties)
    }
    #expect(names(tours[0]) == [["stops"], ["name", "stops"], ["starts"]] && names(tours[1]) == [["stops"]])
    #expect(names(stops[0]) == [["startOf"]] && names(stops[1]) == [["tour"]] && names(stops[2]) == [["tour"]])
  }

  @Test(arguments: HistoryStore.allCases) func placesOfAnOrderedRelationshipAreKept(_ store: HistoryStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Tour", relationships: [.toMany("stops", to: "Stop", inverse: "tour", isOrdered: true)],
        userInfo: [EntityDescription.historyValuesKey: "YES"]),
      EntityDescription("Stop", relationships: [.toOne("tour", to: "Tour", inverse: "stops")]),
    ])
    let coordinator = try store.coordinator(model, folder), context = try HistoryModel.context(coordinator)
    let tour = try context.insert(entityNamed: "Tour"), stops = try (0..<5).map { _ in try context.insert(entityNamed: "Stop") }
    let list = try tour.ordered(forKey: "stops")
    list.append(contentsOf: stops[0..<4])
    try context.save()
    list.move(from: 3, to: 0)
    list.append(stops[4])
    try context.save()
    list.remove(stops[0])
    try context.save()
    let ids = stops.map(\.objectID), changes = try coordinator.fetchHistory().changes.filter { $0.changedObjectID == tour.objectID }
    func places(_ places: [(Int, Int?)]) -> [String: [HistoryTransaction.PlacedLink]] {
      ["stops": places.map { .init(ids[$0], after: $1.map { ids[$0] }) }]
    }
    #expect(
      changes.map(\.placedDestinations) == [
        places([(0, nil), (1, 0), (2, 1), (3, 2)]), places([(3, nil), (4, 2)]), [:],
      ])
    // The entity at the other end keeps no values.
    let others = try coordinator.fetchHistory().changes.filter { $0.changedObjectID != tour.objectID }
    #expect(!others.isEmpty && others.allSatisfy { $0.placedDestinations == nil })
  }
}
