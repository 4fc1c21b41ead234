public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Enumerations as attribute values, stored by their raw values:
///
/// ```swift
/// enum Mood: Int16, CaseIterable, AttributeValue { case calm, wild }
/// ```
///
/// A newer program may have saved a raw value without a case here. An optional property then reads as nil. Any other property reads as the
/// case with the raw value 0 or "", or else the first case. The row keeps the raw value until the property is set.
extension AttributeValue where Self: RawRepresentable, RawValue: AttributeValue {
  /// The attribute types of the raw value.
  @inlinable public static var attributeTypes: AttributeTypeSet { RawValue.attributeTypes }
  /// Reads a slot; nil when no case has the raw value.
  @inlinable public static func loadPresent(_ row: RowPointer, _ slot: SlotIndex) -> Self? {
    RawValue.loadPresent(row, slot).flatMap { Self(rawValue: $0) }
  }
  /// Writes the raw value.
  @inlinable public func store(in object: ManagedObject, _ slot: SlotIndex) { rawValue.store(in: object, slot) }
  /// The raw value as a store value.
  public var storeValue: StoreValue { rawValue.storeValue }
}

extension AttributeValue where Self: RawRepresentable & CaseIterable, RawValue: AttributeValue {
  /// Reads a slot. An absent value or unknown raw value reads as the case for zero, or else the first case.
  @inlinable public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Self {
    if row.isPresent(slot), let value = loadPresent(row, slot) { return value }
    return absentCase
  }

  @usableFromInline static var absentCase: Self {
    if let zero = Self(rawValue: RawValue.load(AbsentRow.pointer, 0)) { return zero }
    guard let first = allCases.first else { preconditionFailure("\(Self.self) has no cases, so a property can't have this type.") }
    return first
  }
}

extension AttributeValue where Self: OptionSet, RawValue: AttributeValue {
  /// Reads a slot. An absent value reads as the empty set.
  @inlinable public static func load(_ row: RowPointer, _ slot: SlotIndex) -> Self { Self(rawValue: RawValue.load(row, slot)) }
}

extension AttributeValue where Self: RawRepresentable, RawValue == Data {
  /// Reads a slot of an object, also from the external file of its bytes.
  public static func read(_ object: ManagedObject, _ slot: SlotIndex) -> Self {
    let row = object.row(for: slot)
    if !row.isExternal(slot) { return load(row, slot) }
    return readPresent(object, row, slot) ?? load(AbsentRow.pointer, 0)
  }
  /// Reads a slot that has a value; nil if its external file is unreadable.
  public static func readPresent(_ object: ManagedObject, _ row: RowPointer, _ slot: SlotIndex) -> Self? {
    row.isExternal(slot) ? object.dataInFile(slot, row).flatMap { Self(rawValue: $0) } : loadPresent(row, slot)
  }
}

/// An empty row, from which types read their zero values.
enum AbsentRow {
  /// The number of slots: the maximum of a row.
  static let slotCount = ModelBounds.values

  nonisolated(unsafe) static let pointer: RowPointer = {  // because it is never written to or freed
    let count = RowLayout.cellOffset(SlotIndex(slotCount - 1)) + 8
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 8)
    bytes.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    return RowPointer(bytes)
  }()
}
