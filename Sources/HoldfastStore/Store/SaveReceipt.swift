/// What a store reports about a save that took effect.
///
/// If the store saved exactly what was requested, the receipt contains at most a token.
public struct SaveReceipt: Sendable {
  /// The state after the save; nil if the store has no tokens.
  public var state: StateToken?
  /// The rows that differ from those of the request, for example because the store normalised a value or chose another version.
  ///
  /// The context's objects get these rows instead of those of the request.
  public var rows: [RowBatch]
  /// Changes to other objects, for example by triggers. Cached rows of these objects are discarded.
  public var others: StoreChange

  /// Creates a receipt. The default receipt is empty.
  public init(state: StateToken? = nil, rows: [RowBatch] = [], others: StoreChange = StoreChange()) {
    self.state = state
    self.rows = rows
    self.others = others
  }
}

/// Objects that a store or another process changed.
public struct StoreChange: Sendable, Hashable, Codable {
  /// The new objects.
  public var inserted: [ManagedObjectID]
  /// The objects whose values or relationships changed.
  public var updated: [ManagedObjectID]
  /// The deleted objects.
  public var deleted: [ManagedObjectID]
  /// Whether other objects may have changed as well.
  public var mayIncludeOthers: Bool

  /// Whether nothing changed.
  public var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty && !mayIncludeOthers }

  /// Creates a change. By default, nothing changed.
  public init(
    inserted: [ManagedObjectID] = [], updated: [ManagedObjectID] = [], deleted: [ManagedObjectID] = [], mayIncludeOthers: Bool = false
  ) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    self.mayIncludeOthers = mayIncludeOthers
  }
}
