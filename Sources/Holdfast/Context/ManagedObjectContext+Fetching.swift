public import HoldfastStore

/// Fetch requests.
extension ManagedObjectContext {
  /// Returns the objects that match a request, including unsaved changes of this context.
  ///
  /// Sends one store request. If the context has changes, it sends more for changed objects of the entity that are faults, and if the query
  /// follows relationships. For the destinations of to-one relationships, their number doesn't depend on that of the objects.
  ///
  /// Objects that the context has already read keep their values. All others get the fetched rows, so the result contains no faults.
  ///
  /// - Throws: ``/HoldfastStore/QueryError`` if the request names a property that the model doesn't have; ``/HoldfastStore/StoreError`` if
  ///   the store fails.
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
  /// grouping properties. Nil is first.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``. Also throws ``PersistenceError`` with code
  ///   ``PersistenceError/Code/invalidRequest`` if a column isn't an attribute or a to-one relationship, is neither grouped by nor
  ///   aggregated, or would be compared although its values may be in external files.
  public func fetch<Root>(_ request: DictionaryFetchRequest<Root>) throws -> [[String: StoreValue]] { try core.fetch(request) }
}
