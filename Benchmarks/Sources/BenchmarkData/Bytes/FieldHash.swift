/// A 64-bit hash of an object's fields that is the same in every process and for every store.
///
/// Equal fields in the same order produce the same value. Strings are hashed by their UTF-8 bytes, and nil differs from the empty
/// string. The hash detects wrong answers of a store; it isn't collision-resistant.
public struct FieldHash {
  private var state: UInt64

  /// Creates a hash. Objects of different kinds use different seeds.
  public init(seed: UInt64 = 0) { state = seed &+ 0x9E37_79B9_7F4A_7C15 }

  /// The hash of a string.
  public static func of(_ text: String) -> UInt64 {
    var hash = FieldHash()
    hash.combine(text)
    return hash.value
  }

  /// The hash of everything combined so far.
  public var value: UInt64 { splitMix64(state) }

  /// Adds a number.
  public mutating func combine(_ number: UInt64) {
    state = ((state << 5 | state >> 59) ^ number) &* 0x517C_C1B7_2722_0A95
  }

  /// Adds an optional number.
  public mutating func combine(_ number: Int64?) {
    combine(number == nil ? 0 : 1 as UInt64)
    if let number { combine(UInt64(bitPattern: number)) }
  }

  /// Adds a string.
  public mutating func combine(_ text: String) {
    var text = text
    text.withUTF8 { combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Adds an optional string.
  public mutating func combine(_ text: String?) {
    combine(text == nil ? 0 : 1 as UInt64)
    if let text { combine(text) }
  }

  /// Adds the UTF-8 bytes of a string. The result is the same as for the string.
  public mutating func combine(bytes: UnsafeRawBufferPointer) {
    combine(UInt64(bytes.count))
    var at = 0
    while at + 8 <= bytes.count {
      combine(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)))
      at += 8
    }
    if at < bytes.count {
      var rest: UInt64 = 0
      for index in stride(from: bytes.count - 1, through: at, by: -1) { rest = rest << 8 | UInt64(bytes[index]) }
      combine(rest)
    }
  }
}

/// The output function of splitmix64. Every output bit depends on every input bit.
@inlinable func splitMix64(_ seed: UInt64) -> UInt64 {
  var x = seed &+ 0x9E37_79B9_7F4A_7C15
  x = (x ^ (x >> 30)) &* 0xBF58_476D_1CE4_E5B9
  x = (x ^ (x >> 27)) &* 0x94D0_49BB_1331_11EB
  return x ^ (x >> 31)
}
