public import HoldfastStore

/// Requests without options, and opening without a host, for tests of stores. A wrapper forwards them instead.
extension IncrementalStore {
  /// Opens the store, or creates it.
  public func open(model: ManagedObjectModel) throws -> StoreMetadata { try open(model: model, host: .none) }

  /// Begins a read view.
  public func beginRead(_ kind: ReadViewKind) throws -> any ReadView { try beginRead(kind, options: .none) }

  /// Delivers the rows that a plan selects.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    try fetch(plan, in: view, options: .none, into: sink)
  }

  /// Delivers the rows with the requested keys.
  public func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    try rows(request, in: view, options: .none, into: sink)
  }

  /// Returns the destination objects of a to-many relationship.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    try relationships(request, in: view, options: .none)
  }

  /// Reserves keys for new objects.
  public func reserveKeys(_ demands: [KeyDemand]) throws -> [[ObjectKey]] { try reserveKeys(demands, options: .none) }

  /// Prepares a save.
  public func prepare(_ request: SaveRequest) throws -> any PreparedSave { try prepare(request, options: .none) }
}
