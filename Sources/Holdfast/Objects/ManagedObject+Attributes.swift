extension ManagedObject {
  /// The value of the attribute in a slot, read and written as a Swift type.
  ///
  /// For the accessors of typed subclasses; the type and the slot are checked once, when the class is bound.
  @inlinable public final subscript<Value: AttributeValue>(_ slot: Int) -> Value {
    @inline(__always) get { Value.load(readRow, slot) }
    set { newValue.store(in: self, slot) }
  }

  /// The text in a slot as UTF-8 where it lies, for as long as the closure runs: no `String` is made.
  ///
  /// - Returns: what the closure returns; it gets empty bytes when there is no value.
  @inlinable public final func withUTF8<Result>(_ slot: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(readRow.bytes(slot))
  }

  // MARK: Writing

  /// Writes a number into a slot.
  @usableFromInline final func setCell(_ slot: Int, _ cell: UInt64) { writableRow().set(slot, cell: cell) }

  /// Writes nil into a slot.
  @usableFromInline final func setNull(_ slot: Int) { writableRow().setNull(slot) }

  /// Writes bytes into a slot.
  @usableFromInline final func setBytes(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    var copy = writableRow()
    copy.set(slot, bytes: bytes, entity.layout)
    row = UnsafeRawPointer(copy.row)
  }

  /// The object's own row, made by the first write.
  final func writableRow() -> PrivateRow {
    if flags.contains(.hasPrivateRow), let row {
      if !flags.contains(.listed) { managedObjectContext.noteChange(self) }
      return PrivateRow(existing: row)
    }
    let committed = readRow
    let copy = PrivateRow(copying: committed, entity.layout, room: 64, committed: committed.base)
    row = UnsafeRawPointer(copy.row)
    flags.insert(.hasPrivateRow)
    managedObjectContext.noteChange(self)
    return copy
  }

  /// Gives the object's own row up for a sealed one, or for none.
  final func dropPrivateRow(_ next: UnsafeRawPointer?) {
    if flags.contains(.hasPrivateRow), let row {
      PrivateRow(existing: row).destroy()
      flags.remove(.hasPrivateRow)
    }
    row = next
  }

  /// The row as the store has it; nil for a fault and for a new object.
  final var committedRow: RowPointer? {
    guard let row else { return nil }
    return flags.contains(.hasPrivateRow) ? PrivateRow(existing: row).committed : RowPointer(row)
  }

  // MARK: By name

  /// The value of a property by its name.
  ///
  /// - Returns: a ``StoreValue``; for a to-one relationship the target's ID or null.
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownProperty`` when the entity has no attribute or to-one
  ///   relationship of that name.
  public final func value(forKey key: String) throws -> StoreValue {
    let slot = try slot(forKey: key)
    if let relationship = entity.relationship(inSlot: slot) {
      guard let target = toOne(relationship) else { return .null }
      return .objectID(target.objectID)
    }
    return readRow.value(slot, entity.layout.columns[slot], idPrefix: id)
  }

  /// Sets an attribute or to-one relationship by its name. A to-one relationship takes the ID of an object of the same
  /// context, or null.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownProperty``, or ``ContextError/Code/wrongType`` when the
  ///   value does not fit; the object is unchanged then.
  public final func setValue(_ value: StoreValue, forKey key: String) throws {
    let slot = try slot(forKey: key)
    if let relationship = entity.relationship(inSlot: slot) { return try setToOne(relationship, value, key) }
    guard case .attribute(let type) = entity.layout.columns[slot], let fitting = value.converted(to: type) else {
      throw ContextError(.wrongType, objectID: id, property: key, reason: "The value is not a \(entity.layout.columns[slot]).")
    }
    set(slot, fitting)
  }

  /// The value at the end of a path of to-one relationships: `try dog.value(forKeyPath: "owner.city")`. Null when it leads nowhere
  /// on its way.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownProperty`` that names the part which the entity does not have, or
  ///   that leads to many.
  public final func value(forKeyPath path: String) throws -> StoreValue {
    let (object, key) = try owner(ofKeyPath: path)
    return try object?.value(forKey: key) ?? .null
  }

  /// Sets the value at the end of a path of to-one relationships.
  ///
  /// - Throws: as ``setValue(_:forKey:)``, and ``ContextError`` with code ``ContextError/Code/missingObject`` when the path leads nowhere on
  ///   its way.
  public final func setValue(_ value: StoreValue, forKeyPath path: String) throws {
    let (object, key) = try owner(ofKeyPath: path)
    guard let object else {
      throw ContextError(
        .missingObject, objectID: id, property: path,
        reason: "The path leads nowhere, so there is no object to change; set the relationship first.")
    }
    try object.setValue(value, forKey: key)
  }

  /// The object whose property a path ends in; nil when it leads nowhere. Names are checked to the end in any case.
  private func owner(ofKeyPath path: String) throws -> (ManagedObject?, String) {
    var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    let last = names.removeLast()
    var (object, entity): (ManagedObject?, ManagedObjectModel.Entity) = (self, entity)
    for name in names {
      guard let relationship = entity.relationship(named: name), !relationship.isToMany else {
        throw ContextError(.unknownProperty, objectID: id, property: path, reason: "\(entity.name) has no to-one relationship \(name).")
      }
      object = object?.toOne(relationship)
      entity = object?.entity ?? managedObjectContext.persistentStoreCoordinator.model.destination(of: relationship)
    }
    guard entity.slot(named: last) != nil else {
      throw ContextError(
        .unknownProperty, objectID: id, property: path, reason: "\(entity.name) has no attribute or to-one relationship \(last).")
    }
    return (object, last)
  }

  final func slot(forKey key: String) throws -> Int {
    guard let slot = entity.slot(named: key) else {
      throw ContextError(
        .unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no attribute or to-one relationship of this name.")
    }
    return slot
  }

  private func setToOne(_ relationship: ManagedObjectModel.Relationship, _ value: StoreValue, _ key: String) throws {
    switch value {
    case .null: setToOne(relationship, nil)
    case .objectID(let target):
      let object = try managedObjectContext.object(with: target)
      guard plan.toOne[relationship.slot].leads(toEntity: object.flags.entityIndex) else {
        throw ContextError(.wrongType, objectID: id, property: key, reason: "The object is a \(object.entity.name).")
      }
      setToOne(relationship, object)
    default: throw ContextError(.wrongType, objectID: id, property: key, reason: "A relationship takes an object ID.")
    }
  }

  /// Writes a value that is known to fit the slot.
  final func set(_ slot: Int, _ value: StoreValue) {
    switch value {
    case .null: setNull(slot)
    case .bool(let value): value.store(in: self, slot)
    case .int16(let value): value.store(in: self, slot)
    case .int32(let value): value.store(in: self, slot)
    case .int64(let value): value.store(in: self, slot)
    case .float(let value): value.store(in: self, slot)
    case .double(let value), .date(let value): value.store(in: self, slot)
    case .decimal(let value): value.store(in: self, slot)
    case .string(let value), .uri(let value): value.store(in: self, slot)
    case .uuid(let value): value.store(in: self, slot)
    case .data(let value): value.store(in: self, slot)
    case .objectID(let value): value.key.store(in: self, slot)
    }
  }
}
