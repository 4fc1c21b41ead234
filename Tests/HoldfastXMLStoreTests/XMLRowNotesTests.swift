import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastXMLStore

/// The versions of objects, which Core Data's layout doesn't have.
@Suite struct XMLRowNotesTests {
  /// Notes of versions, in any order.
  private func notes(_ versions: [(key: Int64, version: UInt64)]) -> XMLRowNotes? {
    var bytes: [UInt8] = [], last: Int64 = 0
    func put(_ number: UInt64) {
      var rest = number
      while rest > 127 {
        bytes.append(UInt8(rest & 127) | 128)
        rest >>= 7
      }
      bytes.append(UInt8(rest))
    }
    put(UInt64(versions.count))
    for (key, version) in versions {
      let step = key &- last
      put(UInt64(bitPattern: step << 1 ^ step >> 63))
      put(version)
      last = key
    }
    put(0)
    return XMLRowNotes(bytes)
  }

  @Test func eachObjectHasItsVersionInAnyOrderOfQueries() throws {
    var random = SeededGenerator()
    for _ in 0..<200 {
      let range = Int64.random(in: 1...120, using: &random), versions = UInt64.random(in: 1...3, using: &random)
      var expected: [Int64: UInt64] = [:]
      for key in 1...range where Int.random(in: 0..<4, using: &random) > 0 {
        expected[key] = 1 + UInt64.random(in: 1...versions, using: &random)
      }
      // Each entity's objects ascend.
      let isOdd = { (key: Int64) in key % 2 == 1 }, isMixed = Bool.random(using: &random)
      let keys = expected.keys.sorted(), order = isMixed ? keys.filter(isOdd) + keys.filter { !isOdd($0) } : keys
      var found = try #require(notes(order.map { ($0, expected[$0] ?? 1) }), "seed \(random.seed)")
      for key in Array(0...range + 1) + (0..<100).map({ _ in Int64.random(in: 0...range + 1, using: &random) }) {
        let version = found.version(of: ObjectKey(key))
        #expect(version.rawValue == Int64(expected[key] ?? 1), "seed \(random.seed), key \(key) of \(order)")
      }
    }
  }

  @Test func anObjectWithTwoVersionsIsRefused() {
    #expect(notes([(1, 2), (1, 2)]) == nil)
    #expect(notes([(1, 2), (2, 2), (3, 2), (2, 5)]) == nil)
    #expect(notes([(5, 2), (6, 2), (4, 2), (5, 2)]) == nil)
    #expect(notes([(.max, 2), (.min, 2)]) != nil)
  }
}
