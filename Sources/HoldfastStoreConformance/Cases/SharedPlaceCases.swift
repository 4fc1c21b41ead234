import HoldfastStore
import Synchronization

/// Tests rules K1, O6 and S5 of the store contract: several threads and stores that share one place, and saves that fail. The cases never
/// run two saves of the same store at a time.
enum SharedPlaceCases {
  static let all = [
    StoreConformanceCase("K1", "keys reserved by several threads are different", keysOfThreads),
    StoreConformanceCase("K1", "keys reserved by two stores at one place are different", keysOfStores),
    StoreConformanceCase("O6", "two stores at one place see each other's saves, or the second isn't opened", twoStores),
    StoreConformanceCase("O6", "no save of two stores at one place is lost", interleavedSaves),
    StoreConformanceCase("S5", "after saves that don't fit on the disk, older views and the store answer", savesThatFail),
  ]

  /// Opens another store at a place. Returns nil if that store throws `alreadyOpen` or `locked`.
  private static func openSecond(_ run: CaseRun, _ place: StorePlace) throws -> TestedStore? { try openSecond(run, place.description) }

  static func openSecond(_ run: CaseRun, _ description: StoreDescription) throws -> TestedStore? {
    do {
      return try run.open(description, ConformanceModel.general)
    } catch let error as StoreError where error.code == .alreadyOpen || error.code == .locked { return nil }
  }

  // MARK: Keys

  private static func keysOfThreads(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    try expectDifferentKeys(run, [store.store], ["Person", "Company"].map { store.entity($0).index })
  }

  private static func keysOfStores(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    guard let second = try openSecond(run, place) else { return }
    try expectDifferentKeys(run, [store.store, second.store], ["Person", "Company"].map { store.entity($0).index })
  }

  /// The keys that several threads have reserved, and the save lock of each store.
  private final class Reservations: Sendable {
    let keys = Mutex<[EntityIndex: [ObjectKey]]>([:])
    let locks: [SaveLock]

    final class SaveLock: Sendable {
      let store: any IncrementalStore
      private let lock = Mutex(())
      init(_ store: any IncrementalStore) { self.store = store }
      func reserve(_ demands: [KeyDemand]) throws -> [[ObjectKey]] { try lock.withLock { _ in try store.reserveKeys(demands) } }
    }

    init(_ stores: [any IncrementalStore]) { locks = stores.map(SaveLock.init) }
  }

  private static func expectDifferentKeys(_ run: CaseRun, _ stores: [any IncrementalStore], _ entities: [EntityIndex]) throws {
    let reservations = Reservations(stores)
    let threadCount = 4, counts = [1, 2, 3, 1, 2, 3, 1, 2]
    let threads = (0..<threadCount).map { number in
      ParallelWork {
        for count in counts {
          let demands = entities.map { KeyDemand(entity: $0, count: count) }
          let reserved = try reservations.locks[number % stores.count].reserve(demands)
          reservations.keys.withLock { for (entity, keys) in zip(entities, reserved) { $0[entity, default: []] += keys } }
        }
      }
    }
    for thread in threads { try thread.wait() }
    for (entity, keys) in reservations.keys.withLock({ $0 }) {
      run.expectEqual(Set(keys).count, threadCount * counts.reduce(0, +), "the number of different keys of entity \(entity)")
    }
  }

  // MARK: Two stores

  private static func twoStores(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let first = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(first), people = graph.rows("Person").keys.sorted()
    let second = try openSecond(run, place)
    for round in 0..<3 {
      for store in [first, second].compactMap({ $0 }) {
        try store.save(graph) { edit in
          edit.update("Person", people[round], ["name": .string("Round \(round)")])
          edit.link("Person", "friends", people[round], people[20])
        }
        try first.expectContents(graph, "in the first store at a place")
        try second?.expectContents(graph, "in the second store at a place")
      }
    }
    if let second { try run.close(second) }
    try first.expectContents(graph, "in the first store after the second was closed or refused")
    try run.close(first)
    try run.open(place, ConformanceModel.general).expectContents(graph, "after two stores were opened")
  }

  private static let refusals: [StoreError.Code] = [
    .conflict, .constraintConflict, .locked, .storeReplaced, .timedOut, .connectionLost,
  ]

  /// Whether a store may throw this error because another store saves, too.
  static func isRefusal(_ error: StoreError) -> Bool { refusals.contains(error.code) || error.isRetryable }

  /// Saves in two stores. The second save begins while the first is prepared.
  private static func interleavedSaves(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let first = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(first), people = graph.rows("Person").keys.sorted()
    guard let second = try openSecond(run, place) else { return }
    let new = [try first.keys("Person", 1)[0], try second.keys("Person", 1)[0]]
    func save(_ what: String, _ change: (GraphEdit, Int) -> Void) throws -> [Bool] {
      let edits = [GraphEdit(graph), GraphEdit(graph)]
      for (number, edit) in edits.enumerated() { change(edit, number) }
      let saved = try interleave(run, first, edits[0].request(), second, edits[1].request(), what)
      for (edit, isSaved) in zip(edits, saved) where isSaved { edit.apply() }
      return saved
    }
    func expectAll(_ what: String) throws {
      try first.expectContents(graph, "in the first store after \(what)")
      try second.expectContents(graph, "in the second store after \(what)")
    }
    _ = try save("updates of two rows") { $0.update("Person", people[$1], ["name": .string("Store \($1)")]) }
    try expectAll("updates of two rows")
    _ = try save("two insertions") { edit, number in
      edit.insert("Person", new[number], ["name": .string("Store \(number)")])
      edit.link("Person", "friends", new[number], people[3])
    }
    try expectAll("two insertions")
    let saved = try save("two updates of one row") { $0.update("Person", people[2], ["name": .string("Store \($1)")]) }
    if saved == [true, true] {
      run.expect(
        !run.harness.capabilities.versions, "one of two updates of the same version of a row to be a conflict", got: "two saves")
    } else {
      try expectAll("two updates of one row")
    }
    try run.close(second)
    try run.close(first)
    if saved != [true, true] { try run.open(place, ConformanceModel.general).expectContents(graph, "after saves of two stores") }
  }

  /// Runs two saves, and returns whether each succeeded. Errors that stores at the same place may throw aren't failures.
  private static func interleave(
    _ run: CaseRun, _ first: TestedStore, _ request: SaveRequest, _ second: TestedStore, _ other: SaveRequest, _ what: String
  ) throws -> [Bool] {
    func succeeds(_ body: () throws -> Void) throws -> Bool {
      do {
        try body()
        return true
      } catch let error as StoreError where isRefusal(error) { return false }
    }
    var prepared: (any PreparedSave)?
    var isSaved = try succeeds { prepared = try first.store.prepare(request) }
    let parallel = ParallelWork { [store = second.store] in try store.prepare(other).commit() }
    // The second save may wait for the first.
    parallel.yield()
    if let prepared { isSaved = try succeeds { try prepared.commit() } }
    let isOtherSaved = try succeeds { try parallel.wait() }
    run.expect(isSaved || isOtherSaved, "one of two interleaved saves (\(what)) to succeed", got: "two errors")
    return [isSaved, isOtherSaved]
  }

  // MARK: Saves that fail

  private static func savesThatFail(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let cramped = place.cramped else { return }
    let store = try run.open(cramped, ConformanceModel.general)
    let graph = try ConformanceRows.people(store), people = graph.rows("Person").keys.sorted()
    let before = ExpectedGraph(graph), view = try store.store.beginRead(.snapshot)
    for round in 0..<3 {
      let edit = GraphEdit(graph)
      for key in try store.keys("Person", 400) { edit.insert("Person", key, ["name": .string(String(repeating: "n", count: 8000))]) }
      edit.update("Person", people[round], ["name": .string("Lost")])
      run.expectError(.diskFull, of: "a save of 3 MB with room for 256 KiB") { try store.save(edit.request()) }
      try store.expectContents(before, "in a view from before the failed save", in: view)
      try store.expectContents(graph, "in a view from after the failed save")
    }
    view.end()
    try store.save(graph) { $0.update("Person", people[0], ["name": .string("Saved")]) }
    try store.expectContents(graph, "after a save that follows failed ones")
    try run.close(store)
    try run.open(place, ConformanceModel.general).expectContents(graph, "after failed saves and reopening")
  }
}
