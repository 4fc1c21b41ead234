import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Eight threads share a coordinator. Each has contexts of its own, in which it saves, merges, edits children, pins generations and
/// observes.
///
/// Under the thread sanitizer they do so for a minute on each store.
@Suite(.serialized, .ownThreads) struct EightThreadsTests {
  private let folder = TemporaryFolder()
  private static let threads = 8
  private static let berths = 4

  /// What the threads share.
  private struct Shared {
    let coordinator: PersistentStoreCoordinator
    let keepsHistory: Bool
    let seed: UInt64
    /// When the threads end; nil if they end after some rounds.
    let end: ContinuousClock.Instant?
    let rounds: Int

    func context() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes) }

    func goesOn(after round: Int) -> Bool { end.map { ContinuousClock.now < $0 } ?? (round < rounds) }
  }

  /// A store with a history, whose locks may be held long.
  private func description(_ store: FileStore?) -> StoreDescription {
    guard let store else { return .memory() }
    let path = folder.file("harbour")
    guard case .sqlite(let journal) = store else {
      var options = WholeFileOptions(file: Inserting.options)
      (options.historyTracking, options.reportsOtherProcesses) = (.always, true)
      return store.description(at: path, options)
    }
    var options = SQLiteStoreOptions(
      journalMode: journal, busyTimeout: .seconds(3600), readerTimeout: .seconds(3600), maximumSnapshots: Self.threads, checkpointPages: 20)
    (options.historyTracking, options.reportsOtherProcesses) = (.always, true)
    return .sqlite(at: path, options: options)
  }

  @Test(arguments: [nil] + FileStore.all.map(Optional.some)) func RD5_eightThreadsUseEachStore(store: FileStore?) async throws {
    let random = SeededGenerator("Eight threads"), began = ContinuousClock.now
    let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: description(store))
    let shared = Shared(
      coordinator: coordinator, keepsHistory: store != nil, seed: random.seed,
      end: TestTier.isThreadSanitized ? began + .seconds(60) : nil, rounds: TestTier.count(20, full: 300))
    let context = try shared.context()
    for number in 0..<Self.berths {
      let berth = context.insert(Berth.self), route = context.insert(Route.self)
      (berth.number, berth.count, route.number, route.count) = (number, 0, number, 0)
    }
    try context.save()
    let changes = coordinator.savedChanges(bufferingNewest: 1_000_000)
    let reader = Task {
      var saves = 0
      for await next in changes {
        if next.contextName == "last" { break }
        saves += 1
      }
      return saves
    }
    defer { reader.cancel() }
    let reports = try await withThrowingTaskGroup(of: Report.self, returning: [Report].self) { group in
      for thread in 0..<Self.threads { group.addTask { try await onThread { try Self.work(shared, thread) } } }
      return try await group.reduce(into: [Report]()) { $0.append($1) }
    }
    if TestTier.isThreadSanitized { #expect(ContinuousClock.now - began >= .seconds(60)) }
    context.reset()
    context.name = "last"
    context.insert(Journal.self).saves = 1
    try context.save()
    let saves = reports.map(\.saves).reduce(0, +), title = "\(store.map { "\($0)" } ?? "memory"), seed \(random.seed)"
    print("REPORT of eight threads, \(title): \(saves) saves in \(ContinuousClock.now - began)")
    // No save of a thread is missing, and none has changed what another one had counted.
    #expect(await reader.value == saves, "\(title)")
    let counts = reports.reduce(into: Array(repeating: 0, count: Self.berths)) { sums, report in
      for (place, count) in report.counted.enumerated() { sums[place] += count }
    }
    #expect(try Counting.berths(context).map(\.count) == counts, "\(title)")
    let ships = try context.fetch(FetchRequest<Ship>())
    #expect(Set(ships.compactMap(\.number)) == Set(reports.flatMap(\.ships)), "\(title)")
    #expect(ships.allSatisfy { ship in ship.berth?.ships.contains(ship) == true && ship.routes.allSatisfy { $0.ships.contains(ship) } })
    try coordinator.close()
  }

  // MARK: A thread

  /// What a thread has saved.
  private struct Report: Sendable {
    /// What it has added to the number of each berth.
    var counted = Array(repeating: 0, count: EightThreadsTests.berths)
    /// The numbers of its ships.
    var ships: [Int64] = []
    var saves = 0
  }

  /// Adds what both sides have counted.
  private static let adding = MergePolicy.custom { conflict in
    guard case .int64(let base)? = conflict.base?["count"], case .int64(let ours)? = conflict.ours?["count"],
      case .int64(let theirs)? = conflict.theirs?["count"]
    else { return .mergeByPropertyStoreTrump }
    return .values(["count": .int64(ours + theirs - base)])
  }

  private static func work(_ shared: Shared, _ thread: Int) throws -> Report {
    var random = SeededGenerator(seed: shared.seed &+ UInt64(thread)), report = Report(), round = 0
    let writer = try shared.context(), reader = try shared.context()
    writer.mergePolicy = adding
    // The others merge their conflicts only when they save.
    writer.automaticallyMergesChanges = thread % 2 == 0
    let observation = writer.onChange { _, changes in _ = changes.refreshed.map(\.uriRepresentation) }
    defer { observation.cancel() }
    var token = try shared.keepsHistory ? shared.coordinator.currentPersistentHistoryToken() : nil
    while shared.goesOn(after: round) {
      round += 1
      switch Int.random(in: 0..<7, using: &random) {
      case 0: try count(.random(in: 0..<berths, using: &random), in: writer, of: writer, &report)
      case 1:
        let child = ManagedObjectContext(parent: writer)
        child.mergePolicy = adding
        try count(.random(in: 0..<berths, using: &random), in: child, of: writer, &report)
      case 2: try insertShip(Int64(thread * 1_000_000 + round), writer, &random, &report)
      case 3: try deleteShip(writer, &random, &report)
      case 4: try readOneGeneration(reader)
      case 5:
        reader.reset()
        for berth in try Counting.berths(reader) { _ = berth.ships.map { ($0.name, $0.routes.count) } }
        _ = try reader.fetch(Ship.self) { $0.berth.number > 0 }
        _ = shared.coordinator.requestCounts
      default:
        try writer.refreshAllObjects()
        if let known = token { token = try readHistory(shared.coordinator, after: known) }
      }
    }
    return report
  }

  /// Saves a context. If others always save first, which is improbable, discards its changes and returns false.
  private static func save(_ context: ManagedObjectContext, _ report: inout Report) throws -> Bool {
    do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
      context.rollback()
      return false
    }
    report.saves += 1
    return true
  }

  /// Adds one to the number of a berth.
  ///
  /// - Parameters:
  ///   - context: The context that changes it: the writer, or a child.
  ///   - writer: The context that saves it.
  private static func count(
    _ number: Int, in context: ManagedObjectContext, of writer: ManagedObjectContext, _ report: inout Report
  ) throws {
    try Counting.berths(context)[number].count += 1
    if context !== writer { try context.save() }
    if try save(writer, &report) { report.counted[number] += 1 }
  }

  private static func insertShip(
    _ number: Int64, _ writer: ManagedObjectContext, _ random: inout SeededGenerator, _ report: inout Report
  ) throws {
    let ship = writer.insert(Ship.self), routes = try writer.fetch(FetchRequest<Route>())
    (ship.name, ship.number) = ("Ship", number)
    ship.berth = try Counting.berths(writer).randomElement(using: &random)
    for route in routes where Bool.random(using: &random) { ship.routes.insert(route) }
    if try save(writer, &report) { report.ships.append(number) }
  }

  /// Deletes one of the thread's own ships.
  private static func deleteShip(_ writer: ManagedObjectContext, _ random: inout SeededGenerator, _ report: inout Report) throws {
    guard let number = report.ships.randomElement(using: &random),
      let ship = try writer.fetch(Ship.self, where: { $0.number == number }).first
    else { return }
    writer.delete(ship)
    if try save(writer, &report) { report.ships.removeAll { $0 == number } }
  }

  /// All requests read one state, in which every ship has a berth.
  private static func readOneGeneration(_ reader: ManagedObjectContext) throws {
    reader.reset()
    try reader.setQueryGeneration(from: .current)
    defer { try? reader.setQueryGeneration(from: nil) }
    let ships = try reader.count(Ship.self), berthed = try Counting.berths(reader).map(\.ships.count).reduce(0, +)
    #expect(ships == berthed)
    reader.reset()
  }

  /// Reads the transactions after a token, and expects that none is missing.
  private static func readHistory(
    _ coordinator: PersistentStoreCoordinator, after token: PersistentHistoryToken
  ) throws -> PersistentHistoryToken {
    let history = try coordinator.fetchHistory(after: token), numbers = history.transactions.map(\.transactionNumber)
    if let first = numbers.first { #expect(numbers == (0..<Int64(numbers.count)).map { first + $0 }) }
    return history.token
  }
}
