import HoldfastStore

/// S3, S6, S7: saves on a full disk and in processes that are killed. Without a way to bound room, or without anything on
/// a disk, there is nothing to try.
enum DurabilityCases {
  static let all = [
    StoreConformanceCase("S3", "a save for which there is no room is refused before it is committed", noRoom),
    StoreConformanceCase("S6", "a process killed before the commit leaves nothing of a save", killedBeforeCommit),
    StoreConformanceCase("S6", "a process killed before the commit leaves nothing of a large save", killedBeforeLargeCommit),
    StoreConformanceCase("S6", "a process killed after saves and an abort leaves what was committed", killedAfterAbort),
    StoreConformanceCase("S7", "what was committed outlives the process, save by save", killedAfterCommit),
  ]

  private static func insert(_ count: Int, noteBytes: Int, _ store: OpenStore, _ edit: GraphEdit) throws {
    let club = try store.keys("Club", 1)[0]
    edit.insert("Club", club, ["name": .string("Club")])
    for key in try store.keys("Person", count) {
      edit.insert("Person", key, ["name": .string(String(repeating: "n", count: noteBytes)), "code": .string("big \(key)")])
      edit.link("Person", "clubs", key, club)
    }
  }

  private static func request(_ graph: ExpectedGraph, _ body: (GraphEdit) throws -> Void) rethrows -> SaveRequest {
    let edits = GraphEdit(graph)
    try body(edits)
    return edits.request()
  }

  private static func noRoom(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let cramped = place.cramped else { return }
    let store = try run.open(cramped, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let large = try request(graph) { try insert(1000, noteBytes: 4000, store, $0) }
    run.expectError(.diskFull, of: "preparing a save of 4 MB where there is room for 256 KiB") { try store.store.prepare(large).abort() }
    try store.expectContents(graph, "after a save for which there was no room")
    let person = graph.rows("Person").keys.sorted()[0]
    try store.save(graph) { $0.update("Person", person, ["city": .string("Small")]) }
    try store.expectContents(graph, "after a smaller save")
  }

  /// Expects that what would be found after a kill is a graph.
  private static func expectLeft(_ run: CaseRun, _ place: StorePlace, _ graph: ExpectedGraph, _ when: String) throws {
    guard let left = try run.copy(place) else { return }
    let store = try run.open(left, ConformanceModel.general)
    try store.expectContents(graph, "\(when), in what a killed process leaves")
    try run.close(store)
  }

  private static func killedBeforeCommit(_ run: CaseRun) throws {
    let place = try run.makePlace()
    if place.copy == nil { return }
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let before = ExpectedGraph(graph)
    let edits = GraphEdit(graph)
    edits.insert("Company", try store.keys("Company", 1)[0], ["name": .string("Late")])
    edits.update("Person", people[0], ["name": .string("Late")])
    edits.delete("Person", people[1])
    edits.link("Person", "friends", people[2], people[3])
    let prepared = try store.store.prepare(edits.request())
    try expectLeft(run, place, before, "between prepare and commit")
    try prepared.commit()
    edits.apply()
    try expectLeft(run, place, graph, "after the commit")
  }

  private static func killedBeforeLargeCommit(_ run: CaseRun) throws {
    let place = try run.makePlace()
    if place.copy == nil { return }
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let large = try request(graph) { try insert(2000, noteBytes: 1000, store, $0) }
    let prepared = try store.store.prepare(large)
    try expectLeft(run, place, graph, "between prepare and commit of 2 MB")
    prepared.abort()
    try expectLeft(run, place, graph, "after the abort of 2 MB")
  }

  private static func killedAfterAbort(_ run: CaseRun) throws {
    let place = try run.makePlace()
    if place.copy == nil { return }
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    for round in 0..<3 {
      try store.store.prepare(request(graph) { $0.delete("Person", people[round + 3]) }).abort()
      try store.save(graph) { $0.update("Person", people[round], ["city": .string("Round \(round)")]) }
    }
    try expectLeft(run, place, graph, "after saves and aborts")
  }

  private static func killedAfterCommit(_ run: CaseRun) throws {
    let place = try run.makePlace()
    if place.copy == nil { return }
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    for round in 0..<8 {
      let key = try store.keys("Person", 1)[0]
      try store.save(graph) { edit in
        edit.insert("Person", key, ["name": .string("Round \(round)")])
        edit.link("Person", "friends", key, people[round])
      }
      try expectLeft(run, place, graph, "after save \(round)")
    }
  }
}
