import HoldfastStore

/// Fetched properties.
extension ManagedObject {
  /// Returns the objects of a fetched property, by its name, including unsaved changes of the context.
  ///
  /// Runs the property's fetch request with this object as `$FETCH_SOURCE`. The class of an entity can declare a property for it:
  ///
  /// ```swift
  /// var neighbours: [Dog] { get throws { try fetchedObjects(forProperty: "neighbours", as: Dog.self) } }
  /// ```
  ///
  /// Every call sends the request, as ``ManagedObjectContext/fetch(_:)-(FetchRequest<Result>)`` does. (In Core Data, the objects are cached
  /// until the object is refreshed.) The result is always objects, without duplicates and in no particular order, whatever result type the
  /// request has. A predicate can contain what the predicate of a template can (<doc:GenerateClasses>), and key paths behind `$FETCH_SOURCE`.
  ///
  /// - Parameters:
  ///   - name: The name of the fetched property.
  ///   - type: The class of the objects. Defaults to `ManagedObject`.
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty`` if the entity has no fetched property of this name,
  ///   ``PersistenceError/Code/invalidRequest`` if a query can't have its predicate, ``PersistenceError/Code/missingObject`` if the object was
  ///   deleted or has left the graph; the errors of ``ManagedObjectContext/fetch(_:)-(FetchRequest<Result>)``.
  public final func fetchedObjects<Object: ManagedObject>(
    forProperty name: String, as type: Object.Type = ManagedObject.self
  ) throws -> [Object] {
    guard case .fetched(let property)? = entity.property(named: name) else {
      throw PersistenceError(
        .unknownProperty, objectID: id, property: name, reason: "\(entity.name) has no fetched property of this name.")
    }
    try checkIsInGraph(name)
    let description = property.fetchRequest
    var request = FetchRequest<Object>(entityName: description.entity)
    do {
      request.expression = try property.query(in: context.persistentStoreCoordinator.model) { try sourceValue(at: $0) }
    } catch let problem as PredicateProblem {
      throw PersistenceError(
        .invalidRequest, objectID: id, property: name, reason: "A query can't have the property's predicate. \(problem.reason)")
    }
    if description.fetchLimit > 0 { request.fetchLimit = description.fetchLimit }
    request.includesSubentities = description.includesSubentities
    request.includesPendingChanges = description.includesPendingChanges
    return try context.fetch(request)
  }

  /// The value at a key path of the object, for a predicate.
  private func sourceValue(at path: [String]) throws -> PredicateQuery.Value {
    if path.isEmpty { return .single(.objectID(id)) }
    let value = try context.refusingFaultErrors { try self.value(forKeyPath: path.joined(separator: ".")) }
    if case .single(let value) = value { return .single(value) }
    return .list(try ManagedObject.values(in: value))
  }

  /// The values in a list, also those of lists in it.
  private static func values(in value: PropertyValue) throws -> [StoreValue] {
    switch value {
    case .single(let value): return [value]
    case .objects(let objects): return objects.map { .objectID($0.id) }
    case .list(let list): return try list.flatMap { try values(in: $0) }
    case .composite: throw PredicateProblem("A composite attribute has no single value. Name an element.")
    }
  }
}
