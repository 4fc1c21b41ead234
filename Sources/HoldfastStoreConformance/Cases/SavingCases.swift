import HoldfastStore

/// Tests rules K1, S10 and S15 of the store contract: keys, the effects of a save, and its receipt.
enum SavingCases {
  static let all = [
    StoreConformanceCase("K1", "the requested number of keys, ascending, positive and unique", keys),
    StoreConformanceCase("K1", "reserving keys for several entities in turn", keysOfEntities),
    StoreConformanceCase("K1", "reserving keys for several entities at once", keysOfSeveralDemands),
    StoreConformanceCase("K1", "keys aren't reused after a commit, a deletion and reopening", keysAfterReopening),
    StoreConformanceCase("S10", "an empty save changes nothing", emptySave),
    StoreConformanceCase("S10", "rows are inserted, updated and deleted as requested", rows),
    StoreConformanceCase("S10", "an update without changed values changes only the version", versionOnly),
    StoreConformanceCase("S10", "many random saves", manySaves),
    StoreConformanceCase("S10", "each of 70 attributes is updated separately", wideRows),
    StoreConformanceCase("S15", "the rows of a receipt are those that readers see", receipts),
    StoreConformanceCase("S10", "encoding and decoding the request doesn't change the result", codedRequest),
  ]

  private static func wideRows(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.wide)
    let graph = ExpectedGraph(store), entity = store.entity("Wide")
    let keys = try store.keys("Wide", entity.slots.count)
    try store.save(graph) { edit in for key in keys { edit.insert("Wide", key, [:]) } }
    try store.save(graph) { edit in
      for (slot, key) in keys.enumerated() { edit.update("Wide", key, [entity.slots[slot].name: .int64(Int64(slot) + 1)]) }
    }
    try store.expectContents(graph, "after each attribute was changed in one row")
    try run.close(store)
    try run.open(place, ConformanceModel.wide).expectContents(graph, "after reopening")
  }

  private static func keys(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    var seen: Set<ObjectKey> = []
    for count in [1, 0, 5, 1, 1000, 2] {
      let keys = try store.keys("Person", count)
      run.expectEqual(keys.count, count, "the number of reserved keys")
      run.expect(zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 }, "the keys to ascend", got: "\(keys.prefix(10))")
      run.expect(keys.allSatisfy { $0 > 0 }, "the keys to be positive", got: "\(keys.prefix(10))")
      for key in keys where !seen.insert(key).inserted { run.fail("new keys", got: "\(key) again") }
    }
  }

  private static func keysOfEntities(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    var seen: [String: Set<ObjectKey>] = [:]
    for round in 0..<20 {
      for entity in ["Person", "Company", "Sample"] {
        for key in try store.keys(entity, round % 3 + 1) where !seen[entity, default: []].insert(key).inserted {
          run.fail("new keys of \(entity)", got: "\(key) again")
        }
      }
    }
  }

  private static func keysOfSeveralDemands(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    // Entities with the same root share their keys.
    var seen: [EntityIndex: Set<ObjectKey>] = [:]
    for round in 0..<5 {
      let entities = store.model.entities.filter { !$0.isAbstract && ($0.index.rawValue + round) % 2 == 0 }
      let demands = entities.map { KeyDemand(entity: $0.index, count: ($0.index.rawValue + round) % 4) }
      let reserved = try store.store.reserveKeys(demands)
      run.expectEqual(reserved.map(\.count), demands.map(\.count), "the numbers of reserved keys")
      for (entity, keys) in zip(entities, reserved) {
        run.expect(zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 }, "the keys of \(entity.name) to ascend", got: "\(keys)")
        for key in keys where key <= 0 || !seen[entity.rootIndex, default: []].insert(key).inserted {
          run.fail("new keys of \(entity.name)", got: "\(key)")
        }
      }
    }
    run.expectEqual(try store.store.reserveKeys([]), [], "the keys reserved for an empty list")
  }

  private static func keysAfterReopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let keys = try store.keys("Club", 4)
    try store.save(graph) { edit in for key in keys { edit.insert("Club", key, ["name": .string("Club")]) } }
    try store.save(graph) { edit in for key in keys { edit.delete("Club", key) } }
    let more = try store.keys("Club", 3)
    run.expect(Set(more).isDisjoint(with: keys), "new keys to differ from those of deleted rows", got: "\(more) after \(keys)")
    try store.save(graph) { edit in for key in [more[0], more[2]] { edit.insert("Club", key, ["name": .string("Club")]) } }
    // No remaining row shows that the highest key was used.
    try store.save(graph) { $0.delete("Club", more[2]) }
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    let last = try again.keys("Club", 3), committed = keys + [more[0], more[2]]
    run.expect(
      Set(last).isDisjoint(with: committed), "new keys to differ from those of committed and deleted rows",
      got: "\(last) after \(committed)")
  }

  private static func receipts(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), graph = ExpectedGraph(store)
    let keys = try store.keys("Club", 3)
    for round in 0..<3 {
      let edit = GraphEdit(graph)
      for key in keys {
        let values: [String: StoreValue] = ["name": .string("Club \(key) \(round)")]
        if round == 0 { edit.insert("Club", key, values) } else { edit.update("Club", key, values) }
      }
      let receipt = try store.store.prepare(edit.request()).commit()
      edit.apply()
      for batch in receipt.rows {
        run.expect(batch.layout == store.entity("Club").layout, "the receipt to contain rows of Club", got: "\(batch.layout.columns)")
        let rows = (0..<batch.count).map { batch[$0] }
        run.expect(Set(rows.map(\.key)).isSubset(of: keys), "the receipt to contain saved rows only", got: "\(rows.map(\.key))")
        store.expectRows(rows, try store.rows("Club", rows.map(\.key)), "the rows of the receipt")
      }
    }
  }

  private static func emptySave(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    try store.save(SaveRequest())
    let graph = try ConformanceRows.people(store)
    try store.save(SaveRequest())
    try store.expectContents(graph, "after an empty save")
  }

  private static func rows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted(), passports = graph.rows("Passport").keys.sorted()
    let new = try store.keys("Person", 2)
    try store.save(graph) { edit in
      edit.insert("Person", new[0], version: 9, ["name": .string("Inserted"), "passport": .key(passports[0])])
      edit.insert("Person", new[1], ["name": .string("")])
      edit.update("Passport", passports[0], ["holder": .key(new[0])])
      edit.update("Person", people[0], ["passport": .null])
      edit.update("Person", people[1], ["name": .string(String(repeating: "n", count: 100_000)), "age": .null, "number": .int64(-5)])
      edit.delete("Person", people[23])
    }
    try store.expectContents(graph, "after insertions, updates and deletions")
  }

  private static func versionOnly(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    for _ in 0..<3 { try store.save(graph) { edit in for key in people.prefix(4) { edit.update("Person", key, [:]) } } }
    try store.expectContents(graph, "after changing only versions")
  }

  private static func manySaves(_ run: CaseRun) throws {
    let place = try run.makePlace()
    var store = try run.open(place, ConformanceModel.general)
    let graph = ExpectedGraph(store)
    var random = SeededNumbers(seed: 20_260_801)
    for round in 0..<60 {
      let new = try store.keys("Person", 3), company = try store.keys("Company", 1)[0]
      try store.save(graph) { edit in change(edit, graph, new, company, &random) }
      if round % 15 == 14 {
        try store.expectContents(graph, "after \(round + 1) random saves")
        try run.close(store)
        store = try run.open(place, ConformanceModel.general)
      }
    }
    try store.expectContents(graph, "after 60 random saves")
  }

  private static func change(
    _ edit: GraphEdit, _ graph: ExpectedGraph, _ new: [ObjectKey], _ company: ObjectKey, _ random: inout SeededNumbers
  ) {
    var people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted()
    if random.next(below: 4) == 0 { edit.insert("Company", company, ["name": .string("Company \(company)")]) }
    if companies.count > 2, random.next(below: 6) == 0 { edit.delete("Company", companies.remove(at: random.next(below: companies.count))) }
    let employer = companies.isEmpty ? StoreValue.null : .key(companies[random.next(below: companies.count)])
    for key in new { edit.insert("Person", key, ["name": .string("Person \(key)"), "number": .key(key), "employer": employer]) }
    for _ in 0..<min(2, people.count / 4) {
      edit.delete("Person", people.remove(at: random.next(below: people.count)))
      let changed = people.remove(at: random.next(below: people.count))
      edit.update(
        "Person", changed, ["age": .int16(Int16(random.next(below: 90))), "employer": random.next(below: 3) == 0 ? .null : employer])
    }
    guard people.count > 3 else { return }
    let source = people[random.next(below: people.count)]
    for friend in graph.targets(of: source, graph.model.entity(named: "Person")!.relationship(named: "friends")!).prefix(1) {
      edit.unlink("Person", "friends", source, friend)
    }
    let other = people.first { $0 != source } ?? source
    for key in new { edit.link("Person", "friends", other, key) }
  }

  private static func codedRequest(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let key = try store.keys("Person", 1)[0]
    let edit = GraphEdit(graph)
    edit.insert("Person", key, ["name": .string("New")])
    edit.update("Person", people[0], ["name": .string("Changed")])
    edit.delete("Person", people[1])
    edit.link("Person", "friends", key, people[0])
    try store.save(CodedCopy.of(edit.request()))
    edit.apply()
    try store.expectContents(graph, "after a decoded request")
  }
}

/// Pseudorandom numbers that are the same in every run.
struct SeededNumbers {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next(below bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) % UInt64(bound))
  }
}
