import HoldfastStore

/// Tests rules S3, S6 and S7 of the store contract: saves on a full disk, in killed processes and before power losses. The cases do nothing
/// at places that can't simulate these events.
enum DurabilityCases {
  static let all = [
    StoreConformanceCase("S3", "prepare refuses a save that doesn't fit on the disk", noRoom),
    StoreConformanceCase("S6", "a process killed before the commit leaves no part of the save", killedBeforeCommit),
    StoreConformanceCase("S6", "a process killed before the commit leaves no part of a large save", killedBeforeLargeCommit),
    StoreConformanceCase("S6", "a process killed after saves and aborts leaves only committed saves", killedAfterAbort),
    StoreConformanceCase("S7", "every committed save survives a killed process", killedAfterCommit),
    StoreConformanceCase("S7", "after a power loss, every committed save is there, and no part of another one", powerLosses),
  ]

  private static func insert(_ count: Int, noteBytes: Int, _ store: TestedStore, _ edit: GraphEdit) throws {
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
    run.expectError(.diskFull, of: "preparing a save of 4 MB with room for 256 KiB") { try store.store.prepare(large).abort() }
    try store.expectContents(graph, "after a save that didn't fit on the disk")
    let person = graph.rows("Person").keys.sorted()[0]
    try store.save(graph) { $0.update("Person", person, ["city": .string("Small")]) }
    try store.expectContents(graph, "after a smaller save")
  }

  /// Expects a process that is killed now to leave exactly the rows and links of a graph.
  private static func expectLeft(_ run: CaseRun, _ place: StorePlace, _ graph: ExpectedGraph, _ when: String) throws {
    guard let left = try run.copy(place) else { return }
    let store = try run.open(left, ConformanceModel.general)
    try store.expectContents(graph, "in a store that was killed \(when)")
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

  // MARK: Power losses

  /// Records two saves on a simulated disk, and opens the store in states that a power loss can leave.
  private static func powerLosses(_ run: CaseRun) throws {
    guard let describe = try run.makePlace().onFileSystem else { return }
    let disk = SimulatedFileSystem(), store = try run.open(describe(disk), ConformanceModel.general)
    let graph = try ConformanceRows.people(store), company = graph.rows("Company").keys.min() ?? 0
    var saved: [ExpectedGraph] = []
    func save(_ edit: (GraphEdit) -> Void) throws {
      try store.save(graph) { edits in
        edits.update("Company", company, ["size": .int32(Int32(saved.count))])
        edit(edits)
      }
      disk.mark(saved.count)
      saved.append(ExpectedGraph(graph))
    }
    let people = graph.rows("Person").keys.sorted(), key = try store.keys("Person", 1)[0]
    try store.save(graph) { $0.update("Company", company, ["size": .int32(0)]) }
    saved.append(ExpectedGraph(graph))
    disk.startRecording()
    disk.mark(0)
    try save { edit in
      edit.insert("Person", key, ["name": .string("New")])
      edit.link("Person", "friends", key, people[0])
    }
    try save { $0.delete("Person", people[1]) }
    try run.close(store)
    try disk.forEachCrashState(seed: 1, sampleSize: 300) { state in
      let left = try run.open(describe(state.fileSystem), ConformanceModel.general)
      let size = try left.rows("Company", [company]).first?[left.entity("Company").slot(named: "size")!].integer ?? -1
      let confirmed = state.lastMark ?? 0, number = Int(size)
      if confirmed...(confirmed + 1) ~= number, saved.indices.contains(number) {
        try left.expectContents(saved[number], "with save \(number) after a \(state)")
      } else {
        run.fail("save \(confirmed) or the next one after a \(state)", got: "save \(number)")
      }
      try run.close(left)
    }
  }
}
