import HoldfastStore

/// Runs one case: creates places and stores, collects failures, and cleans up. Used by one thread.
final class CaseRun {
  let harness: any StoreHarness
  private let log: RequestLog
  private(set) var failures: [StoreConformanceFailure.Difference] = []
  private var places: [StorePlace] = []
  private var opened: [any IncrementalStore] = []
  /// The maximum number of failures. Further ones are dropped.
  private static let mostFailures = 20

  init(_ harness: any StoreHarness, _ log: RequestLog) { (self.harness, self.log) = (harness, log) }

  // MARK: Places and stores

  func makePlace() throws -> StorePlace { keep(try harness.makePlace()) }

  /// Keeps a place until the case ends, and records the requests to its stores.
  private func keep(_ place: StorePlace) -> StorePlace {
    var place = place
    place.description = place.description.logged(log)
    place.readOnly = place.readOnly?.logged(log)
    place.cramped = place.cramped?.logged(log)
    if let describe = place.onFileSystem { place.onFileSystem = { [log] in describe($0).logged(log) } }
    places.append(place)
    return place
  }

  /// The state of a place that a process killed now would leave; nil if the store has no files.
  func copy(_ place: StorePlace) throws -> StorePlace? {
    try place.copy.map { keep(try $0()) }
  }

  /// Opens a store at a place.
  func open(_ place: StorePlace, _ model: ManagedObjectModel) throws -> TestedStore { try open(place.description, model) }

  func open(_ description: StoreDescription, _ model: ManagedObjectModel) throws -> TestedStore {
    let made = description.makeStore(), store: any IncrementalStore = harness.declinesRequests ? DividedStore(made) : made
    let metadata = try store.open(model: model)
    opened.append(store)
    return TestedStore(store, model, metadata, self)
  }

  /// Opens a new store.
  func openNew(_ model: ManagedObjectModel) throws -> TestedStore { try open(makePlace(), model) }

  func close(_ store: TestedStore) throws {
    opened.removeAll { $0 === store.store }
    try store.store.close()
  }

  func finish() {
    for store in opened { try? store.close() }
    for place in places { place.discard() }
  }

  // MARK: Failures

  func fail(_ expected: String, got: String) {
    if failures.count < CaseRun.mostFailures { failures.append(.init(expected: expected, got: got, requests: log.recent())) }
  }

  func expect(_ holds: Bool, _ expected: @autoclosure () -> String, got: @autoclosure () -> String) {
    if !holds { fail(expected(), got: got()) }
  }

  func expectEqual<T: Equatable>(_ got: T, _ expected: T, _ what: @autoclosure () -> String) {
    if got != expected { fail("\(what()) to be \(expected)", got: "\(got)") }
  }

  /// Expects an error with one of the codes, and returns it.
  @discardableResult func expectError(_ codes: StoreError.Code..., of what: String, _ body: () throws -> Void) -> StoreError? {
    let names = codes.map(\.rawValue).joined(separator: " or ")
    do {
      try body()
      fail("\(what) to throw an error with code \(names)", got: "no error")
    } catch let error as StoreError {
      expect(codes.contains(error.code), "\(what) to throw an error with code \(names)", got: error.description)
      return codes.contains(error.code) ? error : nil
    } catch {
      fail("\(what) to throw a StoreError", got: "\(error)")
    }
    return nil
  }
}

/// Collects all rows it receives, and how they were delivered.
final class CollectingSink: RowSink {
  private(set) var rows: [RowView] = []
  private(set) var batches: [RowBatch] = []
  private(set) var takeCount = 0
  private let enoughAfter: Int

  /// - Parameter enoughAfter: The number of rows after which the sink returns `enough`.
  init(enoughAfter: Int = .max) { self.enoughAfter = enoughAfter }

  func take(_ batch: RowBatch, _ selection: RowSelection) -> SinkDemand {
    takeCount += 1
    batches.append(batch)
    switch selection {
    case .all: rows += (0..<batch.count).map { batch[$0] }
    case .one(let index): rows.append(batch[index])
    case .rows(let indexes): rows += indexes.map { batch[Int($0)] }
    }
    return rows.count >= enoughAfter ? .enough : .more
  }
}

/// An open store, with helpers for the requests that cases make.
final class TestedStore {
  let store: any IncrementalStore
  let model: ManagedObjectModel
  let metadata: StoreMetadata
  let run: CaseRun

  init(_ store: any IncrementalStore, _ model: ManagedObjectModel, _ metadata: StoreMetadata, _ run: CaseRun) {
    self.store = store
    self.model = model
    self.metadata = metadata
    self.run = run
  }

  var identity: StoreIdentity { metadata.identity }

  func entity(_ name: String) -> ManagedObjectModel.Entity { model.entity(named: name)! }

  func keys(_ entity: String, _ count: Int) throws -> [ObjectKey] { try store.reserveKeys(entity: self.entity(entity).index, count: count) }

  // MARK: Requests

  func latest<T>(_ body: (any ReadView) throws -> T) throws -> T {
    let view = try store.beginRead(.latest)
    defer { view.end() }
    return try body(view)
  }

  func fetch(_ plan: FetchPlan, in view: (any ReadView)? = nil) throws -> [RowView] {
    guard let view else { return try latest { try fetch(plan, in: $0) } }
    let sink = CollectingSink()
    try store.fetch(plan, in: view, into: sink)
    return sink.rows
  }

  func plan(_ entity: String, _ predicate: QueryExpression? = nil, sorts: [SortTerm] = []) -> FetchPlan {
    let index = self.entity(entity).index
    return FetchPlan(entity: index, concreteEntities: [index], predicate: predicate, sorts: sorts)
  }

  func rows(_ entity: String, _ keys: [ObjectKey], in view: (any ReadView)? = nil) throws -> [RowView] {
    guard let view else { return try latest { try rows(entity, keys, in: $0) } }
    let sink = CollectingSink()
    try store.rows(FaultRequest(entity: self.entity(entity).index, keys: keys), in: view, into: sink)
    return sink.rows
  }

  /// The targets of each source, sorted.
  func targets(_ entity: String, _ relationship: String, _ sources: [ObjectKey], in view: (any ReadView)? = nil) throws -> [[ObjectKey]] {
    guard let view else { return try latest { try targets(entity, relationship, sources, in: $0) } }
    let described = self.entity(entity)
    let place = described.relationship(named: relationship)!.index
    let request = RelationshipRequest(entity: described.index, relationship: place, sources: sources)
    guard let answer = try answer(request, in: view) else { return sources.map { _ in [] } }
    return sources.indices.map { answer.targets[Int(answer.offsets[$0])..<Int(answer.offsets[$0 + 1])].sorted() }
  }

  /// The answer to a request for destinations; nil if its parts don't match each other or the request, which is a failure.
  func answer(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions = .none) throws -> RelationshipAnswer? {
    let answer = try store.relationships(request, in: view, options: options)
    let entity = model.entities[request.entity], relationship = entity.relationships[request.relationship]
    let what = "the answer for \(request.sources.count) sources of \(entity.name).\(relationship.name)"
    // The cases of rule L5 test the order keys.
    do { try answer.check(request, path: nil, isOrdered: false) } catch {
      run.fail("\(what) to match the request", got: error.reason)
      return nil
    }
    let family = model.destination(of: relationship).familyIndexes
    guard let other = answer.entities?.first(where: { !family.contains($0) }) else { return answer }
    run.fail("\(what) to contain the indexes of the destination and its subentities", got: "\(other)")
    return nil
  }

  // MARK: Saving

  @discardableResult
  func save(_ request: SaveRequest) throws -> SaveReceipt { try store.prepare(request).commit() }

  /// Saves edits and applies them to the expected graph.
  @discardableResult
  func save(_ graph: ExpectedGraph, _ edit: (GraphEdit) -> Void) throws -> SaveReceipt {
    let edits = GraphEdit(graph)
    edit(edits)
    let receipt = try save(edits.request())
    edits.apply()
    return receipt
  }

  // MARK: Comparing

  /// Expects the store to contain exactly the rows and links of a graph.
  func expectContents(_ graph: ExpectedGraph, _ when: String, in view: (any ReadView)? = nil) throws {
    guard let view else { return try latest { try expectContents(graph, when, in: $0) } }
    for entity in model.entities {
      try expectRows(fetch(plan(entity.name), in: view), Array(graph.rows(of: entity).values), "the rows of \(entity.name) \(when)")
      let sources = graph.rows(of: entity).keys.sorted()
      try expectRows(
        rows(entity.name, sources, in: view), Array(graph.rows(of: entity).values), "the rows of \(entity.name) by key \(when)")
      for relationship in entity.toManyRelationships where !sources.isEmpty {
        let got = try targets(entity.name, relationship.name, sources, in: view)
        for (source, got) in zip(sources, got) {
          run.expectEqual(
            got, graph.targets(of: source, relationship), "the targets of \(entity.name).\(relationship.name) of object \(source) \(when)")
        }
        if relationship.isOrdered { try expectOrder(graph, entity, relationship, sources, when, in: view) }
      }
    }
  }

  /// Expects the order keys of all targets to be those of a graph.
  private func expectOrder(
    _ graph: ExpectedGraph, _ entity: ManagedObjectModel.Entity, _ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey],
    _ when: String, in view: any ReadView
  ) throws {
    let request = RelationshipRequest(entity: entity.index, relationship: relationship.index, sources: sources, acceptsRows: true)
    guard let answer = try answer(request, in: view) else { return }
    guard let keys = answer.orderKeys else {
      return run.fail("each target of \(entity.name).\(relationship.name) \(when) to have an order key", got: "no order keys")
    }
    for (place, source) in sources.enumerated() {
      let range = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
      let got = Dictionary(zip(answer.targets[range], keys[range]), uniquingKeysWith: { first, _ in first })
      run.expectEqual(
        got, graph.orderKeys(of: source, relationship), "the order keys of \(entity.name).\(relationship.name) of object \(source) \(when)")
    }
  }

  /// Expects rows, in any order.
  func expectRows(_ got: [RowView], _ expected: [RowView], _ what: String) {
    let byKey = Dictionary(got.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    if byKey.count != got.count { run.fail("\(what) to contain each row once", got: "\(got.count) rows with \(byKey.count) keys") }
    for row in expected.sorted(by: { $0.key < $1.key }) {
      guard let found = byKey[row.key] else {
        run.fail("\(what) to contain key \(row.key)", got: "no such row")
        continue
      }
      expectSame(found, row, what)
    }
    let keys = Set(expected.map(\.key))
    for key in byKey.keys.sorted() where !keys.contains(key) { run.fail("\(what) not to contain key \(key)", got: "that row") }
  }

  func expectSame(_ got: RowView, _ expected: RowView, _ what: String) {
    run.expectEqual(got.version, expected.version, "the version of row \(expected.key) (\(what))")
    guard got.batch.layout == expected.batch.layout else {
      return run.fail("row \(expected.key) (\(what)) to have columns \(expected.batch.layout.columns)", got: "\(got.batch.layout.columns)")
    }
    for slot in got.batch.layout.slots where got[slot] != expected[slot] && !(got[slot].isNaN && expected[slot].isNaN) {
      run.fail("slot \(slot) of row \(expected.key) (\(what)) to be \(expected[slot])", got: "\(got[slot])")
    }
  }
}
