import HoldfastAtomicStore
import HoldfastStore

extension InverseSections {
  /// Collects links in ascending order, and encodes them as sections.
  final class Writer {
    /// The owners, and the numbers of their destinations.
    private let owners = UnsafeMutablePointer<Int64>.allocate(capacity: usualCount)
    private let counts = UnsafeMutablePointer<UInt64>.allocate(capacity: usualCount)
    @exclusivity(unchecked) private var ownerCount = 0
    /// The distances of all destinations, minus 1.
    @exclusivity(unchecked) private var distances = UnsafeMutablePointer<UInt64>.allocate(capacity: usualCount)
    @exclusivity(unchecked) private var capacity = usualCount
    /// The number of links.
    @exclusivity(unchecked) private(set) var count = 0
    private let bits = BitWriter()

    deinit {
      owners.deallocate()
      counts.deallocate()
      distances.deallocate()
    }

    var first: Int64 { owners[0] }
    var last: Int64 { owners[ownerCount - 1] }

    /// Whether no more owners can be added.
    var isFull: Bool { ownerCount + count >= usualCount }

    func removeAll() { (ownerCount, count) = (0, 0) }

    // MARK: Adding

    /// Adds owners from a position of a block on, until the section is full. Skips owners without destinations.
    ///
    /// - Returns: The position of the first owner that wasn't added.
    func add(_ block: LinkBlock, from position: Int) -> Int {
      var end = position, last = 0
      while end < block.owners.count, ownerCount + count + last < usualCount {
        let size = Int(block.starts[end + 1] &- block.starts[end])
        owners[ownerCount] = block.owners[end].rawValue
        counts[ownerCount] = UInt64(truncatingIfNeeded: size)
        if size > 0 {
          ownerCount += 1
          last += size
        }
        end += 1
      }
      addTargets(block, position..<end)
      return end
    }

    private func addTargets(_ block: LinkBlock, _ range: Range<Int>) {
      let start = Int(block.starts[range.lowerBound]), end = Int(block.starts[range.upperBound])
      if start == end { return }
      if count + end - start > capacity { grow(count + end - start) }
      let next = distances + count, targets = UnsafeBufferPointer(rebasing: block.targets[start..<end])
      next[0] = UInt64(bitPattern: targets[0].rawValue &- 1)
      for index in 1..<targets.count { next[index] = UInt64(bitPattern: targets[index].rawValue &- targets[index &- 1].rawValue &- 1) }
      // The first destination of each owner is the distance from 0.
      for owner in range where block.starts[owner] < block.starts[owner &+ 1] {
        let place = Int(block.starts[owner]) &- start
        next[place] = UInt64(bitPattern: targets[place].rawValue &- 1)
      }
      count += targets.count
    }

    private func grow(_ needed: Int) {
      let grown = UnsafeMutablePointer<UInt64>.allocate(capacity: 2 * needed)
      grown.update(from: distances, count: count)
      distances.deallocate()
      (distances, capacity) = (grown, 2 * needed)
    }

    // MARK: Encoding

    /// The section. Valid until the next call.
    func encode() -> UnsafeRawBufferPointer {
      let low = parameters
      var place = bits.place(atMost: 2 * ownerCount + count + headerByteCount)
      for parameter in [low.owner, low.count, low.target] { place.put(UInt64(parameter), 8) }
      putOwners(low, &place)
      putTargets(low, &place)
      return bits.end(place)
    }

    /// The parameters with which the section is about the shortest.
    private var parameters: Parameters {
      let distances = UnsafeBufferPointer(start: distances, count: count)
      return Parameters(
        owner: BitWriter.parameter(sum: Double(last - first) - Double(ownerCount - 1), count: ownerCount - 1),
        count: BitWriter.parameter(sum: Double(count - ownerCount), count: ownerCount),
        target: max(BitWriter.parameter(sum: Writer.sum(distances), count: count), leastTargetLow))
    }

    @inline(__always) private func putOwners(_ low: Parameters, _ place: inout BitWriter.Place) {
      let owners = owners, counts = counts
      place.put(number: counts[0] - 1, low.count)
      for index in 1..<max(ownerCount, 1) {
        place.put(numbers: UInt64(bitPattern: owners[index] &- owners[index &- 1] &- 1), low.owner, counts[index] &- 1, low.count)
      }
    }

    @inline(__always) private func putTargets(_ low: Parameters, _ place: inout BitWriter.Place) {
      let distances = UnsafeBufferPointer(start: distances, count: count)
      for index in stride(from: 0, to: count & ~1, by: 2) {
        place.put(numbers: distances[index], low.target, distances[index &+ 1], low.target)
      }
      if count & 1 == 1 { place.put(number: distances[count - 1], low.target) }
    }

    private static func sum(_ numbers: UnsafeBufferPointer<UInt64>) -> Double {
      // In two parts, because the sum of 62-bit numbers can overflow.
      var (low, high): (UInt64, UInt64) = (0, 0)
      for number in numbers { (low, high) = (low &+ (number & 0xFFFF_FFFF), high &+ (number >> 32)) }
      return Double(low) + Double(high) * 0x1p32
    }
  }
}
