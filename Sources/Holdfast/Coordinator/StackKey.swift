import HoldfastStore

/// The coordinator's keys, which combine a store's index with the key in the store.
///
/// The *place* of a store is its index among all stores that the coordinator ever had. In contexts, row groups, links and the shared cache,
/// a permanent key is `place << 56 | key in the store`. So objects of different stores have different keys, even in unsaved links between
/// them, and ascending keys give one order over all stores. The first store has place 0, so both of its keys are equal.
enum StackKey {
  /// The keys that a store among several can have.
  static let storeKeys: Range<ObjectKey> = 0..<ObjectKey(1 << 56)
  /// The maximum number of places in a coordinator's lifetime, so that all keys fit in 63 bits.
  static let placeCount = 127

  /// The place of a permanent key's store.
  @inline(__always) static func place(_ key: ObjectKey) -> Int { Int(key.rawValue >> 56) }

  /// The key in the store.
  @inline(__always) static func inStore(_ key: ObjectKey) -> ObjectKey { ObjectKey(key.rawValue & (1 << 56 - 1)) }

  /// The first key of a place.
  static func first(at place: Int) -> ObjectKey { ObjectKey(place << 56) }

  /// All keys of a place.
  static func keys(at place: Int) -> Range<ObjectKey> { first(at: place)..<first(at: place + 1) }
}
