import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Transformable attributes as Swift values.
extension ManagedObject {
  /// The value of the transformable attribute in a slot, for the accessors of typed subclasses:
  ///
  /// ```swift
  /// var colour: Colour? {
  ///   get { self[transformable: Slot.colour] }
  ///   set { self[transformable: Slot.colour] = newValue }
  /// }
  /// ```
  ///
  /// Each read decodes the bytes in the row, and each write encodes the value. Decoded values aren't cached.
  ///
  /// Neither reading nor writing traps. When the bytes can't be decoded, the attribute reads as nil and ``ManagedObjectContext/faultError``
  /// has the reason. When a value can't be encoded, the attribute is unchanged and the next save fails with the reason. Setting the
  /// attribute again or rolling back the object's changes prevents that.
  public final subscript<Value>(transformable slot: SlotIndex) -> Value? {
    get {
      do { return try decodedValue(slot) { row(for: slot) } } catch {
        context.noteUnread(id, error)
        return nil
      }
    }
    set {
      do { try setTransformableValue(newValue, slot) } catch {
        if isProbe(.slot(slot)) { return }
        context.noteChange(self)
        context.changes.forgetRefusedValues(self, slot)
        context.changes.refuse(RefusedValue(object: ObjectIdentifier(self), slot: slot, error: error))
      }
    }
  }

  /// Returns the value of the transformable attribute in a slot; nil when it has none.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/transformationFailed`` when the transformer fails, isn't registered, or
  ///   returns another type; the transformer's error is the cause. ``/HoldfastStore/StoreError`` when the object or the value's external
  ///   file can't be read.
  public final func transformableValue<Value>(_ slot: SlotIndex, as type: Value.Type = Value.self) throws -> Value? {
    try decodedValue(slot) { try isFault ? context.throwingFaultErrors { row(for: slot) } : row(for: slot) }
  }

  private func decodedValue<Value>(_ slot: SlotIndex, _ read: () throws -> RowPointer) throws -> Value? {
    checkSlot(slot, .transformable)
    let row = try read()
    guard row.isPresent(slot) else { return nil }
    let transformer = try transformer(slot)
    guard case .data(let bytes) = try attributeValue(slot, row) else { return nil }
    let value: any Sendable
    do { value = try transformer.anyValue(from: bytes) } catch {
      throw transformationError(slot, "The transformer couldn't decode the stored bytes.", error)
    }
    guard let value = value as? Value else { throw transformationError(slot, "The transformer's values are of another type.") }
    return value
  }

  /// Sets the transformable attribute in a slot.
  ///
  /// - Throws: the errors of ``transformableValue(_:as:)``. The attribute is then unchanged.
  public final func setTransformableValue<Value>(_ value: Value?, _ slot: SlotIndex) throws {
    checkSlot(slot, .transformable)
    guard let value else {
      context.changes.forgetRefusedValues(self, slot)
      return setNull(slot)
    }
    let transformer = try transformer(slot)
    let data: Data?
    do { data = try transformer.data(fromAny: value) } catch {
      throw transformationError(slot, "The transformer couldn't encode the value.", error)
    }
    guard let data else { throw transformationError(slot, "The transformer doesn't accept values of this type.") }
    context.changes.forgetRefusedValues(self, slot)
    data.withUnsafeBytes { setBytes(slot, $0) }
  }

  private func transformer(_ slot: SlotIndex) throws -> any AttributeTransformer {
    if let transformer = context.graph.transformers[flags.entityIndex][slot] { return transformer }
    throw transformationError(slot, "No transformer is registered for the attribute. Pass one to the container or coordinator.")
  }

  private func transformationError(_ slot: SlotIndex, _ reason: String, _ cause: (any Error)? = nil) -> PersistenceError {
    PersistenceError(.transformationFailed, objectID: id, property: entity.slots[slot].name, reason: reason, cause: cause)
  }
}

extension AttributeTransformer {
  fileprivate func anyValue(from data: Data) throws -> any Sendable { try value(from: data) }

  /// Nil for a value of another type.
  fileprivate func data(fromAny value: Any) throws -> Data? {
    guard let value = value as? Value else { return nil }
    return try data(from: value)
  }
}
