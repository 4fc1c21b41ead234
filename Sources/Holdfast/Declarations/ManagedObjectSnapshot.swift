public import HoldfastStore

/// The values of an object at one time, independent of its context: they can be sent to other threads, encoded, compared and applied again.
///
/// A snapshot has the attributes and the IDs of the to-one relationships, which is what a store keeps in the object's row. It has neither
/// to-many relationships nor transient properties. Its members have the names and types of the object's properties, except that a to-one
/// relationship is the ID of its destination. Transformable attributes are kept as the bytes of their transformers. A member for one of
/// these, or for a property that isn't stored, traps.
///
/// ```swift
/// var snapshot = try ManagedObjectSnapshot(fido)
/// snapshot.name += " II"
/// let son = try context.insert(snapshot)
/// ```
///
/// It is encoded by the names of its properties. A property that is missing when it is decoded isn't set when it is applied, so a new object
/// keeps its default value, also a computed one. Unknown names are ignored. A decimal that is NaN or has more than 15 digits is encoded as
/// text, because some decoders of JSON would round or refuse the number. The macro `@Entity` declares `Dog.Snapshot` as another name.
@dynamicMemberLookup public struct ManagedObjectSnapshot<Object: ManagedObject>: Hashable, Sendable {
  /// The value of each field of the class's ``SnapshotLayout``; nil if it isn't set.
  private(set) var values: [StoreValue?]
  /// The values when the snapshot was made of an object; nil for other snapshots. The array is shared with ``values`` until one is set.
  private(set) var base: [StoreValue?]?
  /// The ID of the snapshot's object; nil for a snapshot that was decoded or created without an object.
  public private(set) var objectID: ManagedObjectID?

  /// Creates a snapshot in which nothing is set. Its members read as the default values of the class's declaration.
  public init() { values = Array(repeating: nil, count: SnapshotLayout.of(Object.self).fields.count) }

  /// Copies the values of an object. Sends at most one store request, and another for each value in an external file and each destination
  /// whose subentity isn't known yet.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` if the object was deleted; the store's error if the object
  ///   couldn't be read.
  public init(_ object: Object) throws {
    values = try object.context.refusingFaultErrors {
      try SnapshotLayout.of(Object.self).fields.map { field in
        guard case .single(let value) = try object.value(forKeyPath: field.name) else { return .null }
        // A whole number that is narrower in the model is compared with those that members set or a decoder reads.
        return value.ofProperty(in: field.type) ?? value
      }
    }
    base = values
    objectID = object.objectID
    for case .objectID(let id)? in values where id.isTemporaryID { object.context.follow(id) }
  }

  /// Sets the values of an object, except for derived ones and those that aren't set. Sends at most one store request, and others for
  /// faults at the other ends of one-to-one relationships.
  ///
  /// A relationship isn't set to an object that the context is deleting or has deleted, and keeps its destination. A destination that was
  /// new when the snapshot was made of an object of this context can be saved before the snapshot is applied.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/foreignObject`` if a destination isn't in a store of the object's context,
  ///   ``PersistenceError/Code/wrongType`` if a value doesn't fit the model. Properties before it are set then. The code is
  ///   ``PersistenceError/Code/missingObject`` if the object has left the graph.
  public func apply(to object: Object) throws {
    for case (let field, let value?) in zip(SnapshotLayout.of(Object.self).fields, values) {
      if case .attribute(let attribute)? = object.entity.property(named: field.name), attribute.derivation != nil { continue }
      try object.setSnapshotValue(value, forKeyPath: field.name)
    }
  }

  // MARK: Members

  /// An attribute.
  public subscript<Value: AttributeValue>(dynamicMember keyPath: KeyPath<Object, Value>) -> Value {
    get { Value.said(by: self[index(keyPath)]) ?? Value.load(AbsentRow.pointer, 0) }
    set { self[index(keyPath)] = newValue.storeValue }
  }

  /// The ID of the destination of a to-one relationship.
  public subscript<Destination: ManagedObject>(dynamicMember keyPath: KeyPath<Object, Destination?>) -> ManagedObjectID? {
    get { if case .objectID(let id) = self[index(keyPath)] { id } else { nil } }
    set { self[index(keyPath)] = newValue.map { .objectID($0) } ?? .null }
  }

  /// A composite attribute; nil if no element has a value.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Object, Value?>) -> Value? {
    get { composite(keyPath) }
    set { setComposite(newValue, keyPath) }
  }

  /// A composite attribute. If no element has a value, it is `Value()`.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Object, Value>) -> Value {
    get { composite(keyPath) ?? Value() }
    set { setComposite(newValue, keyPath) }
  }

  private func composite<Value: CompositeAttributeValue>(_ keyPath: AnyKeyPath) -> Value? {
    let start = index(keyPath)
    return Value.elements.value(of: (start..<start + Value.slotCount).map { self[$0] })
  }

  private mutating func setComposite<Value: CompositeAttributeValue>(_ value: Value?, _ keyPath: AnyKeyPath) {
    let start = index(keyPath)
    for (offset, value) in Value.elements.storeValues(value).enumerated() { self[start + offset] = value }
  }

  /// The value of a field, of the field's type.
  private subscript(place: Int) -> StoreValue {
    get { values[place] ?? SnapshotLayout.of(Object.self).fields[place].defaultValue }
    set { values[place] = newValue.ofProperty(in: SnapshotLayout.of(Object.self).fields[place].type) ?? newValue }
  }

  private func index(_ keyPath: AnyKeyPath) -> Int {
    let name = KeyPathNames.name(keyPath, in: Object.self)
    guard let index = SnapshotLayout.of(Object.self).starts[name] else {
      preconditionFailure(
        "A snapshot of \(Object.self) has no member \(name): it isn't a property with a value in the row, or it is transformable.")
    }
    return index
  }
}

extension ManagedObjectSnapshot {
  /// Snapshots are equal if their values are.
  public static func == (a: ManagedObjectSnapshot, b: ManagedObjectSnapshot) -> Bool { a.values == b.values }

  /// Hashes the values.
  public func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

extension ManagedObjectSnapshot: Codable {
  /// Decodes values by name. A missing one isn't set. A composite attribute that is null has elements without values.
  public init(from decoder: any Decoder) throws {
    self.init()
    for (place, field) in SnapshotLayout.of(Object.self).fields.enumerated() {
      switch try field.decoded(by: decoder) {
      case .missing: continue
      case .null: values[place] = .null
      case .value(let container, let key): values[place] = try StoreValue(plain: field.type, from: container, key)
      }
    }
  }

  /// Encodes the values that are set by name, also those that are nil.
  public func encode(to encoder: any Encoder) throws {
    for case (let field, let value?) in zip(SnapshotLayout.of(Object.self).fields, values) {
      var (container, key) = field.container(in: encoder)
      try value.encodePlain(in: &container, key)
    }
  }
}

extension ManagedObjectContext {
  /// Inserts a new object with the values of a snapshot. Sends requests only for faults at the other ends of one-to-one relationships.
  ///
  /// - Throws: The errors of ``ManagedObjectSnapshot/apply(to:)``. Nothing is inserted then.
  @discardableResult public func insert<Object: ManagedObject>(_ snapshot: ManagedObjectSnapshot<Object>) throws -> Object {
    try insert(Object.self) { try snapshot.apply(to: $0) }
  }

  /// Runs a closure that reads objects, and throws if any of them couldn't be read.
  ///
  /// The getter of a property can't throw; see ``FaultErrorPolicy``. The result of this closure doesn't depend on placeholders.
  ///
  /// ```swift
  /// let names = try context.reading { dogs.map(\.name) }
  /// ```
  ///
  /// If the closure changed nothing after a read had failed, later saves aren't refused. Otherwise its changes may depend on a placeholder,
  /// and the context's ``ManagedObjectContext/faultErrorPolicy`` applies: by default, saves are refused until the errors are acknowledged.
  ///
  /// - Returns: The closure's result.
  /// - Throws: The closure's error; ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` if an object was deleted; the store's
  ///   error if an object couldn't be read.
  public func reading<Result>(_ body: () throws -> Result) throws -> Result { try core.refusingFaultErrors(isProgram: true, body) }
}
