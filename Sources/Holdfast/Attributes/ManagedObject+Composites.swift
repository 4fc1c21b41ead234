import HoldfastStore

/// Composite attributes as structs, and as dictionaries for code that does not know the class.
extension ManagedObject {
  /// The composite attribute whose values begin in a slot, for the accessors of typed subclasses:
  ///
  /// ```swift
  /// var home: Place? {
  ///   get { self[composite: Slot.home] }
  ///   set { self[composite: Slot.home] = newValue }
  /// }
  /// ```
  ///
  /// Nil when none of its elements has a value; setting nil takes the values of all. A struct of which every element is nil is
  /// the same as nil. An element alone is read and written by its own slot, which costs less.
  @inlinable public final subscript<Value: CompositeAttributeValue>(composite slot: Int) -> Value? {
    get {
      checkSlots(slot, Value.elements.slotTypes)
      return Value.elements.load(readRow, slot)
    }
    set {
      checkSlots(slot, Value.elements.slotTypes)
      Value.elements.store(newValue, in: self, slot)
    }
  }

  @inlinable final func checkSlots(_ first: Int, _ types: [AttributeTypeSet]) {
    for (offset, types) in types.enumerated() { checkSlot(first + offset, types) }
  }

  /// The values of a group by name, groups within it as such; null when none has a value.
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

  /// Sets a group; what is not named has no value afterwards. Nothing is set when something does not fit.
  final func setComposite(_ composite: ManagedObjectModel.CompositeAttribute, _ values: [String: PropertyValue]) throws {
    var wanted: [Int: StoreValue] = [:]
    try collect(values, composite.name, into: &wanted)
    for slot in composite.slots { set(slot, wanted[slot] ?? .null) }
  }

  private func collect(_ values: [String: PropertyValue], _ group: String, into wanted: inout [Int: StoreValue]) throws {
    for (name, value) in values {
      let key = "\(group).\(name)"
      switch (entity.property(named: key), value) {
      case (.attribute(let attribute)?, .single(let value)): wanted[attribute.slot] = try fitting(value, attribute)
      case (.composite?, .composite(let inner)): try collect(inner, key, into: &wanted)
      case (.composite?, .single(.null)): continue
      case (nil, _):
        throw ContextError(.unknownProperty, objectID: id, property: key, reason: "\(entity.name).\(group) has no element \(name).")
      default: throw ContextError(.wrongType, objectID: id, property: key, reason: "The value is of another kind than the element.")
      }
    }
  }
}

extension ManagedObjectModel.CompositeAttribute {
  /// The name of an element within the group, of the path to it; nil for what is none, or lies deeper.
  func elementName(_ path: String) -> String? {
    guard path.utf8.count > name.utf8.count + 1, path.hasPrefix(name), path.utf8.dropFirst(name.utf8.count).first == UInt8(ascii: ".")
    else { return nil }
    let rest = path.utf8.dropFirst(name.utf8.count + 1)
    return rest.contains(UInt8(ascii: ".")) ? nil : String(rest)
  }
}
