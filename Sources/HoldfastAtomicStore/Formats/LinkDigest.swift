public import HoldfastStore

/// Checks whether two lists contain the same links, in any order.
///
/// Takes 8 KiB for any number of links. Links are distributed over cells by hash, and links of both lists cancel each other out. If
/// only one link of a cell is left, the cell's sums identify it.
public struct LinkDigest: Sendable {
  private struct Cell {
    var count = 0
    var sources: Int64 = 0
    var targets: Int64 = 0
    var hashes: UInt64 = 0
  }

  /// Not an `Array`, whose `mutableSpan` needs macOS 26.
  private var cells = ContiguousArray(repeating: Cell(), count: 256)

  /// Creates a digest of two empty lists.
  public init() {}

  private static func hash(_ source: ObjectKey, _ target: ObjectKey) -> UInt64 {
    Hashing.fold(
      Hashing.fold(UInt64(bitPattern: source.rawValue) ^ Hashing.seed, Hashing.multiplier) ^ UInt64(bitPattern: target.rawValue),
      Hashing.multiplier)
  }

  /// Adds a link to the first list.
  public mutating func add(source: ObjectKey, target: ObjectKey) { count(source, target, 1) }

  /// Adds a link to the second list.
  public mutating func subtract(source: ObjectKey, target: ObjectKey) { count(source, target, -1) }

  @inline(__always) private mutating func count(_ source: ObjectKey, _ target: ObjectKey, _ sign: Int) {
    let hash = LinkDigest.hash(source, target)
    let place = Int(truncatingIfNeeded: hash >> 56)
    var cells = cells.mutableSpan
    cells[place].count &+= sign
    cells[place].sources &+= sign > 0 ? source.rawValue : 0 &- source.rawValue
    cells[place].targets &+= sign > 0 ? target.rawValue : 0 &- target.rawValue
    cells[place].hashes &+= sign > 0 ? hash : 0 &- hash
  }

  /// Whether both lists contain the same links, with the same counts.
  public var isEven: Bool { cells.allSatisfy { $0.count == 0 && $0.hashes == 0 && $0.sources == 0 && $0.targets == 0 } }

  /// A link that one list contains more often than the other; nil if the lists match, or if too many links differ to identify one.
  var odd: SaveRequest.Link? {
    for cell in cells where cell.count.magnitude == 1 {
      let sign = Int64(cell.count)
      let (source, target) = (ObjectKey(cell.sources &* sign), ObjectKey(cell.targets &* sign))
      if LinkDigest.hash(source, target) == (sign > 0 ? cell.hashes : 0 &- cell.hashes) {
        return SaveRequest.Link(source: source, target: target)
      }
    }
    return nil
  }
}
