/// Keys as the stack knows them: which store of the coordinator, and the key there.
///
/// Within contexts, row groups, links and the shared cache a permanent key is `place << 56 | key in the store`. So keys of
/// objects of different stores differ, also in the links between such objects that nobody has saved yet, and ascending keys
/// give one order over all stores. The first store has place 0, where both keys are the same number.
enum StackKey {
  /// The keys that a store can have beside others.
  static let storeKeys: Range<Int64> = 0..<1 << 56
  /// The most places that a coordinator has in its life: what is left of 63 bits.
  static let placeCount = 127

  /// The place of a permanent key's store.
  @inline(__always) static func place(_ key: Int64) -> Int { Int(key >> 56) }

  /// The key in the store.
  @inline(__always) static func inStore(_ key: Int64) -> Int64 { key & (storeKeys.upperBound - 1) }

  /// The key with which a place's keys begin.
  static func first(at place: Int) -> Int64 { Int64(place) << 56 }

  /// All keys of a place.
  static func keys(at place: Int) -> Range<Int64> { first(at: place)..<first(at: place) + storeKeys.upperBound }
}
