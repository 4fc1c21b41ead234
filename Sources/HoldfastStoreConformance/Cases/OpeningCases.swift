import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tests rules C1–C3, O1–O5 and M1 of the store contract: capabilities, optional requests, opening, closing, metadata.
enum OpeningCases {
  static let all = [
    StoreConformanceCase("C1", "capabilities never change", declaredCapabilities),
    StoreConformanceCase("C2", "the supported optional requests never change, and others are refused", optionalRequests),
    StoreConformanceCase("C3", "a store that isn't open refuses optional requests", optionalRequestsWhenClosed),
    StoreConformanceCase("O1", "the UUID is the same each time the store is opened", sameIdentity),
    StoreConformanceCase("O1", "different stores have different UUIDs", twoIdentities),
    StoreConformanceCase("O2", "a new store is empty", newStoreIsEmpty),
    StoreConformanceCase("O2", "opening read-only doesn't create a store", readOnlyMakesNothing),
    StoreConformanceCase("O2", "a store opened read-only can be read but not changed", readOnlyRefusesChanges),
    StoreConformanceCase("O3", "a model with other version hashes is refused, and the store stays unchanged", otherModel),
    StoreConformanceCase("O3", "data that isn't a store is refused", damagedStore),
    StoreConformanceCase("O4", "opening reads no more with a hundred times as many rows", openingReadsLittle),
    StoreConformanceCase("O5", "committed rows are stored durably", reopening),
    StoreConformanceCase("O5", "changes, deletions and links are stored durably", reopeningAfterChanges),
    StoreConformanceCase("O5", "closing twice has no effect, and a closed store refuses requests", closing),
    StoreConformanceCase(
      "O5", "a closed store can be opened again, even if its views and saves are still referenced", reopeningBesideRemains),
    StoreConformanceCase("M1", "setting metadata replaces all metadata durably", metadata),
    StoreConformanceCase("M1", "saves keep the metadata", metadataBesideSaves),
  ]

  private static func declaredCapabilities(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let unopened = place.description.makeStore()
    run.expectEqual(unopened.capabilities, run.harness.capabilities, "the capabilities of a store before opening")
    let store = try run.open(place, ConformanceModel.general)
    run.expectEqual(store.store.capabilities, run.harness.capabilities, "the capabilities of an open store")
    _ = try ConformanceRows.people(store)
    run.expectEqual(store.store.capabilities, run.harness.capabilities, "the capabilities after a save")
  }

  /// A request that no store supports.
  private struct UnknownRequest: StoreRequest {
    typealias Answer = Int
    static let operation = "answer an unknown request"
  }

  private static func optionalRequests(_ run: CaseRun) throws {
    let place = try run.makePlace(), declared = run.harness.capabilities.externalData
    func check(_ store: any IncrementalStore, _ when: String) {
      run.expectEqual(
        store.answers.supports(ExternalDataRequest.self), declared, "whether requests for external data are supported \(when)")
      run.expect(!store.answers.supports(UnknownRequest.self), "unknown requests not to be supported \(when)", got: "true")
      run.expectError(.unsupportedRequest, of: "an unknown request \(when)") { _ = try store.answers.perform(UnknownRequest()) }
    }
    check(place.description.makeStore(), "before opening")
    let store = try run.open(place, ConformanceModel.general)
    check(store.store, "after opening")
    _ = try ConformanceRows.people(store)
    check(store.store, "after a save")
    try run.close(store)
    check(store.store, "after closing")
  }

  private static func optionalRequestsWhenClosed(_ run: CaseRun) throws {
    if !run.harness.capabilities.externalData { return }
    let place = try run.makePlace(), request = ExternalDataRequest(entity: 0, slot: 0, key: 1, id: UUID())
    let unopened = place.description.makeStore()
    run.expectError(.notOpen, of: "a request for external data before opening") { _ = try unopened.answers.perform(request) }
    let store = try run.open(place, ConformanceModel.general)
    try run.close(store)
    run.expectError(.notOpen, of: "a request for external data after closing") { _ = try store.store.answers.perform(request) }
  }

  private static func sameIdentity(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let first = try run.open(place, ConformanceModel.general)
    run.expect(!first.identity.storeUUID.isEmpty, "the store to have a UUID", got: "an empty string")
    run.expectEqual(first.identity.storeUUID, first.identity.storeUUID.uppercased(), "the UUID")
    try run.close(first)
    let second = try run.open(place, ConformanceModel.general)
    run.expectEqual(second.identity.storeUUID, first.identity.storeUUID, "the UUID after reopening")
  }

  private static func twoIdentities(_ run: CaseRun) throws {
    let first = try run.openNew(ConformanceModel.general), second = try run.openNew(ConformanceModel.general)
    run.expect(first.identity.storeUUID != second.identity.storeUUID, "stores at two places to have different UUIDs", got: "the same UUID")
  }

  /// Does nothing if the system doesn't report the number of bytes read, or if the store keeps its rows in memory and has to read
  /// all of them.
  private static func openingReadsLittle(_ run: CaseRun) throws {
    if run.harness.capabilities.residentRows { return }
    func bytesReadOpening(_ count: Int) throws -> Int? {
      let place = try run.makePlace()
      let made = try run.open(place, ConformanceModel.general)
      let keys = try made.keys("Person", count)
      try made.save(ExpectedGraph(made)) { edit in
        for key in keys { edit.insert("Person", key, ["name": .string("Person \(key)")]) }
      }
      try run.close(made)
      guard let before = ThreadCounters.bytesRead() else { return nil }
      let opened = try run.open(place, ConformanceModel.general)
      let after = ThreadCounters.bytesRead() ?? before
      try run.close(opened)
      return after - before
    }
    guard let few = try bytesReadOpening(50), let many = try bytesReadOpening(5000) else { return }
    run.expect(many <= few + 65_536, "opening 5,000 rows to read about as much as opening 50, \(few) bytes", got: "\(many) bytes")
  }

  private static func newStoreIsEmpty(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    try store.expectContents(ExpectedGraph(store), "in a new store")
    run.expect(store.metadata.userInfo.isEmpty, "a new store to have no metadata", got: "\(store.metadata.userInfo)")
  }

  private static func readOnlyMakesNothing(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let readOnly = place.readOnly else { return }
    run.expectError(.notFound, of: "opening a missing store read-only") {
      let store = readOnly.makeStore()
      _ = try store.open(model: ConformanceModel.general)
      try store.close()
    }
  }

  private static func readOnlyRefusesChanges(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let readOnly = place.readOnly else { return }
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    try run.close(store)
    let reader = try run.open(readOnly, ConformanceModel.general)
    try reader.expectContents(ExpectedGraph(graph), "in a store opened read-only")
    let edit = GraphEdit(graph)
    edit.update("Club", graph.rows("Club").keys.min() ?? 0, ["name": .string("changed")])
    run.expectError(.readOnly, of: "saving to a store opened read-only") { try reader.store.prepare(edit.request()).commit() }
    run.expectError(.readOnly, of: "writing metadata of a store opened read-only") { try reader.store.setMetadata(["a": .bool(true)]) }
    try reader.expectContents(graph, "after refused changes")
  }

  private static func otherModel(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    try run.close(store)
    run.expectError(.incompatibleModel, of: "opening with a model that has an additional attribute") {
      let other = place.description.makeStore()
      defer { try? other.close() }
      _ = try other.open(model: ConformanceModel.changed)
    }
    try run.open(place, ConformanceModel.general).expectContents(graph, "after another model was refused")
  }

  private static func damagedStore(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    _ = try ConformanceRows.people(store)
    try run.close(store)
    guard let damage = place.damage else { return }
    try damage()
    run.expectError(.notAStore, .damaged, of: "opening a damaged store") {
      let damaged = place.description.makeStore()
      defer { try? damaged.close() }
      _ = try damaged.open(model: ConformanceModel.general)
    }
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try again.expectContents(graph, "after reopening")
  }

  private static func reopeningAfterChanges(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let people = graph.rows("Person").keys.sorted(), companies = graph.rows("Company").keys.sorted()
    try store.save(graph) { edit in
      edit.update("Person", people[1], ["name": .string("renamed"), "employer": .key(companies[3])])
      edit.delete("Person", people[2])
      edit.delete("Company", companies[0])
      edit.link("Person", "friends", people[1], people[5])
    }
    try run.close(store)
    try run.open(place, ConformanceModel.general).expectContents(graph, "after reopening")
  }

  private static func reopeningBesideRemains(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store), edit = GraphEdit(graph)
    edit.update("Club", graph.rows("Club").keys.min() ?? 0, ["name": .string("changed")])
    let view = try store.store.beginRead(.latest), save = try store.store.prepare(edit.request())
    try save.commit()
    edit.apply()
    view.end()
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try withExtendedLifetime((store, view, save)) { try again.expectContents(graph, "in a store opened again") }
  }

  private static func closing(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let view = try store.store.beginRead(.latest)
    try store.store.close()
    try store.store.close()
    run.expectError(.notOpen, of: "reading in a view of a closed store") { _ = try store.fetch(store.plan("Person"), in: view) }
    run.expectError(.notOpen, of: "reading rows by key in a view of a closed store") { _ = try store.rows("Person", [1], in: view) }
    run.expectError(.notOpen, of: "reading a relationship in a view of a closed store") {
      _ = try store.targets("Company", "employees", [1], in: view)
    }
    view.end()
    run.expectError(.notOpen, of: "beginning a read in a closed store") { _ = try store.store.beginRead(.latest) }
    run.expectError(.notOpen, of: "saving to a closed store") { try store.store.prepare(SaveRequest()).commit() }
    run.expectError(.notOpen, of: "reserving keys of a closed store") { _ = try store.keys("Person", 1) }
    run.expectError(.notOpen, of: "writing metadata of a closed store") { try store.store.setMetadata(["a": .bool(true)]) }
  }

  private static func metadataBesideSaves(_ run: CaseRun) throws {
    let place = try run.makePlace(), values: [String: StoreValue] = ["title": .string("Metadata"), "number": .int64(7)]
    var store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store), club = graph.rows("Club").keys.min() ?? 0
    try store.store.setMetadata(values)
    for round in 0..<3 {
      try store.save(graph) { $0.update("Club", club, ["name": .string("Club \(round)")]) }
      try run.close(store)
      store = try run.open(place, ConformanceModel.general)
      run.expectEqual(store.metadata.userInfo, values, "the metadata after \(round + 1) saves, each followed by reopening")
    }
    try store.expectContents(graph, "after saves beside metadata")
  }

  private static func metadata(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    try store.store.setMetadata(["gone": .int64(1), "kept": .string("before")])
    var values: [String: StoreValue] = ["kept": .string("caf\u{E9}"), "number": .int64(.max), "date": .date(0.5), "flag": .bool(true)]
    // Many formats have one type for all numbers, or one for all texts.
    for type in AttributeType.storedCases where type != .objectID {
      values["value of type \(type.rawValue)"] = ConformanceValues.values(of: type).last
    }
    try store.store.setMetadata(values)
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    run.expectEqual(again.metadata.userInfo, values, "the metadata after reopening")
    run.expectEqual(again.identity.storeUUID, store.identity.storeUUID, "the UUID after setting metadata")
    try again.expectContents(graph, "after setting metadata")
  }
}
