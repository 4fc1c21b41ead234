public import HoldfastStore

/// Access to properties by name, for code that doesn't know the class.
extension ManagedObject {
  /// The value of a property by its name.
  ///
  /// - An attribute returns a ``/HoldfastStore/StoreValue``, a transformable attribute its bytes. A whole number beyond the range of the
  ///   attribute, which the next save refuses, is an `int64`.
  /// - A composite attribute returns the values of its elements by name. `home.latitude` is the name of one element.
  /// - A to-one relationship returns the destination's ID or null, a to-many relationship its objects.
  ///
  /// ```swift
  /// let isTwelve = try dog.value(forKey: "age") == .int16(12)
  /// let friends = try dog.value(forKey: "friends").objects ?? []
  /// ```
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty`` if the entity has no property with that name, or
  ///   ``PersistenceError/Code/wrongType`` for a transient value that isn't a `StoreValue`; ``/HoldfastStore/StoreError`` if the value can't be
  ///   read.
  public final func value(forKey key: String) throws -> PropertyValue {
    let property = entity.property(named: key)
    switch property {
    case .relationship?: return try context.throwingFaultErrors { try value(of: property, forKey: key) }
    case .transientRelationship?: break
    default: if isFault { try context.throwingFaultErrors { _ = readRow } }
    }
    return try value(of: property, forKey: key)
  }

  private func value(of property: ManagedObjectModel.Property?, forKey key: String) throws -> PropertyValue {
    switch property {
    case .relationship(let relationship)? where relationship.isToMany: return .objects(objects(of: relationship))
    case .transientRelationship(let relationship)?:
      readForAwakening()
      if relationship.isToMany { return .objects(objects(of: relationship)) }
      return .single(toOne(relationship).map { .objectID($0.objectID) } ?? .null)
    case .composite(let composite)?: return compositeValue(composite)
    case .transient(let attribute)?: return .single(try transientValue(attribute))
    case .attribute(let attribute)?: return .single(try attributeValue(attribute.slot, row(for: attribute.slot)))
    default: return .single(storeValue(inSlot: try slot(forKey: key)))
    }
  }

  /// Sets an attribute or to-one relationship by its name.
  ///
  /// A to-one relationship takes the ID of an object of the same context, or null. A transformable attribute takes bytes. A composite
  /// attribute takes null; for other values set a ``PropertyValue``.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty``, ``PersistenceError/Code/wrongType`` if the value has a wrong
  ///   type, ``PersistenceError/Code/foreignObject`` if it is the ID of an object of another store or context, or
  ///   ``PersistenceError/Code/missingObject`` if the object has left the graph, or the context has deleted the destination. The object is
  ///   then unchanged.
  public final func setValue(_ value: StoreValue, forKey key: String) throws {
    try checkIsInGraph(key)
    switch entity.property(named: key) {
    case .attribute(let attribute)?: setFitting(attribute.slot, try fitting(value, attribute))
    case .relationship(let relationship)?, .transientRelationship(let relationship)?:
      if !relationship.isToMany { try checkExists(value, key) }
      setToOne(relationship, try destination(value, of: relationship, key))
    case .composite(let composite)?:
      try checkClearsComposite(value, key)
      try setComposite(composite, [:])
    case .transient(let attribute)?: setTransient(attribute, try fitting(value, attribute))
    case .fetched?, nil: _ = try slot(forKey: key)
    }
  }

  /// Throws what ``setValue(_:forKey:)-(StoreValue,_)`` would throw, except for a deleted destination, which callers don't set. Changes
  /// nothing.
  final func checkSettable(_ value: StoreValue, forKey key: String) throws {
    try checkIsInGraph(key)
    switch entity.property(named: key) {
    case .attribute(let attribute)?: _ = try fitting(value, attribute)
    case .relationship(let relationship)?, .transientRelationship(let relationship)?:
      _ = try destination(value, of: relationship, key)
    case .composite?: try checkClearsComposite(value, key)
    case .transient(let attribute)?: _ = try fitting(value, attribute)
    case .fetched?, nil: _ = try slot(forKey: key)
    }
  }

  /// Throws if a to-one relationship would be set to an object whose deletion was saved. The next save would store a missing key.
  private func checkExists(_ value: StoreValue, _ key: String) throws {
    guard case .objectID(let target) = value, context.isDeleted(target), context.registeredObject(for: target) == nil else { return }
    throw PersistenceError(
      .missingObject, objectID: id, property: key, reason: "The destination was deleted. Fetch or insert another.", objectIDs: [target])
  }

  private func checkClearsComposite(_ value: StoreValue, _ key: String) throws {
    if value == .null { return }
    throw PersistenceError(.wrongType, objectID: id, property: key, reason: "The attribute is composite; set its elements by name.")
  }

  final func checkIsInGraph(_ key: String) throws {
    guard flags.contains(.detached) else { return }
    throw PersistenceError(
      .missingObject, objectID: id, property: key,
      reason:
        "The object has left the graph: its deletion was saved, another context or process deleted it, its context was reset, or its "
        + "insertion was rolled back. Fetch or insert another.")
  }

  /// The value converted to the attribute's type. Changes nothing.
  final func fitting(_ value: StoreValue, _ attribute: ManagedObjectModel.Attribute) throws -> StoreValue {
    // The save checks the store of an ID.
    guard let fitting = value.ofObject(in: attribute.type), !fitting.isExternal else {
      throw PersistenceError(
        .wrongType, objectID: id, property: attribute.name, reason: "The value isn't of type \(attribute.type.rawValue).")
    }
    return fitting
  }

  /// Sets an attribute to a value of its type, also if the value before couldn't be encoded.
  final func setFitting(_ slot: SlotIndex, _ value: StoreValue) {
    context.changes.forgetRefusedValues(self, slot)
    set(slot, value)
  }

  /// Sets an attribute by its name: `try dog.setValue(Date.now, forKey: "born")`.
  ///
  /// - Throws: The errors of ``setValue(_:forKey:)-(StoreValue,_)``.
  public final func setValue(_ value: some AttributeValue, forKey key: String) throws { try setValue(value.storeValue, forKey: key) }

  /// Sets a to-one relationship by its name, and its inverse; nil removes the destination.
  ///
  /// - Throws: The errors of ``setValue(_:forKey:)-(StoreValue,_)``; ``PersistenceError/Code/foreignObject`` if the object is of another context.
  public final func setValue(_ object: ManagedObject?, forKey key: String) throws {
    if let object, object.context !== context {
      throw PersistenceError(
        .foreignObject, objectID: id, property: key, reason: "The object is of another context; fetch it in this one by its objectID.",
        objectIDs: [object.id])
    }
    try setValue(object.map { .objectID($0.objectID) } ?? .null, forKey: key)
  }

  /// Sets the destinations of a to-many relationship by its name, and their inverses.
  ///
  /// An ordered relationship takes the order of the array; for an object that is in it twice, the first position counts.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty``; ``PersistenceError/Code/wrongType`` if the property isn't a
  ///   to-many relationship or an object is of another entity; ``PersistenceError/Code/foreignObject`` if an object is of another context or
  ///   has left the graph. The object is then unchanged.
  public final func setValue(_ objects: [ManagedObject], forKey key: String) throws {
    try checkIsInGraph(key)
    guard let relationship = entity.anyRelationship(named: key), relationship.isToMany else {
      if entity.anyRelationship(named: key) == nil { _ = try slot(forKey: key) }
      throw PersistenceError(
        .wrongType, objectID: id, property: key, reason: "The property isn't a to-many relationship; set a single value.")
    }
    for object in objects { try check(object, for: relationship) }
    if relationship.isOrdered {
      return OrderedToMany<ManagedObject>(owner: self, index: relationship.toManyIndex).replaceAll(with: objects)
    }
    ToMany<ManagedObject>(owner: self, index: relationship.toManyIndex).replaceAll(with: objects)
  }

  /// Sets a property by its name to a value returned by ``value(forKey:)``, of this object or another.
  ///
  /// - Throws: The same errors as the setters of a single value and of objects; ``PersistenceError/Code/wrongType`` for a list of values.
  public final func setValue(_ value: PropertyValue, forKey key: String) throws {
    switch value {
    case .single(let value): try setValue(value, forKey: key)
    case .objects(let objects): try setValue(objects, forKey: key)
    case .composite(let values):
      try checkIsInGraph(key)
      guard case .composite(let composite)? = entity.property(named: key) else {
        if entity.property(named: key) == nil { _ = try slot(forKey: key) }
        throw PersistenceError(.wrongType, objectID: id, property: key, reason: "The property isn't a composite attribute.")
      }
      try setComposite(composite, values)
    case .list:
      throw PersistenceError(
        .wrongType, objectID: id, property: key, reason: "A list of values was set; set one value, or an array of objects.")
    }
  }

  // MARK: Steps

  /// The value of an attribute, or the ID of a to-one relationship's destination.
  final func storeValue(inSlot slot: SlotIndex) -> StoreValue {
    guard let relationship = entity.relationship(inSlot: slot) else {
      do { return try attributeValue(slot, row(for: slot)) } catch {
        context.noteUnread(id, error)
        return .null
      }
    }
    return toOne(relationship).map { .objectID($0.objectID) } ?? .null
  }

  final func slot(forKey key: String) throws -> SlotIndex {
    guard let slot = entity.slot(named: key) else {
      throw PersistenceError(
        .unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no attribute or to-one relationship of this name.")
    }
    return slot
  }

  final func objects(of relationship: ManagedObjectModel.Relationship) -> [ManagedObject] {
    // Iterating an ordered relationship reads ahead; copying it as a collection doesn't.
    if relationship.isOrdered { return OrderedToMany<ManagedObject>(owner: self, index: relationship.toManyIndex).map { $0 } }
    return Array(ToMany<ManagedObject>(owner: self, index: relationship.toManyIndex))
  }

  /// The object that a to-one relationship references if it is set to an ID or null.
  private func destination(_ value: StoreValue, of relationship: ManagedObjectModel.Relationship, _ key: String) throws -> ManagedObject? {
    if relationship.isToMany {
      throw PersistenceError(.wrongType, objectID: id, property: key, reason: "The relationship is to-many; set an array of objects.")
    }
    switch value {
    case .null: return nil
    case .objectID(let target):
      let object = try context.object(with: target)
      guard plan.link(relationship).leads(toEntity: object.flags.entityIndex) else {
        throw PersistenceError(.wrongType, objectID: id, property: key, reason: "The object is a \(object.entity.name).")
      }
      return object
    default: throw PersistenceError(.wrongType, objectID: id, property: key, reason: "A relationship takes an object ID.")
    }
  }

  private func check(_ target: ManagedObject, for relationship: ManagedObjectModel.Relationship) throws {
    func refusal(_ code: PersistenceError.Code, _ reason: String) -> PersistenceError {
      PersistenceError(code, objectID: id, property: relationship.name, reason: reason)
    }
    guard target.context === context else {
      throw refusal(.foreignObject, "An object is of another context; find it in this one by its objectID.")
    }
    guard !target.flags.contains(.detached) else {
      throw refusal(.foreignObject, "An object has left the graph: it was deleted, or its context was reset.")
    }
    guard plan.toMany[relationship.toManyIndex].leads(toEntity: target.flags.entityIndex) else {
      throw refusal(.wrongType, "An object is a \(target.entity.name).")
    }
  }
}
