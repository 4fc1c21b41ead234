import HoldfastStore

/// The keys by which the targets of one source stand in an ordered relationship.
struct OrderedTargets: KeyMapElement {
  /// Ascending.
  var targets: [Int64] = []
  /// The key of each target.
  var keys: [Int64] = []

  static var none: OrderedTargets { OrderedTargets() }
  var isNone: Bool { targets.isEmpty }

  /// The key of a target; the largest there is for one that has none.
  func key(of target: Int64) -> Int64 {
    var (low, high) = (0, targets.count)
    while low < high {
      let middle = (low + high) / 2
      if targets[middle] < target { low = middle + 1 } else { high = middle }
    }
    return low < targets.count && targets[low] == target ? keys[low] : .max
  }
}

/// The order of the targets of one relationship, by source. Copies share what they do not change.
struct OrderIndex: Sendable {
  /// Often few objects of a family have a list.
  private var sources = KeyMap<OrderedTargets>(shift: 6, spread: 16)

  /// The keys of some targets of a source.
  func keys(of targets: some Sequence<Int64>, source: Int64) -> [Int64] {
    let known = sources[source]
    return targets.map { known.key(of: $0) }
  }

  /// Whether the keys of sources in a range are known to be those of another index, of which this one is a changed copy.
  func hasSameKeys(as other: OrderIndex, sources keys: ClosedRange<Int64>) -> Bool {
    sources.shares(keys, with: other.sources, allowsSparse: true)
  }

  /// Gives targets of a source new keys, and forgets those that are no targets any more.
  ///
  /// - Parameters:
  ///   - targets: all that there are, ascending.
  ///   - links, new: links of the source, ascending, and their keys.
  mutating func set(_ source: Int64, targets: [Int64], _ links: ArraySlice<SaveRequest.Link>, _ new: ArraySlice<Int64>) {
    let known = sources[source]
    var next = OrderedTargets()
    var place = links.startIndex
    for target in targets {
      while place < links.endIndex, links[place].target < target { place += 1 }
      let isNew = place < links.endIndex && links[place].target == target
      let key = isNew ? new[place] : known.key(of: target)
      if key == .max { continue }
      next.targets.append(target)
      next.keys.append(key)
    }
    sources.set(source, next)
  }
}
