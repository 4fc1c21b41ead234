import HoldfastStore

/// Tests the rules of the store contract for entities with subentities. Requests include rows of subentities, each in the layout of its own
/// entity, and declarations of a superentity apply to all of them.
enum FamilyCases {
  static let all = [
    StoreConformanceCase("F1", "a fetch returns an entity's rows with or without its subentities", rowsOfFamilies),
    StoreConformanceCase("F2", "rows of several entities are sorted together", requires: sorting, sortedAcrossEntities),
    StoreConformanceCase("F3", "offset and limit apply to rows of several entities", requires: sorting, windows),
    StoreConformanceCase(
      "F1", "predicates on properties of a superentity",
      requires: PredicateCases.needs([.equality, .order], [.string, .integer64]) { $0.booleanOperators = true }, predicates),
    StoreConformanceCase(
      "F1", "predicates through relationships to entities with subentities",
      requires: PredicateCases.needs([.equality, .order], [.string]) { $0.traversal = [.toOne, .quantifiers, .counts] }, relationshipPaths),
    StoreConformanceCase("F1", "lookups by unique values among subentities", requires: .with { $0.uniqueLookups = true }, lookups),
    StoreConformanceCase("F4", "a fetch of several entities stops after the sink has enough", enough),
    StoreConformanceCase("F6", "keys of several entities", keysOnly),
    StoreConformanceCase("F6", "counts include subentities", requires: .with { $0.counting = true }, counts),
    StoreConformanceCase("F6", "aggregates include subentities", requires: .with { $0.aggregates = true }, aggregates),
    StoreConformanceCase("R1", "rows by key, requested as rows of a superentity", rowsByKey),
    StoreConformanceCase("R1", "many rows by key, if the entities below a superentity alternate", manyRowsByKey),
    StoreConformanceCase("R2", "keys of other entities in the hierarchy are left out", otherKeys),
    StoreConformanceCase("L1", "targets of inherited relationships, with the right entities", targets),
    StoreConformanceCase("L4", "prefetched rows of subentities have the IDs and layouts of their own entities", rowsAlong),
    StoreConformanceCase("K1", "keys are unique among all entities with the same root", uniqueKeys),
    StoreConformanceCase("S1", "conflicts of rows of subentities", requires: .with { $0.versions = true }, conflicts),
    StoreConformanceCase("S2", "inherited constraints hold among all subentities", requires: unique, inheritedConstraints),
    StoreConformanceCase("S2", "constraints of a subentity hold only for its rows", requires: unique, ownConstraints),
    StoreConformanceCase("S10", "rows of subentities and their relationships change", changes),
    StoreConformanceCase("S11", "references to deleted rows of subentities are removed", severing),
    StoreConformanceCase("O5", "rows of subentities are stored durably", reopening),
  ]

  private static let sorting = StoreCapabilities.with {
    $0.sorting = true
    $0.windowing = true
    $0.comparedTypes = [.string, .integer64]
  }
  private static let unique = StoreCapabilities.with { $0.uniqueness = true }

  private struct Zoo {
    let store: TestedStore
    let graph: ExpectedGraph
    let keys: ConformanceFamilies.Keys

    init(_ run: CaseRun) throws {
      store = try run.openNew(ConformanceFamilies.model)
      (graph, keys) = try ConformanceFamilies.zoo(store)
    }

    /// The rows of an entity and its subentities.
    func family(_ name: String) -> [RowView] {
      store.entity(name).familyIndexes.flatMap { graph.rows(of: store.model.entities[$0]).values }
    }

    func plan(_ name: String, _ predicate: QueryExpression? = nil, sorts: [SortTerm] = []) -> FetchPlan {
      let entity = store.entity(name)
      return FetchPlan(entity: entity.index, concreteEntities: entity.concreteIndexes, predicate: predicate, sorts: sorts)
    }
  }

  /// Expects each row to have the layout and the ID prefix of its own entity.
  private static func expectConcrete(_ rows: [RowView], _ zoo: Zoo, _ what: String) {
    for row in rows {
      let entity = zoo.store.model.entities.first { zoo.graph.rows(of: $0)[row.key] != nil && isOf($0, row) }
      zoo.store.run.expect(
        entity != nil, "row \(row.key) (\(what)) to have the ID and layout of its own entity",
        got: "\(row.batch.idPrefix?.entityName ?? "none")")
    }
  }

  private static func isOf(_ entity: ManagedObjectModel.Entity, _ row: RowView) -> Bool {
    row.batch.idPrefix?.entityName == entity.name && row.batch.layout == entity.layout
  }

  // MARK: Reading

  private static func rowsOfFamilies(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for name in ["Animal", "Bird", "Parrot", "Cat", "Keeper", "HeadKeeper"] {
      let rows = try zoo.store.fetch(zoo.plan(name))
      zoo.store.expectRows(rows, zoo.family(name), "the rows of \(name) and its subentities")
      expectConcrete(rows, zoo, "the rows of \(name)")
      var alone = zoo.plan(name)
      alone.concreteEntities = zoo.store.entity(name).isAbstract ? [] : [zoo.store.entity(name).index]
      zoo.store.expectRows(try zoo.store.fetch(alone), Array(zoo.graph.rows(name).values), "the rows of \(name) without subentities")
    }
    var some = zoo.plan("Animal")
    some.concreteEntities = [zoo.store.entity("Parrot").index, zoo.store.entity("Cat").index].sorted()
    zoo.store.expectRows(try zoo.store.fetch(some), zoo.family("Parrot") + zoo.family("Cat"), "the rows of Parrot and Cat")
  }

  private static func sorted(_ zoo: Zoo, _ name: String, _ terms: [SortTerm]) throws -> [RowView] {
    let order = try RowOrder(terms, entity: zoo.store.entity(name), model: zoo.store.model)
    return zoo.family(name).sorted { order.precedes($0.pointer, $1.pointer, zoo.graph) }
  }

  private static func sortedAcrossEntities(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for (name, terms) in [
      ("Animal", [SortTerm("name")]), ("Animal", [SortTerm("chip", isAscending: false), SortTerm("name")]), ("Bird", [SortTerm("name")]),
      ("Bird", [SortTerm("title"), SortTerm("name", isAscending: false)]), ("Keeper", [SortTerm("name", isAscending: false)]),
    ] {
      let got = try zoo.store.fetch(zoo.plan(name, sorts: terms))
      run.expectEqual(
        got.map(\.key), try sorted(zoo, name, terms).map(\.key), "the keys of \(name) sorted by \(terms.map { "\($0.path)" })")
      expectConcrete(got, zoo, "the sorted rows of \(name)")
    }
  }

  private static func windows(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let terms = [SortTerm("name")]
    let all = try sorted(zoo, "Animal", terms).map(\.key)
    for (offset, limit) in [(0, 4), (3, 5), (10, 100), (14, 1), (20, 3)] {
      var plan = zoo.plan("Animal", sorts: terms)
      plan.offset = offset
      plan.limit = limit
      run.expectEqual(
        try zoo.store.fetch(plan).map(\.key), Array(all.dropFirst(offset).prefix(limit)),
        "the keys of animals with offset \(offset) and limit \(limit)")
    }
  }

  private static func expect(_ zoo: Zoo, _ name: String, _ predicate: QueryExpression) throws {
    let test = try RowPredicate(predicate, entity: zoo.store.entity(name), model: zoo.store.model)
    let expected = zoo.family(name).filter { test.matches($0.pointer, zoo.graph) }
    let got = try zoo.store.fetch(zoo.plan(name, predicate))
    zoo.store.expectRows(got, expected, "the rows of \(name) where \(predicate)")
    expectConcrete(got, zoo, "the rows of \(name) where \(predicate)")
  }

  private static func predicates(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for name in ["Animal", "Bird", "Cat", "Parrot"] {
      for op in [ComparisonOperator.equalTo, .notEqualTo, .lessThan, .greaterThanOrEqualTo] {
        try expect(zoo, name, .comparison(.property("name"), op, .constant(.string("name 7")), []))
        try expect(zoo, name, .comparison(.property("chip"), op, .constant(.int64(70)), []))
      }
      try expect(zoo, name, .comparison(.property("chip"), .equalTo, .constant(.null), []))
      try expect(
        zoo, name,
        .or([
          .comparison(.property("chip"), .lessThan, .constant(.int64(30)), []),
          .comparison(.property("name"), .greaterThan, .constant(.string("name 5")), []),
        ]))
    }
    try expect(zoo, "Bird", .comparison(.property("title"), .notEqualTo, .constant(.string("bird 1")), []))
    try expect(zoo, "Cat", .comparison(.property("title"), .equalTo, .constant(.string("cat 1")), []))
  }

  private static func relationshipPaths(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    func isNamed(_ path: PropertyPath, _ op: ComparisonOperator, _ name: String) -> QueryExpression {
      .comparison(.property(path), op, .constant(.string(name)), [])
    }
    try expect(zoo, "Keeper", isNamed(PropertyPath("favourite", ["name"]), .equalTo, "name 6"))
    try expect(zoo, "Keeper", isNamed(PropertyPath("favourite", ["name"]), .notEqualTo, "name 6"))
    try expect(zoo, "HeadKeeper", isNamed(PropertyPath("favourite", ["name"]), .lessThan, "name 5"))
    try expect(zoo, "Keeper", isNamed(PropertyPath("pet", ["title"]), .equalTo, "bird 1"))
    try expect(zoo, "Animal", isNamed(PropertyPath("keeper", ["name"]), .equalTo, "Keeper 3"))
    try expect(zoo, "Parrot", isNamed(PropertyPath("keeper", ["favourite", "name"]), .lessThan, "name 4"))
    try expect(zoo, "Keeper", .any("animals", isNamed("name", .greaterThan, "name 5")))
    try expect(zoo, "Keeper", .all("animals", isNamed("name", .greaterThan, "name 2")))
    try expect(zoo, "Animal", .any("friends", isNamed("name", .lessThan, "name 2")))
    try expect(zoo, "Cat", .all("friendOf", isNamed("name", .lessThan, "name 5")))
    try expect(zoo, "Keeper", .any("teachers", isNamed("tag", .equalTo, "tag 7")))
    for name in ["Animal", "Bird", "Cat"] { try expect(zoo, name, .comparison(.count("friends"), .greaterThan, .constant(.int64(1)), [])) }
    try expect(zoo, "HeadKeeper", .comparison(.count("animals"), .greaterThan, .constant(.int64(1)), []))
  }

  private static func lookups(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for name in ["Animal", "Bird", "Parrot", "Cat"] {
      for chip in [0, 50, 60, 80, 100, 7] as [Int64] {
        try expect(zoo, name, .comparison(.property("chip"), .equalTo, .constant(.int64(chip)), []))
      }
    }
    for name in ["Bird", "Parrot", "Cat"] {
      for tag in 0..<9 { try expect(zoo, name, .comparison(.property("tag"), .equalTo, .constant(.string("tag \(tag)")), [])) }
    }
    for number in [2, 7, 9] { try expect(zoo, "Cat", .comparison(.property("name"), .equalTo, .constant(.string("name \(number)")), [])) }
  }

  private static func enough(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let keys = try zoo.store.keys("Cat", 4000)
    try zoo.store.save(zoo.graph) { edit in for key in keys { edit.insert("Cat", key, ["name": .string("many \(key)")]) } }
    let sink = CollectingSink(enoughAfter: 3)
    try zoo.store.latest { try zoo.store.store.fetch(zoo.plan("Animal"), in: $0, into: sink) }
    run.expect(sink.rows.count < 4000, "the fetch to stop soon after the sink has enough", got: "\(sink.rows.count) rows")
  }

  private static func keysOnly(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for name in ["Animal", "Bird", "Cat"] {
      var plan = zoo.plan(name)
      plan.output = .keys
      let got = try zoo.store.fetch(plan)
      run.expectEqual(got.map(\.key).sorted(), zoo.family(name).map(\.key).sorted(), "the keys of \(name)")
      for row in got {
        run.expect(row.batch.layout == .keysOnly, "the rows to have no columns", got: "\(row.batch.layout.columns)")
        let entity = row.batch.idPrefix.flatMap { zoo.store.model.entity(named: $0.entityName) }
        run.expect(
          entity.map { zoo.graph.rows(of: $0)[row.key] != nil } ?? false, "the ID of row \(row.key) to name its own entity",
          got: "\(row.objectID?.uriRepresentation ?? "none")")
      }
    }
  }

  private static func counts(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for entity in zoo.store.model.entities {
      var plan = zoo.plan(entity.name)
      plan.output = .count
      let expected = StoreValue.int64(Int64(zoo.family(entity.name).count))
      run.expectEqual(try zoo.store.fetch(plan).map(\.values), [[expected]], "the count of \(entity.name) and its subentities")
    }
  }

  private static func aggregates(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    for name in ["Animal", "Bird", "Cat"] {
      let entity = zoo.store.entity(name)
      guard let chip = entity.slot(named: "chip"), let title = entity.slot(named: "name"), let keeper = entity.slot(named: "keeper")
      else { return }
      for groupBy in [[], [keeper], [title]] {
        let columns: [AggregateColumn] =
          groupBy.map { .group(slot: $0) } + [.count(slot: nil), .sum(slot: chip), .average(slot: chip), .maximum(slot: title)]
        let plan = AggregatePlan(groupBy: groupBy, columns: columns)
        let aggregator = RowAggregator(plan, entity: entity)
        for row in zoo.family(name) { aggregator.add(row.pointer, idPrefix: zoo.store.identity.prefix(for: entity)) }
        let reference = try aggregator.result()
        var asked = zoo.plan(name)
        asked.output = .aggregates(plan)
        let got = try zoo.store.fetch(asked).map { "\($0.values)" }.sorted()
        run.expectEqual(
          got, (0..<reference.count).map { "\(reference[$0].values)" }.sorted(), "the aggregates of \(name) grouped by slots \(groupBy)")
      }
    }
  }

  private static func rowsByKey(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let (keys, store) = (zoo.keys, zoo.store)
    for (name, wanted) in [
      ("Animal", keys.animals), ("Animal", [keys.cats[2]]), ("Bird", keys.birds + keys.parrots), ("Keeper", keys.heads), ("Cat", keys.cats),
    ] {
      let expected = zoo.family(name).filter { wanted.contains($0.key) }
      let got = try store.rows(name, wanted)
      store.expectRows(got, expected, "the rows of \(name) by key")
      expectConcrete(got, zoo, "the rows of \(name) by key")
    }
  }

  private static func manyRowsByKey(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceFamilies.model), graph = ExpectedGraph(store), names = ["Bird", "Cat", "Parrot"]
    let keys = try (0..<50).flatMap { _ in try names.map { try store.keys($0, 1)[0] } }
    try store.save(graph) { edit in
      for (place, key) in keys.enumerated() { edit.insert(names[place % names.count], key, ["name": .string("name \(place)")]) }
    }
    for name in ["Animal"] + names {
      let family = store.entity(name).familyIndexes.flatMap { graph.rows(of: store.model.entities[$0]).values }
      store.expectRows(try store.rows(name, keys), family, "the rows of \(name) for the keys of all animals")
      store.expectRows(try store.rows(name, family.map(\.key)), family, "the rows of \(name) by key")
    }
  }

  private static func otherKeys(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    zoo.store.expectRows(try zoo.store.rows("Bird", zoo.keys.animals), zoo.family("Bird"), "the rows of Bird for the keys of all animals")
    zoo.store.expectRows(try zoo.store.rows("Parrot", zoo.keys.birds), [], "the rows of Parrot for the keys of other birds")
    zoo.store.expectRows(try zoo.store.rows("HeadKeeper", zoo.keys.keepers), [], "the rows of HeadKeeper for the keys of other keepers")
  }

  private static func targets(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    try zoo.store.expectContents(zoo.graph, "with inherited relationships")
    for (entity, name) in [("Keeper", "animals"), ("Animal", "friends"), ("Keeper", "teachers"), ("Animal", "favouredBy")] {
      let described = zoo.store.entity(entity)
      guard let relationship = described.relationship(named: name) else { return }
      let sources = zoo.family(entity).map(\.key).sorted()
      let request = RelationshipRequest(entity: described.index, relationship: relationship.index, sources: sources)
      guard let answer = try zoo.store.latest({ try zoo.store.answer(request, in: $0) }) else { return }
      for (place, source) in sources.enumerated() {
        let range = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
        run.expectEqual(
          answer.targets[range].sorted(), zoo.graph.targets(of: source, relationship),
          "the targets of \(entity).\(name) of object \(source)")
        for target in range {
          guard let said = answer.entities?[target] else { continue }
          run.expect(
            zoo.graph.rows(of: zoo.store.model.entities[said])[answer.targets[target]] != nil,
            "target \(answer.targets[target]) of \(entity).\(name) to be of its own entity", got: zoo.store.model.entities[said].name)
        }
      }
    }
  }

  private static func rowsAlong(_ run: CaseRun) throws {
    let zoo = try Zoo(run), store = zoo.store
    for (entity, name) in [("Keeper", "animals"), ("Animal", "friends"), ("Keeper", "teachers"), ("Animal", "favouredBy")] {
      let described = store.entity(entity), sources = zoo.family(entity).map(\.key).sorted()
      guard let relationship = described.relationship(named: name) else { return }
      let request = RelationshipRequest(entity: described.index, relationship: relationship.index, sources: sources, acceptsRows: true)
      guard let answer = try store.latest({ try store.answer(request, in: $0) }) else { return }
      let rows = answer.rows.flatMap { batch in (0..<batch.count).map { batch[$0] } }
      let delivered = Set(rows.map(\.key)).intersection(answer.targets)
      let expected = zoo.family(store.model.destination(of: relationship).name).filter { delivered.contains($0.key) }
      store.expectRows(rows, expected, "the prefetched rows of \(entity).\(name)")
      expectConcrete(rows, zoo, "the prefetched rows of \(entity).\(name)")
    }
  }

  // MARK: Saving

  private static func uniqueKeys(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceFamilies.model)
    var seen: Set<ObjectKey> = []
    for round in 0..<3 {
      for name in ["Bird", "Parrot", "Cat", "Bird"] {
        for key in try store.keys(name, 3 + round) {
          run.expect(key > 0 && seen.insert(key).inserted, "a key that no animal has", got: "\(key) for \(name)")
        }
      }
    }
  }

  private static func conflicts(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let before = ExpectedGraph(zoo.graph)
    try zoo.store.save(zoo.graph) { edit in
      edit.update("Parrot", zoo.keys.parrots[1], ["words": .int32(1)])
      edit.update("Cat", zoo.keys.cats[0], ["name": .string("changed")])
    }
    let edit = GraphEdit(before)
    edit.update("Parrot", zoo.keys.parrots[1], ["name": .string("stale")])
    edit.delete("Cat", zoo.keys.cats[0])
    edit.update("Bird", zoo.keys.birds[0], ["title": .string("not stale")])
    let error = run.expectError(.conflict, of: "a save with stale rows of two entities") { try zoo.store.save(edit.request()) }
    let ids = [
      zoo.store.identity.objectID(entity: zoo.store.entity("Parrot"), key: zoo.keys.parrots[1]),
      zoo.store.identity.objectID(entity: zoo.store.entity("Cat"), key: zoo.keys.cats[0]),
    ]
    if let error { run.expectEqual(Set(error.conflicts.map(\.objectID)), Set(ids), "the objects in the conflicts") }
    try zoo.store.expectContents(zoo.graph, "after a refused save")
  }

  private static func refuses(_ zoo: Zoo, _ what: String, _ edit: (GraphEdit) -> Void) throws {
    let edits = GraphEdit(ExpectedGraph(zoo.graph))
    edit(edits)
    zoo.store.run.expectError(.constraintConflict, of: what) { try zoo.store.save(edits.request()) }
    try zoo.store.expectContents(zoo.graph, "after a refused save (\(what))")
  }

  private static func inheritedConstraints(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let cat = try zoo.store.keys("Cat", 1)[0], parrot = try zoo.store.keys("Parrot", 1)[0]
    // Chip 0 belongs to a bird.
    try refuses(zoo, "inserting a cat with the chip of a bird") { $0.insert("Cat", cat, ["name": .string("new"), "chip": .int64(0)]) }
    try refuses(zoo, "inserting a parrot with the tag of a bird") {
      $0.insert("Parrot", parrot, ["name": .string("new"), "tag": .string("tag 3")])
    }
    try refuses(zoo, "updating a bird to the chip of a cat") { $0.update("Bird", zoo.keys.birds[1], ["chip": .int64(100)]) }
    try refuses(zoo, "inserting two animals with the same chip") {
      $0.insert("Cat", cat, ["name": .string("new"), "chip": .int64(999)])
      $0.insert("Parrot", parrot, ["name": .string("new"), "chip": .int64(999)])
    }
    // Names are unique among cats but not among birds, so only the chip is a conflict, with a bird.
    let edits = GraphEdit(ExpectedGraph(zoo.graph))
    edits.insert("Cat", cat, ["name": .string("name 7"), "chip": .int64(0)])
    let error = run.expectError(.constraintConflict, of: "inserting a cat with the chip and the name of birds") {
      try zoo.store.save(edits.request())
    }
    let bird = zoo.store.identity.objectID(entity: zoo.store.entity("Bird"), key: zoo.keys.birds[0])
    run.expectEqual(error?.constraintConflicts.map(\.constraint) ?? [], [["chip"]], "the constraints of the conflicts")
    run.expectEqual(error?.constraintConflicts.compactMap(\.existing) ?? [], [bird], "the existing object with the chip")
    run.expectEqual(error?.constraintConflicts.first?.existing?.entityName ?? "", "Bird", "the entity of the existing object with the chip")
    try zoo.store.save(zoo.graph) {
      $0.delete("Bird", zoo.keys.birds[0])
      $0.insert("Cat", cat, ["name": .string("new"), "chip": .int64(0)])
    }
    try zoo.store.expectContents(zoo.graph, "after a cat got the chip of a deleted bird")
  }

  private static func ownConstraints(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let cats = try zoo.store.keys("Cat", 2), bird = try zoo.store.keys("Bird", 1)[0]
    // Names are unique only among cats, although they are inherited.
    try refuses(zoo, "inserting two cats with the same name") {
      $0.insert("Cat", cats[0], ["name": .string("same")])
      $0.insert("Cat", cats[1], ["name": .string("same")])
    }
    try zoo.store.save(zoo.graph) {
      $0.insert("Cat", cats[0], ["name": .string("same"), "tag": .string("tag 8")])
      $0.insert("Bird", bird, ["name": .string("same")])
      $0.update("Bird", zoo.keys.birds[2], ["name": .string("same")])
    }
    try zoo.store.expectContents(zoo.graph, "after birds and a cat got the same name")
    try refuses(zoo, "updating a cat to the tag of another cat") { $0.update("Cat", zoo.keys.cats[0], ["tag": .string("tag 8")]) }
  }

  private static func changes(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let (keys, graph) = (zoo.keys, zoo.graph)
    try zoo.store.save(graph) { edit in
      edit.update("Keeper", keys.keepers[0], ["favourite": .key(keys.cats[5]), "name": .string("renamed")])
      edit.update("HeadKeeper", keys.heads[1], ["favourite": .key(keys.parrots[2]), "rank": .int16(-1)])
      edit.update("Keeper", keys.keepers[1], ["pet": .null])
      edit.update("Bird", keys.birds[1], ["owner": .null])
      edit.update("Cat", keys.cats[1], ["title": .string("of cats"), "keeper": .key(keys.heads[0])])
      edit.update("Parrot", keys.parrots[3], ["title": .string("of birds"), "keeper": .null])
      edit.link("Parrot", "pupils", keys.parrots[0], keys.heads[1])
      edit.unlink("Parrot", "pupils", keys.parrots[3], keys.keepers[0])
      edit.link("Animal", "friends", keys.cats[0], keys.parrots[0])
    }
    try zoo.store.expectContents(graph, "after rows of every entity changed")
    for name in ["Animal", "Keeper"] {
      zoo.store.expectRows(try zoo.store.fetch(zoo.plan(name)), zoo.family(name), "the rows of \(name) after changes")
    }
  }

  private static func severing(_ run: CaseRun) throws {
    let zoo = try Zoo(run)
    let keys = zoo.keys
    try zoo.store.save(zoo.graph) { edit in
      edit.delete("Bird", keys.birds[0])
      edit.delete("Parrot", keys.parrots[0])
      edit.delete("Parrot", keys.parrots[1])
      edit.delete("Cat", keys.cats[3])
    }
    try zoo.store.expectContents(zoo.graph, "after animals of all kinds were deleted")
    try zoo.store.save(zoo.graph) { edit in
      edit.delete("HeadKeeper", keys.heads[0])
      edit.delete("Keeper", keys.keepers[0])
    }
    try zoo.store.expectContents(zoo.graph, "after keepers were deleted")
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceFamilies.model)
    let (graph, _) = try ConformanceFamilies.zoo(store)
    try run.close(store)
    let again = try run.open(place, ConformanceFamilies.model)
    try again.expectContents(graph, "after reopening")
    run.expect(
      !(try again.keys("Parrot", 3)).contains { graph.row(entity: 0, key: $0) != nil }, "the new keys not to be those of animals",
      got: "a key of an animal")
  }
}
