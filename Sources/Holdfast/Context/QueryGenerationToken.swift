/// A committed state of a coordinator's stores, to which contexts can be pinned; see
/// ``ManagedObjectContext/setQueryGeneration(from:timeLimit:)``.
///
/// The generation can be read as long as there is a token of it, or a context that is pinned to it.
public struct QueryGenerationToken: Sendable {
  /// The views of the generation; nil for ``current``.
  let views: PinnedViews?

  /// The newest generation at the time when it is used.
  public static let current = QueryGenerationToken(views: nil)
}

extension QueryGenerationToken: Hashable {
  /// Whether both are of the same generation.
  public static func == (a: QueryGenerationToken, b: QueryGenerationToken) -> Bool { a.views === b.views }

  /// Hashes the identity of the generation.
  public func hash(into hasher: inout Hasher) { hasher.combine(views.map { ObjectIdentifier($0) }) }
}

/// Reading one generation of the stores.
extension ManagedObjectContext {
  /// Pins the context to a generation of the stores, so that all its requests read the same state. Nil unpins it.
  ///
  /// ```swift
  /// try context.setQueryGeneration(from: .current, timeLimit: .seconds(60))
  /// let dogs = try context.fetch(FetchRequest<Dog>())  // and everything that is reached from these dogs
  /// try context.setQueryGeneration(from: nil)
  /// ```
  ///
  /// A pinned context doesn't see what others save: not in fetches, counts and aggregates, not when faults are fired, and not in
  /// relationships. Objects whose rows were read before keep them, and so do lists of relationships; ``refreshAllObjects()`` makes them be
  /// read again.
  ///
  /// A context that is pinned to a former generation also reads objects that it has deleted and saved since. They are other instances than
  /// those that were deleted. Saving a change of one is a conflict, because the store doesn't have the object any more.
  ///
  /// After these methods, a pinned context reads the newest generation, which the next request begins: ``save()`` of changes, even if it
  /// fails, ``resolveConflicts(of:using:)``, ``mergeChanges(from:)``, automatic merging, and ``reset()``. The requests of a save read the
  /// newest rows: delete rules, validation and conflicts take into account what others have saved. ``rollback()`` and
  /// ``refresh(_:mergeChanges:)`` read the same generation as before.
  ///
  /// Costs and limits:
  ///
  /// - The stores of memory and whole files keep the rows of the generation in memory that were changed or deleted since. Values in external
  ///   files that were replaced or deleted stay on disk.
  /// - A SQLite store keeps a connection for the generation, and its write-ahead log can't restart until the generation ends. Each save then
  ///   makes the log longer. The store logs a warning when the log has 8 times the length of `SQLiteStoreOptions.checkpointPages`, and each
  ///   time that it has doubled. A store has at most `SQLiteStoreOptions.maximumSnapshots` generations at a time, which defaults to 4.
  ///   Beginning another throws `tooManyReadViews`, also if a later request begins it.
  /// - If the disk or the memory fails during a request, the generation of a SQLite store ends. Requests then throw `notOpen` until the
  ///   context reads another generation.
  /// - A SQLite store without a write-ahead log (`JournalMode.delete`) can't commit while a generation lasts: saves of other contexts fail with
  ///   `locked`.
  /// - Contexts pinned to one generation read one after the other. A request that waits for another one ends at its deadline or when it is
  ///   cancelled.
  /// - Objects of stores that are added later aren't seen.
  /// - Calling the method in a callback of a save or merge traps.
  /// - Saves of several stores by other processes may be in some stores of the generation and not in others.
  ///
  /// - Parameters:
  ///   - token: ``QueryGenerationToken/current``, the ``queryGenerationToken`` of another context of the same coordinator, or nil.
  ///   - timeLimit: How long a new generation lasts. After it, requests throw ``PersistenceError/Code/expiredGeneration``, and for faults that
  ///     can't be read, ``faultErrorPolicy`` applies. It is ignored for the token of a generation that another context has begun, until the
  ///     context reads a new one. Defaults to nil, for no limit.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unsupportedRequest` if a store has no snapshots or the context is a child, with
  ///   `tooManyReadViews` if a store has too many, and other errors of beginning one. ``PersistenceError`` with code
  ///   ``PersistenceError/Code/expiredGeneration`` or, for a token of another coordinator, ``PersistenceError/Code/invalidRequest``. The
  ///   context then continues to read what it read before. But if a store has too many snapshots, the context's own generation is released
  ///   first to make room. It then ends, unless a token or another context keeps it. Nil never throws.
  public func setQueryGeneration(from token: QueryGenerationToken?, timeLimit: Duration? = nil) throws {
    try core.setQueryGeneration(from: token, timeLimit: timeLimit)
  }

  /// The generation that the context is pinned to; nil if it isn't pinned.
  ///
  /// It is ``QueryGenerationToken/current`` if the next request begins the newest generation.
  public var queryGenerationToken: QueryGenerationToken? { core.queryGenerationToken }
}
