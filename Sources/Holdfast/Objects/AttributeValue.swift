import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A Swift type that can read and write an attribute.
///
/// A property of non-optional type reads a missing value as the type's zero: 0, false, "", the reference date, no bytes, or the UUID of
/// zeros. Required values are checked when the object is saved, never by a trap.
///
/// A type that conforms where it is declared is nonisolated, also in modules whose default isolation is the main actor.
public protocol AttributeValue: SendableMetatype {
  /// The attribute types that the type can read and write.
  static var attributeTypes: AttributeTypeSet { get }
  /// Reads a slot of a row.
  static func load(_ row: RowPointer, _ slot: SlotIndex) -> Self
  /// Reads a slot that has a value. Defaults to ``load(_:_:)``.
  ///
  /// Returns nil if the type can't represent the value, such as the raw value of a removed case.
  static func loadPresent(_ row: RowPointer, _ slot: SlotIndex) -> Self?
  /// Reads a slot of an object. Defaults to ``load(_:_:)``; `Data` also reads values from external files.
  static func read(_ object: ManagedObject, _ slot: SlotIndex) -> Self
  /// Reads a slot that has a value. Defaults to ``loadPresent(_:_:)``; `Data` also reads values from external files.
  static func readPresent(_ object: ManagedObject, _ row: RowPointer, _ slot: SlotIndex) -> Self?
  /// Writes into a slot of an object.
  func store(in object: ManagedObject, _ slot: SlotIndex)
  /// The value in the form that stores use.
  var storeValue: StoreValue { get }
}

extension AttributeValue {
  /// Calls ``load(_:_:)``.
  @inlinable @inline(__always) public static func loadPresent(_ row: RowPointer, _ slot: SlotIndex) -> Self? { load(row, slot) }
  /// Calls ``load(_:_:)``.
  @inlinable @inline(__always) public static func read(_ object: ManagedObject, _ slot: SlotIndex) -> Self {
    load(object.row(for: slot), slot)
  }
  /// Calls ``loadPresent(_:_:)``.
  @inlinable @inline(__always) public static func readPresent(_ object: ManagedObject, _ row: RowPointer, _ slot: SlotIndex) -> Self? {
    loadPresent(row, slot)
  }
}

extension Bool: AttributeValue {
  /// Booleans.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.boolean] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Bool { row.integer(slot) != 0 }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, self ? 1 : 0) }
  /// A truth value.
  public var storeValue: StoreValue { .bool(self) }
}

extension Int16: AttributeValue {
  /// Whole numbers of 16 bits.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.integer16] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Int16 {
    Int16(truncatingIfNeeded: row.integer(slot))
  }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, UInt64(bitPattern: Int64(self))) }
  /// A whole number.
  public var storeValue: StoreValue { .int16(self) }
}

extension Int32: AttributeValue {
  /// Whole numbers of up to 32 bits.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.integer16, .integer32] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Int32 {
    Int32(truncatingIfNeeded: row.integer(slot))
  }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, UInt64(bitPattern: Int64(self))) }
  /// A whole number.
  public var storeValue: StoreValue { .int32(self) }
}

extension Int64: AttributeValue {
  /// Whole numbers of any width. The save refuses values that are too large for the attribute.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.integer16, .integer32, .integer64] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Int64 { row.integer(slot) }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, UInt64(bitPattern: self)) }
  /// A whole number.
  public var storeValue: StoreValue { .int64(self) }
}

extension Int: AttributeValue {
  /// Whole numbers of any width. The save refuses values that are too large for the attribute.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.integer16, .integer32, .integer64] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Int {
    Int(truncatingIfNeeded: row.integer(slot))
  }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, UInt64(bitPattern: Int64(self))) }
  /// A whole number.
  public var storeValue: StoreValue { .int64(Int64(self)) }
}

extension Double: AttributeValue {
  /// Floating-point numbers of 64 bits.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.double] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Double { row.real(slot) }
  /// Writes a slot; −0.0 becomes 0.0.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setCell(slot, (self == 0 ? 0 : self).bitPattern) }
  /// A floating-point number.
  public var storeValue: StoreValue { .double(self) }
}

extension Float: AttributeValue {
  /// Floating-point numbers of 32 bits.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.float] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Float { Float(row.real(slot)) }
  /// Writes a slot; −0.0 becomes 0.0.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) {
    object.setCell(slot, Double(self == 0 ? 0 : self).bitPattern)
  }
  /// A floating-point number.
  public var storeValue: StoreValue { .float(self) }
}

extension String: AttributeValue {
  /// Text.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.string, .uri] }
  /// Reads a slot: creates a `String` from the bytes in the row.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> String { row.string(slot) }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { object.setText(slot, self) }
  /// Text.
  public var storeValue: StoreValue { .string(self) }
}

extension Date: AttributeValue {
  /// Points in time.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.date] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Date {
    Date(timeIntervalSinceReferenceDate: row.real(slot))
  }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { timeIntervalSinceReferenceDate.store(in: object, slot) }
  /// A point in time.
  public var storeValue: StoreValue { .date(timeIntervalSinceReferenceDate) }
}

extension UUID: AttributeValue {
  /// UUIDs.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.uuid] }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> UUID {
    let bytes = row.bytes(slot)
    // A UUID is its 16 bytes; its initializer would take each byte as a separate argument.
    if bytes.count != 16 { return unsafeBitCast((UInt64(0), UInt64(0)), to: UUID.self) }
    return unsafeBitCast(bytes.loadUnaligned(as: (UInt64, UInt64).self), to: UUID.self)
  }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { withUnsafeBytes(of: uuid) { object.setBytes(slot, $0) } }
  /// A UUID.
  public var storeValue: StoreValue { .uuid(self) }
}

extension Data: AttributeValue {
  /// Bytes; for a transformable attribute, the stored bytes.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.binaryData, .transformable] }
  /// Reads a slot: copies the bytes of the row.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Data { Data(row.bytes(slot)) }
  /// Reads a slot: copies the bytes of the row, or reads the external file.
  @inlinable public static func read(_ object: ManagedObject, _ slot: SlotIndex) -> Data {
    let row = object.row(for: slot)
    return row.isPresent(slot) ? readPresent(object, row, slot) ?? Data() : Data()
  }
  /// Reads a slot that has a value; nil if its external file is unreadable.
  @inlinable public static func readPresent(_ object: ManagedObject, _ row: RowPointer, _ slot: SlotIndex) -> Data? {
    row.isExternal(slot) ? object.dataInFile(slot, row) : Data(row.bytes(slot))
  }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { withUnsafeBytes { object.setBytes(slot, $0) } }
  /// Bytes.
  public var storeValue: StoreValue { .data(self) }
}

extension Decimal: AttributeValue {
  /// Decimal numbers.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.decimal] }
  /// Reads a slot.
  public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Decimal {
    if case .decimal(let value) = row.value(slot, .decimal) { return value }
    return 0
  }
  /// Writes a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { DecimalText.digits(self).store(in: object, slot) }
  /// A decimal number.
  public var storeValue: StoreValue { .decimal(self) }
}

extension Optional: AttributeValue where Wrapped: AttributeValue {
  /// The attribute types of the wrapped type.
  @inlinable public static var attributeTypes: AttributeTypeSet { Wrapped.attributeTypes }
  /// Reads a slot.
  @inlinable @inline(__always) public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Wrapped? {
    row.isPresent(slot) ? Wrapped.loadPresent(row, slot) : nil
  }
  /// Reads a slot of an object.
  @inlinable @inline(__always) public static func read(_ object: ManagedObject, _ slot: SlotIndex) -> Wrapped? {
    let row = object.row(for: slot)
    return row.isPresent(slot) ? Wrapped.readPresent(object, row, slot) : nil
  }
  /// Writes a slot.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) {
    if let self { self.store(in: object, slot) } else { object.setNull(slot) }
  }
  /// The wrapped value, or null.
  public var storeValue: StoreValue { self?.storeValue ?? .null }
}
