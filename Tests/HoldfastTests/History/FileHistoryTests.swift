import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// The history section of whole files.
@Suite struct FileHistoryTests {
  private let folder = TemporaryFolder()
  private static let wholeFiles = HistoryStore.allCases.filter { $0 != .sqlite }

  private func insert(_ count: Int, _ coordinator: PersistentStoreCoordinator) throws {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    for number in 0..<count { context.dog("\(number)") }
    try context.save()
  }

  @Test(arguments: wholeFiles) func theSizeIsBounded(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(Kennel.model, folder, limit: 2000)
    var most = 0
    for round in 1...60 {
      try insert(1, coordinator)
      let count = try coordinator.fetchHistory().transactions.count
      most = max(most, count)
      #expect(count == round || count > most / 2)
    }
    #expect(most > 5 && most < 30)
    // The last transaction is kept, even if it is larger than the limit.
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    for (place, dog) in try context.fetch(FetchRequest<Dog>()).enumerated() where place % 2 == 0 { dog.age += 1 }
    context.transactionAuthor = String(repeating: "a", count: 3000)
    try context.save()
    #expect(try coordinator.fetchHistory().transactions.map(\.changes.count) == [30])
    try coordinator.close()
    let again = try store.coordinator(Kennel.model, folder)
    #expect(try again.fetchHistory().transactions.map(\.transactionNumber) == [61])
  }

  @Test(arguments: wholeFiles) func theMetadataAndTheHistoryDontAffectEachOther(_ store: HistoryStore) throws {
    let first = try store.coordinator(Kennel.model, folder)
    try insert(2, first)
    try first.setMetadata(["a": .string("b")])
    try insert(1, first)
    #expect(try first.deleteHistory(upTo: first.fetchHistory(limit: 1).token) == 1)
    try first.close()
    let second = try store.coordinator(Kennel.model, folder, .ifPresent)
    #expect(second.metadata == ["a": .string("b")])
    #expect(try second.fetchHistory().transactions.map(\.transactionNumber) == [2])
  }

  /// As in the copy that a migration changes batch by batch.
  @Test(arguments: wholeFiles) func savesThatAreNotWrittenYetAreInTheHistory(_ store: HistoryStore) throws {
    let first = try store.coordinator(Kennel.model, folder), path = store.path(folder)
    try insert(40, first)
    try first.close()
    let description = try #require(store.description(path).inFileWithSmallCaches?(path))
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: description), state = StoreFileState(ofFileAt: path)
    try insert(1, coordinator)
    try insert(2, coordinator)
    #expect(try coordinator.fetchHistory().transactions.map(\.changes.count) == [40, 1, 2])
    #expect(StoreFileState(ofFileAt: path) == state)
    try coordinator.close()
    let again = try store.coordinator(Kennel.model, folder, .ifPresent)
    #expect(try again.fetchHistory().transactions.map(\.changes.count) == [40, 1, 2])
  }

  @Test(.ownThreads, arguments: wholeFiles, [false, true])
  func savesOfOtherProcessesAreInTheHistoryOfAnOpenStore(_ store: HistoryStore, _ isReadOnly: Bool) async throws {
    let first = try store.coordinator(Kennel.model, folder), path = store.path(folder)
    try insert(1, first)
    try first.close()
    let coordinator = try PersistentStoreCoordinator(
      model: Kennel.model, store: store.description(path, isReadOnly: isReadOnly))
    let token = try coordinator.currentPersistentHistoryToken()
    await #expect(processExitsWith: .success) { [path = path as String, name = store.rawValue as String] in
      guard let store = HistoryStore(rawValue: name) else { exit(3) }
      let other = try PersistentStoreCoordinator(model: Kennel.model, store: store.description(path))
      let context = try ManagedObjectContext(coordinator: other, classes: Kennel.classes)
      context.transactionAuthor = "other"
      context.dog("Rex")
      try context.save()
      try other.close()
    }
    let found = try coordinator.fetchHistory(after: token)
    #expect(found.transactions.map(\.author) == ["other"])
    // The rows are those of the history.
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let dog = try context.existingObject(with: #require(found.changes.first).changedObjectID)
    #expect(try dog.value(forKey: "name").storeValue == .string("Rex"))
    if !isReadOnly { try insert(1, coordinator) }
    #expect(try coordinator.fetchHistory().transactions.map(\.transactionNumber) == (isReadOnly ? [1, 2] : [1, 2, 3]))
  }

  /// Another program may need the transactions, and has chosen to keep all of them.
  @Test(arguments: HistoryStore.allCases) func aProgramThatOnlyContinuesAHistoryDeletesNothing(_ store: HistoryStore) throws {
    let first = try store.coordinator(Kennel.model, folder)
    for _ in 0..<5 { try insert(10, first) }
    try first.close()
    let second = try store.coordinator(Kennel.model, folder, .ifPresent, limit: 10)
    for _ in 0..<5 { try insert(10, second) }
    #expect(try second.fetchHistory().transactions.count == 10)
    try second.close()
    let third = try store.coordinator(Kennel.model, folder, limit: 10)
    try insert(1, third)
    #expect(try third.fetchHistory().transactions.count == 1)
    try third.close()
  }

  /// The maximum is that of the last program that wants the history. Another one can continue it for years.
  @Test(arguments: HistoryStore.allCases) func aProgramThatOnlyContinuesAHistoryKeepsItsMaximum(_ store: HistoryStore) throws {
    /// Inserts dogs one by one. Returns the number of transactions.
    func fill(_ tracking: HistoryTracking, limit: Int?) throws -> Int {
      let coordinator = try store.coordinator(Kennel.model, folder, tracking, limit: limit)
      for _ in 0..<40 { try insert(1, coordinator) }
      let count = try coordinator.fetchHistory().transactions.count
      try coordinator.close()
      return count
    }
    let limit = store == .sqlite ? 20 : 2000
    var few = [try fill(.always, limit: limit)]
    for own in [nil, 10, 1_000_000] { few.append(try fill(.ifPresent, limit: own)) }
    // Without a maximum, all are kept.
    let kept = try fill(.always, limit: nil), more = try fill(.ifPresent, limit: limit)
    #expect(kept > 40 && more == kept + 40)
    few += [try fill(.always, limit: limit), try fill(.ifPresent, limit: nil)]
    #expect(few.allSatisfy { $0 > 5 && $0 < 30 }, "\(few)")
  }

  /// The bug: an open SQLite store kept the maximum that the file had when it was opened, and deleted transactions.
  @Test(.ownThreads, arguments: HistoryStore.allCases)
  func aMaximumThatAnotherProcessChoosesAppliesToAStoreThatIsOpen(_ store: HistoryStore) async throws {
    let first = try store.coordinator(Kennel.model, folder, limit: store == .sqlite ? 20 : 2000)
    try insert(1, first)
    try first.close()
    let coordinator = try store.coordinator(Kennel.model, folder, .ifPresent)
    try insert(1, coordinator)
    await #expect(processExitsWith: .success) { [path = store.path(folder) as String, name = store.rawValue as String] in
      guard let store = HistoryStore(rawValue: name) else { exit(3) }
      let other = try PersistentStoreCoordinator(model: Kennel.model, store: store.description(path))
      let context = try ManagedObjectContext(coordinator: other, classes: Kennel.classes)
      context.dog("Rex")
      try context.save()
      try other.close()
    }
    for _ in 0..<40 { try insert(1, coordinator) }
    #expect(try coordinator.fetchHistory().transactions.map(\.transactionNumber) == (1...43).map { $0 })
    try coordinator.close()
  }

  /// A history without transactions doesn't contain the maximum.
  @Test(arguments: wholeFiles) func aHistoryThatWasDeletedHasTheDefaultMaximum(_ store: HistoryStore) throws {
    let first = try store.coordinator(Kennel.model, folder, limit: 2000)
    try insert(1, first)
    #expect(try first.deleteHistory(upTo: nil) == 1)
    try first.close()
    let second = try store.coordinator(Kennel.model, folder, .ifPresent), context = try ManagedObjectContext(coordinator: second)
    for number in 0..<4 {
      context.transactionAuthor = String(repeating: "\(number)", count: 400_000)
      try context.insert(entityNamed: "Dog").setValue("\(number)", forKey: "name")
      try context.save()
    }
    #expect(try second.fetchHistory().transactions.map(\.transactionNumber) == [4, 5])
    try second.close()
  }

  @Test func aTransactionIsALineOfAJSONFile() throws {
    let coordinator = try HistoryStore.json.coordinator(Kennel.model, folder)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    context.transactionAuthor = "import"
    for number in 0..<5 { context.dog("\(number)") }
    try context.save()
    for dog in try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])) where dog.name != "2" { dog.age += 1 }
    try context.save()
    try coordinator.close()
    let lines = try String(contentsOfFile: HistoryStore.json.path(folder), encoding: .utf8).split(separator: "\n")
    let start = try #require(lines.firstIndex { $0.hasPrefix("\"history\":") })
    #expect(lines[start] == "\"history\":[2," && lines[start + 3] == "],")
    #expect(
      lines[start + 2].hasPrefix(
        #"{"author":"import","changes":[{"entity":"Dog","keys":"1-2,4-5","kind":"updated","properties":["age"]}],"maximum":0,"number":2,"process":"#
      ))
  }

  @Test func anEditedHistoryIsReported() throws {
    let path = HistoryStore.json.path(folder)
    func edit(_ old: String, _ new: String) throws {
      let text = try String(contentsOfFile: path, encoding: .utf8)
      #expect(text.contains(old))
      try text.replacingOccurrences(of: old, with: new).write(toFile: path, atomically: true, encoding: .utf8)
    }
    func open() throws -> PersistentStoreCoordinator {
      var options = JSONStoreOptions()
      options.wholeFile.allowsUnverified = true
      options.wholeFile.historyTracking = .ifPresent
      return try PersistentStoreCoordinator(model: Kennel.model, store: .json(at: path, options: options))
    }
    let coordinator = try HistoryStore.json.coordinator(Kennel.model, folder)
    try insert(3, coordinator)
    try insert(1, coordinator)
    try coordinator.close()
    // Keys that aren't keys, and a wrong number: the objects can be read, the history can't.
    let damages = [
      ("1-3", "3-1"), ("3-1", "0"), ("0", "1-4611686018427387904"), ("1-4611686018427387904", "1-1000000000"),
    ].map { ("\"keys\":\"\($0)\"", "\"keys\":\"\($1)\"") }
    for (old, new) in damages + [("\"number\":1,", "\"number\":7,")] {
      try edit(old, new)
      let opened = try open()
      let error = try #require(throws: StoreError.self) { try opened.fetchHistory() }
      #expect(error.code == .damaged && error.reason.contains("Transaction 1"))
      try opened.close()
    }
    let opened = try open()
    #expect(try opened.deleteHistory(upTo: nil) == 2 && opened.fetchHistory().transactions.isEmpty)
    try opened.close()
    // Without any order, the file is refused.
    for list in ["[4611686018427387905]", "[-1]", "[0,{}]", "[]", "[{}]", "[1,2]", "[1,[]]", "[\"1\"]", "[1,null]", "{}"] {
      try edit("\"history\":[2\n]", "\"history\":\(list)")
      let error = try #require(throws: StoreError.self, "\(list)") { try open() }
      #expect(error.code == .damaged, "\(list)")
      try edit("\"history\":\(list)", "\"history\":[2\n]")
    }
  }

  /// Each change can name all keys, so the sum of their numbers is larger than an integer.
  @Test func changesThatTogetherNameTooManyKeysAreReported() throws {
    let path = HistoryStore.json.path(folder), coordinator = try HistoryStore.json.coordinator(Kennel.model, folder)
    try insert(3, coordinator)
    try coordinator.close()
    let text = try String(contentsOfFile: path, encoding: .utf8), change = #"{"entity":"Dog","keys":"1-3","kind":"inserted"}"#
    #expect(text.contains(change))
    let all = change.replacingOccurrences(of: "1-3", with: "1-4611686018427387904")
    try text.replacingOccurrences(of: change, with: "\(all),\(all)").write(toFile: path, atomically: true, encoding: .utf8)
    var options = JSONStoreOptions()
    (options.wholeFile.allowsUnverified, options.wholeFile.historyTracking) = (true, .ifPresent)
    let opened = try PersistentStoreCoordinator(model: Kennel.model, store: .json(at: path, options: options))
    let error = try #require(throws: StoreError.self) { try opened.fetchHistory() }
    #expect(error.code == .damaged && error.reason.contains("Transaction 1"))
    #expect(try opened.deleteHistory(upTo: nil) == 1)
    try opened.close()
  }

  @Test(arguments: [HistoryStore.json, .binary]) func everyChangedByteOfAHistoryIsFound(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(Kennel.model, folder), path = store.path(folder)
    try insert(3, coordinator)
    try insert(1, coordinator)
    try coordinator.close()
    let bytes = try TemporaryFolder.read(path), begin = Array("{\"changes\":".utf8)
    let places = TestBytes.places(of: begin, in: bytes)
    #expect(places.count == 2)
    for place in try #require(places.first)..<(try #require(places.last)) + 60 {
      var changed = bytes
      changed[place] ^= 1
      try TemporaryFolder.write(changed, to: path)
      let error = try #require(throws: StoreError.self, "\(place)") { try store.coordinator(Kennel.model, folder) }
      #expect(error.code == .damaged, "\(place): \(error)")
    }
  }

  @Test func aFormatWithoutHistoryRefusesIt() throws {
    var options = WholeFileOptions()
    options.historyTracking = .always
    let store = StoreDescription(format: NoHistory(), at: folder.file("a"), options: options)
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: Kennel.model, store: store) }
    #expect(error.code == .unsupportedRequest)
  }

  private struct NoHistory: StoreFileFormat {
    var storeType: String { "None" }
    private var error: StoreError { StoreError(.general, operation: "", reason: "") }
    func read(_ reader: FileReader, into loader: TableLoader) throws { throw error }
    func readHeader(_ reader: FileReader) throws -> StoreFileHeader { throw error }
    func readModel(_ reader: FileReader) throws -> ManagedObjectModel? { throw error }
    func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] { throw error }
  }

  @Test(arguments: wholeFiles) func aRepairedFileHasAllObjectsAndNoHistory(_ store: HistoryStore) throws {
    let coordinator = try store.coordinator(Kennel.model, folder)
    var tokens = [try coordinator.currentPersistentHistoryToken()]
    for count in [30, 4] {
      try insert(count, coordinator)
      tokens.append(try coordinator.currentPersistentHistoryToken())
    }
    try coordinator.close()
    var bytes = try Data(contentsOf: URL(filePath: store.path(folder)))
    // The end of the last transaction, or of the digest.
    bytes[bytes.count - (store == .binary ? 80 : 4)] ^= 1
    try bytes.write(to: URL(filePath: store.path(folder)))
    let target = store.description(store.path(folder, "Mended"), .ifPresent)
    let report = try PersistentStoreCoordinator.repairPersistentStore(
      store.description(store.path(folder)), to: target, model: Kennel.model)
    #expect(report.objectCounts["Dog"] == 34 && report.unreadableCount == 0)
    let mended = try PersistentStoreCoordinator(model: Kennel.model, store: target)
    #expect(throws: StoreError.self) { try mended.fetchHistory() }
    try mended.close()
    // A new history refuses the tokens of the former one.
    let again = try PersistentStoreCoordinator(model: Kennel.model, store: store.description(store.path(folder, "Mended")))
    try insert(2, again)
    for token in tokens {
      let error = try #require(throws: StoreError.self) { try again.fetchHistory(after: token) }
      #expect(error.code == .stateUnavailable)
    }
    #expect(try again.fetchHistory().transactions.map(\.changes.count) == [2])
  }

  /// Saves that aren't written yet have numbers, too. The bug: a new history could begin at the number of one of them, and accept its
  /// token.
  @Test(arguments: wholeFiles) func aNewHistoryRefusesTheTokensOfSavesThatWereNotWrittenAtOnce(_ store: HistoryStore) throws {
    let first = try store.coordinator(Kennel.model, folder), path = store.path(folder)
    try insert(80, first)
    try first.close()
    let description = try #require(store.description(path).inFileWithSmallCaches?(path))
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: description)
    var tokens: [PersistentHistoryToken] = []
    for _ in 0..<10 {
      try insert(1, coordinator)
      tokens.append(try coordinator.currentPersistentHistoryToken())
    }
    try coordinator.close()
    // The repaired file has no history.
    let target = store.description(store.path(folder, "Mended"))
    try PersistentStoreCoordinator.repairPersistentStore(store.description(path), to: target, model: Kennel.model)
    let again = try PersistentStoreCoordinator(model: Kennel.model, store: target)
    try insert(1, again)
    for token in tokens {
      let error = #expect(throws: StoreError.self) { try again.fetchHistory(after: token) }
      #expect(error?.code == .stateUnavailable)
    }
    #expect(try again.fetchHistory().transactions.map(\.changes.count) == [1])
    try again.close()
  }

  @Test func aLargeTransactionNumberIsKept() throws {
    let path = HistoryStore.json.path(folder), coordinator = try HistoryStore.json.coordinator(Kennel.model, folder)
    try insert(1, coordinator)
    #expect(try coordinator.deleteHistory(upTo: nil) == 1)
    try coordinator.close()
    for number in [Int64(1) << 53, (1 << 62) - 1] as [Int64] {
      let text = try String(contentsOfFile: path, encoding: .utf8), start = try #require(text.range(of: "\"history\":[")).upperBound
      let end = try #require(text[start...].firstIndex { !$0.isNumber })
      try text.replacingCharacters(in: start..<end, with: "\(number)").write(toFile: path, atomically: true, encoding: .utf8)
      var options = JSONStoreOptions()
      (options.wholeFile.allowsUnverified, options.wholeFile.historyTracking) = (true, .always)
      let opened = try PersistentStoreCoordinator(model: Kennel.model, store: .json(at: path, options: options))
      try insert(1, opened)
      #expect(try opened.fetchHistory().transactions.map(\.transactionNumber) == [number + 1])
      if number > Int64(1) << 60 {
        let error = try #require(throws: (any Error).self) { try insert(1, opened) }
        #expect("\(error)".contains("maximum number of transactions"))
      }
      #expect(try opened.deleteHistory(upTo: nil) == 1)
      try opened.close()
      let again = try HistoryStore.json.coordinator(Kennel.model, folder)
      #expect(try again.fetchHistory().transactions.isEmpty)
      try again.close()
    }
  }
}
