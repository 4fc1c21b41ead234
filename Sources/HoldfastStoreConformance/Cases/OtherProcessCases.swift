import HoldfastFiles
import HoldfastStore

/// Tests rules O6 and V4 of the store contract: stores of two processes at one place. The cases do nothing at places without
/// ``StorePlace/onFileSystem``, or if the second store is refused.
enum OtherProcessCases {
  static let all = [
    StoreConformanceCase("O6", "no save of two processes at one place is lost", saves),
    StoreConformanceCase("V4", "views with equal tokens show the same rows after saves of another process", tokens),
  ]

  /// Makes a store treat the file system as if the store ran in another process.
  private struct OtherProcess: ForwardingFileSystem {
    let base: any StoreFileSystem
    var nameSpace: String { "\(base.nameSpace) in another process" }
  }

  /// Opens a store in each of two processes, and inserts people. Returns nil if the second store can't be opened.
  private static func openTwo(_ run: CaseRun) throws -> (stores: [TestedStore], graph: ExpectedGraph, description: StoreDescription)? {
    guard let describe = try run.makePlace().onFileSystem else { return nil }
    let disk = SimulatedFileSystem(), description = describe(disk)
    let first = try run.open(description, ConformanceModel.general), graph = try ConformanceRows.people(first)
    guard let second = try SharedPlaceCases.openSecond(run, describe(OtherProcess(base: disk))) else { return nil }
    return ([first, second], graph, description)
  }

  /// Saves, and returns true. Returns false if the store refuses the save because of the other process.
  private static func save(_ store: TestedStore, _ graph: ExpectedGraph, _ edit: (GraphEdit) -> Void) throws -> Bool {
    do {
      try store.save(graph, edit)
      return true
    } catch let error as StoreError where SharedPlaceCases.isRefusal(error) { return false }
  }

  /// Begins with updates that don't change the size of any value, because a store may detect changes by the size of the file. Then saves
  /// changes of every kind.
  private static func saves(_ run: CaseRun) throws {
    guard let (stores, graph, description) = try openTwo(run) else { return }
    let people = graph.rows("Person").keys.sorted()
    var savedCount = 0
    func expectAll(_ store: TestedStore, _ what: String, _ edit: (GraphEdit) -> Void) throws {
      guard try save(store, graph, edit) else { return }
      savedCount += 1
      try store.expectContents(graph, "in the store that saved last (\(what))")
    }
    for round in 0..<3 {
      for (number, store) in stores.enumerated() {
        try expectAll(store, "an update") { $0.update("Person", people[number], ["name": .string("Round \(round)\(number)")]) }
      }
    }
    for round in 0..<2 {
      for (number, store) in stores.enumerated() {
        let key = try store.keys("Person", 1)[0], place = 2 + 2 * (2 * round + number)
        try expectAll(store, "an insertion, a deletion and a link") { edit in
          edit.insert("Person", key, ["name": .string("New \(round)"), "code": .string("new \(round) \(number)")])
          edit.delete("Person", people[place])
          edit.link("Person", "friends", key, people[place + 1])
        }
      }
    }
    run.expect(savedCount > 0, "a save of one of two stores to succeed", got: "errors of all saves")
    for store in stores { try run.close(store) }
    try run.open(description, ConformanceModel.general).expectContents(graph, "after saves of two processes")
  }

  /// A store may detect a save of another process during any request. Therefore this case also reserves keys and saves in between.
  private static func tokens(_ run: CaseRun) throws {
    guard let (stores, graph, _) = try openTwo(run) else { return }
    let first = stores[0], people = graph.rows("Person").keys.sorted()
    var seen: [StateToken: [String]] = [:]
    func note(_ what: String) throws {
      let view = try first.store.beginRead(.snapshot)
      defer { view.end() }
      guard let token = view.state else { return }
      let rows = try first.fetch(first.plan("Person"), in: view).sorted { $0.key < $1.key }.map { "\($0.key), \($0.version): \($0.values)" }
      run.expect(seen[token] ?? rows == rows, "views with the token \(token) to show the same rows \(what)", got: "different rows")
      seen[token] = rows
    }
    try note("after opening")
    for round in 0..<3 {
      if try !save(stores[1], graph, { $0.update("Person", people[round], ["name": .string("Round \(round)")]) }) { return }
      try note("after a save of another process")
      _ = try first.keys("Person", 1)
      try note("after reserving keys")
    }
    _ = try save(first, graph) { $0.delete("Person", people[4]) }
    try note("after a save")
  }
}
