import HoldfastStore

/// Keys of objects, by the names of their entities. Keys that follow each other take no memory.
struct KeysByEntity {
  private var ranges: [String: [ClosedRange<Int64>]] = [:]
  /// The number of ranges of each entity after the last time that overlapping ones were united.
  private var unitedCounts: [String: Int] = [:]
  /// The entities whose ranges may overlap, or not be in order.
  private var unsorted: Set<String> = []

  mutating func insert(_ ids: [ManagedObjectID]) {
    for (name, ids) in Dictionary(grouping: ids, by: \.entityName) {
      unsorted.insert(name)
      ranges[name, default: []] += Self.united(ids.map { $0.key.rawValue...$0.key.rawValue })
      guard let count = ranges[name]?.count, count > 2 * unitedCounts[name, default: 512] else { continue }
      unite(name)
    }
  }

  private mutating func unite(_ name: String) {
    let found = Self.united(ranges.removeValue(forKey: name) ?? [])
    ranges[name] = found
    unitedCounts[name] = max(found.count, 512)
    unsorted.remove(name)
  }

  mutating func contains(_ key: ObjectKey, of name: String) -> Bool {
    if unsorted.contains(name) { unite(name) }
    guard let ranges = ranges[name] else { return false }
    var low = 0, high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].lowerBound <= key.rawValue { low = middle + 1 } else { high = middle }
    }
    return low > 0 && ranges[low - 1].contains(key.rawValue)
  }

  /// Ranges that neither overlap nor follow each other, in ascending order.
  private static func united(_ ranges: [ClosedRange<Int64>]) -> [ClosedRange<Int64>] {
    var united: [ClosedRange<Int64>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = united.last, range.lowerBound - 1 <= last.upperBound {
        united[united.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        united.append(range)
      }
    }
    return united
  }

  /// Calls a closure with the keys of each entity in ascending order, up to 1,000 at a time.
  mutating func forEachBatch(_ body: (_ entityName: String, _ keys: [ObjectKey]) throws -> Void) throws {
    for name in ranges.keys.sorted() {
      unite(name)
      var batch: [ObjectKey] = []
      for key in (ranges[name] ?? []).lazy.joined() {
        batch.append(ObjectKey(key))
        if batch.count < 1_000 { continue }
        try body(name, batch)
        batch.removeAll(keepingCapacity: true)
      }
      if !batch.isEmpty { try body(name, batch) }
    }
  }
}
