public import HoldfastStore

/// Reads the links of one to-many relationship of a ``TableGeneration``, object by object.
///
/// Use one reader for each file that is written, and read objects in ascending order of their keys. The reader keeps a copy of the
/// destinations of 256 consecutive keys, so that most calls read only two values from memory.
public final class LinkReader {
  private let adjacency: AdjacencyIndex
  private let order: OrderIndex?
  /// The number of the copied chunk of the index; -1 if there is none.
  @usableFromInline @exclusivity(unchecked) var chunk: Int64 = -1
  /// The start offset of each key's destinations, and the end offset of the last key's.
  @usableFromInline let starts: UnsafeMutablePointer<UInt32>
  @usableFromInline @exclusivity(unchecked) var targets: UnsafeMutablePointer<ObjectKey>
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

  /// The destination keys of one object, ascending. Valid until the next call.
  @inlinable @inline(__always) public func targets(of key: ObjectKey) -> UnsafeBufferPointer<ObjectKey> {
    if key.rawValue >> 8 != chunk { copy(chunk: key.rawValue >> 8) }
    let low = Int(key.rawValue & 255)
    let (start, end) = (Int(starts[low]), Int(starts[low + 1]))
    return UnsafeBufferPointer(start: targets + start, count: end - start)
  }

  @usableFromInline func copy(chunk number: Int64) {
    chunk = number
    adjacency.withChunk(number) { reader in
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

  /// The destinations of one object with their order keys, sorted by order key.
  ///
  /// Destinations of an unordered relationship ascend. A destination without an order key is last, with the key `Int64.max`.
  public func orderedTargets(of key: ObjectKey) -> [(target: ObjectKey, order: Int64)] {
    let targets = targets(of: key)
    if targets.isEmpty { return [] }
    guard let order else { return targets.map { (target: $0, order: .max) } }
    return zip(targets, order.keys(of: targets, source: key)).map { (target: $0.0, order: $0.1) }
      .sorted { $0.order != $1.order ? $0.order < $1.order : $0.target < $1.target }
  }
}
