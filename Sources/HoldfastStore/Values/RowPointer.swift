#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Reads the bytes of one row where they lie. Valid only while whatever owns the bytes lives: a ``RowBatch`` or a
/// managed object.
///
/// This is the fast face of rows, for the framework and for stores that want it; ``RowView`` is the safe one. No
/// method checks its slot.
@frozen public struct RowPointer: @unchecked Sendable {  // because the bytes of a sealed row never change
  /// Where the row begins.
  public let base: UnsafeRawPointer

  /// Points to a row.
  @inlinable @inline(__always) public init(_ base: UnsafeRawPointer) { self.base = base }

  /// The key.
  @inlinable @inline(__always) public var key: Int64 { base.load(as: Int64.self) }

  /// The version.
  @inlinable @inline(__always) public var version: Int64 { base.load(fromByteOffset: 8, as: Int64.self) }

  /// The version that follows another. Versions are compared for being equal only; after the largest comes 1, which only a file
  /// made by hand will see.
  @inlinable public static func version(after version: Int64) -> Int64 { version == .max ? 1 : version + 1 }

  /// Whether the slot holds a value.
  @inlinable @inline(__always) public func isPresent(_ slot: Int) -> Bool {
    base.load(fromByteOffset: RowLayout.presenceOffset(slot), as: UInt64.self) & (1 << UInt64(slot & 63)) != 0
  }

  /// The whole number, truth value or key in the slot; 0 when there is none.
  @inlinable @inline(__always) public func integer(_ slot: Int) -> Int64 {
    base.load(fromByteOffset: RowLayout.cellOffset(slot), as: Int64.self)
  }

  /// The floating-point number in the slot; 0 when there is none.
  @inlinable @inline(__always) public func real(_ slot: Int) -> Double {
    base.load(fromByteOffset: RowLayout.cellOffset(slot), as: Double.self)
  }

  /// The text or bytes in the slot; empty when there are none.
  @inlinable @inline(__always) public func bytes(_ slot: Int) -> UnsafeRawBufferPointer {
    let cell = base.load(fromByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    return UnsafeRawBufferPointer(start: base + Int(cell & 0x7FFF_FFFF), count: Int(cell >> 32))
  }

  /// Whether the value in a slot of bytes lies in a file of its own, so that ``bytes(_:)`` are those of the file's name. Never for a
  /// slot whose attribute does not allow that; nobody has to ask there.
  @inlinable @inline(__always) public func isExternal(_ slot: Int) -> Bool {
    base.load(fromByteOffset: RowLayout.cellOffset(slot), as: UInt64.self) & (1 << 31) != 0 && isPresent(slot)
  }

  /// The name of the file in which the value of a slot of bytes lies; nil when it lies in the row or there is none.
  public func externalID(_ slot: Int) -> UUID? {
    guard isExternal(slot) else { return nil }
    let bytes = bytes(slot)
    return bytes.count == 16 ? UUID(uuid: bytes.loadUnaligned(as: uuid_t.self)) : nil
  }

  /// Whether two rows of a layout hold the same values; keys and versions do not count.
  public func hasSameValues(as other: RowPointer, _ layout: RowLayout) -> Bool {
    !layout.kinds.indices.contains { differs(from: other, $0, layout.kinds[$0]) }
  }

  /// Whether two rows of a layout hold the same values in all slots but some; keys and versions do not count.
  public func hasSameValues(as other: RowPointer, _ layout: RowLayout, butFor slots: [Int]) -> Bool {
    !layout.kinds.indices.contains { differs(from: other, $0, layout.kinds[$0]) && !slots.contains($0) }
  }

  /// Whether a slot holds another value than that of another row of the layout; nil differs from every value. Numbers are compared
  /// by their bits, text and bytes byte by byte.
  @inlinable public func differs(from other: RowPointer, _ slot: Int, _ kind: CellKind) -> Bool {
    if isPresent(slot) != other.isPresent(slot) { return true }
    guard isPresent(slot) else { return false }
    guard kind == .bytes else { return integer(slot) != other.integer(slot) }
    return Bytes.order(bytes(slot), other.bytes(slot)) != 0 || isExternal(slot) != other.isExternal(slot)
  }

  /// The text in the slot, as a new `String`.
  @inlinable @inline(__always) public func string(_ slot: Int) -> String {
    let bytes = bytes(slot)
    return String(decoding: bytes, as: UTF8.self)
  }
}
