import HoldfastStore

/// Tests rules S1, S2 and S5 of the store contract: saves that must fail and change nothing.
enum ConflictCases {
  private static let versions = StoreCapabilities.with { $0.versions = true }
  private static let uniqueness = StoreCapabilities.with { $0.uniqueness = true }

  static let all = [
    StoreConformanceCase("S1", "updating a changed row is a conflict that contains the persisted row", requires: versions, staleUpdate),
    StoreConformanceCase("S1", "deleting a changed row is a conflict", requires: versions, staleDelete),
    StoreConformanceCase("S1", "locking a row is a conflict only if the row has changed", requires: versions, staleLock),
    StoreConformanceCase("S1", "changing or locking a deleted row is a conflict without a persisted row", requires: versions, missingRow),
    StoreConformanceCase("S1", "the error contains all conflicts", requires: versions, allConflicts),
    StoreConformanceCase("S2", "inserting a row with an existing value is a conflict", requires: uniqueness, takenByInsert),
    StoreConformanceCase("S2", "updating a row to an existing value is a conflict", requires: uniqueness, takenByUpdate),
    StoreConformanceCase("S2", "two rows of a save with the same value are a conflict", requires: uniqueness, twiceInOneSave),
    StoreConformanceCase("S2", "the error contains all constraint conflicts", requires: uniqueness, allConstraintConflicts),
    StoreConformanceCase("S2", "constraints on two attributes hold, and nil is never a conflict", requires: uniqueness, composite),
    StoreConformanceCase("S2", "similar values aren't equal", requires: uniqueness, nearValues),
    StoreConformanceCase("S2", "similar numbers aren't equal, and NaN equals nothing", requires: uniqueness, nearNumbers),
    StoreConformanceCase("S2", "a value can be used again after its row was changed or deleted", requires: uniqueness, freedBefore),
    StoreConformanceCase(
      "S2", "a value can be used again if its row is changed or deleted in the same save", requires: uniqueness, freedInSameSave),
    StoreConformanceCase("S2", "constraints on to-one relationships hold", requires: uniqueness, references),
    StoreConformanceCase("S9", "an aborted save neither takes nor frees unique values", requires: uniqueness, abortedValues),
    StoreConformanceCase("S5", "a version conflict leaves the store unchanged", requires: versions, nothingAfterConflict),
    StoreConformanceCase("S5", "a constraint conflict leaves the store unchanged", requires: uniqueness, nothingAfterConstraintConflict),
  ]

  /// Creates a store with people. Three of them were updated or deleted after `before` was copied.
  private static func changedSince(_ run: CaseRun) throws -> (
    store: TestedStore, now: ExpectedGraph, before: ExpectedGraph, people: [ObjectKey]
  ) {
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

  private static func expectConflicts(
    _ store: TestedStore, _ now: ExpectedGraph, _ edit: GraphEdit, _ keys: [ObjectKey: RowVersion], _ what: String
  ) throws {
    let error = store.run.expectError(.conflict, of: what) { try store.save(edit.request()) }
    guard let error else { return }
    let person = store.entity("Person")
    let expectedIDs = Set(keys.keys.map { store.identity.objectID(entity: person, key: $0) })
    store.run.expectEqual(Set(error.conflicts.map(\.objectID)), expectedIDs, "the objects in the conflicts of \(what)")
    store.run.expectEqual(error.conflicts.count, keys.count, "the number of conflicts of \(what)")
    for conflict in error.conflicts {
      let key = conflict.objectID.key
      store.run.expectEqual(conflict.expectedVersion, keys[key] ?? -1, "the expected version of object \(key) in a conflict of \(what)")
      switch (conflict.persisted, now.rows("Person")[key]) {
      case (let got?, let expected?): store.expectSame(got, expected, "the persisted row in a conflict of \(what)")
      case (nil, nil): break
      case (let got, let expected):
        store.run.fail(
          "the persisted row of \(key) in a conflict of \(what) to be \(expected.map { "\($0.values)" } ?? "none")",
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
    let lock = GraphEdit(before)
    lock.lock("Person", people[2])
    try expectConflicts(store, now, lock, [people[2]: 1], "a lock of a deleted row")
  }

  private static func allConflicts(_ run: CaseRun) throws {
    let (store, now, before, people) = try changedSince(run)
    let edit = GraphEdit(before)
    edit.update("Person", people[0], ["name": .string("mine")])
    edit.delete("Person", people[1])
    edit.update("Person", people[2], ["name": .string("mine")])
    edit.update("Person", people[3], ["name": .string("no conflict")])
    edit.lock("Person", people[5], expected: 40)
    // A later version than the stored one was read before a backup was restored.
    edit.update("Person", people[6], expected: 30, ["name": .string("mine")])
    try expectConflicts(
      store, now, edit, [people[0]: 1, people[1]: 1, people[2]: 1, people[5]: 40, people[6]: 30], "a save with five conflicts")
  }

  // MARK: Uniqueness

  private static func expectConstraintConflicts(
    _ store: TestedStore, _ graph: ExpectedGraph, _ expected: [(key: ObjectKey, existing: ObjectKey?, constraint: [String])],
    _ what: String,
    _ edit: (GraphEdit) -> Void
  ) throws {
    let edits = GraphEdit(graph)
    edit(edits)
    let error = store.run.expectError(.constraintConflict, of: what) { try store.save(edits.request()) }
    guard let error else { return }
    store.run.expectEqual(error.constraintConflicts.count, expected.count, "the number of constraint conflicts of \(what)")
    for one in expected {
      let found = error.constraintConflicts.first { $0.constraint == one.constraint && ($0.objectID.key == one.key || one.key < 0) }
      guard let found else {
        store.run.fail("\(what) to throw a conflict of object \(one.key) on \(one.constraint)", got: "\(error.constraintConflicts)")
        continue
      }
      // The other object can be missing from the conflict. If it's there, it must be right.
      if let existing = one.existing, let got = found.existing {
        store.run.expectEqual(got.key, existing, "the existing object in a conflict of \(what)")
      }
    }
    try store.expectContents(graph, "after \(what)")
  }

  private static func takenByInsert(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(new, people[0], ["code"])], "inserting an existing value") {
      $0.insert("Person", new, ["name": .string("New"), "code": .string("c0")])
    }
    try expectConstraintConflicts(store, graph, [(new, people[3], ["number"])], "inserting an existing number") {
      $0.insert("Person", new, ["name": .string("New"), "number": .int64(30)])
    }
  }

  private static func takenByUpdate(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    try expectConstraintConflicts(store, graph, [(people[3], people[0], ["code"])], "updating a row to an existing value") {
      $0.update("Person", people[3], ["code": .string("c0")])
    }
    try store.save(graph) { $0.update("Person", people[3], ["code": .string("c3"), "name": .string("same code")]) }
    try store.expectContents(graph, "after an update that kept the row's own value")
  }

  private static func twiceInOneSave(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 2)
    // Either of the two objects can be reported.
    try expectConstraintConflicts(store, graph, [(-1, nil, ["code"])], "inserting two rows with the same value") { edit in
      for key in new { edit.insert("Person", key, ["name": .string("New"), "code": .string("twice")]) }
    }
    try expectConstraintConflicts(store, graph, [(-1, nil, ["code"])], "updating two rows to the same value") { edit in
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
      store, graph, expected.map { (key: $0.0, existing: $0.1, constraint: $0.2) }, "a save with three existing values"
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
    try store.expectContents(graph, "after inserting combinations that differ or contain nil")
    try expectConstraintConflicts(store, graph, [(new[5], people[1], ["city", "age"])], "inserting an existing combination of two values") {
      $0.insert("Person", new[5], ["name": .string("E"), "city": .string("City 1"), "age": .int16(10)])
    }
  }

  private static func nearValues(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    // Many databases ignore spaces at the end when they compare texts.
    let texts = ConformanceValues.texts + ["abc "]
    let keys = try store.keys("Person", texts.count)
    try store.save(graph) { edit in
      for (index, key) in keys.enumerated() {
        edit.insert("Person", key, ["name": .string("N"), "code": .string(texts[index]), "number": .int64(.max - Int64(index))])
      }
    }
    try store.expectContents(graph, "after inserting similar strings")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, keys[7], ["code"])], "inserting one of the strings again") {
      $0.insert("Person", last, ["name": .string("N"), "code": .string(texts[7])])
    }
  }

  private static func nearNumbers(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.measurements), graph = ExpectedGraph(store)
    let ratios: [Double] = [0.1, 0.1.nextUp, 9_007_199_254_740_992, 9_007_199_254_740_994, .leastNonzeroMagnitude, 0]
    let keys = try store.keys("Measurement", ratios.count)
    try store.save(graph) { edit in
      for (key, ratio) in zip(keys, ratios) { edit.insert("Measurement", key, ["ratio": .double(ratio)]) }
    }
    let more = try store.keys("Measurement", 3), last = try store.keys("Measurement", 1)[0]
    do {
      try store.save(graph) { edit in for key in more.prefix(2) { edit.insert("Measurement", key, ["ratio": .double(.nan)]) } }
      try store.save(graph) { $0.insert("Measurement", more[2], ["ratio": .double(.nan)]) }
    } catch let error as StoreError where error.code == .unstorableValue {
      // A store needn't store NaN.
    }
    try store.expectContents(graph, "after inserting similar numbers")
    try expectConstraintConflicts(store, graph, [(last, keys[1], ["ratio"])], "inserting one of the numbers again") {
      $0.insert("Measurement", last, ["ratio": .double(0.1.nextUp)])
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
    try store.expectContents(graph, "after values of changed and deleted rows were used again")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, people[0], ["code"])], "inserting a value that an update set") {
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
    try store.expectContents(graph, "after values moved between rows")
    let last = try store.keys("Person", 1)[0]
    try expectConstraintConflicts(store, graph, [(last, new[0], ["code"])], "inserting a value that moved to another row") {
      $0.insert("Person", last, ["name": .string("New"), "code": .string("c0")])
    }
  }

  /// Each hall has one seat with a number.
  private static func references(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.seats), graph = ExpectedGraph(store)
    let halls = try store.keys("Hall", 2), seats = try store.keys("Seat", 4), last = try store.keys("Seat", 1)[0]
    let constraint = ["hall", "number"]
    try store.save(graph) { edit in
      for hall in halls { edit.insert("Hall", hall, ["name": .string("Hall")]) }
      for (seat, hall) in zip(seats, [halls[0], halls[1]]) { edit.insert("Seat", seat, ["hall": .key(hall), "number": .int64(7)]) }
      // Without a hall, numbers needn't differ.
      for seat in seats.suffix(2) { edit.insert("Seat", seat, ["number": .int64(7)]) }
    }
    try store.expectContents(graph, "after inserting seats of different halls and of none")
    try expectConstraintConflicts(store, graph, [(last, seats[1], constraint)], "inserting a second seat with a number in a hall") {
      $0.insert("Seat", last, ["hall": .key(halls[1]), "number": .int64(7)])
    }
    try expectConstraintConflicts(store, graph, [(seats[2], seats[0], constraint)], "moving a seat to a hall that has its number") {
      $0.update("Seat", seats[2], ["hall": .key(halls[0])])
    }
    // Its seat then has no hall.
    try store.save(graph) { $0.delete("Hall", halls[0]) }
    try store.expectContents(graph, "after a hall was deleted")
    try expectConstraintConflicts(store, graph, [(seats[0], seats[1], constraint)], "moving a seat of a deleted hall to another hall") {
      $0.update("Seat", seats[0], ["hall": .key(halls[1])])
    }
    try store.save(graph) { $0.update("Seat", seats[0], ["hall": .key(halls[1]), "number": .int64(8)]) }
    try store.expectContents(graph, "after the seat got another number and the other hall")
  }

  private static func abortedValues(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), people = graph.rows("Person").keys.sorted(), new = try store.keys("Person", 3)
    let edit = GraphEdit(graph)
    edit.insert("Person", new[0], ["name": .string("Aborted"), "code": .string("taken")])
    edit.update("Person", people[0], ["code": .string("other")])
    edit.delete("Person", people[1])
    try store.store.prepare(edit.request()).abort()
    try expectConstraintConflicts(
      store, graph, [(new[1], people[0], ["code"]), (new[2], people[1], ["code"])], "inserting values that an aborted save would have freed"
    ) { edit in
      edit.insert("Person", new[1], ["name": .string("New"), "code": .string("c0")])
      edit.insert("Person", new[2], ["name": .string("New"), "code": .string("c1")])
    }
    try store.save(graph) { edit in
      edit.insert("Person", new[1], ["name": .string("New"), "code": .string("taken")])
      edit.update("Person", people[3], ["code": .string("other")])
    }
    try store.expectContents(graph, "after values of an aborted save were used")
  }

  // MARK: Failed saves

  private static func failingSave(_ edit: GraphEdit, _ people: [ObjectKey], _ new: ObjectKey) {
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
    run.expectError(.conflict, of: "a save with one stale update") { try store.save(edit.request()) }
    try store.expectContents(now, "after a conflict")
    try store.save(now) { failingSave($0, people, new) }
    try store.expectContents(now, "after saving the same changes without the conflict")
  }

  private static func nothingAfterConstraintConflict(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted()
    let new = try store.keys("Person", 1)[0]
    let edit = GraphEdit(graph)
    failingSave(edit, people, new)
    edit.update("Person", people[1], ["code": .string("c0")])
    run.expectError(.constraintConflict, of: "a save with one existing value") { try store.save(edit.request()) }
    try store.expectContents(graph, "after a constraint conflict")
    try store.save(graph) { failingSave($0, people, new) }
    try store.expectContents(graph, "after saving the same changes without the conflict")
  }
}
