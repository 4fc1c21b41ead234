import HoldfastStore

extension PersistentStoreCoordinator {
  /// Divides a query and runs it. If the store declines the plan, sends simpler plans and evaluates the rest here.
  ///
  /// A store can decline a plan because of its values, even if the capabilities allow it. The second plan has no sort terms, window,
  /// count or aggregates, the third no look-up by a unique value, and the fourth no predicate either.
  ///
  /// - Parameters:
  ///   - sink: Where the body delivers rows; nil if the body returns its result. After a sink has received rows, or if it isn't a
  ///     ``ReceivingSink``, the query can't run again.
  ///   - body: Runs a division.
  func dividing<Result>(
    _ query: FetchQuery, _ store: PersistentStore, into sink: (any RowSink)? = nil, _ body: (Planner.Division) throws -> Result
  ) throws -> Result {
    func canRepeat() -> Bool { sink.map { ($0 as? any ReceivingSink)?.hasReceived == false } ?? true }
    let first = planner(store).divide(query)
    do { return try body(first) } catch let refusal as StoreError where refusal.code == .unsupportedRequest && canRepeat() {
      var declined = first.plan
      for capabilities in store.capabilities.lesser {
        let division = Planner(capabilities: capabilities, model: model, incomparable: store.incomparable).divide(query)
        if division.plan == declined { continue }
        declined = division.plan
        do { return try body(division) } catch let error as StoreError where error.code == .unsupportedRequest && canRepeat() {}
      }
      throw refusal
    }
  }
}

extension StoreCapabilities {
  /// The capabilities to assume for the second plan, the third and the fourth.
  fileprivate var lesser: [StoreCapabilities] {
    var unsorted = self
    unsorted.sorting = false
    unsorted.windowing = false
    unsorted.counting = false
    unsorted.aggregates = false
    // SQLite can't look up decimals, but test the conditions that would be left out because a look-up finds at most one row.
    var comparing = unsorted
    comparing.uniqueLookups = false
    return [unsorted, comparing, StoreCapabilities()]
  }
}
