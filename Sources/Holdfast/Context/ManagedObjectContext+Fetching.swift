public import HoldfastStore

/// Fetch requests.
extension ManagedObjectContext {
  /// Returns the objects that match a request, including unsaved changes of this context.
  ///
  /// Sends one request to each store that may have such objects. If the context has changes, it sends more for changed objects of the
  /// entity that are faults, and if the query follows relationships. For the destinations of to-one relationships, their number doesn't
  /// depend on that of the objects. If the result includes pending changes, calls ``processPendingChanges()`` first.
  ///
  /// Objects that the context has already read keep their values. All others get the fetched rows, so the result contains no faults.
  ///
  /// Traps if the offset or limit is negative, or if objects of the entity don't have the class of the result.
  ///
  /// - Throws: ``/HoldfastStore/QueryError`` if the query isn't valid for the model: for example, if it names a property that the model
  ///   doesn't have. ``PersistenceError`` with code ``PersistenceError/Code/unknownEntity``,
  ///   ``PersistenceError/Code/noStoreForEntity`` or ``PersistenceError/Code/expiredGeneration``. ``/HoldfastStore/StoreError`` if the
  ///   store fails. The errors of ``processPendingChanges()``.
  public func fetch<Result>(_ request: FetchRequest<Result>) throws -> [Result] { try core.fetch(request) }

  /// Returns the number of objects that a request returns, after its offset and limit.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func count<Result>(for request: FetchRequest<Result>) throws -> Int { try core.count(for: request) }

  /// Explains how a request would be executed: by each store, and by the framework.
  ///
  /// ```swift
  /// print(try context.explain(request))
  /// ```
  ///
  /// Sends one store request to each store that explains fetches, and reads no rows of the result. Like a fetch, it first applies the
  /// delete rules of pending deletions, which can read rows.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func explain<Result>(_ request: FetchRequest<Result>) throws -> FetchExplanation { try core.explain(request) }

  /// Returns the IDs of the objects that match a request.
  ///
  /// Creates no objects of the result. If changes of the context can affect it, the rows of all objects in it are in memory at once.
  /// The same is true of ``count(for:)``.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetchObjectIDs<Result>(_ request: FetchRequest<Result>) throws -> [ManagedObjectID] { try core.fetchObjectIDs(request) }

  /// Returns values that the store computes, as one dictionary for each group.
  ///
  /// The dictionaries are sorted by the grouping properties that they contain, in the order of the columns' names, and then by the other
  /// grouping properties. Nil is first. Doesn't process pending changes, which the results never include.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``. Also throws ``PersistenceError`` with code
  ///   ``PersistenceError/Code/invalidRequest`` if a column isn't an attribute or a to-one relationship, is neither grouped by nor
  ///   aggregated, would be compared although its values may be in external files, or would be summed or averaged without being a number.
  ///   ``/HoldfastStore/StoreError`` has the code ``/HoldfastStore/StoreError/Code/unstorableValue`` if a sum doesn't fit in 64 bits.
  public func fetch<Root>(_ request: DictionaryFetchRequest<Root>) throws -> [[String: StoreValue]] { try core.fetch(request) }
}
