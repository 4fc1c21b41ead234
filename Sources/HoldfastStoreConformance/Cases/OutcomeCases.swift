import HoldfastStore

/// Tests rules S16 and S17 of the store contract: outcomes of saves, and ascending versions.
enum OutcomeCases {
  static let all = [
    StoreConformanceCase("S16", "a save that took effect isn't reported as not committed", committedSave),
    StoreConformanceCase("S16", "a save that was reported as not committed is refused later", refusedSave),
    StoreConformanceCase("S16", "a save that was prepared before it was reported as not committed isn't committed later", refusedCommit),
    StoreConformanceCase("S17", "the version of a row ascends with each save", ascendingVersions),
  ]

  /// Opens a new store. Returns nil if the store under test doesn't support requests for outcomes.
  private static func answeringStore(_ run: CaseRun) throws -> TestedStore? {
    let store = try run.openNew(ConformanceModel.general)
    return store.store.answers.supports(SaveOutcomeRequest.self) ? store : nil
  }

  private static func insertion(_ graph: ExpectedGraph, _ key: ObjectKey) -> (GraphEdit, SaveRequest, SaveOutcomeRequest) {
    let edit = GraphEdit(graph), origin = SaveOrigin()
    edit.insert("Club", key, ["name": .string("Club")])
    var request = edit.request()
    request.origin = origin
    return (edit, request, SaveOutcomeRequest(id: origin.id))
  }

  private static func committedSave(_ run: CaseRun) throws {
    guard let store = try answeringStore(run) else { return }
    let graph = ExpectedGraph(store), (edit, request, question) = insertion(graph, try store.keys("Club", 1)[0])
    try store.save(request)
    edit.apply()
    for _ in 0..<2 {
      switch try store.store.answers.perform(question) {
      case .committed(let receipt):
        let rows = receipt.rows.flatMap { batch in (0..<batch.count).map { batch[$0] } }
        for row in rows { store.expectSame(row, graph.rows("Club")[row.key] ?? row, "a row of the receipt") }
      case .notCommitted: run.fail("the outcome of a committed save not to be `notCommitted`", got: "notCommitted")
      case .unknown: break
      }
    }
    try store.expectContents(graph, "after the outcome was requested")
  }

  private static func isRefused(_ store: TestedStore, _ question: SaveOutcomeRequest) throws -> Bool {
    switch try store.store.answers.perform(question) {
    case .committed:
      store.run.fail("the outcome of a save that wasn't committed not to be `committed`", got: "committed")
      return false
    case .notCommitted: return true
    case .unknown: return false
    }
  }

  private static func refusedSave(_ run: CaseRun) throws {
    guard let store = try answeringStore(run) else { return }
    let graph = ExpectedGraph(store), (_, request, question) = insertion(graph, try store.keys("Club", 1)[0])
    guard try isRefused(store, question) else { return }
    let wasSaved = (try? store.save(request)) != nil
    run.expect(!wasSaved, "a save that was reported as not committed to throw", got: "no error")
    try store.expectContents(graph, "after the refused save")
  }

  private static func refusedCommit(_ run: CaseRun) throws {
    guard let store = try answeringStore(run) else { return }
    let graph = ExpectedGraph(store), (_, request, question) = insertion(graph, try store.keys("Club", 1)[0])
    let prepared = try store.store.prepare(request)
    guard try isRefused(store, question) else { return prepared.abort() }
    let wasSaved = (try? prepared.commit()) != nil
    run.expect(!wasSaved, "the commit of a save that was reported as not committed to throw", got: "no error")
    try store.expectContents(graph, "after the refused commit")
  }

  private static func ascendingVersions(_ run: CaseRun) throws {
    let place = try run.makePlace()
    var store = try run.open(place, ConformanceModel.general)
    let graph = ExpectedGraph(store), key = try store.keys("Club", 1)[0]
    try store.save(graph) { $0.insert("Club", key, ["name": .string("Club")]) }
    var last: RowVersion = 0
    for round in 0..<12 {
      let version = try store.rows("Club", [key]).first?.version ?? 0
      run.expect(version > last, "the version of a row after \(round) changes to be greater than \(last)", got: "\(version)")
      last = version
      try store.save(graph) { $0.update("Club", key, ["name": .string("Club \(round)")]) }
      if round % 4 == 3 {
        try run.close(store)
        store = try run.open(place, ConformanceModel.general)
      }
    }
  }
}
