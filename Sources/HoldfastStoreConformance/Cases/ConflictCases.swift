import HoldfastStore

/// S1, S2, S5: saves that must fail, and leave nothing.
enum ConflictCases {
  private static let versions = StoreCapabilities.with { $0.versions = true }
  private static let uniqueness = StoreCapabilities.with { $0.uniqueness = true }

  static let all = [
    StoreConformanceCase("S1", "an update of a changed row is a conflict with the persisted row", requires: versions, staleUpdate),
    StoreConformanceCase("S1", "a deletion of a changed row is a conflict", requires: versions, staleDelete),
    StoreConformanceCase("S1", "a lock on a changed row is a conflict, on an unchanged one it is none", requires: versions, staleLock),
    StoreConformanceCase("S1", "a change of a row that was deleted is a conflict without a persisted row", requires: versions, missingRow),
    StoreConformanceCase("S1", "all conflicts are thrown at once", requires: versions, allConflicts),
    StoreConformanceCase("S2", "an inserted row with a value that is taken", requires: uniqueness, takenByInsert),
    StoreConformanceCase("S2", "an updated row with a value that is taken", requires: uniqueness, takenByUpdate),
    StoreConformanceCase("S2", "two rows of one save with one value", requires: uniqueness, twiceInOneSave),
    StoreConformanceCase("S2", "all constraint conflicts are thrown at once", requires: uniqueness, allConstraintConflicts),
    StoreConformanceCase("S2", "constraints of two attributes, and nil breaks none", requires: uniqueness, composite),
    StoreConformanceCase("S2", "values that are near are not equal", requires: uniqueness, nearValues),
    StoreConformanceCase("S2", "a value is free when its row is changed or deleted before", requires: uniqueness, freedBefore),
    StoreConformanceCase(
      "S2", "a value is free when its row is changed or deleted in the same save", requires: uniqueness, freedInSameSave),
    StoreConformanceCase("S5", "a version conflict leaves the store as it was", requires: versions, nothingAfterConflict),
    StoreConformanceCase("S5", "a constraint conflict leaves the store as it was", requires: uniqueness, nothingAfterConstraintConflict),
  ]

  /// A store with people of whom two were changed since somebody else read them.
  private static func changedSince(_ run: CaseRun) throws -> (store: OpenStore, now: ExpectedGraph, before: ExpectedGraph, people: [Int64])
  {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let before = ExpectedGraph(graph)
    let people = graph.rows("Person").keys.sorted()
    try store.save(graph) { edit in
      edit.update("Person", people[0], ["name": .string("changed meanwhile")])
      edit.update("Person", people[1], ["age": .int16(77)])
      edit.delete("Person", people[2])
    }
    return (store, graph, before, people)
  }

  private static func expectConflicts(_ store: OpenStore, _ now: ExpectedGraph, _ edit: GraphEdit, _ keys: [Int64: Int64], _ what: String)
    throws
  {
    let error = store.run.expectError(.conflict, of: what) { try store.save(edit.request()) }
    guard let error else { return }
    let person = store.entity("Person")
    let expectedIDs = Set(keys.keys.map { store.identity.objectID(entity: person, key: $0) })
    store.run.expectEqual(Set(error.conflicts.map(\.objectID)), expectedIDs, "\(what): the objects in conflict")
    store.run.expectEqual(error.conflicts.count, keys.count, "\(what): the number of conflicts")
    for conflict in error.conflicts {
      let key = conflict.objectID.key
      store.run.expectEqual(conflict.expectedVersion, keys[key] ?? -1, "\(what): the expected version of \(key)")
      switch (conflict.persisted, now.rows("Person")[key]) {
      case (let got?, let expected?): store.expectSame(got, expected, "\(what): the persisted row")
      case (nil, nil): break
      case (let got, let expected):
        store.run.fail(
          "\(what): the persisted row of \(key) to be \(expected.map { "\($0.values)" } ?? "none")",
          got: got.map { "\($0.values)" } ?? "none")
      }
    }
    try store.expectContents(now, "after \(what)")
  }

  private static func staleUpdate(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let edit = GraphEdit(before)
    edit.update("Person", people[0], ["name": .string("mine")])
    try expectConflicts(store, now, edit, [people[0]: 1], "a stale update")
  }

  private static func staleDelete(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let edit = GraphEdit(before)
    edit.delete("Person", people[1])
    try expectConflicts(store, now, edit, [people[1]: 1], "a stale deletion")
  }

  private static func staleLock(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let stale = GraphEdit(before)
    stale.lock("Person", people[0])
    try expectConflicts(store, now, stale, [people[0]: 1], "a stale lock")
    try store.save(now) { edit in
      edit.lock("Person", people[0])
      edit.update("Person", people[4], ["name": .string("beside a lock")])
    }
    try store.expectContents(now, "after a save with a lock that holds")
  }

  private static func missingRow(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let update = GraphEdit(before)
    update.update("Person", people[2], ["name": .string("mine")])
    try expectConflicts(store, now, update, [people[2]: 1], "an update of a deleted row")
    let delete = GraphEdit(before)
    delete.delete("Person", people[2])
    try expectConflicts(store, now, delete, [people[2]: 1], "a deletion of a deleted row")
  }

  private static func allConflicts(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let edit = GraphEdit(before)
    edit.update("Person", people[0], ["name": .string("mine")])
    edit.delete("Person", people[1])
    edit.update("Person", people[2], ["name": .string("mine")])
    edit.update("Person", people[3], ["name": .string("no conflict")])
    edit.lock("Person", people[5], expected: 40)
    try expectConflicts(store, now, edit, [people[0]: 1, people[1]: 1, people[2]: 1, people[5]: 40], "a save with four conflicts")
  }

  // MARK: Uniqueness

  private static func expectConstraintConflicts(
    _ store: OpenStore, _ graph: ExpectedGraph, _ expected: [(key: Int64, existing: Int64?, constraint: [String])], _ what: String,
    _ edit: (GraphEdit) -> Void
  ) throws {
    let edits = GraphEdit(graph)
    edit(edits)
    let error = store.run.expectError(.constraintConflict, of: what) { try store.save(edits.request()) }
    guard let error else { return }
    store.run.expectEqual(error.constraintConflicts.count, expected.count, "\(what): the number of conflicts")
    for one in expected {
      let found = error.constraintConflicts.first { $0.constraint == one.constraint && ($0.objectID.key == one.key || one.key < 0) }
      guard let found else {
        store.run.fail("\(what): a conflict of object \(one.key) in \(one.constraint)", got: "\(error.constraintConflicts)")
        continue
      }
      // The other object is told when it is known.
      if let existing = one.existing, let got = found.existing {
        store.run.expectEqual(got.key, existing, "\(what): the object that has the values")
      }
    }
    try store.expectContents(graph, "after \(what)")
  }

  private static func takenByInsert(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(new, people[0], ["code"])], "an insertion of a taken value") {
      $0.insert("Person", new, ["name": .string("New"), "code": .string("c0")])
    }
    try expectConstraintConflicts(store, graph, [(new, people[3], ["number"])], "an insertion of a taken number") {
      $0.insert("Person", new, ["name": .string("New"), "number": .int64(30)])
    }
  }

  private static func takenByUpdate(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    try expectConstraintConflicts(store, graph, [(people[3], people[0], ["code"])], "an update to a taken value") {
      $0.update("Person", people[3], ["code": .string("c0")])
    }
    try store.save(graph) { $0.update("Person", people[3], ["code": .string("c3"), "name": .string("same code")]) }
    try store.expectContents(graph, "after an update that keeps its own value")
  }

  private static func twiceInOneSave(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 2)
    // Either of the two may be told as the one in conflict.
    try expectConstraintConflicts(store, graph, [(-1, nil, ["code"])], "two insertions with one value") { edit in
      for key in new { edit.insert("Person", key, ["name": .string("New"), "code": .string("twice")]) }
    }
    try expectConstraintConflicts(store, graph, [(-1, nil, ["code"])], "two updates to one value") { edit in
      for key in people.prefix(2) { edit.update("Person", key, ["code": .string("twice")]) }
    }
  }

  private static func allConstraintConflicts(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 3)
    let expected = [
      (new[0], Optional(people[0]), ["code"]), (new[1], Optional(people[1]), ["number"]), (people[3], Optional(people[1]), ["code"]),
    ]
    try expectConstraintConflicts(
      store, graph, expected.map { (key: $0.0, existing: $0.1, constraint: $0.2) }, "a save with three taken values"
    ) { edit in
      edit.insert("Person", new[0], ["name": .string("New"), "code": .string("c0")])
      edit.insert("Person", new[1], ["name": .string("New"), "number": .int64(10)])
      edit.insert("Person", new[2], ["name": .string("New"), "number": .int64(11), "code": .string("free")])
      edit.update("Person", people[3], ["code": .string("c1")])
    }
  }

  private static func composite(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 6)
    try store.save(graph) { edit in
      edit.insert("Person", new[0], ["name": .string("A"), "city": .string("City 1"), "age": .int16(11)])
      edit.insert("Person", new[1], ["name": .string("B"), "city": .string("City 1")])
      edit.insert("Person", new[2], ["name": .string("C"), "city": .string("City 1")])
      edit.insert("Person", new[3], ["name": .string("D"), "age": .int16(10)])
      edit.insert("Person", new[4], ["name": .string("D"), "age": .int16(10)])
    }
    try store.expectContents(graph, "after values that differ or are nil in part")
    try expectConstraintConflicts(store, graph, [(new[5], people[1], ["city", "age"])], "both values of a constraint taken") {
      $0.insert("Person", new[5], ["name": .string("E"), "city": .string("City 1"), "age": .int16(10)])
    }
  }

  private static func nearValues(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let texts = ConformanceValues.texts
    let keys = try store.keys("Person", texts.count)
    try store.save(graph) { edit in
      for (index, key) in keys.enumerated() {
        edit.insert("Person", key, ["name": .string("N"), "code": .string(texts[index]), "number": .int64(.max - Int64(index))])
      }
    }
    try store.expectContents(graph, "after texts that look alike")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, keys[7], ["code"])], "an insertion of one of the texts again") {
      $0.insert("Person", last, ["name": .string("N"), "code": .string(texts[7])])
    }
  }

  private static func freedBefore(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 3)
    try store.save(graph) { edit in
      edit.update("Person", people[0], ["code": .string("other")])
      edit.update("Person", people[1], ["code": .null])
      edit.delete("Person", people[3])
    }
    try store.save(graph) { edit in
      for (key, code) in zip(new, ["c0", "c1", "c3"]) { edit.insert("Person", key, ["name": .string("New"), "code": .string(code)]) }
    }
    try store.expectContents(graph, "after freed values were taken")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, people[0], ["code"])], "an insertion of a value that an update brought") {
      $0.insert("Person", last, ["name": .string("New"), "code": .string("other")])
    }
  }

  private static func freedInSameSave(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 2)
    try store.save(graph) { edit in
      edit.delete("Person", people[0])
      edit.insert("Person", new[0], ["name": .string("New"), "code": .string("c0")])
    }
    try store.save(graph) { edit in
      edit.update("Person", people[1], ["code": .string("moved")])
      edit.insert("Person", new[1], ["name": .string("New"), "code": .string("c1")])
    }
    try store.save(graph) { edit in
      edit.update("Person", people[3], ["code": .string("c4")])
      edit.update("Person", people[4], ["code": .string("c3")])
    }
    try store.expectContents(graph, "after values changed hands")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, new[0], ["code"])], "an insertion of a value that changed hands") {
      $0.insert("Person", last, ["name": .string("New"), "code": .string("c0")])
    }
  }

  // MARK: Nothing is left

  private static func failingSave(_ edit: GraphEdit, _ people: [Int64], _ new: Int64) {
    edit.insert("Person", new, ["name": .string("New")])
    edit.update("Person", people[6], ["name": .string("Changed"), "employer": .null])
    edit.delete("Person", people[7])
    edit.link("Person", "friends", people[6], people[8])
  }

  private static func nothingAfterConflict(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let new = try store.keys("Person", 1)[0]
    let edit = GraphEdit(before)
    failingSave(edit, people, new)
    edit.update("Person", people[0], ["name": .string("mine")])
    run.expectError(.conflict, of: "a stale update among others") { try store.save(edit.request()) }
    try store.expectContents(now, "after a conflict")
    try store.save(now) { failingSave($0, people, new) }
    try store.expectContents(now, "when the same is saved without the conflict")
  }

  private static func nothingAfterConstraintConflict(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 1)[0]
    let edit = GraphEdit(graph)
    failingSave(edit, people, new)
    edit.update("Person", people[1], ["code": .string("c0")])
    run.expectError(.constraintConflict, of: "a taken value among others") { try store.save(edit.request()) }
    try store.expectContents(graph, "after a constraint conflict")
    try store.save(graph) { failingSave($0, people, new) }
    try store.expectContents(graph, "when the same is saved without the conflict")
  }
}
