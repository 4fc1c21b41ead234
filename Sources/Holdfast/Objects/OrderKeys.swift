import HoldfastStore

/// Assigns order keys to the entries of an ordered relationship.
enum OrderKeys {
  typealias Entry = OrderedChunk.Entry

  /// Represents a missing order key.
  static let unset = Int64.max

  /// The first order key of a list, and the step between appended keys, as in Core Data's files.
  private static let first: Int64 = 2048, step: Int64 = 1024

  /// Assigns an order key to every entry without one, between its neighbours', or new ones to all entries if there is no gap.
  ///
  /// - Returns: The keys with a new order key.
  @discardableResult static func assign(to all: inout [Entry]) -> [(key: ObjectKey, order: Int64)] {
    dropUnordered(&all)
    var changed: [(key: ObjectKey, order: Int64)] = []
    var start = 0
    while start < all.count {
      guard all[start].order == unset else {
        start += 1
        continue
      }
      let end = all[start...].firstIndex { $0.order != unset } ?? all.count
      let (after, before) = (start == 0 ? nil : all[start - 1].order, end == all.count ? nil : all[end].order)
      guard let orders = OrderKeys.orders(end - start, after: after, before: before) else { return renumber(&all) }
      for (place, order) in zip(start..<end, orders) {
        all[place].order = order
        changed.append((all[place].key, order))
      }
      start = end
    }
    return changed
  }

  /// Order keys of files from other programs may repeat.
  private static func dropUnordered(_ all: inout [Entry]) {
    var before: Int64?
    for place in all.indices where all[place].order != unset {
      if let before, all[place].order <= before { all[place].order = unset } else { before = all[place].order }
    }
  }

  /// Order keys between two others; nil if there is no gap.
  private static func orders(_ count: Int, after: Int64?, before: Int64?) -> [Int64]? {
    let count = Int64(count)
    switch (after, before) {
    case (nil, nil): return (0..<count).map { first + $0 * step }
    case (let after?, nil): return after > Int64.max / 2 ? nil : (1...count).map { after + $0 * step }
    case (nil, let before?): return before < Int64.min / 2 ? nil : (0..<count).map { before - (count - $0) * step }
    case (let after?, let before?):
      let (gap, overflow) = before.subtractingReportingOverflow(after)
      if overflow || gap <= count { return nil }
      return (1...count).map { after + gap / (count + 1) * $0 }
    }
  }

  private static func renumber(_ all: inout [Entry]) -> [(key: ObjectKey, order: Int64)] {
    for place in all.indices { all[place].order = first + Int64(place) * step }
    return all.map { ($0.key, $0.order) }
  }

  /// The places of a longest ascending sequence of order keys, from last to first. Without those that are unset.
  static func longestAscent(_ orders: [Int64]) -> [Int] {
    // For each length, the place where the sequence with the smallest last key ends. For each place, the one before it in its sequence.
    var ends: [Int] = [], before = [Int](repeating: -1, count: orders.count)
    for (place, order) in orders.enumerated() where order != unset {
      var (low, high) = (0, ends.count)
      // Most keys continue the longest sequence.
      if let last = ends.last, orders[last] < order { low = high }
      while low < high {
        let middle = (low + high) / 2
        if orders[ends[middle]] < order { low = middle + 1 } else { high = middle }
      }
      if low > 0 { before[place] = ends[low - 1] }
      if low < ends.count { ends[low] = place } else { ends.append(place) }
    }
    return sequence(first: ends.last ?? -1) { before[$0] }.prefix { $0 >= 0 }
  }
}
