/// The version of a row: 1 in a new row, raised by 1 with each change.
///
/// Version 0 means that the store has no version for the row, for example because another program wrote it. A store that declares
/// ``StoreCapabilities/versions`` compares it like any other version. For other stores, the framework compares the row's values if both
/// the expected and the stored version are 0.
@frozen public struct RowVersion: TypedInteger {
  /// The version as an integer.
  public let rawValue: Int64

  /// Creates a version from an integer.
  @inlinable @inline(__always) public init(rawValue: Int64) { self.rawValue = rawValue }

  /// The version after this one.
  ///
  /// The next number. After the maximum, which only a file edited by hand can contain, the next version is 1. Stores compare versions for
  /// equality; caches treat the greater version as the newer one.
  @inlinable public var next: RowVersion { rawValue == .max ? 1 : RowVersion(rawValue + 1) }
}
