/// An integer with one meaning. It can't be exchanged with an integer of another meaning.
///
/// It is stored like the plain integer, also in arrays, and encoded as one. Conversions from and to the plain integer are explicit.
public protocol TypedInteger: RawRepresentable, Hashable, Strideable, Sendable, Codable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
where RawValue: FixedWidthInteger & SignedInteger & Sendable, RawValue.Stride == Int, Stride == Int {
  /// Creates the typed integer from a plain one.
  init(rawValue: RawValue)
}

extension TypedInteger {
  /// Creates the typed integer from a plain one.
  @inlinable @inline(__always) public init(_ rawValue: RawValue) { self.init(rawValue: rawValue) }

  /// Creates the typed integer from a literal.
  @inlinable @inline(__always) public init(integerLiteral value: RawValue) { self.init(rawValue: value) }

  /// The integer as text.
  @inlinable public var description: String { String(rawValue) }

  /// Whether two integers are equal.
  @inlinable @inline(__always) public static func == (a: Self, b: Self) -> Bool { a.rawValue == b.rawValue }

  /// Whether an integer is less than another one.
  @inlinable @inline(__always) public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

  /// The number of integers from this one to another one.
  @inlinable @inline(__always) public func distance(to other: Self) -> Int { rawValue.distance(to: other.rawValue) }

  /// The integer at a distance from this one.
  @inlinable @inline(__always) public func advanced(by distance: Int) -> Self { Self(rawValue: rawValue.advanced(by: distance)) }
}
