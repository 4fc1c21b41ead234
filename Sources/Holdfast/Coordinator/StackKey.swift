/// The coordinator's keys, which combine a store's index with the key in the store.
///
/// The *place* of a store is its index among all stores that the coordinator ever had. In contexts, row groups, links and the shared cache, a
/// permanent key is `place << 56 | key in the store`. So objects of different stores have different keys, even in unsaved links between
/// them, and ascending keys give one order over all stores. The first store has place 0, so both of its keys are equal.
enum StackKey {
  /// The keys that a store among several can have.
  static let storeKeys: Range<Int64> = 0..<1 << 56
  /// The maximum number of places in a coordinator's lifetime, so that all keys fit in 63 bits.
  static let placeCount = 127

  /// The place of a permanent key's store.
  @inline(__always) static func place(_ key: Int64) -> Int { Int(key >> 56) }

  /// The key in the store.
  @inline(__always) static func inStore(_ key: Int64) -> Int64 { key & (storeKeys.upperBound - 1) }

  /// The first key of a place.
  static func first(at place: Int) -> Int64 { Int64(place) << 56 }

  /// All keys of a place.
  static func keys(at place: Int) -> Range<Int64> { first(at: place)..<first(at: place) + storeKeys.upperBound }
}
