public import HoldfastStore

/// The number of a to-many relationship among those of its entity.
@frozen public struct ToManyIndex: TypedInteger {
  /// The number, from 0 on.
  public let rawValue: Int

  /// Creates an index from an integer.
  @inlinable @inline(__always) public init(rawValue: Int) { self.rawValue = rawValue }
}

/// Indexes of `self[property:]` for properties that aren't in the row, or aren't read as they are stored.
///
/// They have no literals, so that the literal in `self[property: 0]` is a slot.
extension ManagedObject {
  /// The number of a transient attribute among those of its entity.
  @frozen public struct TransientIndex: Sendable, Hashable {
    /// The number, from 0 on.
    public let rawValue: Int

    /// Creates an index from an integer.
    @inlinable @inline(__always) public init(_ rawValue: Int) { self.rawValue = rawValue }
  }

  /// The number of a transient relationship among those of its entity.
  @frozen public struct TransientLinkIndex: Sendable, Hashable {
    /// The number, from 0 on.
    public let rawValue: Int

    /// Creates an index from an integer.
    @inlinable @inline(__always) public init(_ rawValue: Int) { self.rawValue = rawValue }
  }

  /// The slot of a transformable attribute whose values are read and written, not its bytes.
  @frozen public struct TransformableSlot: Sendable, Hashable {
    /// The slot in the row.
    public let slot: SlotIndex

    /// Selects the values of a slot.
    @inlinable @inline(__always) public init(_ slot: SlotIndex) { self.slot = slot }
  }
}
