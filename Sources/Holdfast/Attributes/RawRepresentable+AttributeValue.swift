public import HoldfastStore

/// Enumerations are attributes by their raw values:
///
/// ```swift
/// enum Mood: Int16, CaseIterable, AttributeValue { case calm, wild }
/// ```
///
/// A raw value that no case has, which a newer program may have saved, reads as nil where the property is optional and as the
/// zero otherwise: the case whose raw value is 0 or "", or the first case. It stays in the row until the property is set.
extension AttributeValue where Self: RawRepresentable, RawValue: AttributeValue {
  /// Those of the raw value.
  @inlinable public static var attributeTypes: AttributeTypeSet { RawValue.attributeTypes }
  /// Reads a slot; nil when no case has the raw value.
  @inlinable public static func loadPresent(_ row: RowPointer, _ slot: Int) -> Self? {
    RawValue.loadPresent(row, slot).flatMap { Self(rawValue: $0) }
  }
  /// Writes the raw value.
  @inlinable public func store(in object: ManagedObject, _ slot: Int) { rawValue.store(in: object, slot) }
  /// The raw value.
  public var storeValue: StoreValue { rawValue.storeValue }
}

extension AttributeValue where Self: RawRepresentable & CaseIterable, RawValue: AttributeValue {
  /// Reads a slot; the zero for none and for raw values that no case has.
  @inlinable public static func load(_ row: RowPointer, _ slot: Int) -> Self {
    if row.isPresent(slot), let value = loadPresent(row, slot) { return value }
    return absentCase
  }

  @usableFromInline static var absentCase: Self {
    if let zero = Self(rawValue: RawValue.load(RowPointer(AbsentRow.base), 0)) { return zero }
    guard let first = allCases.first else { preconditionFailure("\(Self.self) has no cases, so no property can have one.") }
    return first
  }
}

extension AttributeValue where Self: OptionSet, RawValue: AttributeValue {
  /// Reads a slot; the empty set for none.
  @inlinable public static func load(_ row: RowPointer, _ slot: Int) -> Self { Self(rawValue: RawValue.load(row, slot)) }
}

/// A row that holds nothing, from which types read their zeros.
enum AbsentRow {
  /// How many slots it has: as many as a row can have.
  static let slotCount = ModelBounds.values

  nonisolated(unsafe) static let base: UnsafeRawPointer = {  // because nobody writes to it, or frees it
    let count = RowLayout.cellOffset(slotCount - 1) + 8
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 8)
    bytes.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    return UnsafeRawPointer(bytes)
  }()
}
