import HoldfastStore

/// The order keys of one owner's destinations in an ordered relationship.
struct OrderedTargets: KeyMapElement {
  /// The destination keys, ascending.
  var targets: [ObjectKey] = []
  /// The order key of each destination.
  var keys: [Int64] = []

  static var none: OrderedTargets { OrderedTargets() }
  var isNone: Bool { targets.isEmpty }

  /// The order key of a destination; `Int64.max` if it has none.
  func key(of target: ObjectKey) -> Int64 {
    var (low, high) = (0, targets.count)
    while low < high {
      let middle = (low + high) / 2
      if targets[middle] < target { low = middle + 1 } else { high = middle }
    }
    return low < targets.count && targets[low] == target ? keys[low] : .max
  }
}

/// The order of the destinations of one relationship, by owner. Copies share unchanged chunks.
struct OrderIndex: Sendable {
  /// Allows a sparser map than usual, because often few owners have a list.
  private var sources = KeyMap<OrderedTargets>(shift: 6, spread: 16)

  /// The order keys of some destinations of an owner.
  func keys(of targets: some Sequence<ObjectKey>, source: ObjectKey) -> [Int64] {
    let known = sources[source.rawValue]
    return targets.map { known.key(of: $0) }
  }

  /// Whether this changed copy of `other` still has the same order keys for the owners in a range. False means only that a key may have
  /// changed.
  func hasSameKeys(as other: OrderIndex, sources keys: ClosedRange<ObjectKey>) -> Bool {
    sources.shares(keys.rawValues, with: other.sources, allowsSparse: true)
  }

  /// Sets new order keys for destinations of an owner, and removes those of objects that are no longer destinations.
  ///
  /// - Parameters:
  ///   - targets: All destinations, ascending.
  ///   - links: Links of the owner, ascending.
  ///   - new: The order key of each of these links.
  mutating func set(_ source: ObjectKey, targets: [ObjectKey], _ links: ArraySlice<SaveRequest.Link>, _ new: ArraySlice<Int64>) {
    let known = sources[source.rawValue]
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
    sources.set(source.rawValue, next)
  }
}
