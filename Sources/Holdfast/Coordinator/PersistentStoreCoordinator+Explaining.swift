import HoldfastStore

extension PersistentStoreCoordinator {
  /// Explains how a fetch of rows would be divided between the stores and the framework.
  func explain(_ query: FetchQuery) throws -> [FetchExplanation.Part] {
    try query.options.check(ExplanationRequest.operation)
    let parts = try parts(of: query, storeSet)
    return try parts.map { part in try explain(parts.count > 1 ? StoreMerge.windowed(part.query) : part.query, part.store) }
  }

  private func explain(_ query: FetchQuery, _ store: PersistentStore) throws -> FetchExplanation.Part {
    try dividing(query, store) { division in
      let explains = store.store.answers.supports(ExplanationRequest.self)
      let text = try store.wrapping(ExplanationRequest.operation) {
        try explains ? store.store.answers.perform(ExplanationRequest(division.plan), options: query.options) : nil
      }
      return FetchExplanation.Part(
        store: store.title, entity: query.entity.name, plan: division.plan, predicate: division.predicate,
        isSortedByFramework: division.sorts, isLimitedByFramework: division.windows, explanation: text)
    }
  }
}
