import HoldfastStore

/// Tests rules F1, F4–F7, R1 and R2 of the store contract without predicates and sorts: the minimum that every store supports.
enum ReadingCases {
  static let all =
    [
      StoreConformanceCase("F1", "a fetch returns exactly the rows of an entity, each once", allRows),
      StoreConformanceCase("F1", "a fetch returns all rows after many small saves", manySaves),
      StoreConformanceCase("F4", "a fetch stops after the sink has enough", stopsWhenEnough),
      StoreConformanceCase("F4", "errors of the sink are rethrown", passesOnErrors),
      StoreConformanceCase("F5", "rows have the right layout, ID, key and version, and each batch has one entity", layouts),
      StoreConformanceCase("F5", "IDs of the store's own objects are returned unchanged", ownIDs),
      StoreConformanceCase("F6", "key-only rows have no columns", keysOnly),
      StoreConformanceCase("F7", "a sink may send requests to the store", nestedRequests),
      StoreConformanceCase("R1", "each requested row is returned once", rowsByKey),
      StoreConformanceCase("R2", "keys that do not exist are left out", missingKeys),
    ]
    + AttributeType.storedCases.map { type in
      StoreConformanceCase("F5", "values of type \(type.rawValue) are returned unchanged") { try valuesComeBack(type, $0) }
    }
    + AttributeType.storedCases.filter { !ConformanceValues.unusual(of: $0).isEmpty }.map { type in
      StoreConformanceCase("F5", "unusual values of type \(type.rawValue) are returned unchanged, or refused") {
        try unusualValues(type, $0)
      }
    }

  private static func allRows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    try store.expectContents(graph, "after a first save")
  }

  private static func manySaves(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let keys = try store.keys("Club", 150)
    for (round, key) in keys.enumerated() {
      try store.save(graph) { edit in
        edit.insert("Club", key, ["name": .string("Club \(round)")])
        if round % 3 == 2, graph.rows("Club")[keys[round / 2]] != nil {
          edit.update("Club", keys[round / 2], ["name": .string("Renamed \(round)")])
        }
        if round % 5 == 4 { edit.delete("Club", keys[round - 3]) }
      }
    }
    try store.expectRows(store.fetch(store.plan("Club")), Array(graph.rows("Club").values), "the rows of Club")
    try store.expectRows(store.rows("Club", keys), Array(graph.rows("Club").values), "the rows of Club by key")
  }

  private static func stopsWhenEnough(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.manyCompanies(store)
    let sink = CollectingSink(enoughAfter: 1)
    try store.latest { try store.store.fetch(store.plan("Company"), in: $0, into: sink) }
    run.expect(sink.takeCount <= 2, "the fetch to make at most one delivery after the sink has enough", got: "\(sink.takeCount - 1) more")
    try store.expectRows(store.fetch(store.plan("Company")), Array(graph.rows("Company").values), "the rows of Company")
  }

  private struct SinkFailure: Error {}

  private final class ThrowingSink: RowSink {
    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand { throw SinkFailure() }
  }

  private static func passesOnErrors(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let key = graph.rows("Company").keys.min() ?? 0
    try store.latest { view in
      expectSinkFailure(run, "fetch") { try store.store.fetch(store.plan("Company"), in: view, into: ThrowingSink()) }
      let request = FaultRequest(entity: store.entity("Company").index, keys: [key])
      expectSinkFailure(run, "rows") { try store.store.rows(request, in: view, into: ThrowingSink()) }
    }
    try store.expectContents(graph, "after a sink threw an error")
  }

  private static func expectSinkFailure(_ run: CaseRun, _ what: String, _ body: () throws -> Void) {
    do {
      try body()
      run.fail("\(what) to throw the sink's error", got: "no error")
    } catch is SinkFailure {
    } catch let error as StoreError where error.cause is SinkFailure {
    } catch {
      run.fail("\(what) to throw the sink's error", got: "\(error)")
    }
  }

  /// A sink that sends requests for each row that it receives.
  private final class RequestingSink: RowSink {
    private let store: TestedStore
    private let view: any ReadView
    private let entity: ManagedObjectModel.Entity
    private(set) var rows: [RowView] = []
    /// The rows received from nested requests: in the same view, in another view, and by a nested fetch.
    private(set) var nested: [[ObjectKey]] = [[], [], []]

    init(_ store: TestedStore, _ view: any ReadView, _ entity: ManagedObjectModel.Entity) {
      (self.store, self.view, self.entity) = (store, view, entity)
    }

    func take(_ batch: RowBatch, _ selection: RowSelection) throws -> SinkDemand {
      let received = CollectingSink()
      _ = received.take(batch, selection)
      rows += received.rows
      for row in received.rows {
        nested[0] += try store.rows(entity.name, [row.key], in: view).map(\.key)
        nested[1] += try store.rows(entity.name, [row.key]).map(\.key)
        for relationship in entity.toManyRelationships { _ = try store.targets(entity.name, relationship.name, [row.key], in: view) }
      }
      if nested[2].isEmpty { nested[2] = try store.fetch(store.plan(entity.name), in: view).map(\.key) }
      return .more
    }
  }

  private static func nestedRequests(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), entity = store.entity("Person"), keys = graph.rows("Person").keys.sorted()
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try store.store.beginRead(kind)
      defer { view.end() }
      let fetching = RequestingSink(store, view, entity), reading = RequestingSink(store, view, entity)
      try store.store.fetch(store.plan("Person"), in: view, into: fetching)
      try store.store.rows(FaultRequest(entity: entity.index, keys: keys), in: view, into: reading)
      for (sink, request) in [(fetching, "fetch"), (reading, "rows")] {
        store.expectRows(sink.rows, Array(graph.rows("Person").values), "the rows of \(request) in a view of kind \(kind)")
        for (nested, what) in zip(sink.nested, ["rows in the same view", "rows in another view", "a nested fetch"]) {
          run.expectEqual(nested.sorted(), keys, "the keys of \(what) during \(request) in a view of kind \(kind)")
        }
      }
    }
  }

  private static func layouts(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for entity in store.model.entities {
      let sink = CollectingSink()
      try store.latest { view in
        try store.store.fetch(store.plan(entity.name), in: view, into: sink)
        let keys = graph.rows(of: entity).keys.sorted()
        try store.store.rows(FaultRequest(entity: entity.index, keys: keys), in: view, into: sink)
      }
      for batch in sink.batches {
        run.expect(batch.layout == entity.layout, "a batch of \(entity.name) to have the entity's layout", got: "\(batch.layout.columns)")
        run.expectEqual(batch.idPrefix?.entityName, entity.name, "the entity of the IDs of a batch of \(entity.name)")
        run.expectEqual(batch.idPrefix?.storeIdentifier, store.identity.storeUUID, "the store of the IDs of a batch of \(entity.name)")
      }
      for row in sink.rows {
        run.expectEqual(row.objectID, store.identity.objectID(entity: entity, key: row.key), "the ID of row \(row.key) of \(entity.name)")
      }
    }
  }

  private static func keysOnly(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    // So that not all rows have the same version.
    try store.save(graph) { edit in
      for entity in store.model.entities {
        for key in graph.rows(of: entity).keys.sorted().prefix(2) { edit.update(entity.name, key, [:]) }
      }
    }
    for entity in store.model.entities {
      var plan = store.plan(entity.name)
      plan.output = .keys
      let got = try store.fetch(plan)
      run.expectEqual(got.map(\.key).sorted(), graph.rows(of: entity).keys.sorted(), "the keys of \(entity.name)")
      for row in got {
        run.expectEqual(
          row.version, graph.rows(of: entity)[row.key]?.version, "the version of the key-only row \(row.key) of \(entity.name)")
        run.expect(row.batch.layout == .keysOnly, "key-only rows of \(entity.name) to have no columns", got: "\(row.batch.layout.columns)")
        run.expectEqual(row.objectID, store.identity.objectID(entity: entity, key: row.key), "the ID of key \(row.key) of \(entity.name)")
      }
    }
  }

  private static func ownIDs(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general), graph = ExpectedGraph(store)
    let keys = try store.keys("Sample", 3), club = try store.keys("Club", 1)[0], name = ConformanceModel.attributeName(.objectID)
    // The last object doesn't exist.
    let ids = [("Sample", keys[2]), ("Club", club), ("Club", ObjectKey(1 << 40))].map { entity, key in
      store.identity.objectID(entity: store.entity(entity), key: key)
    }
    try store.save(graph) { edit in
      edit.insert("Club", club, ["name": .string("Club")])
      for (key, id) in zip(keys, ids) { edit.insert("Sample", key, [name: .objectID(id)]) }
    }
    try store.expectRows(store.fetch(store.plan("Sample")), Array(graph.rows("Sample").values), "the rows with IDs of the store's objects")
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try again.expectRows(again.rows("Sample", keys), Array(graph.rows("Sample").values), "the rows by key after reopening")
  }

  private static func rowsByKey(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    for entity in store.model.entities {
      let rows = graph.rows(of: entity), keys = rows.keys.sorted()
      try store.expectRows(store.rows(entity.name, keys), Array(rows.values), "the rows of \(entity.name) by key")
      try store.expectRows(store.rows(entity.name, keys.reversed()), Array(rows.values), "the rows of \(entity.name) by descending key")
      for key in keys {
        try store.expectRows(store.rows(entity.name, [key]), rows[key].map { [$0] } ?? [], "the rows for key \(key) of \(entity.name)")
      }
    }
    let many = try ConformanceRows.manyCompanies(store)
    let keys = many.rows("Company").keys.sorted { $0.rawValue % 97 == $1.rawValue % 97 ? $0 < $1 : $0.rawValue % 97 < $1.rawValue % 97 }
    try store.expectRows(store.rows("Company", keys), Array(many.rows("Company").values), "the 4,000 rows of Company by key")
  }

  private static func missingKeys(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store)
    let keys = graph.rows("Person").keys.sorted()
    try store.save(graph) { $0.delete("Person", keys[4]) }
    let unused = try store.keys("Person", 1)[0]
    let asked = [unused, keys[3], keys[4], keys[5], ObjectKey(.max), ObjectKey(1 << 40)]
    try store.expectRows(
      store.rows("Person", asked), [keys[3], keys[5]].compactMap { graph.rows("Person")[$0] }, "the rows for existing and missing keys")
    try store.expectRows(store.rows("Person", []), [], "the rows for an empty list of keys")
  }

  private static func unusualValues(_ type: AttributeType, _ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = ExpectedGraph(store)
    for value in ConformanceValues.unusual(of: type) {
      let key = try store.keys("Sample", 1)[0], name = ConformanceModel.attributeName(type)
      do { try store.save(graph) { $0.insert("Sample", key, [name: value]) } } catch let error as StoreError
        where error.code == .unstorableValue
      {}
    }
    try store.expectRows(store.fetch(store.plan("Sample")), Array(graph.rows("Sample").values), "the fetched rows")
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try again.expectRows(again.fetch(again.plan("Sample")), Array(graph.rows("Sample").values), "the fetched rows after reopening")
  }

  private static func valuesComeBack(_ type: AttributeType, _ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let values = ConformanceValues.values(of: type) + [.null]
    let keys = try store.keys("Sample", values.count)
    try store.save(graph) { edit in
      for (key, value) in zip(keys, values) { edit.insert("Sample", key, [ConformanceModel.attributeName(type): value]) }
    }
    try store.expectRows(store.fetch(store.plan("Sample")), Array(graph.rows("Sample").values), "the fetched rows")
    try store.save(graph) { edit in
      for (index, key) in keys.enumerated() {
        edit.update("Sample", key, [ConformanceModel.attributeName(type): values[(index + 1) % values.count]])
      }
    }
    try store.expectRows(store.rows("Sample", keys), Array(graph.rows("Sample").values), "the rows by key after an update")
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try again.expectRows(again.fetch(again.plan("Sample")), Array(graph.rows("Sample").values), "the fetched rows after reopening")
  }
}
