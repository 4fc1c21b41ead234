/// A request for transactions in the store's history, in the order of their commits. No store of this package answers it yet.
public struct HistoryRequest: StoreRequest {
  /// The last transaction that the caller knows; nil for all transactions.
  public var after: StateToken?
  /// The earliest time of a transaction, in seconds since 2001-01-01T00:00:00Z; nil for all transactions.
  public var since: Double?
  /// The author of the transactions; nil for all authors.
  public var author: String?
  /// The maximum number of transactions; nil for no maximum.
  public var limit: Int?

  /// Creates a request. By default, it requests the entire history.
  public init(after: StateToken? = nil, since: Double? = nil, author: String? = nil, limit: Int? = nil) {
    self.after = after
    self.since = since
    self.author = author
    self.limit = limit
  }

  /// The transactions. An error with code ``StoreError/Code/stateUnavailable`` means that some of them were deleted.
  public typealias Answer = [HistoryTransaction]
  /// A verb phrase for errors.
  public static var operation: String { "read the history" }
}

/// A request to delete transactions from the store's history. No store of this package answers it yet.
public struct HistoryDeletionRequest: StoreRequest {
  /// The first transaction to keep; nil for no limit.
  public var before: StateToken?
  /// The time of the first transaction to keep, in seconds since 2001-01-01T00:00:00Z; nil for no limit.
  public var earlierThan: Double?

  /// Creates a request. A transaction is deleted if both limits allow it; without limits, the entire history is.
  public init(before: StateToken?, earlierThan: Double?) {
    self.before = before
    self.earlierThan = earlierThan
  }

  /// The number of deleted transactions.
  public typealias Answer = Int
  /// A verb phrase for errors.
  public static var operation: String { "delete history" }
}

/// A committed transaction in a store's history.
public struct HistoryTransaction: Sendable, Hashable, Codable {
  /// The change of one object.
  public struct Change: Sendable, Hashable, Codable {
    /// What happened to the object.
    public enum Kind: String, Sendable, Hashable, Codable { case inserted, updated, deleted }

    /// The object.
    public var objectID: ManagedObjectID
    /// What happened to it.
    public var kind: Kind
    /// The slots that changed, ascending; empty for an insertion or deletion.
    public var changedSlots: [SlotIndex]
    /// The values before the change, one per slot in ``changedSlots``, or one per slot of a deleted row. Nil if the store doesn't keep them.
    public var formerValues: [StoreValue]?

    /// Creates a change.
    public init(objectID: ManagedObjectID, kind: Kind, changedSlots: [SlotIndex] = [], formerValues: [StoreValue]? = nil) {
      self.objectID = objectID
      self.kind = kind
      self.changedSlots = changedSlots
      self.formerValues = formerValues
    }
  }

  /// The state after the transaction.
  public var state: StateToken
  /// The ID, author, context and time of the save.
  public var origin: SaveOrigin
  /// The changes, each object once.
  public var changes: [Change]

  /// Creates a transaction.
  public init(state: StateToken, origin: SaveOrigin, changes: [Change]) {
    self.state = state
    self.origin = origin
    self.changes = changes
  }
}
