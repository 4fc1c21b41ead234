import HoldfastStore

/// Tests rules V1–V4, S4, S8 and S9 of the store contract: what readers see during saves.
enum ViewCases {
  static let all = [
    StoreConformanceCase("V1", "a save doesn't change a snapshot", requires: .with { $0.snapshots = true }, snapshotStays),
    StoreConformanceCase(
      "V1", "rows by key in a snapshot are those of the snapshot", requires: .with { $0.snapshots = true }, snapshotRows),
    StoreConformanceCase(
      "V1", "keys, counts and look-ups in a snapshot are those of the snapshot", requires: .with { $0.snapshots = true }, snapshotQueries),
    StoreConformanceCase(
      "V1", "many saves don't change a snapshot", requires: .with { $0.snapshots = true }, snapshotOverManySaves),
    StoreConformanceCase(
      "V1", "each of several snapshots reads its own generation", requires: .with { $0.snapshots = true }, severalSnapshots),
    StoreConformanceCase("V2", "a latest view shows every save committed before it", latestSees),
    StoreConformanceCase("V3", "requests in an ended view throw", endedView),
    StoreConformanceCase("V3", "ended views release their resources", endedViewsGiveBack),
    StoreConformanceCase("V3", "released views end by themselves", droppedViewsGiveBack),
    StoreConformanceCase("V4", "a save changes the state token of later views", tokens),
    StoreConformanceCase("S4", "readers don't see a save before the commit", nothingBeforeCommit),
    StoreConformanceCase("S8", "the next view shows the entire commit", nextViewSeesAll),
    StoreConformanceCase("S9", "an aborted save changes nothing", aborted),
  ]

  /// Makes changes of every kind to the people of ``ConformanceRows``.
  private static func change(_ edit: GraphEdit, _ graph: ExpectedGraph, _ newKey: ObjectKey, round: Int = 0) {
    let people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted(),
      clubs = graph.rows("Club").keys.sorted()
    edit.insert("Person", newKey, ["name": .string("New \(round)"), "employer": .key(companies[0])])
    edit.update("Person", people[0], ["name": .string("Changed \(round)"), "employer": round % 2 == 0 ? .null : .key(companies[0])])
    edit.delete("Person", people[3])
    edit.delete("Company", companies[companies.count - 1])
    edit.link("Person", "friends", people[0], people[1])
    edit.link("Person", "clubs", newKey, clubs[2])
    for target in graph.targets(of: people[5], graph.model.entity(named: "Person")!.relationship(named: "friends")!)
    where target != people[3] {
      edit.unlink("Person", "friends", people[5], target)
    }
  }

  private static func snapshotStays(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for kind in [ReadViewKind.consistent, .snapshot] {
      let before = ExpectedGraph(graph)
      let view = try store.store.beginRead(kind)
      let key = try store.keys("Person", 1)[0]
      try store.save(graph) { change($0, graph, key) }
      try store.expectContents(before, "in a \(kind) view from before a save", in: view)
      try store.expectContents(graph, "in a view from after the save")
      view.end()
    }
  }

  /// Requests rows by key before any other request in the view, because a store may begin its snapshot with the first request.
  private static func snapshotRows(_ run: CaseRun) throws {
    for kind in [ReadViewKind.consistent, .snapshot] {
      for asksOneByOne in [false, true] {
        let store = try run.openNew(ConformanceModel.general)
        let graph = try ConformanceRows.people(store), before = ExpectedGraph(graph)
        let people = graph.rows("Person").keys.sorted(), key = try store.keys("Person", 1)[0]
        let view = try store.store.beginRead(kind)
        try store.save(graph) { change($0, graph, key) }
        // The rows that the save changed, deleted, left alone and inserted.
        for keys in asksOneByOne ? [[people[0]], [people[3]], [people[7]], [key]] : [people + [key]] {
          try store.expectRows(
            store.rows("Person", keys, in: view), keys.compactMap { before.rows("Person")[$0] },
            "the rows for the keys \(keys) in a \(kind) view from before a save")
        }
        view.end()
        try store.expectRows(store.rows("Person", people + [key]), Array(graph.rows("Person").values), "the rows after the save")
      }
    }
  }

  private static func snapshotQueries(_ run: CaseRun) throws {
    let declared = run.harness.capabilities
    for kind in [ReadViewKind.consistent, .snapshot] {
      let store = try run.openNew(ConformanceModel.general)
      let graph = try ConformanceRows.people(store), before = ExpectedGraph(graph)
      let people = graph.rows("Person").keys.sorted(), new = try store.keys("Person", 2)
      let view = try store.store.beginRead(kind)
      try store.save(graph) { edit in
        edit.insert("Person", new[0], ["name": .string("New"), "code": .string("new")])
        edit.insert("Person", new[1], ["name": .string("New")])
        edit.update("Person", people[0], ["code": .string("changed")])
        edit.delete("Person", people[3])
      }
      let when = "in a \(kind) view from before a save"
      var plan = store.plan("Person")
      plan.output = .keys
      let keys = try store.fetch(plan, in: view)
      run.expectEqual(keys.map(\.key).sorted(), people, "the keys of Person \(when)")
      for row in keys {
        run.expectEqual(row.version, before.rows("Person")[row.key]?.version, "the version of the key-only row \(row.key) \(when)")
      }
      if declared.counting {
        plan.output = .count
        run.expectEqual(try store.fetch(plan, in: view).map(\.values), [[.int64(Int64(people.count))]], "the count of Person \(when)")
      }
      if declared.uniqueLookups, let slot = store.entity("Person").slot(named: "code") {
        for code in ["c0", "c3", "changed", "new"] {
          let lookup = QueryExpression.comparison(.property("code"), .equalTo, .constant(.string(code)), [])
          let expected = before.rows("Person").values.filter { $0[slot] == .string(code) }
          try store.expectRows(store.fetch(store.plan("Person", lookup), in: view), expected, "the rows with the code \(code) \(when)")
        }
      }
      view.end()
      try store.expectContents(graph, "after the save")
    }
  }

  private static func snapshotOverManySaves(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let before = ExpectedGraph(graph)
    let view = try store.store.beginRead(.snapshot)
    let person = graph.rows("Person").keys.min() ?? 0
    for round in 0..<80 { try store.save(graph) { $0.update("Person", person, ["name": .string("Round \(round)")]) } }
    try store.expectContents(before, "in a snapshot from before 80 saves", in: view)
    try store.expectContents(graph, "after 80 saves")
    view.end()
  }

  /// A store may limit the number of snapshots. The case then reads those that it got.
  private static func severalSnapshots(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    var snapshots: [(view: any ReadView, before: ExpectedGraph)] = []
    for round in 0..<2 {
      do {
        snapshots.append((view: try store.store.beginRead(.snapshot), before: ExpectedGraph(graph)))
      } catch let error as StoreError where error.code == .tooManyReadViews {
        break
      }
      let key = try store.keys("Person", 1)[0]
      try store.save(graph) { change($0, graph, key, round: round) }
    }
    for (view, before) in snapshots.reversed() { try store.expectContents(before, "in one of several snapshots", in: view) }
    snapshots.first?.view.end()
    for (view, before) in snapshots.dropFirst() {
      try store.expectContents(before, "in a snapshot after an older one ended", in: view)
      view.end()
    }
    try store.expectContents(graph, "after several snapshots")
  }

  /// A store whose views have no state tokens passes.
  private static func tokens(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let view = try store.store.beginRead(.snapshot)
    defer { view.end() }
    guard let before = view.state else { return }
    run.expectEqual(before.storeUUID, store.identity.storeUUID, "the store of a state token")
    var seen: Set<StateToken> = [before]
    let people = graph.rows("Person").keys.sorted(), new = try store.keys("Person", 1)[0]
    for round in 0..<5 {
      let receipt = try store.save(graph) { edit in
        switch round {
        // Neither the number of rows nor the largest key or version need change.
        case 2: edit.delete("Person", people[5])
        case 3: edit.insert("Person", new, ["name": .string("New")])
        case 4: edit.update("Person", people[1], [:])
        default: edit.update("Person", people[0], ["name": .string("Round \(round)")])
        }
      }
      let next = try store.store.beginRead(.snapshot)
      defer { next.end() }
      guard let token = next.state else { return run.fail("a state token after a save, because there was one before it", got: "none") }
      run.expect(seen.insert(token).inserted, "another state token after a save", got: "\(token)")
      if let state = receipt.state { run.expectEqual(state, token, "the state token of the receipt") }
    }
    run.expectEqual(view.state, before, "the state token of a snapshot after a save")
  }

  private static func latestSees(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for round in 0..<3 {
      let key = try store.keys("Person", 1)[0]
      if round < 2 {
        try store.save(graph) { change($0, graph, key, round: round) }
      } else {
        try store.save(graph) { $0.insert("Person", key, ["name": .string("Last")]) }
      }
      // The first request after the save, before any other request could refresh the store.
      try store.expectRows(store.fetch(store.plan("Person")), Array(graph.rows("Person").values), "the rows of Person after save \(round)")
      try store.expectContents(graph, "after save \(round)")
    }
  }

  private static func endedView(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try store.store.beginRead(kind)
      _ = try store.fetch(store.plan("Person"), in: view)
      view.end()
      view.end()
      expectThrows(run, "a fetch in an ended view") { _ = try store.fetch(store.plan("Person"), in: view) }
      expectThrows(run, "a fault in an ended view") { _ = try store.rows("Person", [1], in: view) }
      expectThrows(run, "a relationship request in an ended view") { _ = try store.targets("Company", "employees", [1], in: view) }
    }
    try store.expectContents(graph, "after views ended")
  }

  private static func expectThrows(_ run: CaseRun, _ what: String, _ body: () throws -> Void) {
    do {
      try body()
      run.fail("\(what) to throw", got: "an answer")
    } catch {}
  }

  private static func endedViewsGiveBack(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for _ in 0..<100 {
      let latest = try store.store.beginRead(.latest), snapshot = try store.store.beginRead(.snapshot)
      _ = try store.fetch(store.plan("Club"), in: snapshot)
      latest.end()
      snapshot.end()
    }
    try store.expectContents(graph, "after 200 views ended")
  }

  private static func droppedViewsGiveBack(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for _ in 0..<100 {
      let view = try store.store.beginRead(.snapshot)
      _ = try store.fetch(store.plan("Club"), in: view)
    }
    try store.expectContents(graph, "after 100 views were released")
  }

  private static func nothingBeforeCommit(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let key = try store.keys("Person", 1)[0]
    let edit = GraphEdit(graph)
    change(edit, graph, key)
    let prepared = try store.store.prepare(edit.request())
    try store.expectContents(graph, "between prepare and commit")
    try prepared.commit()
    edit.apply()
    try store.expectContents(graph, "after the commit")
  }

  private static func nextViewSeesAll(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let key = try store.keys("Person", 1)[0]
    try store.save(graph) { change($0, graph, key) }
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try store.store.beginRead(kind)
      try store.expectContents(graph, "in a \(kind) view after the commit", in: view)
      view.end()
    }
  }

  private static func aborted(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let key = try store.keys("Person", 1)[0]
    let edit = GraphEdit(graph)
    change(edit, graph, key)
    try store.store.prepare(edit.request()).abort()
    try store.expectContents(graph, "after an abort")
    try store.save(graph) { change($0, graph, key) }
    try store.expectContents(graph, "after an abort and a save of the same changes")
    let last = GraphEdit(graph)
    last.delete("Person", graph.rows("Person").keys.min() ?? 0)
    try store.store.prepare(last.request()).abort()
    try run.close(store)
    try run.open(place, ConformanceModel.general).expectContents(graph, "after an abort and reopening")
  }
}
