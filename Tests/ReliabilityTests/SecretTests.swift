import Foundation
import Holdfast
import HoldfastFiles
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import Logging
import TestSupport
import Testing

/// Nothing that a user has entered appears in errors or logs.
@Suite(.ownThreads) struct SecretTests {
  /// In a separate process, because a process has one logging system.
  @Test(arguments: FileStore.all) func RX19_noValueAppearsInErrorsOrLogs(store: FileStore) async throws {
    let folder = TemporaryFolder()
    let child = await #expect(processExitsWith: .success, observing: [\.standardErrorContent, \.standardOutputContent]) {
      [path = folder.file("letters") as String, store = store as FileStore] in
      LoggingSystem.bootstrap { label in
        var handler = StreamLogHandler.standardError(label: label)
        handler.logLevel = .debug
        return handler
      }
      try Secrets(store: store, path: path).makeMistakes()
    }
    let output = try #require(child)
    let text = String(decoding: output.standardOutputContent + output.standardErrorContent, as: UTF8.self)
    #expect(text.contains("ERROR too long") && text.contains("ERROR deleted history") && text.contains("store request"), "\(text)")
    if case .sqlite = store { #expect(text.contains("write-ahead log grows"), "\(text)") }
    for line in text.split(separator: "\n") {
      for form in Secrets.forms where line.contains(form) { Issue.record("\(store): \(form) is in: \(line)") }
    }
  }

  @Test func theFormsAreThoseThatErrorsWouldShow() throws {
    let values = Secrets.values.map { "\($0.value)" }
    // A description of data is its size.
    for value in values where !value.hasPrefix("data") { #expect(Secrets.forms.contains { value.contains($0) }, "\(value)") }
  }
}

/// A damaged file that could be read.
private struct Readable: Error {}

private final class Letter: ManagedObject {
  override class var entityName: String { "Letter" }
  var sender: String? {
    get { self[8] }
    set { self[8] = newValue }
  }
  override class var properties: [PropertyBinding] { [.attribute("sender", \Letter.sender, slot: 8)] }
}

/// Letters whose values can be recognized in any text, and mistakes with them.
private struct Secrets {
  let store: FileStore
  let path: String

  private static let number = 73_417_341
  private static let data = Data("73417341".utf8)
  private static let uid = UUID(uuidString: "73417341-7341-7341-7341-734173417341") ?? UUID()

  static let values: [(key: String, value: StoreValue)] = [
    ("sender", .string("canary 73417341")), ("code", .string("C73417341")), ("weight", .double(73_417_341.5)),
    ("price", .decimal(Decimal(string: "73417341.25") ?? 0)), ("sent", .date(73_417_341.5)), ("pages", .int32(Int32(number))),
    ("seal", .data(data)), ("uid", .uuid(uid)), ("link", .uri("x://73417341")),
  ]

  /// What the text of a value contains: the digits, also as bytes, in base 64 and as a date.
  static let forms = [
    "73417341", "7.3417341", "canary", data.base64EncodedString(), data.map { "\($0)" }.joined(separator: ", "),
    data.map { String($0, radix: 16) }.joined(), "2003-04-30", "2003-04-30".replacing("-", with: "/"),
  ]

  /// Policies that can't resolve a conflict.
  private static let failingPolicies: [(name: String, policy: MergePolicy)] = [
    ("error", .error),
    ("a policy that throws", .custom { throw PersistenceError(.conflict, reason: "The letter \($0.objectID) is in conflict.") }),
    ("a policy with a wrong value", .custom { _ in .values(["pages": .string("canary 73417341")]) }),
  ]

  private static func model(limits: Bool = true, seal: AttributeType = .binaryData) throws -> ManagedObjectModel {
    let least = AttributeValidation.range
    var sender = AttributeDescription("sender", .string, isOptional: true, validation: limits ? .length(nil, 20) : .none)
    sender.preservesValueInHistoryOnDeletion = true
    return try ManagedObjectModel(entities: [
      EntityDescription(
        "Letter",
        attributes: [
          sender,
          AttributeDescription("code", .string, isOptional: true, validation: limits ? .pattern("C[0-9]+") : .none),
          AttributeDescription("weight", .double, isOptional: true, validation: limits ? least(nil, .double(1e8)) : .none),
          AttributeDescription("price", .decimal, isOptional: true, validation: limits ? least(nil, .decimal(100_000_000)) : .none),
          AttributeDescription("sent", .date, isOptional: true, validation: limits ? least(nil, .date(1e8)) : .none),
          AttributeDescription("pages", .integer32, isOptional: true, validation: limits ? least(nil, .int32(100_000_000)) : .none),
          AttributeDescription("seal", seal, isOptional: true), AttributeDescription("uid", .uuid, isOptional: true),
          AttributeDescription("link", .uri, isOptional: true),
          AttributeDescription("number", .integer64, default: .int64(0)),
        ], relationships: [.toOne("answer", to: "Letter", inverse: "question"), .toOne("question", to: "Letter", inverse: "answer")],
        uniquenessConstraints: [["code"], ["sender", "pages"]], userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
  }

  /// A context of a coordinator that logs its requests.
  ///
  /// - Parameter reportsOthers: Whether the store reports saves of other processes.
  private func context(
    _ model: ManagedObjectModel? = nil, isReadOnly: Bool = false, reportsOthers: Bool = false
  ) throws -> ManagedObjectContext {
    let store = description(isReadOnly: isReadOnly, reportsOthers: reportsOthers).migrating(automatically: false)
    let coordinator = try PersistentStoreCoordinator(model: model ?? Self.model(), store: store)
    coordinator.logRequests()
    return try ManagedObjectContext(coordinator: coordinator)
  }

  /// The store with a history that keeps values, and a SQLite store with a short log.
  private func description(isReadOnly: Bool = false, reportsOthers: Bool = false) -> StoreDescription {
    if case .sqlite = store {
      var options = SQLiteStoreOptions(isReadOnly: isReadOnly, checkpointPages: 4, statementLogging: .statements)
      (options.historyTracking, options.reportsOtherProcesses) = (.always, reportsOthers)
      return .sqlite(at: path, options: options)
    }
    var options = WholeFileOptions(file: DurableFileOptions(isReadOnly: isReadOnly))
    (options.historyTracking, options.reportsOtherProcesses) = (.always, reportsOthers)
    return store.description(at: path, options)
  }

  private func letter(_ context: ManagedObjectContext, _ changes: [String: StoreValue] = [:]) throws -> ManagedObject {
    let letter = try context.insert(entityNamed: "Letter")
    for (key, value) in Self.values { try letter.setValue(value, forKey: key) }
    for (key, value) in changes { try letter.setValue(value, forKey: key) }
    return letter
  }

  /// Prints an error in every way that a program would.
  private func expectError(_ name: String, _ body: () throws -> Void) {
    do { try body() } catch {
      if error is Readable { return }
      print("ERROR \(name): \(error)\n\(String(reflecting: error))\n\(error.localizedDescription)")
      if let error = error as? any LocalizedError { print("\(error.failureReason ?? "") \(error.recoverySuggestion ?? "")") }
      for failure in (error as? PersistenceError)?.failures ?? [] { print(failure) }
      return
    }
    fatalError("No error: \(name)")
  }

  func makeMistakes() throws {
    let context = try context(reportsOthers: true)
    try context.persistentStoreCoordinator.setMetadata(["note": .string("canary 73417341")])
    let first = try letter(context)
    try context.save()
    try makeMistakesOfValues(context)
    try makeMistakesOfRequests(context)
    try makeConflictOfUnchanged(context, first)
    try makeConflicts(context, first)
    try makeConflictsOfUniqueValues(context)
    try makeConflictsOfChildren(context)
    try makeMistakesOfSnapshots(context)
    try makeMistakesOfHistory(context)
    try makeConflictsWithOthers(context)
    try context.persistentStoreCoordinator.close()
    try makeMistakesOfFiles()
  }

  private func makeMistakesOfValues(_ context: ManagedObjectContext) throws {
    let long = String(repeating: "canary 73417341 ", count: 10)
    let wrong: [(String, [String: StoreValue])] = [
      ("too long", ["sender": .string(long), "code": .null]), ("no code", ["code": .string("73417341C")]),
      ("too heavy", ["weight": .double(734_173_410), "code": .null, "sender": .null]),
      ("too dear", ["price": .decimal(734_173_410), "code": .null, "sender": .null]),
      ("too late", ["sent": .date(734_173_410), "code": .null, "sender": .null]),
      ("several", ["pages": .int32(734_173_410), "sender": .string(long), "code": .string("73417341")]),
      ("constraint", [:]), ("constraint of two", ["code": .null]),
    ]
    for (name, changes) in wrong {
      let letter = try letter(context, changes)
      expectError(name) { try context.save() }
      context.delete(letter)
      try context.save()
    }
    let letter = try letter(context, ["code": .null, "sender": .null])
    for (name, key, value): (String, String, StoreValue) in [
      ("text as a number", "weight", .string("canary 73417341")), ("a number as text", "sender", .int64(73_417_341)),
      ("a large number", "pages", .int64(7_341_734_173_417_341)), ("data as a date", "sent", .data(Self.data)),
    ] {
      expectError(name) { try letter.setValue(value, forKey: key) }
    }
    context.rollback()
    expectError("bytes of another type") { _ = try CodableTransformer<[String: Int8]>().value(from: Data("{\"canary\":73417341}".utf8)) }
    expectError("a value without a form") { _ = try CodableTransformer<[String: Double]>().data(from: ["canary 73417341": .nan]) }
  }

  private func makeMistakesOfRequests(_ context: ManagedObjectContext) throws {
    func fetch(_ expression: QueryExpression) throws {
      _ = try context.fetch(FetchRequest<ManagedObject>(entityName: "Letter", where: FetchPredicate(expression)))
    }
    let canary = QueryExpression.constant(.string("canary 73417341"))
    expectError("an unknown key") { try fetch(.comparison(.property("sendr"), .equalTo, canary, [])) }
    expectError("a text compared with a number") { try fetch(.comparison(.property("weight"), .lessThan, canary, [])) }
    expectError("a number that begins with a text") { try fetch(.comparison(.property("pages"), .beginsWith, canary, [])) }
    expectError("a constant as a condition") { try fetch(canary) }
    expectError("a constant among conditions") { try fetch(.not(.and([canary, .literal(true)]))) }
    expectError("an unknown destination") { try fetch(.any("answers", .comparison(.property("sender"), .equalTo, canary, []))) }
    // Requests that succeed are logged.
    try fetch(.comparison(.property("sender"), .equalTo, canary, []))
    try fetch(.membership(.property("code"), [.string("C73417341"), .string("canary")]))
    try fetch(.between(.property("sent"), .date(73_417_341), .date(73_417_342)))
  }

  /// Another context changes a letter on which a new one depends.
  private func makeConflictOfUnchanged(_ context: ManagedObjectContext, _ first: ManagedObject) throws {
    try context.detectConflicts(for: first)
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    try other.existingObject(with: first.objectID).setValue(.string("73417341 canary"), forKey: "sender")
    try other.save()
    _ = try letter(context, ["code": .null, "sender": .null])
    expectError("a conflict of an unchanged object") { try context.save() }
    context.rollback()
    try context.refreshAllObjects()
  }

  private func makeConflicts(_ context: ManagedObjectContext, _ first: ManagedObject) throws {
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    let same = try other.existingObject(with: first.objectID)
    try same.setValue(.string("canary"), forKey: "sender")
    try first.setValue(.string("canary 73417341!"), forKey: "sender")
    try other.save()
    expectError("conflict") { try context.save() }
    expectError("conflict of a policy") {
      context.mergePolicy = .custom { _ in .values(["pages": .string("canary 73417341")]) }
      try context.save()
    }
    context.mergePolicy = .error
    context.rollback()
    other.delete(same)
    try other.save()
    try first.setValue(.string("canary"), forKey: "sender")
    expectError("a deleted object") { try context.save() }
    context.rollback()
    _ = try letter(context)
    try context.save()
  }

  /// A new letter has the unique values of a saved one.
  private func makeConflictsOfUniqueValues(_ context: ManagedObjectContext) throws {
    _ = try letter(context)
    var found: PersistenceError?
    do { try context.save() } catch let error as PersistenceError { found = error }
    guard let refused = found else { fatalError("The letter was saved.") }
    for (name, policy) in Self.failingPolicies {
      expectError("unique values, resolved by \(name)") { try context.resolveConflicts(of: refused, using: policy) }
      context.mergePolicy = policy
      expectError("unique values, saved with \(name)") { try context.save() }
    }
    context.mergePolicy = .error
    context.rollback()
  }

  /// A letter changes after a snapshot was made of it.
  private func makeMistakesOfSnapshots(_ context: ManagedObjectContext) throws {
    let context = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Letter.self])
    guard let letter = try context.fetch(FetchRequest<Letter>()).first else { fatalError("No letter") }
    var draft = try ManagedObjectSnapshot(letter)
    draft.sender = "another canary"
    letter.sender = "73417341 canary"
    for (name, policy) in Self.failingPolicies {
      expectError("a snapshot and \(name)") { try draft.apply(to: letter, mergingBy: policy) }
    }
  }

  /// A child saves over what its sibling has saved, under a policy that throws and without one.
  private func makeConflictsOfChildren(_ context: ManagedObjectContext) throws {
    let child = ManagedObjectContext(parent: context), sibling = ManagedObjectContext(parent: context)
    let letters = try child.fetch(FetchRequest<ManagedObject>(entityName: "Letter"))
    guard letters.count == 1 else { fatalError("\(letters.count) letters") }
    let same = try sibling.existingObject(with: letters[0].objectID)
    try letters[0].setValue(.string("73417341 canary"), forKey: "sender")
    try same.setValue(.string("canary"), forKey: "sender")
    try sibling.save()
    expectError("a conflict of a child") { try child.save() }
    child.mergePolicy = .custom { conflict in throw PersistenceError(.conflict, reason: "The letter \(conflict.objectID) is in conflict.") }
    expectError("a conflict of a child whose policy throws") { try child.save() }
    child.rollback()
    context.rollback()
  }

  /// Requests for a history that was deleted, and a pinned generation that lets the log of a SQLite store grow.
  private func makeMistakesOfHistory(_ context: ManagedObjectContext) throws {
    let coordinator = context.persistentStoreCoordinator, start = try coordinator.currentPersistentHistoryToken()
    let reader = try ManagedObjectContext(coordinator: coordinator)
    try reader.setQueryGeneration(from: .current)
    let letters = try context.fetch(FetchRequest<ManagedObject>(entityName: "Letter"))
    guard letters.count == 1 else { fatalError("\(letters.count) letters") }
    for number in 0..<20 {
      try letters[0].setValue(.string("canary 73417341 \(number % 2)"), forKey: "sender")
      try letters[0].setValue(.int32(Int32(number)), forKey: "pages")
      try context.save()
    }
    try reader.setQueryGeneration(from: nil)
    expectError("a generation that has ended") {
      try reader.setQueryGeneration(from: .current, timeLimit: .nanoseconds(1))
      _ = try reader.fetch(FetchRequest<ManagedObject>(entityName: "Letter"))
    }
    try reader.setQueryGeneration(from: nil)
    // One transaction is left, so that damaging it doesn't take long.
    try coordinator.deleteHistory(upTo: coordinator.currentPersistentHistoryToken())
    expectError("deleted history") { _ = try coordinator.fetchHistory(after: start) }
    let other = try Secrets(store: store, path: path + "-other").context()
    let foreign = try other.persistentStoreCoordinator.currentPersistentHistoryToken()
    expectError("history of another store to delete") { try coordinator.deleteHistory(upTo: foreign) }
    try letters[0].setValue(.string("canary 73417341"), forKey: "sender")
    try letters[0].setValue(.int32(Int32(Self.number)), forKey: "pages")
    try context.save()
  }

  /// Another program changes the letter, or truncates the file.
  private func makeConflictsWithOthers(_ context: ManagedObjectContext) throws {
    let letters = try context.fetch(FetchRequest<ManagedObject>(entityName: "Letter"))
    try letters[0].setValue(.string("73417341 canary"), forKey: "sender")
    if case .sqlite = store {
      try BareDatabase.change(path, "UPDATE ZLETTER SET ZSENDER = 'canary 73417341', Z_OPT = Z_OPT + 1")
      for (name, policy) in Self.failingPolicies {
        context.mergePolicy = policy
        expectError("a change of another program, and \(name)") { try context.save() }
      }
    } else {
      let bytes = try TemporaryFolder.read(path)
      try TemporaryFolder.write(Array(bytes.prefix(bytes.count / 2)), to: path)
      expectError("a file that another program has truncated") { try context.save() }
      try TemporaryFolder.write(bytes, to: path)
    }
    context.mergePolicy = .error
    context.rollback()
  }

  /// Changes of the model that need a decision, and plans whose code sets wrong values.
  private func makeMistakesOfMigration() throws {
    let model = try Self.model(seal: .string)
    expectError("a migration without a plan") { try PersistentStoreCoordinator.migratePersistentStore(description(), to: model) }
    let long = String(repeating: "canary 73417341 ", count: 10)
    for (name, value): (String, StoreValue) in [("a wrong type", .int64(73_417_341)), ("a long text", .string(long))] {
      var plan = MigrationPlan(from: try Self.model())
      plan.add(model, named: "seals") { stage in try stage.forEach("Letter") { _, new in try new.setValue(value, forKey: "sender") } }
      expectError("a plan that sets \(name)") { try PersistentStoreCoordinator.migratePersistentStore(description(), with: plan) }
    }
    expectError("a copy over a file") { _ = try PersistentStoreCoordinator.copyPersistentStore(description(), to: description()) }
  }

  private func makeMistakesOfFiles() throws {
    expectError("another model") { _ = try self.context(Self.model(seal: .string)) }
    try makeMistakesOfMigration()
    let reader = try context(isReadOnly: true)
    _ = try letter(reader, ["code": .string("C1"), "sender": .null])
    expectError("a read-only store") { try reader.save() }
    try reader.persistentStoreCoordinator.close()
    if case .sqlite = store { try damageDatabase() } else { try damageFile() }
  }

  /// Changes bytes in and beside values, and cuts the file there.
  private func damageFile() throws {
    let bytes = try TemporaryFolder.read(path)
    let marks = ["canary", "73417341", "Letter", "NzM0"].flatMap { TestBytes.places(of: Array($0.utf8), in: bytes) }
    let step = TestTier.isFull ? 3 : 9
    for mark in marks {
      let first = max(0, mark - 30) + Int.random(in: 0..<step / 3) * 3
      for place in stride(from: first, to: min(bytes.count, mark + 40), by: step) {
        var damaged = bytes
        damaged[place] ^= 0x11
        for (name, contents) in [("changed", damaged), ("cut", Array(bytes[..<place]))] {
          try TemporaryFolder.write(contents, to: path)
          expectError("\(name) at \(place)") {
            let context = try self.context()
            // Some sections are only read when their objects are.
            try readAll(context)
            throw Readable()
          }
          try repair(to: path + ".repaired")
        }
      }
    }
    if case .json = store { try editHistory(String(decoding: bytes, as: UTF8.self)) }
  }

  /// Makes a number in the history of a JSON file too large for its type.
  private func editHistory(_ text: String) throws {
    let edited = text.replacing("\"int32\":{\"_0\":73417341}", with: "\"int32\":{\"_0\":7341734173417341}")
    guard edited != text else { fatalError("The history has no number.") }
    try TemporaryFolder.write(Array(edited.utf8), to: path)
    let coordinator = try PersistentStoreCoordinator(model: Self.model(), store: store.unverified(at: path))
    expectError("a large number in the history") { _ = try coordinator.fetchHistory() }
    try coordinator.close()
  }

  private func damageDatabase() throws {
    for change in [
      "ATRANSACTION SET ZTIMESTAMP = 'canary 73417341'", "ACHANGE SET ZCHANGETYPE = 73417341",
      "ACHANGE SET ZENTITYPK = 'canary 73417341'", "HOLDFASTHISTORYVALUES SET ZFORMER = 'canary 73417341'",
      "HOLDFASTHISTORYVALUES SET ZFORMER = '{\"canary 73417341\":73417341}'",
      "HOLDFASTHISTORYVALUES SET ZNEW = '{\"pages\":{\"int32\":{\"_0\":7341734173417341}}}'",
      "HOLDFASTHISTORYVALUES SET ZLINKS = '{\"added\":{\"canary\":73417341}}'",
    ] {
      let copy = try TemporaryFolder.read(path)
      try BareDatabase.change(path, "UPDATE \(change)")
      expectError("a history with \(change.prefix { $0 != " " }), \(change.count) characters") {
        let context = try self.context()
        defer { try? context.persistentStoreCoordinator.close() }
        try readAll(context)
        throw Readable()
      }
      try TemporaryFolder.write(copy, to: path)
    }
    for (column, value) in [
      ("ZWEIGHT", "'canary 73417341'"), ("ZSENT", "'canary 73417341'"), ("ZUID", "'canary 73417341'"), ("ZUID", "x'73417341'"),
      ("ZPAGES", "734173417341"), ("ZPAGES", "'canary 73417341'"), ("ZSENDER", "x'ff3733343137333431'"), ("ZPRICE", "'canary 73417341'"),
      ("ZCODE", "x'C373417341'"), ("Z_OPT", "'canary 73417341'"), ("ZANSWER", "'canary 73417341'"),
    ] {
      let copy = try TemporaryFolder.read(path)
      try BareDatabase(path).run("UPDATE ZLETTER SET \(column) = \(value)")
      expectError("\(column) = \(value.count) characters") {
        let context = try self.context()
        defer { try? context.persistentStoreCoordinator.close() }
        try readAll(context)
        throw Readable()
      }
      try repair(to: path + ".repaired")
      try TemporaryFolder.write(copy, to: path)
    }
  }

  /// Reads all letters, and the history.
  private func readAll(_ context: ManagedObjectContext) throws {
    for letter in try context.fetch(FetchRequest<ManagedObject>(entityName: "Letter")) {
      for (key, _) in Self.values { _ = try letter.value(forKey: key) }
    }
    _ = try context.persistentStoreCoordinator.fetchHistory()
  }

  private func repair(to copy: String) throws {
    for name in TemporaryFolder.names(in: (path as NSString).deletingLastPathComponent) where name.contains("repaired") {
      try FileManager.default.removeItem(atPath: (path as NSString).deletingLastPathComponent + "/" + name)
    }
    do {
      let report = try PersistentStoreCoordinator.repairPersistentStore(
        store.description(at: path), to: store.description(at: copy), model: Self.model())
      print("REPAIR \(report)")
    } catch {
      print("ERROR repair: \(error)")
    }
  }
}
