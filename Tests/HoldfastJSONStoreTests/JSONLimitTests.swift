import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Files with the largest numbers of the format. A file that opens can be saved and opened again, or the save is refused with the reason.
@Suite(.bothReaders) struct JSONLimitTests {
  private let file: JSONFile
  private let text: String
  private static let last = StoreFileHeader.generations.upperBound

  init() throws {
    file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    text = try file.text()
  }

  private func edit(_ old: String, _ new: String) throws {
    let place = try #require(text.range(of: old), "\(old) is not in the file:\n\(text)")
    try file.write(JSONFile.sealed(text.replacingCharacters(in: place, with: new)))
  }

  private func rename(_ context: ManagedObjectContext, _ name: String) throws {
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    try author.setValue(.string(name), forKey: "name")
  }

  @Test(arguments: ["\(last)", "\"\(last)\""])
  func RG4_afterTheLastGenerationASaveIsRefusedAndTheFileStaysAsItWas(_ generation: String) throws {
    try edit("\"generation\":3", "\"generation\":\(generation)")
    let before = try file.bytes()
    let context = try file.context()
    try rename(context, "Eva")
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .unstorableValue && error.path == file.path && error.reason.contains("\(Self.last)"), "\(error)")
      #expect(context.hasChanges && !error.isRetryable)
    }
    let error = try #require(throws: StoreError.self) { try context.persistentStoreCoordinator.setMetadata(["a": .bool(true)]) }
    #expect(error.code == .unstorableValue && error.path == file.path, "\(error)")
    try context.persistentStoreCoordinator.close()
    let isAsBefore = try file.bytes() == before
    #expect(isAsBefore && file.refusal() == nil && file.names == [".store.json.lock", "store.json"])
  }

  @Test func RG4_theLastGenerationCanBeSavedAndOpensAgain() throws {
    try edit("\"generation\":3", "\"generation\":\(Self.last - 1)")
    let context = try file.context()
    try rename(context, "Eva")
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try file.text().contains("\"generation\":\"\(Self.last)\""))
    #expect(file.refusal() == nil)
  }

  @Test(arguments: ["0", "\(last + 1)", "\"\(last + 1)\"", "\(Int64.max)"])
  func RG4_aGenerationBeyondTheLastIsRefusedWhenTheFileIsOpened(_ generation: String) throws {
    try edit("\"generation\":3", "\"generation\":\(generation)")
    let refusal = try #require(file.refusal())
    #expect(refusal.code == .damaged && refusal.path == file.path && refusal.reason.contains("generation"), "\(refusal)")
  }

  @Test func RG4_theLargestVersionOfAnObjectIsFollowedByTheFirstAndOpensAgain() throws {
    try edit("\"name\":\"Ada\"", "\"$version\":\"\(Int64.max)\",\"name\":\"Ada\"")
    for name in ["Eva", "Ann"] {
      let context = try file.context()
      try rename(context, name)
      try context.save()
      try context.persistentStoreCoordinator.close()
      #expect(file.refusal() == nil)
    }
    #expect(try file.text().contains("\"$version\":2,\"name\":\"Ann\""))
  }

  @Test func RG4_withTheLastKeyInUseNothingCanBeInsertedAndEverythingElseSaved() throws {
    try edit("\"Sign\":2", "\"Sign\":\"\(TableLoader.nextKeys.upperBound)\"")
    let context = try file.context()
    let sign = try context.insert(entityNamed: "Sign")
    try sign.setValue(.string("new"), forKey: "text")
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .unstorableValue && error.path == file.path, "\(error)")
    context.delete(sign)
    try rename(context, "Eva")
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
  }

  // MARK: Options

  /// A count in a file, and the option that limits it.
  struct Limit: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let option: any WritableKeyPath<JSONStoreOptions, Int> & Sendable
    let bound: Int
    /// A text of the metadata or the model, and its replacement.
    let edit: @Sendable (_ count: Int) -> (String, String)
  }

  static let limits: [Limit] = [
    Limit(testDescription: "nesting", option: \.maximumNesting, bound: 20) { count in
      // The document and the model are two levels.
      let arrays = String(repeating: "[", count: count - 2) + String(repeating: "]", count: count - 2)
      return ("\"model\":{", "\"model\":{\"a\":\(arrays),")
    },
    Limit(testDescription: "a name", option: \.maximumNameByteCount, bound: 300) { count in
      ("\"metadata\":{", "\"metadata\":{\"\(String(repeating: "n", count: count))\":[\"null\",null]")
    },
    Limit(testDescription: "members of the metadata", option: \.maximumMemberCount, bound: 30) { count in
      ("\"metadata\":{", "\"metadata\":{" + (0..<count).map { "\"k\($0)\":[\"null\",null]" }.joined(separator: ","))
    },
  ]

  @Test(arguments: limits) func RG4_whatIsAtALimitIsReadAndWhatIsBeyondIsRefusedAndOptionsRaiseIt(_ limit: Limit) throws {
    var options = JSONStoreOptions()
    options[keyPath: limit.option] = limit.bound
    for (count, isWithin) in [(limit.bound - 1, true), (limit.bound, true), (limit.bound + 1, false)] {
      let (old, new) = limit.edit(count)
      try edit(old, new)
      let refusal = file.refusal(options: options)
      #expect((refusal == nil) == isWithin, "\(count): \(refusal as Any)")
      #expect(isWithin || refusal?.code == .damaged && refusal?.reason.contains("\(limit.bound)") == true, "\(count): \(refusal as Any)")
      var raised = options
      raised[keyPath: limit.option] = limit.bound + 1
      #expect(file.refusal(options: raised) == nil, "\(count), raised")
    }
  }

  private static func model(_ userInfo: [String: String] = [:]) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("age", .integer16, isOptional: true, default: .int16(1))],
        relationships: [.toMany("pups", to: "Dog", inverse: "dam", isOrdered: true), .toOne("dam", to: "Dog", inverse: "pups")],
        userInfo: userInfo)
    ])
  }

  /// Whether a new store can be created and saved. If so, it opens again. If not, no file remains.
  private static func isWithin(_ options: JSONStoreOptions, _ model: ManagedObjectModel, _ what: String) throws -> Bool {
    let folder = TemporaryFolder(), store = StoreDescription.json(at: folder.file("store.json"), options: options)
    do {
      let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
      let dog = try context.insert(entityNamed: "Dog"), pup = try context.insert(entityNamed: "Dog")
      try dog.setValue([pup], forKey: "pups")
      try context.save()
      try context.persistentStoreCoordinator.close()
    } catch let error as StoreError {
      #expect(error.code == .unstorableValue && error.reason.contains("limit in the options"), "\(what): \(error)")
      #expect(!folder.names.contains("store.json"), "\(what)")
      return false
    }
    #expect(throws: Never.self, "\(what)") { try PersistentStoreCoordinator(model: model, store: store).close() }
    #expect(throws: Never.self, "\(what)") { _ = try PersistentStoreCoordinator.cachedModel(for: store) }
    return true
  }

  @Test func RG4_aModelThatCouldNotBeReadAgainIsRefusedWhenTheStoreIsCreated() throws {
    let nested = try (1...20).map { try Self.isWithin(JSONStoreOptions(maximumNesting: $0), Self.model(), "\($0) levels") }
    // The objects alone need six levels.
    #expect(nested.firstIndex(of: true).map { $0 >= 5 } == true && nested.last == true, "\(nested)")
    for (count, isWithin) in [(50, true), (51, false)] {
      let names = Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", "") })
      #expect(try Self.isWithin(JSONStoreOptions(maximumMemberCount: 50), Self.model(names), "\(count) members") == isWithin)
      for character in ["n", "\"", "\\", "\n", "\u{1}"] {
        let name = String(repeating: character, count: count)
        let found = try Self.isWithin(JSONStoreOptions(maximumNameByteCount: 50), Self.model([name: "\"{:["]), "\(count) of \(character)")
        #expect(found == isWithin)
      }
    }
  }

  /// The bug: the file was saved, but couldn't be opened again.
  @Test func RG4_namesOfPropertiesAreNotLimitedInRowsAndInTheHistory() throws {
    let name = String(repeating: "n", count: 60), folder = TemporaryFolder()
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription(name, .string, isOptional: true)],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    var options = JSONStoreOptions(maximumNameByteCount: 50)
    options.wholeFile.historyTracking = .always
    let store = StoreDescription.json(at: folder.file("store.json"), options: options)
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    try context.insert(entityNamed: "Dog").setValue(.string("Rex"), forKey: name)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try PersistentStoreCoordinator(model: model, store: store)
    #expect(try again.fetchHistory().changes.first?.valuesAfter == [name: .string("Rex")])
    try again.close()
  }

  /// No program can save such an object, but a file can be edited. The limit of the file has to be raised for it.
  @Test func RG4_anObjectWhoseValuesAreLargerThanARowIsRefused() throws {
    let folder = TemporaryFolder(), store = StoreDescription.json(at: folder.file("store.json")), names = ["a", "b", "c"]
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: names.map { AttributeDescription($0, .string, isOptional: true) })
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    for _ in 0..<3 {
      let note = try context.insert(entityNamed: "Note")
      for name in names { try note.setValue(.string(String(repeating: name, count: 10_000)), forKey: name) }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    for (limit, isWithin) in [(40_000, true), (25_000, false), (8_000, false)] {
      let error = RowValues.$maximumByteCount.withValue(limit) { () -> StoreError? in
        do { try PersistentStoreCoordinator(model: model, store: store).close() } catch { return error as? StoreError }
        return nil
      }
      #expect((error == nil) == isWithin && (isWithin || error?.code == .damaged && error?.reason.contains("2 GiB") == true), "\(limit)")
    }
  }

  @Test func RG4_theUsualLimitsAreThoseThatAreSaid() {
    let options = JSONStoreOptions()
    #expect((options.maximumNesting, options.maximumNameByteCount, options.maximumMemberCount) == (64, 65_536, 65_536))
    #expect(options.wholeFile.file.maximumByteCount == 256 << 20)
    #expect(StoreFileHeader.generations == 1...(1 << 62) && TableLoader.keys == 1...ObjectKey(1 << 62))
  }

  // MARK: RX17

  /// Numbers at and beyond the limits of integer types.
  static let numbers = [
    "-1", "0", "2147483646", "2147483647", "2147483648", "2147483649", "4294967295", "4294967296", "4294967297", "4611686018427387903",
    "4611686018427387904", "4611686018427387905", "4611686018427387906", "9223372036854775806", "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "-2147483649", "-9223372036854775808", "-9223372036854775809", "1e18", "1e400", "0.5",
  ]

  /// Each index, count and position, one by one; a third of them unless all tests run.
  @Test(arguments: numbers) func RX17_aNumberBeyondAllBoundsIsRefusedOrReadAndSaved(_ number: String) throws {
    let pattern = try NSRegularExpression(
      pattern:
        "(?<=\"version\":|\"generation\":|\"\\$key\":|\"\\$version\":|\"shelf\":|\"(?:Shelf|Sign|Author|Book)\":)[0-9]+|(?<=[\\[,])[0-9]+(?=[\\],])"
    )
    let whole = text as NSString
    let places = pattern.matches(in: text, range: NSRange(location: 0, length: whole.length)).map(\.range)
    #expect(places.count > 30)
    let step = TestTier.step(3), chosen = stride(from: Int.random(in: 0..<step), to: places.count, by: step).map { places[$0] }
    var opened = 0
    for place in chosen {
      for written in [number, "\"\(number)\""] {
        let changed = whole.replacingCharacters(in: place, with: written)
        try? FileManager.default.removeItem(at: file.folder.appendingPathComponent(".store.json.lock"))
        try file.write(JSONFile.sealed(changed))
        do {
          try file.open()
          opened += 1
        } catch let error as StoreError {
          let isTyped = [.damaged, .newerFormat, .notAStore].contains(error.code) && error.path == file.path
          if !isTyped { Issue.record("\(whole.substring(with: place)) at \(place.location) became \(written): \(error)") }
        }
      }
    }
    print("RX17, \(number): \(2 * chosen.count) files, \(opened) opened")
  }
}
