/// Queries in closures.
///
/// Each builds a ``FetchRequest``. Use that type for options that these methods don't have.
extension ManagedObjectContext {
  /// Returns the objects of a class that match conditions, including unsaved changes of this context.
  ///
  /// ```swift
  /// let long = try context.fetch(Walk.self, sortedBy: [.descending(\.minutes)], limit: 10) { $0.minutes > 30 && $0.dog.name == "Fido" }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The class.
  ///   - sortDescriptors: The sort order. Without one, the objects come in any order.
  ///   - offset: The number of objects to skip. Defaults to 0.
  ///   - limit: The maximum number of objects. Defaults to no limit.
  ///   - conditions: The conditions that objects must match. Defaults to none.
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetch<Result: ManagedObject>(
    _ type: Result.Type, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [], offset: Int = 0, limit: Int? = nil,
    @FetchPredicateBuilder<Result> where conditions: (FetchPath<Result, Result>) -> FetchPredicate<Result> = { _ in .all }
  ) throws -> [Result] {
    try fetch(FetchRequest(sortedBy: sortDescriptors, offset: offset, limit: limit, where: conditions))
  }

  /// Returns the objects of a class that match conditions, in ascending order of one attribute.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetch<Result: ManagedObject, Value: AttributeValue>(
    _ type: Result.Type, sortedBy keyPath: FetchKeyPath<Result, Value>, offset: Int = 0, limit: Int? = nil,
    @FetchPredicateBuilder<Result> where conditions: (FetchPath<Result, Result>) -> FetchPredicate<Result> = { _ in .all }
  ) throws -> [Result] {
    try fetch(type, sortedBy: [.ascending(keyPath)], offset: offset, limit: limit, where: conditions)
  }

  /// Returns the first object of a class that matches conditions; nil if there is none.
  ///
  /// Without a sort order, it is any of the objects.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetchOne<Result: ManagedObject>(
    _ type: Result.Type, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [],
    @FetchPredicateBuilder<Result> where conditions: (FetchPath<Result, Result>) -> FetchPredicate<Result> = { _ in .all }
  ) throws -> Result? {
    try fetch(type, sortedBy: sortDescriptors, limit: 1, where: conditions).first
  }

  /// Returns the first object of a class that matches conditions, in ascending order of one attribute; nil if there is none.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetchOne<Result: ManagedObject, Value: AttributeValue>(
    _ type: Result.Type, sortedBy keyPath: FetchKeyPath<Result, Value>,
    @FetchPredicateBuilder<Result> where conditions: (FetchPath<Result, Result>) -> FetchPredicate<Result> = { _ in .all }
  ) throws -> Result? {
    try fetchOne(type, sortedBy: [.ascending(keyPath)], where: conditions)
  }

  /// Returns the number of objects of a class that match conditions, including unsaved changes of this context.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func count<Root: ManagedObject>(
    _ type: Root.Type, @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root> = { _ in .all }
  ) throws -> Int {
    try count(for: FetchRequest(where: conditions))
  }

  /// Returns the IDs of the objects of a class that match conditions, including unsaved changes of this context.
  ///
  /// Creates objects only if changes of the context can affect the result.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func fetchObjectIDs<Root: ManagedObject>(
    _ type: Root.Type, @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root> = { _ in .all }
  ) throws -> [ManagedObjectID] {
    try fetchObjectIDs(FetchRequest(where: conditions))
  }

  /// Whether an object of a class matches conditions, including unsaved changes of this context.
  ///
  /// A store that evaluates the conditions returns at most one key.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``.
  public func exists<Root: ManagedObject>(
    _ type: Root.Type, @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root> = { _ in .all }
  ) throws -> Bool {
    try !fetchObjectIDs(FetchRequest(limit: 1, where: conditions)).isEmpty
  }

  /// Marks the objects of a class that match conditions for deletion by the next save.
  ///
  /// Fetches the objects and deletes each, so hooks and delete rules apply.
  ///
  /// - Returns: The number of objects.
  /// - Throws: The same errors as ``fetch(_:)-(FetchRequest<Result>)``. No object is deleted then.
  @discardableResult public func delete<Root: ManagedObject>(
    _ type: Root.Type, @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root>
  ) throws -> Int {
    let objects = try fetch(FetchRequest(where: conditions))
    for object in objects { delete(object) }
    return objects.count
  }
}
