import HoldfastStore

/// Tests rules L1–L4 of the store contract: destinations of to-many relationships.
enum RelationshipCases {
  static let all = [
    StoreConformanceCase("L1", "one-to-many targets of one or many sources", oneToMany),
    StoreConformanceCase("L1", "many-to-many targets from both sides", manyToMany),
    StoreConformanceCase("L1", "targets in the order of the sources, without duplicates", orderOfSources),
    StoreConformanceCase("L1", "targets of many sources with many links", manyLinks),
    StoreConformanceCase("L1", "targets of the maximum number of sources", mostSources),
    StoreConformanceCase("L2", "both sides agree after links and to-one relationships change", bothSidesAfterChanges),
    StoreConformanceCase("L2", "adding an existing link or removing a missing one has no effect", repeatedLinks),
    StoreConformanceCase("L3", "missing sources have no targets", missingSources),
    StoreConformanceCase("L4", "prefetched rows are current rows of targets, each once", rowsAlong),
    StoreConformanceCase(
      "L4", "prefetched rows in a snapshot are those of the snapshot", requires: .with { $0.snapshots = true }, rowsAlongInSnapshots),
  ]

  private static func expectTargets(
    _ store: TestedStore, _ graph: ExpectedGraph, _ entity: String, _ relationship: String, _ sources: [ObjectKey], _ when: String
  ) throws {
    guard let described = store.entity(entity).relationship(named: relationship) else { return }
    let got = try store.targets(entity, relationship, sources)
    for (source, got) in zip(sources, got) {
      store.run.expectEqual(
        got, graph.targets(of: source, described), "the targets of \(entity).\(relationship) of object \(source) \(when)")
    }
  }

  private static func oneToMany(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let companies = graph.rows("Company").keys.sorted()
    try expectTargets(store, graph, "Company", "employees", companies, "in a request for all sources")
    for company in companies { try expectTargets(store, graph, "Company", "employees", [company], "in a request for one source") }
    try expectTargets(store, graph, "Company", "employees", [], "in a request for no source")
  }

  private static func manyToMany(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    for relationship in ["friends", "friendOf", "clubs"] {
      try expectTargets(store, graph, "Person", relationship, people, "in a request for all sources")
      for person in people { try expectTargets(store, graph, "Person", relationship, [person], "in a request for one source") }
    }
    try expectTargets(store, graph, "Club", "members", graph.rows("Club").keys.sorted(), "in a request for all sources")
  }

  private static func orderOfSources(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted { ($0.rawValue % 5, $0) > ($1.rawValue % 5, $1) }
    for relationship in ["friends", "friendOf"] {
      try expectTargets(store, graph, "Person", relationship, people, "with sources in another order")
    }
    try expectTargets(store, graph, "Company", "employees", graph.rows("Company").keys.sorted(by: >), "with sources in another order")
    let place = store.entity("Person").relationship(named: "friends")?.index ?? 0
    let request = RelationshipRequest(entity: store.entity("Person").index, relationship: place, sources: people)
    guard let answer = try store.latest({ try store.answer(request, in: $0) }) else { return }
    for index in people.indices {
      let targets = answer.targets[Int(answer.offsets[index])..<Int(answer.offsets[index + 1])]
      run.expectEqual(Set(targets).count, targets.count, "the number of distinct friends of person \(people[index])")
    }
  }

  private static func mostSources(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let people = try store.keys("Person", 1024), clubs = try store.keys("Club", 2), company = try store.keys("Company", 1)[0]
    try store.save(graph) { edit in
      edit.insert("Company", company, ["name": .string("Company")])
      for key in clubs { edit.insert("Club", key, ["name": .string("Club")]) }
      for (place, key) in people.enumerated() {
        edit.insert("Person", key, ["name": .string("Person"), "employer": .key(company)])
        edit.link("Person", "clubs", key, clubs[place % 2])
      }
    }
    try store.expectContents(graph, "with 1,024 sources in one request")
  }

  private static func manyLinks(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let clubs = try store.keys("Club", 40), people = try store.keys("Person", 700)
    try store.save(graph) { edit in
      for club in clubs { edit.insert("Club", club, ["name": .string("Club \(club)")]) }
      for (index, person) in people.enumerated() {
        edit.insert("Person", person, ["name": .string("Person \(index)")])
        for step in 0..<4 { edit.link("Person", "clubs", person, clubs[(index * 7 + step * 11) % clubs.count]) }
      }
    }
    try expectTargets(store, graph, "Club", "members", clubs, "after a first save")
    try store.save(graph) { edit in
      for (index, person) in people.enumerated() where index % 10 == 3 {
        edit.update("Person", person, [:])
        edit.unlink("Person", "clubs", person, clubs[(index * 7) % clubs.count])
        edit.link("Person", "clubs", person, clubs[(index * 7 + 1) % clubs.count])
      }
    }
    try expectTargets(store, graph, "Club", "members", clubs, "after links changed")
    try expectTargets(store, graph, "Person", "clubs", people, "after links changed")
  }

  private static func bothSidesAfterChanges(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted()
    try store.save(graph) { edit in
      edit.update("Person", people[0], ["employer": .key(companies[2])])
      edit.update("Person", people[1], ["employer": .null])
      edit.update("Person", people[6], ["employer": .key(companies[3])])
      edit.link("Person", "friends", people[0], people[1])
      edit.link("Person", "friends", people[1], people[0])
      edit.link("Person", "friendOf", people[2], people[2])
      for target in graph.targets(of: people[3], store.entity("Person").relationship(named: "friends")!) {
        edit.unlink("Person", "friends", people[3], target)
      }
    }
    try store.expectContents(graph, "after links and to-one relationships changed")
  }

  private static func repeatedLinks(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let friends = graph.targets(of: people[7], store.entity("Person").relationship(named: "friends")!)
    try store.save(graph) { edit in
      for friend in friends { edit.link("Person", "friends", people[7], friend) }
      for (index, person) in people.enumerated() where index % 4 == 0 { edit.unlink("Person", "friends", person, people[1]) }
    }
    try store.expectContents(graph, "after adding existing links and removing missing ones")
    // Removes missing links of people without any links, together with existing links.
    let new = try store.keys("Person", 4)
    try store.save(graph) { edit in
      for key in new { edit.insert("Person", key, ["name": .string("New")]) }
      edit.link("Person", "friends", new[1], new[0])
      edit.link("Person", "friends", new[3], new[2])
    }
    try store.save(graph) { edit in
      edit.unlink("Person", "friends", new[0], new[1])
      edit.unlink("Person", "friends", new[1], new[0])
      edit.unlink("Person", "friends", new[2], new[2])
      edit.unlink("Person", "friends", new[3], new[2])
      edit.link("Person", "friends", new[3], new[0])
    }
    try store.expectContents(graph, "after removing missing links of people without links")
  }

  private static func missingSources(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted()
    let unused = try store.keys("Company", 1)[0]
    try store.save(graph) { edit in
      edit.delete("Person", people[5])
      edit.delete("Company", companies[1])
    }
    run.expectEqual(
      try store.targets("Company", "employees", [unused, companies[0], companies[1], ObjectKey(.max)])[2], [],
      "the employees of a deleted company")
    try expectTargets(
      store, graph, "Company", "employees", [unused, companies[0], companies[1], ObjectKey(1 << 40)], "with missing sources")
    try expectTargets(store, graph, "Person", "friends", [people[4], people[5], ObjectKey(.max), people[6]], "with missing sources")
  }

  private static func rowsAlong(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted()
    try store.save(graph) { edit in
      edit.update("Person", people[1], ["name": .string("Changed")])
      edit.delete("Person", people[2])
    }
    for sources in [[people[0]], [people[5]], people, Array(people.reversed()), []] {
      for relationship in ["friends", "friendOf", "clubs"] { try expectRowsAlong(store, graph, "Person", relationship, sources) }
    }
    for sources in [[companies[0]], companies] { try expectRowsAlong(store, graph, "Company", "employees", sources) }
  }

  private static func rowsAlongInSnapshots(_ run: CaseRun) throws {
    for kind in [ReadViewKind.consistent, .snapshot] {
      let store = try run.openNew(ConformanceModel.general), entity = store.entity("Person")
      let graph = try ConformanceRows.people(store), before = ExpectedGraph(graph).rows("Person"), people = before.keys.sorted()
      let view = try store.store.beginRead(kind)
      try store.save(graph) { edit in for key in people { edit.update("Person", key, ["name": .string("Changed")]) } }
      for relationship in entity.toManyRelationships where ["friends", "friendOf"].contains(relationship.name) {
        let request = RelationshipRequest(entity: entity.index, relationship: relationship.index, sources: people, acceptsRows: true)
        guard let answer = try store.answer(request, in: view) else { continue }
        let rows = answer.rows.flatMap { batch in (0..<batch.count).map { batch[$0] } }
        let expected = Set(rows.map(\.key)).compactMap { before[$0] }
        store.expectRows(rows, expected, "the prefetched rows of Person.\(relationship.name) in a \(kind) view from before a save")
      }
      view.end()
    }
  }

  private static func expectRowsAlong(
    _ store: TestedStore, _ graph: ExpectedGraph, _ entity: String, _ relationship: String, _ sources: [ObjectKey]
  ) throws {
    let described = store.entity(entity), place = described.relationship(named: relationship)!
    let destination = store.model.destination(of: place)
    for acceptsRows in [true, false] {
      let request = RelationshipRequest(entity: described.index, relationship: place.index, sources: sources, acceptsRows: acceptsRows)
      guard let answer = try store.latest({ try store.answer(request, in: $0) }) else { return }
      let targets = Set(sources.flatMap { graph.targets(of: $0, place) })
      store.run.expectEqual(Set(answer.targets), targets, "the targets of \(entity).\(relationship) of \(sources.count) sources")
      let rows = answer.rows.flatMap { batch in (0..<batch.count).map { batch[$0] } }
      let what = "a prefetched row of \(entity).\(relationship)"
      if !acceptsRows {
        store.run.expectEqual(rows.count, 0, "the number of unrequested prefetched rows of \(entity).\(relationship)")
      }
      store.run.expectEqual(Set(rows.map(\.key)).count, rows.count, "the number of distinct prefetched rows of \(entity).\(relationship)")
      for row in rows {
        store.run.expectEqual(row.objectID, store.identity.objectID(entity: destination, key: row.key), "the ID of \(what)")
        if let expected = graph.rows(of: destination)[row.key], targets.contains(row.key) {
          store.expectSame(row, expected, what)
        } else {
          store.run.fail("\(what) to be a row of a target", got: "key \(row.key)")
        }
      }
    }
  }
}
