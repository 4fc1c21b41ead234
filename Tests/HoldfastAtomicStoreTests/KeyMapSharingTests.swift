import Testing

@testable import HoldfastAtomicStore

/// What a map says of a copy: which keys have the same values for certain.
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
    // A map that has never had such a key, and one that has got its first.
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
}
