/// The contents of a file in a test. The test targets aren't optimised and this one is, so bytes are made and compared here.
package enum TestBytes {
  /// Whether two files have the same bytes.
  package static func areEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool { first == second }

  /// Whether two folders have the same files, by name.
  package static func areEqual(_ first: [String: [UInt8]], _ second: [String: [UInt8]]) -> Bool { first == second }

  /// Bytes without a short period, different for each seed.
  package static func pattern(_ seed: Int64, _ count: Int) -> [UInt8] {
    (0..<Int64(count)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed &* 17 &+ $0 >> 8) }
  }
}
