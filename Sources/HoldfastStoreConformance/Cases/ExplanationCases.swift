import HoldfastStore

/// Tests rule E1 of the store contract: explanations of fetches. Does nothing if the store doesn't support such requests.
enum ExplanationCases {
  static let all = [
    StoreConformanceCase("E1", "an explanation contains no values of the predicate", explanation)
  ]

  private static func explanation(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), declared = run.harness.capabilities
    if !store.store.answers.supports(ExplanationRequest.self) { return }
    let graph = try ConformanceRows.people(store), value = "confidential 1f8b"
    let property = QueryExpression.property("name"), constant = QueryExpression.constant(.string(value))
    var predicates: [QueryExpression?] = [nil]
    if declared.includes(PredicateCases.needs([.equality], [.string])) {
      predicates += [QueryExpression.comparison(property, .equalTo, constant, []), .comparison(constant, .notEqualTo, property, [])]
    }
    if declared.includes(PredicateCases.needs([.membership], [.string]) { $0.maximumListCount = 2 }) {
      predicates.append(.membership(property, [.string(value), .string("\(value) too")]))
    }
    for predicate in predicates {
      let what = predicate?.description ?? "all rows"
      let text = try store.store.answers.perform(ExplanationRequest(store.plan("Person", predicate)))
      run.expect(!text.isEmpty, "an explanation of \(what)", got: "empty text")
      run.expect(!text.contains(value), "an explanation without the values of \(what)", got: text)
    }
    try store.expectContents(graph, "after explanations")
    try run.close(store)
    run.expectError(.notOpen, of: "an explanation by a closed store") {
      _ = try store.store.answers.perform(ExplanationRequest(store.plan("Person")))
    }
  }
}
