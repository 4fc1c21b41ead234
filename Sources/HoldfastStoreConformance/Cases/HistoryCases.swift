import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tests rules H1–H3 of the store contract: the history of saves. Does nothing if the store keeps no history.
enum HistoryCases {
  static let all = [
    StoreConformanceCase("H1", "each save is a transaction with the objects that it changed", transactions),
    StoreConformanceCase("H1", "the kept values of deleted objects", tombstones),
    StoreConformanceCase("H1", "saves that don't take effect aren't in the history", otherSaves),
    StoreConformanceCase("H1", "a save that isn't kept in the history takes effect", unkeptSaves),
    StoreConformanceCase("H1", "the history is still there after reopening", reopening),
    StoreConformanceCase("H2", "a token continues the history", tokens),
    StoreConformanceCase("H2", "the author, the time and the limit select transactions", selections),
    StoreConformanceCase("H2", "a token of another store is refused", otherTokens),
    StoreConformanceCase("H3", "deleted transactions are missing, and tokens before them are refused", deletion),
  ]

  /// A store with a history, and what was saved.
  private struct Diary {
    let store: TestedStore
    let graph: ExpectedGraph
    /// The keys of clubs.
    let keys: [ObjectKey]

    /// Opens a store; nil if it keeps no history.
    init?(_ run: CaseRun, _ place: StorePlace? = nil) throws {
      store = try run.open(place ?? run.makePlace(), ConformanceModel.general)
      graph = ExpectedGraph(store)
      guard try HistoryCases.keepsHistory(store) else { return nil }
      keys = try store.keys("Club", 6)
    }

    static func time(_ number: Int) -> Date { Date(timeIntervalSinceReferenceDate: 700_000_000 + 10 * Double(number)) }

    /// Saves edits as the save with a number, by an author.
    func save(_ number: Int, by author: String = "kit", _ edit: (GraphEdit) -> Void) throws {
      let edits = GraphEdit(graph)
      edit(edits)
      var request = edits.request()
      request.origin = SaveOrigin(author: author, contextName: "context \(number)", time: Self.time(number))
      try store.save(request)
      edits.apply()
    }

    /// Saves several times: each save inserts a club. The authors alternate.
    func insert(_ numbers: Range<Int>) throws {
      for number in numbers {
        try save(number, by: number % 2 == 0 ? "even" : "odd") { $0.insert("Club", keys[number], ["name": .string("Club \(number)")]) }
      }
    }

    func read(_ request: HistoryRequest = HistoryRequest()) throws -> HistoryTransactions { try store.store.answers.perform(request) }

    /// The names of the contexts of the transactions.
    func names(_ request: HistoryRequest = HistoryRequest()) throws -> [String] { try read(request).transactions.map(name) }

    func name(_ transaction: HistoryTransaction) -> String { transaction.contextName ?? "none" }

    func id(_ entity: String, _ key: ObjectKey) -> ManagedObjectID { store.identity.objectID(entity: store.entity(entity), key: key) }

    func expectChanges(_ transaction: HistoryTransaction, _ expected: [ManagedObjectID: HistoryTransaction.Change.Kind], _ what: String) {
      let got = Dictionary(transaction.changes.map { ($0.objectID, $0.kind) }, uniquingKeysWith: { first, _ in first })
      store.run.expectEqual(got, expected, "the changes of \(what)")
      store.run.expectEqual(transaction.changes.count, expected.count, "the number of changes of \(what)")
    }

    func expectUnavailable(_ token: StateToken, _ what: String) {
      store.run.expectError(.stateUnavailable, of: "reading the history after \(what)") { _ = try read(HistoryRequest(after: token)) }
    }
  }

  private static func keepsHistory(_ store: TestedStore) throws -> Bool {
    if !store.store.answers.supports(HistoryRequest.self) { return false }
    do { _ = try store.store.answers.perform(HistoryRequest(limit: 1)) } catch let error as StoreError
      where error.code == .unsupportedRequest
    { return false }
    return true
  }

  /// Only attributes that are marked in the model keep their values.
  private static func tombstones(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.preserving), graph = ExpectedGraph(store)
    guard try keepsHistory(store) else { return }
    let keys = try store.keys("Note", 2), long = try store.keys("LongNote", 1)[0]
    func save(_ edit: (GraphEdit) -> Void) throws {
      let edits = GraphEdit(graph)
      edit(edits)
      var request = edits.request()
      request.origin = SaveOrigin()
      try store.save(request)
      edits.apply()
    }
    try save { edit in
      edit.insert("Note", keys[0], ["code": .int64(5), "name": .string("First"), "text": .string("not kept")])
      edit.insert("Note", keys[1], ["code": .int64(6), "name": .string("Second")])
      edit.insert("LongNote", long, ["code": .int64(7), "name": .string("Long"), "pages": .double(1.5)])
    }
    try save { $0.update("Note", keys[0], ["name": .string("Changed")]) }
    let state = try store.store.answers.perform(HistoryRequest()).state
    try save { edit in
      edit.delete("Note", keys[0])
      edit.delete("LongNote", long)
    }
    let changes = try store.store.answers.perform(HistoryRequest(after: state)).transactions.flatMap(\.changes)
    let got = Dictionary(changes.map { ($0.objectID.key, $0.tombstone) }, uniquingKeysWith: { first, _ in first })
    let expected: [ObjectKey: [String: StoreValue]] = [
      keys[0]: ["code": .int64(5), "name": .string("Changed")],
      long: ["code": .int64(7), "name": .string("Long"), "pages": .double(1.5)],
    ]
    run.expectEqual(got, expected, "the kept values of deleted objects")
  }

  private static func transactions(_ run: CaseRun) throws {
    guard let diary = try Diary(run) else { return }
    let start = try diary.read(), clubs = diary.keys, person = try diary.store.keys("Person", 1)[0]
    run.expectEqual(start.transactions.count, 0, "the number of transactions of a new store")
    try diary.save(0, by: "first") { edit in
      for key in clubs.prefix(2) { edit.insert("Club", key, ["name": .string("Club")]) }
      edit.insert("Person", person, ["name": .string("Person")])
    }
    try diary.save(1, by: "second") { edit in
      edit.update("Club", clubs[0], ["name": .string("Changed")])
      edit.delete("Club", clubs[1])
    }
    try diary.save(2, by: "third") { $0.delete("Person", person) }
    let found = try diary.read(HistoryRequest(after: start.state)).transactions
    run.expectEqual(found.map(\.author), ["first", "second", "third"], "the authors of the transactions")
    run.expectEqual(found.map(diary.name), ["context 0", "context 1", "context 2"], "the names of the contexts")
    guard found.count == 3 else { return }
    run.expect(
      zip(found, found.dropFirst()).allSatisfy { $0.number < $1.number }, "the numbers of transactions to ascend",
      got: "\(found.map(\.number))")
    let (first, second, other) = (diary.id("Club", clubs[0]), diary.id("Club", clubs[1]), diary.id("Person", person))
    diary.expectChanges(found[0], [first: .inserted, second: .inserted, other: .inserted], "a save that inserts")
    diary.expectChanges(found[1], [first: .updated, second: .deleted], "a save that updates and deletes")
    diary.expectChanges(found[2], [other: .deleted], "a save that deletes")
    for change in found[1].changes where change.kind == .updated {
      let names = change.updatedProperties ?? ["name"]
      run.expectEqual(names, ["name"], "the updated properties of a club")
    }
    try diary.store.expectContents(diary.graph, "after the history was read")
  }

  private static func otherSaves(_ run: CaseRun) throws {
    guard let diary = try Diary(run) else { return }
    try diary.insert(0..<1)
    let edits = GraphEdit(diary.graph)
    edits.insert("Club", diary.keys[1], ["name": .string("Aborted")])
    try diary.store.store.prepare(edits.request()).abort()
    if run.harness.capabilities.versions {
      let stale = GraphEdit(diary.graph)
      stale.update("Club", diary.keys[0], expected: 77, ["name": .string("Stale")])
      run.expectError(.conflict, of: "a save with another version") { try diary.store.save(stale.request()) }
    }
    try diary.insert(2..<3)
    run.expectEqual(try diary.names(), ["context 0", "context 2"], "the transactions, without those of saves that didn't take effect")
  }

  private static func unkeptSaves(_ run: CaseRun) throws {
    guard let diary = try Diary(run) else { return }
    try diary.insert(0..<1)
    let edits = GraphEdit(diary.graph)
    edits.insert("Club", diary.keys[1], ["name": .string("Copied")])
    var request = edits.request()
    request.isKeptInHistory = false
    try diary.store.save(request)
    edits.apply()
    try diary.insert(2..<3)
    run.expectEqual(try diary.names(), ["context 0", "context 2"], "the transactions, without that of a save that isn't kept")
    try diary.store.expectContents(diary.graph, "after a save that isn't kept in the history")
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let diary = try Diary(run, place) else { return }
    try diary.insert(0..<3)
    let before = try diary.read().transactions
    try run.close(diary.store)
    run.expectError(.notOpen, of: "reading the history of a closed store") { _ = try diary.read() }
    guard let again = try Diary(run, place) else { return run.fail("a history after reopening", got: "none") }
    let after = try again.read().transactions
    run.expectEqual(after.map(\.number), before.map(\.number), "the numbers of the transactions after reopening")
    run.expectEqual(after.map(\.changes), before.map(\.changes), "the changes of the transactions after reopening")
    guard before.count == 3 else { return run.fail("3 transactions", got: "\(before.count)") }
    run.expectEqual(
      try again.names(HistoryRequest(after: before[0].state)), ["context 1", "context 2"],
      "the transactions after a token from before reopening")
  }

  private static func tokens(_ run: CaseRun) throws {
    guard let diary = try Diary(run) else { return }
    let start = try diary.read()
    try diary.insert(0..<4)
    let all = try diary.read(), names = all.transactions.map(diary.name)
    run.expectEqual(names, (0..<4).map { "context \($0)" }, "the transactions")
    run.expectEqual(try diary.names(HistoryRequest(after: start.state)), names, "the transactions after the state of an empty history")
    for (place, transaction) in all.transactions.enumerated() {
      run.expectEqual(
        try diary.names(HistoryRequest(after: transaction.state)), Array(names.dropFirst(place + 1)),
        "the transactions after transaction \(place)")
    }
    run.expectEqual(try diary.names(HistoryRequest(after: all.state)), [], "the transactions after the end of the history")
    let answers = diary.store.store.answers
    let end = try answers.supports(HistoryStateRequest.self) ? answers.perform(HistoryStateRequest()) : all.state
    try diary.insert(4..<5)
    for state in [all.state, end] {
      run.expectEqual(try diary.names(HistoryRequest(after: state)), ["context 4"], "the transactions after a former end of the history")
    }
  }

  private static func selections(_ run: CaseRun) throws {
    guard let diary = try Diary(run) else { return }
    try diary.insert(0..<5)
    run.expectEqual(try diary.names(HistoryRequest(author: "odd")), ["context 1", "context 3"], "the transactions of an author")
    run.expectEqual(try diary.names(HistoryRequest(author: "missing")), [], "the transactions of a missing author")
    run.expectEqual(
      try diary.names(HistoryRequest(since: Diary.time(3))), ["context 3", "context 4"], "the transactions since the time of a save")
    run.expectEqual(try diary.names(HistoryRequest(limit: 2)), ["context 0", "context 1"], "the first two transactions")
    run.expectEqual(try diary.names(HistoryRequest(author: "even", limit: 2)), ["context 0", "context 2"], "the first two of an author")
    var state: StateToken?
    for number in 0..<5 {
      let page = try diary.read(HistoryRequest(after: state, limit: 1))
      run.expectEqual(page.transactions.map(diary.name), ["context \(number)"], "page \(number) of the history")
      state = page.state
    }
    run.expectEqual(try diary.names(HistoryRequest(after: state, limit: 1)), [], "the page after the last one")
  }

  private static func otherTokens(_ run: CaseRun) throws {
    guard let diary = try Diary(run), let other = try Diary(run) else { return }
    try diary.insert(0..<2)
    try other.insert(0..<2)
    diary.expectUnavailable(try other.read().state, "a token of another store")
    run.expectEqual(try diary.names(), ["context 0", "context 1"], "the transactions after a token was refused")
  }

  private static func deletion(_ run: CaseRun) throws {
    guard let diary = try Diary(run), diary.store.store.answers.supports(HistoryDeletionRequest.self) else { return }
    try diary.insert(0..<4)
    let found = try diary.read().transactions
    guard found.count == 4 else { return run.fail("4 transactions", got: "\(found.count)") }
    let count = try diary.store.store.answers.perform(HistoryDeletionRequest(upTo: found[1].state))
    run.expectEqual(count, 2, "the number of deleted transactions")
    run.expectEqual(try diary.names(), ["context 2", "context 3"], "the transactions that remain")
    diary.expectUnavailable(found[0].state, "a transaction before deleted ones")
    for state in [found[0].state, found[1].state] {
      run.expectEqual(
        try diary.store.store.answers.perform(HistoryDeletionRequest(upTo: state)), 0, "the number of transactions that are deleted again")
    }
    run.expectEqual(
      try diary.names(HistoryRequest(after: found[1].state)), ["context 2", "context 3"], "the transactions after the last deleted one")
    run.expectEqual(
      try diary.store.store.answers.perform(HistoryDeletionRequest(earlierThan: Diary.time(3))), 1, "the number of earlier transactions")
    try diary.insert(4..<5)
    let last = try diary.read().transactions
    run.expectEqual(last.map(diary.name), ["context 3", "context 4"], "the transactions after another save")
    run.expect(last.allSatisfy { $0.number > found[2].number }, "the numbers to continue", got: "\(last.map(\.number))")
    try diary.store.expectContents(diary.graph, "after transactions were deleted")
  }
}
