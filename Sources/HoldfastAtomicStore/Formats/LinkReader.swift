/// Reads the links of one to-many relationship of a ``TableGeneration``, object by object.
///
/// Made once for a file that is written and asked for objects in the order of their keys: it keeps a copy of what the index has of
/// the 256 keys around the last one, so that most answers are two loads away.
public final class LinkReader {
  private let adjacency: AdjacencyIndex
  private let order: OrderIndex?
  /// The page of the index that is copied; -1 for none.
  @usableFromInline @exclusivity(unchecked) var page: Int64 = -1
  /// Where the targets of each of its keys begin, and where those of the last end.
  @usableFromInline let starts: UnsafeMutablePointer<UInt32>
  @usableFromInline @exclusivity(unchecked) var targets: UnsafeMutablePointer<Int64>
  @exclusivity(unchecked) private var capacity = 1024

  init(adjacency: AdjacencyIndex, order: OrderIndex?) {
    self.adjacency = adjacency
    self.order = order
    starts = .allocate(capacity: 257)
    starts.initialize(repeating: 0, count: 257)
    targets = .allocate(capacity: capacity)
  }

  deinit {
    starts.deallocate()
    targets.deallocate()
  }

  /// The targets of one object, ascending. Valid until the next call.
  @inlinable @inline(__always) public func targets(of key: Int64) -> UnsafeBufferPointer<Int64> {
    if key >> 8 != page { copy(page: key >> 8) }
    let low = Int(key & 255)
    let (start, end) = (Int(starts[low]), Int(starts[low + 1]))
    return UnsafeBufferPointer(start: targets + start, count: end - start)
  }

  @usableFromInline func copy(page number: Int64) {
    page = number
    adjacency.withPage(number) { reader in
      guard let reader else { return starts.update(repeating: 0, count: 257) }
      let all = reader.all
      if all.count > capacity {
        targets.deallocate()
        capacity = 2 * all.count
        targets = .allocate(capacity: capacity)
      }
      if let source = all.baseAddress { targets.update(from: source, count: all.count) }
      var entry = 0
      for low in 0..<256 {
        starts[low] = UInt32(truncatingIfNeeded: reader.start(rank: entry))
        if reader.hasEntry(low) { entry += 1 }
      }
      starts[256] = UInt32(truncatingIfNeeded: all.count)
    }
  }

  /// The targets of one object in their order, with the key by which each stands; ascending for an unordered relationship. A
  /// target without a key stands last, with the largest key there is.
  public func orderedTargets(of key: Int64) -> [(target: Int64, order: Int64)] {
    let targets = targets(of: key)
    if targets.isEmpty { return [] }
    guard let order else { return targets.map { (target: $0, order: .max) } }
    return zip(targets, order.keys(of: targets, source: key)).map { (target: $0.0, order: $0.1) }
      .sorted { $0.order != $1.order ? $0.order < $1.order : $0.target < $1.target }
  }
}
