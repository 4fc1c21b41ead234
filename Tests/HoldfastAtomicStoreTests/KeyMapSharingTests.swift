import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// Which keys of a map certainly have the same values in a copy.
@Suite struct KeyMapSharingTests {
  private static func map(_ keys: some Sequence<Int64>, spread: Int = 2) -> KeyMap<RowLocation> {
    var map = KeyMap<RowLocation>(shift: 4, spread: spread)
    for key in keys { map.set(key, RowLocation(bits: UInt64(key))) }
    return map
  }

  @Test func aChangeIsSaidOfItsNeighboursAlone() {
    let map = Self.map(1...1_000)
    var copy = map
    copy.set(500, RowLocation(bits: 7))
    #expect(copy.shares(1...490, with: map) && copy.shares(520...1_000, with: map) && copy.shares(5_000...6_000, with: map))
    #expect(!copy.shares(500...500, with: map) && !copy.shares(1...1_000, with: map))
  }

  @Test func ofKeysFarBeyondAllOthersNothingIsKnownUnlessItIsAskedFor() {
    let map = Self.map(Array(1...1_000) + [1 << 40])
    var copy = map
    #expect(!copy.shares(1...1_000, with: map) && copy.shares(1...1_000, with: map, allowsSparse: true))
    copy.set(500, RowLocation(bits: 7))
    #expect(copy.shares(600...1 << 41, with: map, allowsSparse: true))
    #expect(!copy.shares(500...500, with: map, allowsSparse: true))
    for change in [1 << 40, 1 << 41] as [Int64] {
      var other = map
      other.set(change, RowLocation(bits: 9))
      #expect(!other.shares(1...10, with: map, allowsSparse: true) && !map.shares(1...10, with: other, allowsSparse: true))
    }
    var without = map
    without.set(1 << 40, .none)
    #expect(!without.shares(1...10, with: map, allowsSparse: true))
    // One map has never had such a key; the other has just received its first.
    let dense = Self.map(1...1_000)
    var first = dense
    first.set(1 << 40, RowLocation(bits: 9))
    #expect(!first.shares(1...10, with: dense, allowsSparse: true))
  }

  @Test(arguments: [2, 16]) func keysWithGapsStayTogetherAsFarAsTheSpreadAllows(spread: Int) {
    let keys = stride(from: 1, to: 200_000, by: 9).map { Int64($0) }
    let map = Self.map(keys, spread: spread), copy = map
    #expect(copy.shares(1...200_000, with: map) == (spread > 9))
    #expect(keys.allSatisfy { map[$0].bits == UInt64($0) } && map.count == keys.count)
  }

  /// Compares pairs of old and new values: keys that aren't reported have the same value in both maps.
  @Test func everyKeyWithOtherValuesIsReportedWithBoth() {
    let step = TestTier.step(4)
    for round in stride(from: Int.random(in: 0..<step), to: 200, by: step) {
      var random = SeededGenerator(seed: UInt64(round))
      let far: [Int64] = round % 3 == 0 ? [1 << 40, 1 << 41] : []
      let old = Self.map((1...Int64.random(in: 1...600, using: &random)).filter { _ in Int.random(in: 0..<5, using: &random) > 0 } + far)
      var new = old
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        let key = Int.random(in: 0..<9, using: &random) == 0 ? 1 << 40 : Int64.random(in: 1...900, using: &random)
        new.set(key, Bool.random(using: &random) ? .none : RowLocation(bits: UInt64.random(in: 1...5_000, using: &random)))
      }
      let low = Int64.random(in: 1...700, using: &random), keys = low...(round % 2 == 0 ? .max >> 2 : low + 200)
      var told: [[UInt64]] = []
      new.forEachPair(in: keys, with: old) { told.append([$0.bits, $1.bits]) }
      let all = (Array(1...1_000) + [1 << 40, 1 << 41]).filter(keys.contains)
      let changed = all.filter { old[$0].bits != new[$0].bits }.map { [old[$0].bits, new[$0].bits] }
      let present = all.map { [old[$0].bits, new[$0].bits] }
      func count(_ pairs: [[UInt64]]) -> [[UInt64]: Int] { pairs.reduce(into: [:]) { $0[$1, default: 0] += 1 } }
      let (tells, needs, may) = (count(told), count(changed), count(present))
      #expect(needs.allSatisfy { tells[$0.key] == $0.value }, "round \(round)")
      #expect(tells.allSatisfy { $0.key == [0, 0] || $0.value <= may[$0.key] ?? 0 }, "round \(round)")
    }
  }
}
