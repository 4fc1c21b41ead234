import HoldfastStore

/// Composite attributes, as structs and as dictionaries.
extension ManagedObject {
  /// The composite attribute that begins at a slot, for the accessors of typed subclasses:
  ///
  /// ```swift
  /// var home: Place? {
  ///   get { self[composite: Slot.home] }
  ///   set { self[composite: Slot.home] = newValue }
  /// }
  /// ```
  ///
  /// It is nil when no element has a value, so a struct whose elements are all nil reads as nil. Setting nil clears all elements.
  /// Reading or writing a single element by its own slot is faster.
  @inlinable public final subscript<Value: CompositeAttributeValue>(composite slot: SlotIndex) -> Value? {
    get {
      checkSlots(slot, Value.elements.slotTypes)
      return Value.elements.load(row(for: slot), slot)
    }
    set {
      checkSlots(slot, Value.elements.slotTypes)
      Value.elements.store(newValue, in: self, slot)
    }
  }

  @inlinable final func checkSlots(_ first: SlotIndex, _ types: [AttributeTypeSet]) {
    for (offset, types) in types.enumerated() { checkSlot(first.advanced(by: offset), types) }
  }

  /// Returns a composite attribute's values, keyed by element name, or null if no element has a value.
  ///
  /// The values of nested composite attributes are included.
  final func compositeValue(_ composite: ManagedObjectModel.CompositeAttribute) -> PropertyValue {
    var values: [String: PropertyValue] = [:]
    for slot in composite.slots {
      if let name = composite.elementName(entity.slots[slot].name) { values[name] = .single(storeValue(inSlot: slot)) }
    }
    for inner in entity.composites {
      if let name = composite.elementName(inner.name) { values[name] = compositeValue(inner) }
    }
    return values.values.allSatisfy { $0 == .null } ? .single(.null) : .composite(values)
  }

  /// Sets a composite attribute. Elements missing from `values` are set to nil. Throws without changing anything if a name is unknown or a
  /// value has the wrong type.
  final func setComposite(_ composite: ManagedObjectModel.CompositeAttribute, _ values: [String: PropertyValue]) throws {
    var wanted: [SlotIndex: StoreValue] = [:]
    try collect(values, composite.name, into: &wanted)
    for slot in composite.slots { setFitting(slot, wanted[slot] ?? .null) }
  }

  private func collect(_ values: [String: PropertyValue], _ group: String, into wanted: inout [SlotIndex: StoreValue]) throws {
    for (name, value) in values {
      let key = "\(group).\(name)"
      switch (entity.property(named: key), value) {
      case (.attribute(let attribute)?, .single(let value)): wanted[attribute.slot] = try fitting(value, attribute)
      case (.composite?, .composite(let inner)): try collect(inner, key, into: &wanted)
      case (.composite?, .single(.null)): continue
      case (nil, _):
        throw PersistenceError(.unknownProperty, objectID: id, property: key, reason: "\(entity.name).\(group) has no element \(name).")
      default:
        throw PersistenceError(
          .wrongType, objectID: id, property: key,
          reason: "The value doesn't fit the element. Pass a dictionary for a composite attribute, and a single value for any other.")
      }
    }
  }
}

extension ManagedObjectModel.CompositeAttribute {
  /// Returns the name of a direct element, from the element's path.
  ///
  /// Returns nil for nested elements and for all other paths.
  func elementName(_ path: String) -> String? {
    guard path.utf8.count > name.utf8.count + 1, path.hasPrefix(name), path.utf8.dropFirst(name.utf8.count).first == UInt8(ascii: ".")
    else { return nil }
    let rest = path.utf8.dropFirst(name.utf8.count + 1)
    return rest.contains(UInt8(ascii: ".")) ? nil : String(rest)
  }
}
