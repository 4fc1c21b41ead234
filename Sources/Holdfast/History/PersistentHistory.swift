public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A position in the histories of a coordinator's stores: everything up to the last transaction that a program has seen.
///
/// Encode it, and use it in a later run or another process. (Core Data: `NSPersistentHistoryToken`.)
public struct PersistentHistoryToken: Sendable, Hashable, Codable {
  /// The last transaction of each store, by the store's UUID.
  var states: [String: StateToken] = [:]
}

/// A save in the history of a store. (Core Data: `NSPersistentHistoryTransaction`.)
public struct PersistentHistoryTransaction: Sendable, Hashable {
  /// The position after this transaction. It covers this transaction's store only; ``PersistentHistory/token`` covers all.
  public var token: PersistentHistoryToken
  /// The UUID of the store.
  public var storeIdentifier: String
  /// The number of the transaction in its store. Later transactions have greater numbers.
  public var transactionNumber: Int64
  /// The time at which the save began.
  public var timestamp: Date
  /// The ``ManagedObjectContext/transactionAuthor`` of the context; nil if it had none.
  public var author: String?
  /// The ``ManagedObjectContext/name`` of the context; nil if it had none.
  public var contextName: String?
  /// The name of the process; nil if it isn't known.
  public var processID: String?
  /// The bundle identifier of the program; nil if it isn't known.
  public var bundleID: String?
  /// The changes, each object once.
  public var changes: [PersistentHistoryChange]

  /// The changes as IDs, to be merged with ``ManagedObjectContext/mergeChanges(from:)``.
  public var savedChanges: SavedChanges {
    func ids(_ kind: PersistentHistoryChange.ChangeType) -> [ManagedObjectID] {
      changes.filter { $0.changeType == kind }.map(\.changedObjectID)
    }
    return SavedChanges(
      storeIdentifier: storeIdentifier, contextName: contextName ?? "", inserted: ids(.insert), updated: ids(.update), deleted: ids(.delete)
    )
  }
}

/// The change of one object in a ``PersistentHistoryTransaction``. (Core Data: `NSPersistentHistoryChange`.)
///
/// The IDs of destinations name the relationship's destination entity, also if the objects are of its subentities. Find them by
/// ``ManagedObjectContext/existingObject(with:)``.
public struct PersistentHistoryChange: Sendable, Hashable {
  /// What happened to the object.
  public enum ChangeType: String, Sendable, Hashable, Codable { case insert, update, delete }

  /// The object.
  public var changedObjectID: ManagedObjectID
  /// What happened to it.
  public var changeType: ChangeType
  /// The names of the properties that an update changed; nil for other changes, or if they aren't known.
  ///
  /// Includes many-to-many and ordered relationships. The links of a one-to-many relationship are changes of the objects at its other end.
  /// Derived attributes aren't included.
  public var updatedProperties: [String]?
  /// The values of a deleted object's attributes that the model preserves, by name.
  public var tombstone: [String: StoreValue]
  /// The values before the change by name: of the changed attributes and to-one relationships, or of all for a deletion.
  ///
  /// Nil unless the entity keeps values in the history; see ``/HoldfastStore/EntityDescription/historyValuesKey``.
  public var valuesBefore: [String: StoreValue]?
  /// The values after the change by name: of the changed attributes and to-one relationships, or of all for an insertion.
  ///
  /// Nil unless the entity keeps values in the history.
  public var valuesAfter: [String: StoreValue]?
  /// The destinations that were added to many-to-many relationships, and to those without an inverse, by name.
  ///
  /// Nil unless the entity keeps values in the history.
  public var addedDestinations: [String: [ManagedObjectID]]?
  /// The destinations that were removed from such relationships by name, except for those that were deleted.
  ///
  /// Nil unless the entity keeps values in the history.
  public var removedDestinations: [String: [ManagedObjectID]]?
  /// The destinations that were added or moved in ordered relationships, by name, in their new order, each with the one before it.
  ///
  /// To repeat the change: remove all these destinations from the list, then insert each of them behind its predecessor, in this order. Do
  /// that after the changes of values and of other links in the transaction. Nil unless the entity keeps values in the history.
  public var placedDestinations: [String: [HistoryTransaction.PlacedLink]]?
}

/// Transactions from the histories of a coordinator's stores.
public struct PersistentHistory: Sendable, Hashable {
  /// The transactions: those of each store in the order of their commits, and those of several stores by time.
  public var transactions: [PersistentHistoryTransaction]
  /// The position after these transactions, for the next request.
  ///
  /// It includes transactions that the request left out because of their author or predicate.
  public var token: PersistentHistoryToken

  /// The changes of all transactions, in order.
  public var changes: [PersistentHistoryChange] { transactions.flatMap(\.changes) }
}
