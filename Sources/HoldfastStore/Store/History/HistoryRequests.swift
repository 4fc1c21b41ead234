#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A request for transactions in the store's history, in the order of their commits.
///
/// *Behaviour*
/// - **H1**: Each save that changed objects is one transaction, unless it was deleted or ``SaveRequest/isKeptInHistory`` is false. It
///   contains each object that was inserted, updated or deleted, once. Saves that didn't take effect have no transaction. The history is
///   still there after the store is opened again.
/// - **H2**: The answer contains the transactions that all conditions of the request select, in the order of the commits. A request with
///   a token of an earlier answer continues there: it returns each later transaction, and no other one. Tokens remain valid after the
///   store is opened again. A token that isn't of this history throws `stateUnavailable`.
///
/// *Errors*: `unsupportedRequest` if the store keeps no history; `stateUnavailable`, `notOpen`, `inputOutput`, `damaged`, `tooLarge`.
public struct HistoryRequest: StoreRequest {
  /// The last transaction that the caller knows; nil for all transactions.
  public var after: StateToken?
  /// The earliest time of a transaction; nil for all transactions.
  public var since: Date?
  /// The author of the transactions; nil for all authors.
  public var author: String?
  /// The maximum number of transactions; nil for no maximum.
  public var limit: Int?

  /// Creates a request. By default, it requests the entire history.
  public init(after: StateToken? = nil, since: Date? = nil, author: String? = nil, limit: Int? = nil) {
    self.after = after
    self.since = since
    self.author = author
    self.limit = limit
  }

  /// The transactions. An error with code ``StoreError/Code/stateUnavailable`` means that transactions after ``after`` were deleted, or that
  /// the token isn't one of this history. ``StoreError/Code/unsupportedRequest`` means that the store keeps no history.
  public typealias Answer = HistoryTransactions
  /// A verb phrase for errors.
  public static var operation: String { "read the history" }
}

/// The answer to a ``HistoryRequest``.
public struct HistoryTransactions: Sendable, Hashable, Codable {
  /// The transactions, in the order of their commits.
  public var transactions: [HistoryTransaction]
  /// The state from which the next request continues: that of the last transaction if there may be more, and the end of the history otherwise.
  ///
  /// Read together with the transactions, so that none is lost in between.
  public var state: StateToken

  /// Creates an answer.
  public init(transactions: [HistoryTransaction], state: StateToken) {
    self.transactions = transactions
    self.state = state
  }
}

/// A request for the token of the last transaction in the store's history.
///
/// It is also valid if the history is empty. Transactions after it are those that are committed later.
public struct HistoryStateRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// The token. An error with code ``StoreError/Code/unsupportedRequest`` means that the store keeps no history.
  public typealias Answer = StateToken
  /// A verb phrase for errors.
  public static var operation: String { "read the end of the history" }
}

/// A request to delete transactions from the store's history.
///
/// *Behaviour*
/// - **H3**: Deletes the oldest transactions that both limits allow, and returns their number. A later ``HistoryRequest`` with a token from
///   before a deleted transaction throws `stateUnavailable`: it never skips a transaction. Numbers of deleted transactions aren't used again.
///   A request whose ``upTo`` was already deleted, for example by another process, deletes nothing and returns 0.
///
/// *Errors*: As ``HistoryRequest``, and `readOnly`, `locked`, `diskFull`.
public struct HistoryDeletionRequest: StoreRequest {
  /// The last transaction to delete; nil for no limit.
  public var upTo: StateToken?
  /// The time of the first transaction to keep; nil for no limit.
  public var earlierThan: Date?

  /// Creates a request. A transaction is deleted if both limits allow it; without limits, the entire history is.
  public init(upTo: StateToken? = nil, earlierThan: Date? = nil) {
    self.upTo = upTo
    self.earlierThan = earlierThan
  }

  /// The number of deleted transactions.
  public typealias Answer = Int
  /// A verb phrase for errors.
  public static var operation: String { "delete history" }
}

/// A committed transaction in a store's history.
public struct HistoryTransaction: Sendable, Hashable, Codable {
  /// A destination with a new place in an ordered relationship.
  public struct PlacedLink: Sendable, Hashable, Codable {
    /// The destination.
    public var destination: ManagedObjectID
    /// The destination before it; nil if it is the first one.
    public var predecessor: ManagedObjectID?

    /// Creates a place.
    public init(_ destination: ManagedObjectID, after predecessor: ManagedObjectID?) {
      self.destination = destination
      self.predecessor = predecessor
    }
  }

  /// The change of one object.
  public struct Change: Sendable, Hashable, Codable {
    /// What happened to the object.
    public enum Kind: String, Sendable, Hashable, Codable { case inserted, updated, deleted }

    /// The object.
    public var objectID: ManagedObjectID
    /// What happened to it.
    public var kind: Kind
    /// The names of the properties that an update changed; nil for an insertion or deletion, or if they aren't known.
    public var updatedProperties: [String]?
    /// The values of a deleted object's attributes with ``AttributeDescription/preservesValueInHistoryOnDeletion``, by name.
    public var tombstone: [String: StoreValue]
    /// The values before the change by name: of the changed properties, or of all for a deletion. Nil if the store doesn't keep them.
    public var formerValues: [String: StoreValue]?
    /// The values after the change by name: of the changed properties, or of all for an insertion. Nil if the store doesn't keep them.
    public var newValues: [String: StoreValue]?
    /// The destinations that were added to many-to-many relationships, and to those without an inverse, by name. Nil if the store doesn't
    /// keep them.
    public var addedLinks: [String: [ManagedObjectID]]?
    /// The destinations that were removed from such relationships, except for those that were deleted. Nil if the store doesn't keep them.
    public var removedLinks: [String: [ManagedObjectID]]?
    /// The destinations that were added or moved in ordered relationships, by name, in their new order. Nil if the store doesn't keep them.
    public var placedLinks: [String: [PlacedLink]]?

    /// Creates a change.
    public init(
      objectID: ManagedObjectID, kind: Kind, updatedProperties: [String]? = nil, tombstone: [String: StoreValue] = [:],
      formerValues: [String: StoreValue]? = nil, newValues: [String: StoreValue]? = nil, addedLinks: [String: [ManagedObjectID]]? = nil,
      removedLinks: [String: [ManagedObjectID]]? = nil, placedLinks: [String: [PlacedLink]]? = nil
    ) {
      self.objectID = objectID
      self.kind = kind
      self.updatedProperties = updatedProperties
      self.tombstone = tombstone
      self.formerValues = formerValues
      self.newValues = newValues
      self.addedLinks = addedLinks
      self.removedLinks = removedLinks
      self.placedLinks = placedLinks
    }
  }

  /// The state after the transaction.
  public var state: StateToken
  /// The number of the transaction in its store. Later transactions have greater numbers.
  public var number: Int64
  /// The time of the save.
  public var time: Date
  /// The author of the save; nil if the context had none.
  public var author: String?
  /// The name of the context; nil if it had none.
  public var contextName: String?
  /// The name of the process; nil if it isn't known.
  public var processID: String?
  /// The bundle identifier of the program; nil if it isn't known.
  public var bundleID: String?
  /// The changes, each object once.
  public var changes: [Change]

  /// The name of this process, for ``processID``; nil if it isn't known.
  public static let currentProcessID: String? = CommandLine.arguments.first.map { String($0.split(separator: "/").last ?? "") }

  /// Creates a transaction.
  public init(
    state: StateToken, number: Int64, time: Date, author: String? = nil, contextName: String? = nil, processID: String? = nil,
    bundleID: String? = nil, changes: [Change]
  ) {
    self.state = state
    self.number = number
    self.time = time
    self.author = author
    self.contextName = contextName
    self.processID = processID
    self.bundleID = bundleID
    self.changes = changes
  }
}

extension EntityDescription {
  /// The key in ``userInfo`` of an entity whose values before and after each change are kept in the history. The value is `YES`.
  ///
  /// It also applies to subentities. It isn't part of the model's version, so it can be set without a migration. Stores without a history
  /// ignore it. Values in external files aren't kept.
  public static let historyValuesKey = "HoldfastHistoryValues"
}

extension ManagedObjectModel {
  /// Whether the history keeps the values of an entity's objects before and after each change.
  public func keepsHistoryValues(of entity: Entity) -> Bool {
    if entity.declaration.userInfo[EntityDescription.historyValuesKey] == "YES" { return true }
    return entity.superentityIndex.map { keepsHistoryValues(of: entities[$0]) } ?? false
  }
}
