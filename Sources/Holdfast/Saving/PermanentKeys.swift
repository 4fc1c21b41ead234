import HoldfastStore

/// The permanent keys of new objects.
final class PermanentKeys {
  /// Temporary keys that follow each other, with small gaps. They descend in the order of insertion.
  private struct Run {
    let first: ObjectKey
    /// The number of keys, with those in the gaps.
    var count: Int
    /// The index in ``keys`` of the first one's permanent key.
    let start: Int
  }

  /// The maximum difference of two keys in a run.
  private static let maximumGap = 1 << 10

  /// The permanent keys of each run's temporary keys, and -1 in the gaps.
  @exclusivity(unchecked) private var keys: ContiguousArray<ObjectKey> = []
  /// The first run: the permanent key of temporary key *k* is at index `first - k`.
  @exclusivity(unchecked) private var first: ObjectKey = 0
  @exclusivity(unchecked) private var firstCount = 0
  /// The other runs, by descending keys. A context with many new objects has some if other contexts had new objects meanwhile.
  @exclusivity(unchecked) private var otherRuns: ContiguousArray<Run> = []

  /// The permanent keys of new objects that were deleted before they were saved, by root entity.
  @exclusivity(unchecked) private var discarded: [EntityIndex: Set<ObjectKey>] = [:]

  /// The number of temporary keys that have an entry, with those in the gaps.
  var entryCount: Int { keys.count }
  var isEmpty: Bool { entryCount == 0 }

  /// Whether any object with a permanent key isn't saved.
  var hasDiscarded: Bool { !discarded.isEmpty }

  /// Records that the object with a permanent key isn't saved.
  func discard(_ key: ObjectKey, root: EntityIndex) { discarded[root, default: []].insert(key) }

  /// Whether a permanent key is of an object that isn't saved.
  func isDiscarded(_ key: ObjectKey, root: EntityIndex) -> Bool { discarded[root]?.contains(key) ?? false }

  /// Reserves entries for the temporary keys of new objects, which are in the order of insertion.
  func reserve(for objects: ContiguousArray<ManagedObject>) {
    (firstCount, otherRuns) = (0, [])
    var count = 0, last: ObjectKey = 0
    objects[...].forEachUnretained { object in
      let key = object.objectKey
      if key >= 0 { return }
      let distance = key.distance(to: last)
      last = key
      if firstCount == 0 {
        (first, firstCount, count) = (key, 1, 1)
      } else if distance > PermanentKeys.maximumGap {
        otherRuns.append(Run(first: key, count: 1, start: count))
        count += 1
      } else {
        if otherRuns.isEmpty { firstCount += distance } else { otherRuns[otherRuns.count - 1].count += distance }
        count += distance
      }
    }
    keys = ContiguousArray(repeating: -1, count: count)
  }

  func set(_ key: ObjectKey, for temporary: ObjectKey) {
    guard let place = place(of: temporary) else { preconditionFailure("A new object has no entry for its permanent key.") }
    keys[place] = key
  }

  /// The key of an object after the save; -1 for an object that isn't saved.
  @inline(__always) func permanent(_ key: ObjectKey) -> ObjectKey {
    if key >= 0 { return key }
    return place(of: key).map { keys[$0] } ?? -1
  }

  /// The index of a temporary key's entry; nil if it has none.
  @inline(__always) private func place(of key: ObjectKey) -> Int? {
    // A faulty store may return any key. The subtraction then wraps to an index that is out of range.
    let place = Int(first.rawValue &- key.rawValue)
    if place >= 0 && place < firstCount { return place }
    return otherRuns.isEmpty ? nil : placeInOtherRuns(of: key)
  }

  private func placeInOtherRuns(of key: ObjectKey) -> Int? {
    // The number of runs that begin before the key or with it.
    var low = 0, high = otherRuns.count
    while low < high {
      let middle = (low + high) / 2
      if otherRuns[middle].first >= key { low = middle + 1 } else { high = middle }
    }
    if low == 0 { return nil }
    let run = otherRuns[low - 1], offset = Int(run.first.rawValue &- key.rawValue)
    return offset >= 0 && offset < run.count ? run.start + offset : nil
  }
}
