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
      return Value.elements.load(readRow, slot)
    }
    set {
      checkSlots(slot, Value.elements.slotTypes)
      Value.elements.store(newValue, in: self, slot)
    }
  }

  @inlinable final func checkSlots(_ first: SlotIndex, _ types: [AttributeTypeSet]) {
    for (offset, types) in types.enumerated() { checkSlot(first.advanced(by: offset), types) }
  }

  /// Returns the values of a group by name, or null if no element has one.
  ///
  /// The values of nested groups are included.
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

  /// Sets a group and clears the elements that aren't named. Changes nothing when a name or value doesn't fit.
  final func setComposite(_ composite: ManagedObjectModel.CompositeAttribute, _ values: [String: PropertyValue]) throws {
    var wanted: [SlotIndex: StoreValue] = [:]
    try collect(values, composite.name, into: &wanted)
    for slot in composite.slots { set(slot, wanted[slot] ?? .null) }
  }

  private func collect(_ values: [String: PropertyValue], _ group: String, into wanted: inout [SlotIndex: StoreValue]) throws {
    for (name, value) in values {
      let key = "\(group).\(name)"
      switch (entity.property(named: key), value) {
      case (.attribute(let attribute)?, .single(let value)): wanted[attribute.slot] = try fitting(value, attribute)
      case (.composite?, .composite(let inner)): try collect(inner, key, into: &wanted)
      case (.composite?, .single(.null)): continue
      case (nil, _):
        throw ContextError(.unknownProperty, objectID: id, property: key, reason: "\(entity.name).\(group) has no element \(name).")
      default:
        throw ContextError(
          .wrongType, objectID: id, property: key, reason: "A group was set for a single value, or a single value for a group.")
      }
    }
  }
}

extension ManagedObjectModel.CompositeAttribute {
  /// Returns the name of a direct element of the group, from the element's path.
  ///
  /// Returns nil for nested elements and for all other paths.
  func elementName(_ path: String) -> String? {
    guard path.utf8.count > name.utf8.count + 1, path.hasPrefix(name), path.utf8.dropFirst(name.utf8.count).first == UInt8(ascii: ".")
    else { return nil }
    let rest = path.utf8.dropFirst(name.utf8.count + 1)
    return rest.contains(UInt8(ascii: ".")) ? nil : String(rest)
  }
}
