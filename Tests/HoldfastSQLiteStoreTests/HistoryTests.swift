import Foundation
import Holdfast
import HoldfastSQLiteStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Persistent history in Core Data's tables.
@Suite struct HistoryTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.url.appendingPathComponent("Kennel.sqlite").path }

  private static func model(keepsValues: Bool = false) throws -> ManagedObjectModel {
    var name = AttributeDescription("name", .string)
    name.preservesValueInHistoryOnDeletion = true
    var born = AttributeDescription("born", .date, isOptional: true)
    born.preservesValueInHistoryOnDeletion = true
    return try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [name]),
      EntityDescription(
        "Dog", superentity: "Animal", attributes: [AttributeDescription("age", .integer16, default: .int16(1)), born],
        relationships: [
          .toOne("owner", to: "Person", inverse: "dogs"), .toMany("friends", to: "Dog", inverse: "friendOf"),
          .toMany("friendOf", to: "Dog", inverse: "friends"),
        ], userInfo: keepsValues ? [EntityDescription.historyValuesKey: "YES"] : [:]),
      EntityDescription(
        "Person", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
    ])
  }

  private func coordinator(
    keepsValues: Bool = false, tracking: SQLiteStoreOptions.HistoryTracking = .always, limit: Int? = nil
  ) throws -> PersistentStoreCoordinator {
    var options = SQLiteStoreOptions()
    options.historyTracking = tracking
    options.maximumHistoryChangeCount = limit
    return try PersistentStoreCoordinator(model: Self.model(keepsValues: keepsValues), store: .sqlite(at: path, options: options))
  }

  private func context(_ coordinator: PersistentStoreCoordinator, author: String? = nil) throws -> ManagedObjectContext {
    let context = try ManagedObjectContext(coordinator: coordinator)
    context.transactionAuthor = author
    return context
  }

  private func insert(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let object = try context.insert(entityNamed: entity)
    try object.setValue(name, forKey: "name")
    return object
  }

  // MARK: What is kept

  @Test func savesAreKeptWithTheirChanges() throws {
    let coordinator = try coordinator(), context = try context(coordinator, author: "test")
    context.name = "import"
    let start = try coordinator.currentPersistentHistoryToken()
    let ann = try insert("Person", "Ann", context), fido = try insert("Dog", "Fido", context), rex = try insert("Dog", "Rex", context)
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

  @Test func valuesBeforeAndAfterAreKeptOnRequest() throws {
    let coordinator = try coordinator(keepsValues: true), context = try context(coordinator)
    let fido = try insert("Dog", "Fido", context), ann = try insert("Person", "Ann", context)
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

  @Test func aSaveThatFailsLeavesNoHistory() throws {
    let coordinator = try coordinator(), first = try context(coordinator), second = try context(coordinator)
    let fido = try insert("Dog", "Fido", first)
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

  @Test func transactionsAreFoundByAuthorTimeAndPredicate() throws {
    let coordinator = try coordinator()
    let before = Date.now.addingTimeInterval(-1)
    for (number, author) in ["a", "b", "a", "c"].enumerated() {
      let context = try context(coordinator, author: author)
      _ = try insert(number == 3 ? "Person" : "Dog", "\(number)", context)
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

  // MARK: Tokens and deletion

  private func fill(_ coordinator: PersistentStoreCoordinator, _ count: Int) throws -> [PersistentHistoryToken] {
    let context = try context(coordinator)
    return try (0..<count).map { number in
      _ = try insert("Dog", "\(number)", context)
      try context.save()
      return try coordinator.currentPersistentHistoryToken()
    }
  }

  @Test func tokensOfDeletedTransactionsAreRefused() throws {
    let coordinator = try coordinator(), start = try coordinator.currentPersistentHistoryToken(), tokens = try fill(coordinator, 5)
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
    _ = try fill(coordinator, 1)
    #expect(try coordinator.fetchHistory(after: tokens[4]).transactions.map(\.transactionNumber) == [6])
    #expect(try coordinator.deleteHistory(upTo: nil, before: Date.now.addingTimeInterval(-60)) == 0)
    #expect(try coordinator.deleteHistory(upTo: nil, before: Date.now.addingTimeInterval(60)) == 1)
  }

  @Test func tokensOfOtherStoresAndLaterStatesAreRefused() throws {
    let coordinator = try coordinator()
    let tokens = try fill(coordinator, 2)
    let elsewhere = TemporaryFolder()
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let other = try PersistentStoreCoordinator(
      model: Self.model(), store: .sqlite(at: elsewhere.url.appendingPathComponent("Other.sqlite").path, options: options))
    // A token that doesn't include a store means its entire history.
    #expect(try other.fetchHistory(after: tokens[1]).transactions.isEmpty)
    let backup = folder.url.appendingPathComponent("Backup.sqlite").path
    try coordinator.close()
    try FileManager.default.copyItem(atPath: path, toPath: backup)
    let again = try self.coordinator()
    let later = try fill(again, 1)[0]
    try again.close()
    options.historyTracking = .ifPresent
    let restored = try PersistentStoreCoordinator(model: Self.model(), store: .sqlite(at: backup, options: options))
    let error = try #require(throws: StoreError.self) { try restored.fetchHistory(after: later) }
    #expect(error.code == .stateUnavailable)
    // Also when the copy has as many transactions of its own.
    _ = try fill(restored, 3)
    #expect(throws: StoreError.self) { try restored.fetchHistory(after: later) }
    #expect(try restored.fetchHistory(after: tokens[0]).transactions.count == 4)
  }

  @Test func theNumberOfChangesIsBounded() throws {
    let coordinator = try coordinator(limit: 20), context = try context(coordinator)
    for round in 0..<30 {
      for number in 0..<3 { _ = try insert("Dog", "\(round) \(number)", context) }
      try context.save()
      let count = try coordinator.fetchHistory().changes.count
      #expect(count <= 20 && count >= min(3 * (round + 1), 15))
    }
    // The last transaction is kept, even if it is larger than the limit.
    for number in 0..<50 { _ = try insert("Dog", "\(number)", context) }
    try context.save()
    #expect(try coordinator.fetchHistory().changes.count == 50)
  }

  // MARK: Files

  @Test func aFileWithHistoryKeepsItUnlessTheOptionsSayNever() throws {
    let first = try coordinator()
    _ = try fill(first, 1)
    try first.close()
    let second = try coordinator(tracking: .ifPresent)
    _ = try fill(second, 1)
    #expect(try second.fetchHistory().transactions.count == 2)
    try second.close()
    let third = try coordinator(tracking: .never)
    _ = try fill(third, 1)
    #expect(try third.fetchHistory().transactions.count == 2)
    try third.close()
  }

  @Test func aFileWithoutHistoryGetsNoneByItself() throws {
    let first = try coordinator(tracking: .ifPresent), context = try context(first)
    _ = try insert("Dog", "Fido", context)
    try context.save()
    let error = try #require(throws: StoreError.self) { try first.fetchHistory() }
    #expect(error.code == .unsupportedRequest)
    #expect(throws: StoreError.self) { try first.currentPersistentHistoryToken() }
    // Another process that wants history adds it while the store is open.
    try first.close()
    let second = try coordinator()
    #expect(try second.fetchHistory().transactions.isEmpty)
    _ = try fill(second, 1)
    #expect(try second.fetchHistory().transactions.count == 1)
  }

  @Test func theTablesAreThoseOfCoreData() throws {
    let coordinator = try coordinator()
    _ = try fill(coordinator, 1)
    try coordinator.close()

    let numbers = try SQL.rows(path, "SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000 ORDER BY 1")
    #expect(numbers == [["16001", "CHANGE", "1"], ["16002", "TRANSACTION", "1"], ["16003", "TRANSACTIONSTRING", "1"]])
    let columns = try SQL.rows(path, "SELECT name FROM pragma_table_info('ACHANGE')").map { $0[0] }
    #expect(
      columns == [
        "Z_PK", "Z_ENT", "Z_OPT", "ZCHANGETYPE", "ZENTITY", "ZENTITYPK", "ZTRANSACTIONID", "ZCOLUMNS", "ZTOMBSTONE0", "ZTOMBSTONE1",
      ])
    #expect(
      try SQL.rows(path, "SELECT Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID FROM ACHANGE") == [["16001", "0", "2", "1", "1"]])
  }

  @Test func aDamagedHistoryIsReported() throws {
    let coordinator = try coordinator()
    _ = try fill(coordinator, 2)
    try coordinator.close()
    for damage in [
      "UPDATE ACHANGE SET ZCHANGETYPE = 9", "UPDATE ACHANGE SET ZCHANGETYPE = 0, ZENTITYPK = -4",
      "UPDATE ATRANSACTION SET ZTIMESTAMP = 'x'",
    ] {
      _ = try SQL.rows(path, damage)
      let again = try self.coordinator()
      let error = try #require(throws: StoreError.self) { try again.fetchHistory() }
      #expect(error.code == .damaged)
      #expect(try again.deleteHistory(upTo: nil) >= 0)
      _ = try fill(again, 1)
      #expect(try again.fetchHistory().transactions.count == 1)
      try again.close()
    }
  }

  @Test func aMigrationKeepsTheHistory() throws {
    let first = try coordinator(keepsValues: true), context = try context(first)
    let fido = try insert("Dog", "Fido", context), ann = try insert("Person", "Ann", context)
    try context.save()
    try fido.setValue(3, forKey: "age")
    try ann.setValue("Anna", forKey: "name")
    try context.save()
    let token = try first.currentPersistentHistoryToken(), (fidoID, annID) = (fido.objectID.key, ann.objectID.key)
    try first.close()
    // A new entity shifts the numbers of the others, Dog gets an attribute, and Animal is renamed.
    var model = try Self.model().declarations
    model.append(EntityDescription("Aardvark", attributes: [AttributeDescription("name", .string, isOptional: true)]))
    let dog = try #require(model.firstIndex { $0.name == "Dog" })
    model[dog].attributes.append(AttributeDescription("weight", .double, isOptional: true))
    var options = SQLiteStoreOptions()
    options.historyTracking = .ifPresent
    let second = try PersistentStoreCoordinator(model: ManagedObjectModel(entities: model), store: .sqlite(at: path, options: options))
    let history = try second.fetchHistory()
    let changes = history.transactions[1].changes
    #expect(Set(changes.map(\.changedObjectID.entityName)) == ["Dog", "Person"])
    let changedDog = try #require(changes.first { $0.changedObjectID.entityName == "Dog" && $0.changedObjectID.key == fidoID })
    #expect(
      changedDog.updatedProperties == nil
        && changes.first { $0.changedObjectID.key == annID && $0 != changedDog }?.updatedProperties == ["name"])
    #expect(try second.fetchHistory(after: token).transactions.isEmpty)
    let again = try self.context(second)
    again.delete(try again.existingObject(with: changedDog.changedObjectID))
    try again.save()
    let last = try second.fetchHistory(after: token).changes
    #expect(last.map(\.changeType) == [.delete] && last[0].tombstone == ["name": .string("Fido")])
  }

  @Test func keptValuesMayBeInfinite() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Star", attributes: [AttributeDescription("distance", .double), AttributeDescription("seen", .date, isOptional: true)],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options))
    let context = try context(coordinator), star = try context.insert(entityNamed: "Star")
    try star.setValue(.double(.infinity), forKey: "distance")
    try context.save()
    try star.setValue(.double(-.infinity), forKey: "distance")
    try context.save()
    let changes = try coordinator.fetchHistory().changes
    #expect(changes.map(\.valuesAfter?["distance"]) == [.double(.infinity), .double(-.infinity)])
  }

  @Test func transactionsOfOneStoreStayInTheirOrder() throws {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let model = try ManagedObjectModel(
      entities: ["A", "B"].map { EntityDescription($0, attributes: [AttributeDescription("name", .string, isOptional: true)]) },
      configurations: [ConfigurationDescription("a", ["A"]), ConfigurationDescription("b", ["B"])])
    let stores = [
      StoreDescription.sqlite(at: path, options: options).with(configuration: "a"),
      .sqlite(at: folder.file("b.sqlite"), options: options).with(configuration: "b"),
    ]
    let first = try PersistentStoreCoordinator(model: model, stores: stores), context = try context(first)
    for number in 0..<6 {
      _ = try context.insert(entityNamed: number % 2 == 0 ? "A" : "B")
      try context.save()
    }
    let identifier = first.persistentStores[0].identifier
    try first.close()
    // The clock was set back.
    _ = try SQL.rows(path, "UPDATE ATRANSACTION SET ZTIMESTAMP = ZTIMESTAMP - 1000 WHERE Z_PK = 3")
    let second = try PersistentStoreCoordinator(model: model, stores: stores), transactions = try second.fetchHistory().transactions
    #expect(transactions.count == 6)
    #expect(transactions.filter { $0.storeIdentifier == identifier }.map(\.transactionNumber) == [1, 2, 3])
    let copy = try second.fetchHistory(after: second.fetchHistory(limit: 2).token)
    #expect(copy.transactions.map(\.transactionNumber) == [3, 3])
  }

  @Test func invalidKeysOfADamagedFileAreReported() throws {
    let first = try coordinator()
    _ = try fill(first, 1)
    try first.close()
    // Too small a key is corrected.
    _ = try SQL.rows(path, "UPDATE Z_PRIMARYKEY SET Z_MAX = 'x' WHERE Z_ENT > 16000")
    let second = try coordinator()
    _ = try fill(second, 1)
    #expect(try second.fetchHistory().transactions.map(\.transactionNumber) == [1, 2])
    try second.close()
    for (damage, repair) in [
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807 WHERE Z_ENT = 16001", "UPDATE Z_PRIMARYKEY SET Z_MAX = 50 WHERE Z_ENT = 16001"),
      ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16001", "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 50)"),
    ] {
      _ = try SQL.rows(path, damage)
      let coordinator = try coordinator()
      let error = try #require(throws: StoreError.self) { try fill(coordinator, 1) }
      #expect(error.code == .damaged)
      try coordinator.close()
      _ = try SQL.rows(path, repair)
      let again = try self.coordinator()
      _ = try fill(again, 1)
      try again.close()
    }
  }
}
