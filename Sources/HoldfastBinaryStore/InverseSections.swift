import HoldfastAtomicStore
import HoldfastStore

/// Sections with links of relationships whose links are stored at the other end: in rows, or as links of the inverse.
///
/// A section begins with three parameters, for the distances of owners, the numbers of destinations and the distances of destinations. Then
/// come the distance from the previous owner and the number of destinations of each owner, then the distances of all destinations. All are
/// at least 1, so 1 is subtracted. The first owner has no distance. See ``BitReader/number(_:)`` for the encoding.
enum InverseSections {
  /// A section ends when it has this many owners and destinations.
  static let usualCount = 1 << 14
  /// The smallest parameter for distances of destinations. It bounds the number of links in a byte.
  static let leastTargetLow = 3
  static let headerByteCount = 3

  /// The parameters of a section, one for each kind of number.
  struct Parameters {
    var owner: Int
    var count: Int
    var target: Int
  }

  /// The number of links that a section of a size can contain.
  static func mostLinks(byteCount: Int) -> Int { 2 * byteCount }

  /// Decodes a section.
  static func runs(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry) throws(SectionFault) -> LinkRuns {
    // The positions of destinations are 32-bit numbers.
    guard entry.count > 0, section.count > headerByteCount, entry.count <= mostLinks(byteCount: section.count),
      entry.count <= Int32.max, let low = parameters(section)
    else { throw SectionFault("It is too short for its links.") }
    var bits = BitReader(section, from: headerByteCount), runs = LinkRuns()
    try readOwners(&bits, low, entry, into: &runs)
    guard readTargets(&bits, low, entry, into: &runs), bits.isAtEnd else {
      throw SectionFault("Its links are malformed, or don't match the directory.")
    }
    return runs
  }

  private static func parameters(_ section: UnsafeRawBufferPointer) -> Parameters? {
    let low = Parameters(owner: Int(section[0]), count: Int(section[1]), target: Int(section[2]))
    let valid = BitWriter.parameters
    return valid.contains(low.owner) && valid.contains(low.count) && valid.contains(low.target) && low.target >= leastTargetLow ? low : nil
  }

  /// Reads the owners, which ascend from `first` to `last`, and where their destinations begin.
  @inline(__always) private static func readOwners(
    _ bits: inout BitReader, _ low: Parameters, _ entry: SectionEntry, into runs: inout LinkRuns
  ) throws(SectionFault) {
    var owner = entry.first, rest = UInt64(entry.count)
    while rest > 0 {
      if runs.ownerCount > 0 {
        guard let distance = bits.number(low.owner), distance < UInt64(bitPattern: entry.last &- owner) else {
          throw SectionFault("Its owners are malformed.")
        }
        owner &+= Int64(bitPattern: distance) &+ 1
      }
      guard let more = bits.number(low.count), more < rest else { throw SectionFault("Its links are malformed.") }
      runs.addOwner(ObjectKey(owner), start: entry.count - Int(rest))
      rest -= more + 1
    }
    if owner != entry.last { throw SectionFault("Its owners don't match the directory.") }
  }

  /// Reads the destinations of all owners. Returns false if they are malformed or truncated.
  @inline(__always) private static func readTargets(
    _ bits: inout BitReader, _ low: Parameters, _ entry: SectionEntry, into runs: inout LinkRuns
  ) -> Bool {
    let most = UInt64(TableLoader.keys.upperBound.rawValue)
    var targets = [ObjectKey](repeating: 0, count: entry.count)
    let isValid = targets.withUnsafeMutableBufferPointer { targets in
      var next = 0
      for index in 0..<runs.ownerCount {
        let end = index + 1 < runs.ownerCount ? runs.start(index + 1) : targets.count
        var target: UInt64 = 0
        while next < end {
          guard let distance = bits.number(low.target), distance < most &- target else { return false }
          target &+= distance &+ 1
          targets[next] = ObjectKey(Int64(bitPattern: target))
          next &+= 1
        }
      }
      return true
    }
    if isValid { runs.addTargets(targets) }
    return isValid
  }
}
