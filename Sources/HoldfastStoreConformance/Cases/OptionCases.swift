import HoldfastStore

/// Tests rules Q1–Q3 of the store contract: deadlines and cancellations. A store may ignore them.
enum OptionCases {
  static let all = [
    StoreConformanceCase("Q1", "a cancelled fetch throws `cancelled` or delivers every row", cancelledFetch),
    StoreConformanceCase("Q1", "a request that is cancelled before it begins throws `cancelled` or is complete", cancelledRequests),
    StoreConformanceCase("Q1", "a request whose deadline has passed throws `timedOut` or succeeds", lateRequests),
    StoreConformanceCase("Q1", "a save whose deadline has passed changes nothing, and the next one succeeds", lateSave),
    StoreConformanceCase("Q2", "a request without a cancellation isn't cancelled with the fetch that it is part of", nestedRequest),
    StoreConformanceCase("Q3", "after a cancelled fetch, its view answers further requests", viewAfterCancellation),
  ]

  /// A sink that cancels its request when the first rows arrive, and then runs an operation.
  private final class CancellingSink: RowSink {
    let cancellation = RequestCancellation()
    private(set) var rows: [RowView] = []
    private let operation: () throws -> Void

    init(_ operation: @escaping () throws -> Void = {}) { self.operation = operation }

    func take(_ batch: RowBatch, _ selection: RowSelection) throws -> SinkDemand {
      let received = CollectingSink()
      _ = received.take(batch, selection)
      rows += received.rows
      if !cancellation.isCancelled {
        cancellation.cancel()
        try operation()
      }
      return .more
    }
  }

  /// Runs a fetch that is cancelled when its first rows arrive, and returns whether it was completed.
  private static func cancel(_ run: CaseRun, _ store: TestedStore, _ sink: CancellingSink, in view: any ReadView) throws -> Bool {
    let options = RequestOptions(cancellation: sink.cancellation)
    do {
      try store.store.fetch(store.plan("Company"), in: view, options: options, into: sink)
      return true
    } catch let error as StoreError where error.code == .cancelled { return false } catch {
      run.fail("a cancelled fetch to throw `cancelled`", got: "\(error)")
      return false
    }
  }

  private static func cancelledFetch(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.manyCompanies(store), sink = CancellingSink()
    let isComplete = try store.latest { try cancel(run, store, sink, in: $0) }
    if isComplete { run.expectEqual(sink.rows.count, graph.rows("Company").count, "the number of rows of a fetch that didn't throw") }
  }

  private static func cancelledRequests(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), cancellation = RequestCancellation()
    cancellation.cancel()
    try expectComplete(store, graph, RequestOptions(cancellation: cancellation), "cancelled", .cancelled)
    try store.expectContents(graph, "after requests that were cancelled before they began")
  }

  /// Expects a fetch, a count and relationship requests to throw an error with a code, or to return complete answers.
  private static func expectComplete(
    _ store: TestedStore, _ graph: ExpectedGraph, _ options: RequestOptions, _ what: String, _ code: StoreError.Code
  ) throws {
    let run = store.run, people = graph.rows("Person")
    func request(_ body: (any ReadView) throws -> Void) throws {
      do { try store.latest(body) } catch let error as StoreError where error.code == code {}
    }
    try request { view in
      let sink = CollectingSink()
      try store.store.fetch(store.plan("Person"), in: view, options: options, into: sink)
      store.expectRows(sink.rows, Array(people.values), "the rows of a \(what) fetch that didn't throw")
    }
    if run.harness.capabilities.counting {
      try request { view in
        let sink = CollectingSink()
        var plan = store.plan("Person")
        plan.output = .count
        try store.store.fetch(plan, in: view, options: options, into: sink)
        run.expectEqual(sink.rows.map(\.values), [[.int64(Int64(people.count))]], "the result of a \(what) count that didn't throw")
      }
    }
    for (name, path) in [("Person", "friends"), ("Person", "clubs"), ("Company", "employees")] {
      let entity = store.entity(name), sources = graph.rows(name).keys.sorted()
      guard let relationship = entity.relationship(named: path) else { continue }
      let asked = RelationshipRequest(entity: entity.index, relationship: relationship.index, sources: sources)
      try request { view in
        guard let answer = try store.answer(asked, in: view, options: options) else { return }
        for (place, source) in sources.enumerated() {
          let targets = answer.targets[Int(answer.offsets[place])..<Int(answer.offsets[place + 1])].sorted()
          run.expectEqual(
            targets, graph.targets(of: source, relationship), "the targets of \(name).\(path) in a \(what) request that didn't throw")
        }
      }
    }
  }

  private static func lateRequests(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), entity = store.entity("Person"), keys = graph.rows("Person").keys.sorted()
    let late = RequestOptions(deadline: .now - .seconds(1))
    func expectCount(_ what: String, _ body: (any ReadView, any RowSink) throws -> Void) throws {
      let sink = CollectingSink()
      do { try store.latest { try body($0, sink) } } catch let error as StoreError where error.code == .timedOut { return }
      run.expectEqual(sink.rows.count, keys.count, "the number of rows of \(what) that didn't throw")
    }
    try expectCount("a late request by key") {
      try store.store.rows(FaultRequest(entity: entity.index, keys: keys), in: $0, options: late, into: $1)
    }
    try succeedsOrIsLate {
      let view = try store.store.beginRead(.latest, options: late)
      view.end()
    }
    try expectComplete(store, graph, late, "late", .timedOut)
    try store.expectContents(graph, "after requests whose deadlines had passed")
  }

  private static func succeedsOrIsLate(_ body: () throws -> Void) throws {
    do { try body() } catch let error as StoreError where error.code == .timedOut {}
  }

  private static func lateSave(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), person = graph.rows("Person").keys.min() ?? 0
    let late = RequestOptions(deadline: .now - .seconds(1))
    try succeedsOrIsLate {
      let keys = try store.store.reserveKeys([KeyDemand(entity: store.entity("Person").index, count: 3)], options: late)
      run.expectEqual(keys.map(\.count), [3], "the number of keys of a late request that didn't throw")
    }
    let edit = GraphEdit(graph)
    edit.update("Person", person, ["name": .string("Late")])
    try succeedsOrIsLate { try store.store.prepare(edit.request(), options: late).abort() }
    try store.expectContents(graph, "after a save whose deadline had passed")
    let key = try store.keys("Person", 1)[0]
    try store.save(graph) { next in
      next.insert("Person", key, ["name": .string("Next")])
      next.update("Person", person, ["name": .string("Changed")])
    }
    try store.expectContents(graph, "after the next save")
  }

  private static func nestedRequest(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.manyCompanies(store), keys = graph.rows("Company").keys.sorted()
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try store.store.beginRead(kind)
      defer { view.end() }
      let sink = CancellingSink {
        let rows = CollectingSink(), request = FaultRequest(entity: store.entity("Company").index, keys: keys)
        do { try store.store.rows(request, in: view, options: .none, into: rows) } catch {
          return run.fail("a request without a cancellation to succeed", got: "\(error)")
        }
        run.expectEqual(rows.rows.count, keys.count, "the number of rows of a request without a cancellation")
      }
      _ = try cancel(run, store, sink, in: view)
    }
  }

  private static func viewAfterCancellation(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.manyCompanies(store)
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let view = try store.store.beginRead(kind)
      defer { view.end() }
      _ = try cancel(run, store, CancellingSink(), in: view)
      let rows = try store.fetch(store.plan("Company"), in: view)
      store.expectRows(rows, Array(graph.rows("Company").values), "the rows in a view of kind \(kind) after a cancelled fetch")
    }
  }
}
