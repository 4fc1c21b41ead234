import HoldfastStore

/// Tells whether two lists of links hold the same links, in whatever order each names them, and names one that only one of them has.
///
/// It takes 8 KiB however many links there are. Links are spread over cells, in each of which those of both lists cancel each other
/// out; what is left of a single link that only one list has is that link itself.
public struct LinkDigest: Sendable {
  private struct Cell {
    var count = 0
    var sources: Int64 = 0
    var targets: Int64 = 0
    var hashes: UInt64 = 0
  }

  private var cells = Array(repeating: Cell(), count: 256)

  /// Begins with two lists without links.
  public init() {}

  private static func hash(_ source: Int64, _ target: Int64) -> UInt64 {
    Hashing.fold(
      Hashing.fold(UInt64(bitPattern: source) ^ Hashing.seed, Hashing.multiplier) ^ UInt64(bitPattern: target), Hashing.multiplier)
  }

  /// Takes a link of the first list.
  public mutating func add(source: Int64, target: Int64) { count(source, target, 1) }

  /// Takes a link of the second list.
  public mutating func subtract(source: Int64, target: Int64) { count(source, target, -1) }

  @inline(__always) private mutating func count(_ source: Int64, _ target: Int64, _ sign: Int) {
    let hash = LinkDigest.hash(source, target)
    cells.withUnsafeMutableBufferPointer { cells in
      let place = Int(truncatingIfNeeded: hash >> 56)
      cells[place].count &+= sign
      cells[place].sources &+= sign > 0 ? source : 0 &- source
      cells[place].targets &+= sign > 0 ? target : 0 &- target
      cells[place].hashes &+= sign > 0 ? hash : 0 &- hash
    }
  }

  /// Whether both lists have the same links, each as often.
  public var isEven: Bool { cells.allSatisfy { $0.count == 0 && $0.hashes == 0 && $0.sources == 0 && $0.targets == 0 } }

  /// A link that only one list has, or that it has more often; nil when there is none, or so many that none can be told.
  var odd: SaveRequest.Link? {
    for cell in cells where cell.count.magnitude == 1 {
      let sign = Int64(cell.count)
      let (source, target) = (cell.sources &* sign, cell.targets &* sign)
      if LinkDigest.hash(source, target) == (sign > 0 ? cell.hashes : 0 &- cell.hashes) {
        return SaveRequest.Link(source: source, target: target)
      }
    }
    return nil
  }
}
