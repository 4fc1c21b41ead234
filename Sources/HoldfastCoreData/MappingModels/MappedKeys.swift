import HoldfastStore

/// The keys of the objects that a mapping inserted, by those of the old objects. Where both follow each other, they take no memory.
struct MappedKeys {
  /// Keys that follow each other on both sides.
  private struct Run {
    let old: Int64
    let new: Int64
    var count: Int64
  }

  private var runs: [Run] = []

  /// Adds a pair. The old key is greater than those before.
  mutating func append(_ old: ObjectKey, _ new: ObjectKey) {
    if let last = runs.last, old.rawValue - last.old == last.count, new.rawValue - last.new == last.count {
      runs[runs.count - 1].count += 1
    } else {
      runs.append(Run(old: old.rawValue, new: new.rawValue, count: 1))
    }
  }

  /// The new key; nil if the mapping inserted nothing for the old object.
  subscript(old: ObjectKey) -> ObjectKey? {
    var low = 0, high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].old <= old.rawValue { low = middle + 1 } else { high = middle }
    }
    guard low > 0, old.rawValue - runs[low - 1].old < runs[low - 1].count else { return nil }
    return ObjectKey(runs[low - 1].new + old.rawValue - runs[low - 1].old)
  }
}
