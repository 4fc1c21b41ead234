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
  /// Each read decodes the bytes of the row and each write encodes the value: nothing is kept beside the bytes.
  ///
  /// Neither traps. Bytes that cannot be decoded read as nil, and ``ManagedObjectContext/faultError`` has the reason. A value that
  /// cannot be encoded leaves the attribute as it was, and the next save is refused with the reason, unless the attribute has been set
  /// again by then, or the object's changes were taken back.
  public final subscript<Value>(transformable slot: Int) -> Value? {
    get {
      do { return try transformableValue(slot) } catch {
        managedObjectContext.noteUnread(id, error)
        return nil
      }
    }
    set {
      do { try setTransformableValue(newValue, slot) } catch {
        if isProbe(.slot(slot)) { return }
        managedObjectContext.noteChange(self)
        managedObjectContext.refusedValues.append(RefusedValue(object: ObjectIdentifier(self), slot: slot, error: error))
      }
    }
  }

  /// The value of the transformable attribute in a slot; nil when there are no bytes.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/transformationFailed`` and the transformer's error as its cause; also
  ///   when no transformer is registered, or it gives another type. ``/HoldfastStore/StoreError`` when the bytes lie in a file of their own
  ///   that cannot be read.
  public final func transformableValue<Value>(_ slot: Int, as type: Value.Type = Value.self) throws -> Value? {
    checkSlot(slot, .transformable)
    let row = readRow
    guard row.isPresent(slot) else { return nil }
    let transformer = try transformer(slot)
    guard case .data(let bytes) = try attributeValue(slot, row) else { return nil }
    let value: any Sendable
    do { value = try transformer.anyValue(from: bytes) } catch {
      throw transformationError(slot, "The bytes cannot be turned into a value.", error)
    }
    guard let value = value as? Value else { throw transformationError(slot, "The transformer makes values of another type.") }
    return value
  }

  /// Sets the transformable attribute in a slot.
  ///
  /// - Throws: as ``transformableValue(_:as:)``; the attribute is unchanged then.
  public final func setTransformableValue<Value>(_ value: Value?, _ slot: Int) throws {
    checkSlot(slot, .transformable)
    managedObjectContext.forgetRefusedValue(self, slot)
    guard let value else { return setNull(slot) }
    let transformer = try transformer(slot)
    let data: Data?
    do { data = try transformer.data(fromAny: value) } catch {
      throw transformationError(slot, "The value cannot be turned into bytes.", error)
    }
    guard let data else { throw transformationError(slot, "The transformer takes values of another type.") }
    data.withUnsafeBytes { setBytes(slot, $0) }
  }

  private func transformer(_ slot: Int) throws -> any AttributeTransformer {
    if let transformer = managedObjectContext.graph.transformers[Int(flags.entityIndex)][slot] { return transformer }
    throw transformationError(slot, "No transformer is registered for the attribute.")
  }

  private func transformationError(_ slot: Int, _ reason: String, _ cause: (any Error)? = nil) -> ContextError {
    ContextError(.transformationFailed, objectID: id, property: entity.slots[slot].name, reason: reason, cause: cause)
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

/// A value that could not be encoded when it was set.
struct RefusedValue {
  /// Stands in the context's list of changed objects, which keeps it alive.
  let object: ObjectIdentifier
  let slot: Int
  let error: any Error
}

extension ManagedObjectContext {
  /// An attribute is set once more, or taken back.
  func forgetRefusedValue(_ object: ManagedObject, _ slot: Int? = nil) {
    if refusedValues.isEmpty { return }
    refusedValues.removeAll { $0.object == ObjectIdentifier(object) && (slot == nil || $0.slot == slot) }
  }
}
