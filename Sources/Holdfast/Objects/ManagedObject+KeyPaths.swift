public import HoldfastStore

/// Access to properties by paths of names.
extension ManagedObject {
  /// The value at the end of a path of relationships: `try dog.value(forKeyPath: "owner.city")`. Null if a to-one relationship on the path
  /// is nil.
  ///
  /// After a to-many relationship, the rest of the path is evaluated for each of its objects and returns a list. `"employees.name"` returns
  /// the names, `"departments.employees.name"` a list for each department. `@count` after a to-many relationship returns the number of its
  /// objects: `"employees.@count"`. Elements of composite attributes follow their names: `"home.latitude"`.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty`` and the name that an entity doesn't have;
  ///   ``/HoldfastStore/StoreError`` if an object or a relationship on the path can't be read.
  public final func value(forKeyPath path: String) throws -> PropertyValue {
    try value(at: path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...], of: path)
  }

  /// Sets the value at the end of a path of to-one relationships, which may end in an element of a composite attribute.
  ///
  /// - Throws: The same errors as ``setValue(_:forKey:)-(StoreValue,_)``, and ``PersistenceError`` with code
  ///   ``PersistenceError/Code/missingObject`` if a relationship on the path is nil; ``/HoldfastStore/StoreError`` if it can't be read.
  public final func setValue(_ value: StoreValue, forKeyPath path: String) throws {
    let (object, key) = try owner(ofKeyPath: path)
    try object.setValue(value, forKey: key)
  }

  /// Sets the to-many relationship at the end of a path of to-one relationships.
  ///
  /// - Throws: The same errors as ``setValue(_:forKey:)-([ManagedObject],_)``, and ``PersistenceError`` with code
  ///   ``PersistenceError/Code/missingObject`` if a relationship on the path is nil; ``/HoldfastStore/StoreError`` if it can't be read.
  public final func setValue(_ objects: [ManagedObject], forKeyPath path: String) throws {
    let (object, key) = try owner(ofKeyPath: path)
    try object.setValue(objects, forKey: key)
  }

  // MARK: Steps

  private func value(at names: ArraySlice<String>, of path: String) throws -> PropertyValue {
    guard let name = names.first else { return .single(.objectID(id)) }
    let rest = names.dropFirst()
    if let element = element(behind: name, rest, entity) { return try value(at: element, of: path) }
    guard let relationship = entity.anyRelationship(named: name), !rest.isEmpty else {
      if rest.isEmpty, entity.property(named: name) != nil { return try value(forKey: name) }
      throw unknown(name, of: path, entity, isLast: rest.isEmpty)
    }
    let destination = context.persistentStoreCoordinator.model.destination(of: relationship)
    if !relationship.isToMany {
      if let target = try context.throwingFaultErrors({ toOne(relationship) }) { return try target.value(at: rest, of: path) }
      try check(rest, of: path, destination)
      return .single(.null)
    }
    let objects = try context.throwingFaultErrors { self.objects(of: relationship) }
    if rest == ["@count"] { return .single(.int64(Int64(objects.count))) }
    if objects.isEmpty { try check(rest, of: path, destination) }
    return .list(try objects.map { try $0.value(at: rest, of: path) })
  }

  /// The names of a path, with a leading composite attribute and its element combined into one name; nil for other paths.
  private func element(behind name: String, _ rest: ArraySlice<String>, _ entity: ManagedObjectModel.Entity) -> ArraySlice<String>? {
    guard let next = rest.first, case .composite? = entity.property(named: name) else { return nil }
    var names = rest
    names[names.startIndex] = "\(name).\(next)"
    return names
  }

  /// Checks the remaining names of a path after a relationship without destinations.
  private func check(_ names: ArraySlice<String>, of path: String, _ entity: ManagedObjectModel.Entity) throws {
    var (entity, isMany, names) = (entity, false, names)
    while let name = names.popFirst() {
      let isLast = names.isEmpty
      if isMany && isLast && name == "@count" { return }
      if let element = element(behind: name, names, entity) {
        names = element
        continue
      }
      guard let property = entity.property(named: name) else { throw unknown(name, of: path, entity, isLast: isLast) }
      if isLast { return }
      guard let relationship = property.relationship else { throw unknown(name, of: path, entity, isLast: false) }
      entity = context.persistentStoreCoordinator.model.destination(of: relationship)
      isMany = relationship.isToMany
    }
  }

  private func unknown(_ name: String, of path: String, _ entity: ManagedObjectModel.Entity, isLast: Bool) -> PersistenceError {
    PersistenceError(
      .unknownProperty, objectID: id, property: path, reason: "\(entity.name) has no \(isLast ? "property" : "relationship") \(name).")
  }

  /// The object at the end of a path of to-one relationships, and the name of its property. Checks all names.
  private func owner(ofKeyPath path: String) throws -> (ManagedObject, String) {
    var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...]
    var (object, entity): (ManagedObject?, ManagedObjectModel.Entity) = (self, entity)
    var last = ""
    while let name = names.popFirst() {
      if let element = element(behind: name, names, entity) {
        names = element
        continue
      }
      if names.isEmpty {
        last = name
        break
      }
      guard let relationship = entity.anyRelationship(named: name), !relationship.isToMany else {
        throw PersistenceError(.unknownProperty, objectID: id, property: path, reason: "\(entity.name) has no to-one relationship \(name).")
      }
      // Otherwise the error would be that the relationship is nil.
      object = try context.throwingFaultErrors { object?.toOne(relationship) }
      entity = object?.entity ?? context.persistentStoreCoordinator.model.destination(of: relationship)
    }
    guard entity.property(named: last) != nil else { throw unknown(last, of: path, entity, isLast: true) }
    guard let object else {
      throw PersistenceError(
        .missingObject, objectID: id, property: path,
        reason: "A relationship on the path is nil, so the path has no object to change. Set the relationship first.")
    }
    return (object, last)
  }
}
