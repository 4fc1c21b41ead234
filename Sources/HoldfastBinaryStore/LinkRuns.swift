import HoldfastAtomicStore
import HoldfastStore

/// The links of a section, decoded: the destinations of each owner, in flat arrays.
struct LinkRuns: Sendable {
  /// The owners, ascending.
  private var owners: [Int64] = []
  /// The position of each owner's first destination.
  private var starts: [Int32] = []
  /// The destinations of the first owner in ascending order, then those of the next owner, and so on.
  private(set) var targets: [ObjectKey] = []
  /// The order key of each destination; nil for an unordered relationship.
  private(set) var orderKeys: [Int64]?

  /// Creates a section without links.
  init() {}

  /// Creates the links of a section whose sources and targets ascend.
  init(_ links: [SaveRequest.Link]) {
    reserve(linkCount: links.count)
    for link in links {
      if owners.last != link.source.rawValue { begin(link.source) }
      append(link.target)
    }
  }

  /// Creates the links of a section of lists, given the order key of each link. Sources ascend, targets are in their order.
  init(lists links: [SaveRequest.Link], _ keys: [Int64]) throws(SectionFault) {
    let places = links.indices.sorted { links[$0] < links[$1] }
    for (place, next) in zip(places, places.dropFirst()) where links[place] == links[next] {
      throw SectionFault("A list contains an object twice.")
    }
    self.init(places.map { links[$0] })
    orderKeys = places.map { keys[$0] }
  }

  /// The number of owners.
  var ownerCount: Int { owners.count }

  /// The owner at an index, and the positions of its destinations.
  func owner(_ index: Int) -> (key: ObjectKey, range: Range<Int>) {
    (ObjectKey(owners[index]), Int(starts[index])..<(index + 1 < owners.count ? Int(starts[index + 1]) : targets.count))
  }

  mutating func reserve(linkCount: Int) { targets.reserveCapacity(linkCount) }

  /// Adds the next owner, and the position at which its destinations will be.
  @inline(__always) mutating func addOwner(_ owner: ObjectKey, start: Int) {
    owners.append(owner.rawValue)
    starts.append(Int32(truncatingIfNeeded: start))
  }

  /// The position of an owner's first destination.
  func start(_ index: Int) -> Int { Int(starts[index]) }

  /// Adds the destinations of all owners.
  mutating func addTargets(_ targets: [ObjectKey]) { self.targets = targets }

  /// Adds the next owner.
  @inline(__always) mutating func begin(_ owner: ObjectKey) {
    owners.append(owner.rawValue)
    starts.append(Int32(truncatingIfNeeded: targets.count))
  }

  /// Adds the next destination of the last owner.
  @inline(__always) mutating func append(_ target: ObjectKey) { targets.append(target) }

  /// The positions of an owner's destinations; empty if it has none.
  func range(of owner: ObjectKey) -> Range<Int> {
    let place = LinkRuns.place(of: owner.rawValue, in: 0..<owners.count) { owners[$0] }
    return place < owners.count && owners[place] == owner.rawValue ? self.owner(place).range : 0..<0
  }

  /// Whether an owner has a destination.
  func contains(_ owner: ObjectKey, _ target: ObjectKey) -> Bool {
    let range = range(of: owner), place = LinkRuns.place(of: target.rawValue, in: range) { targets[$0].rawValue }
    return place < range.upperBound && targets[place] == target
  }

  /// The first index in an ascending range whose key is at least `key`; the range's end if there is none.
  @inline(__always) private static func place(of key: Int64, in range: Range<Int>, _ keyAt: (Int) -> Int64) -> Int {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if keyAt(middle) < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
