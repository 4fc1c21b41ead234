#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension RowPointer {
  /// The value in a slot as a ``StoreValue``. The key of a to-one destination is returned as a whole number.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - column: The type of the slot.
  public func value(_ slot: SlotIndex, _ column: ColumnType) -> StoreValue {
    guard isPresent(slot) else { return .null }
    switch column {
    case .attribute(let type): return value(slot, type)
    case .toOne: return .int64(integer(slot))
    }
  }

  /// The value in a slot, as a 64-bit whole number if it is beyond the range of its attribute.
  ///
  /// Until the save refuses it, an object can have such a number.
  package func exactValue(_ slot: SlotIndex, _ column: ColumnType) -> StoreValue {
    let value = value(slot, column)
    switch value {
    case .int16, .int32:
      let number = integer(slot)
      return value.integer == number ? value : .int64(number)
    default: return value
    }
  }

  /// The value in a slot as a ``StoreValue``. A to-one destination is returned as an object ID.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - layout: The layout of an entity. If it is neither of a model nor decoded, the key of a destination is returned as a whole number.
  ///   - idPrefix: An ID from the row's store. If nil, the key of a destination is returned as a whole number.
  public func value(_ slot: SlotIndex, in layout: RowLayout, idPrefix: ManagedObjectID?) -> StoreValue {
    let column = layout.columns[slot]
    guard case .toOne(let destination) = column, isPresent(slot), let idPrefix, let name = layout.name(of: destination) else {
      return value(slot, column)
    }
    return .objectID(idPrefix.identity.objectID(entityName: name, key: key(slot)))
  }

  /// The attribute value in a slot. Requires that the slot has a value.
  public func value(_ slot: SlotIndex, _ type: AttributeType) -> StoreValue {
    switch type {
    case .integer16: .int16(Int16(truncatingIfNeeded: integer(slot)))
    case .integer32: .int32(Int32(truncatingIfNeeded: integer(slot)))
    case .integer64: .int64(integer(slot))
    case .boolean: .bool(integer(slot) != 0)
    case .double: .double(real(slot))
    case .float: .float(Float(real(slot)))
    case .date: .date(real(slot))
    case .string: .string(string(slot))
    case .uri: .uri(string(slot))
    case .decimal: DecimalText.value(bytes(slot)).map { .decimal($0) } ?? .null
    case .binaryData, .transformable: data(slot)
    case .objectID: ManagedObjectID(rowBytes: bytes(slot)).map { .objectID($0) } ?? .null
    case .composite, .undefined: .null
    case .uuid: uuid(slot).map { .uuid($0) } ?? .null
    }
  }

  private func data(_ slot: SlotIndex) -> StoreValue {
    guard isExternal(slot) else { return .data(Data(bytes(slot))) }
    return externalID(slot).map { .externalData($0) } ?? .null
  }

  private func uuid(_ slot: SlotIndex) -> UUID? {
    let bytes = bytes(slot)
    return bytes.count == 16 ? UUID(uuid: bytes.loadUnaligned(as: uuid_t.self)) : nil
  }
}
