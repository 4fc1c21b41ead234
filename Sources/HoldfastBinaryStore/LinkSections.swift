import HoldfastAtomicStore
import HoldfastStore

/// Sections with links. For each source: the difference from the previous source, the number of targets, and the targets.
///
/// All numbers have a variable length (``VaryingWriter``).
enum LinkSections {
  /// Encodes sources in ascending order.
  struct Writer {
    private let numbers = VaryingWriter()
    var bytes: UnsafeRawBufferPointer { numbers.bytes }
    private(set) var first: Int64 = 0
    private(set) var last: Int64 = 0
    private(set) var count = 0

    /// Adds the next source and its targets, ascending. There must be at least one target.
    mutating func add(_ source: ObjectKey, _ targets: UnsafeBufferPointer<ObjectKey>) {
      let source = source.rawValue
      if count == 0 { first = source }
      let distance = UInt64(bitPattern: source &- (count == 0 ? first : last))
      var place = numbers.place(atMost: targets.count + 2), before: Int64 = 0
      place.put(distance)
      place.put(UInt64(targets.count))
      for target in targets {
        place.put(UInt64(bitPattern: target.rawValue &- before))
        before = target.rawValue
      }
      numbers.end(place)
      last = source
      count += targets.count
    }

    mutating func removeAll() {
      numbers.removeAll()
      count = 0
    }
  }

  static func read(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry, into links: inout [SaveRequest.Link]) throws(SectionFault) {
    var reader = ByteReader(section)
    guard entry.count <= section.count, entry.count > 0 else { throw SectionFault("It is too short for its links.") }
    var source = entry.first, rest = entry.count, isFirst = true
    while rest > 0 {
      guard let distance = reader.varying(), let count = reader.varying(), var target = reader.varying(), count > 0, count <= UInt64(rest),
        (distance == 0) == isFirst, distance <= UInt64(bitPattern: entry.last &- source)
      else { throw SectionFault("Its links are malformed.") }
      source &+= Int64(bitPattern: distance)
      isFirst = false
      rest -= Int(count)
      try append(source, target, to: &links)
      for _ in 1..<count {
        guard let distance = reader.varying(), distance > 0, distance < 1 << 62 else { throw SectionFault("Its links are malformed.") }
        target &+= distance
        try append(source, target, to: &links)
      }
    }
    if reader.remaining > 0 || source != entry.last { throw SectionFault("Its links don't match the directory.") }
  }

  private static func append(_ source: Int64, _ target: UInt64, to links: inout [SaveRequest.Link]) throws(SectionFault) {
    let link = SaveRequest.Link(source: ObjectKey(source), target: ObjectKey(Int64(bitPattern: target)))
    guard TableLoader.keys.contains(link.source), TableLoader.keys.contains(link.target) else {
      throw SectionFault("A link has a key that is out of range.")
    }
    links.append(link)
  }
}

/// Sections with ordered lists.
///
/// For each source: the difference from the previous source, the number of targets and whether their order keys are the default
/// ones, the targets in order, and the order keys if they aren't the default ones.
enum OrderSections {
  struct Writer {
    private let numbers = VaryingWriter()
    var bytes: UnsafeRawBufferPointer { numbers.bytes }
    private(set) var first: Int64 = 0
    private(set) var last: Int64 = 0
    private(set) var count = 0

    mutating func add(_ source: ObjectKey, _ targets: [(target: ObjectKey, order: Int64)]) {
      let source = source.rawValue
      if count == 0 { first = source }
      let distance = UInt64(bitPattern: source &- (count == 0 ? first : last))
      last = source
      count += targets.count
      let isUsual = targets.indices.allSatisfy { targets[$0].order == UsualOrder.key($0) }
      var place = numbers.place(atMost: 2 * targets.count + 2), before: Int64 = 0
      defer { numbers.end(place) }
      place.put(distance)
      place.put(UInt64(targets.count) << 1 | (isUsual ? 1 : 0))
      for target in targets {
        place.put(signed: target.target.rawValue &- before)
        before = target.target.rawValue
      }
      if isUsual { return }
      before = 0
      for target in targets {
        place.put(signed: target.order &- before)
        before = target.order
      }
    }

    mutating func removeAll() {
      numbers.removeAll()
      count = 0
    }
  }

  static func read(
    _ section: UnsafeRawBufferPointer, _ entry: SectionEntry, into links: inout [SaveRequest.Link], _ keys: inout [Int64]
  ) throws(SectionFault) {
    var reader = ByteReader(section)
    guard entry.count <= section.count, entry.count > 0 else { throw SectionFault("It is too short for its lists.") }
    var source = entry.first, rest = entry.count, isFirst = true
    while rest > 0 {
      guard let distance = reader.varying(), let form = reader.varying(), form >> 1 > 0, form >> 1 <= UInt64(rest),
        (distance == 0) == isFirst, distance <= UInt64(bitPattern: entry.last &- source)
      else { throw SectionFault("Its lists are malformed.") }
      source &+= Int64(bitPattern: distance)
      isFirst = false
      let count = Int(form >> 1)
      rest -= count
      try readTargets(&reader, source, count, into: &links)
      try readKeys(&reader, count, isUsual: form & 1 == 1, into: &keys)
    }
    if reader.remaining > 0 || source != entry.last { throw SectionFault("Its lists don't match the directory.") }
  }

  private static func readTargets(
    _ reader: inout ByteReader, _ source: Int64, _ count: Int, into links: inout [SaveRequest.Link]
  ) throws(SectionFault) {
    var target: Int64 = 0
    for _ in 0..<count {
      guard let distance = reader.signed() else { throw SectionFault("Its lists are malformed.") }
      target &+= distance
      let link = SaveRequest.Link(source: ObjectKey(source), target: ObjectKey(target))
      guard TableLoader.keys.contains(link.source), TableLoader.keys.contains(link.target) else {
        throw SectionFault("A list has a key that is out of range.")
      }
      links.append(link)
    }
  }

  private static func readKeys(_ reader: inout ByteReader, _ count: Int, isUsual: Bool, into keys: inout [Int64]) throws(SectionFault) {
    if isUsual {
      for place in 0..<count { keys.append(UsualOrder.key(place)) }
      return
    }
    var key: Int64 = 0
    for _ in 0..<count {
      guard let distance = reader.signed() else { throw SectionFault("Its order keys are malformed.") }
      key &+= distance
      keys.append(key)
    }
  }
}

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

  /// The number of links that a section of a size can contain.
  static func mostLinks(byteCount: Int) -> Int { 2 * byteCount }

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

    func removeAll() { (ownerCount, count) = (0, 0) }

    /// Whether no more owners can be added.
    var isFull: Bool { ownerCount + count >= usualCount }

    /// The section. Valid until the next call.
    func encode() -> UnsafeRawBufferPointer {
      let owners = owners, counts = counts, distances = UnsafeBufferPointer(start: distances, count: count)
      let lows = (
        owner: BitWriter.parameter(sum: Double(last - first) - Double(ownerCount - 1), count: ownerCount - 1),
        count: BitWriter.parameter(sum: Double(count - ownerCount), count: ownerCount),
        target: max(BitWriter.parameter(sum: Writer.sum(distances), count: count), leastTargetLow)
      )
      var place = bits.place(atMost: 2 * ownerCount + count + headerByteCount)
      for low in [lows.owner, lows.count, lows.target] { place.put(UInt64(low), 8) }
      place.put(number: counts[0] - 1, lows.count)
      for index in 1..<max(ownerCount, 1) {
        place.put(
          numbers: UInt64(bitPattern: owners[index] &- owners[index &- 1] &- 1), lows.owner, counts[index] &- 1, lows.count)
      }
      for index in stride(from: 0, to: count & ~1, by: 2) {
        place.put(numbers: distances[index], lows.target, distances[index &+ 1], lows.target)
      }
      if count & 1 == 1 { place.put(number: distances[count - 1], lows.target) }
      return bits.end(place)
    }

    private static func sum(_ numbers: UnsafeBufferPointer<UInt64>) -> Double {
      // In two parts, because the sum of 62-bit numbers can overflow.
      var (low, high): (UInt64, UInt64) = (0, 0)
      for number in numbers { (low, high) = (low &+ (number & 0xFFFF_FFFF), high &+ (number >> 32)) }
      return Double(low) + Double(high) * 0x1p32
    }
  }

  /// Decodes a section.
  static func runs(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry) throws(SectionFault) -> LinkRuns {
    let most = UInt64(TableLoader.keys.upperBound.rawValue)
    guard entry.count > 0, section.count > headerByteCount, entry.count <= mostLinks(byteCount: section.count),
      entry.count <= Int32.max, let low = parameters(section)
    else { throw SectionFault("It is too short for its links.") }
    var bits = BitReader(section, from: headerByteCount), runs = LinkRuns()
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
      return bits.isAtEnd
    }
    if !isValid { throw SectionFault("Its links are malformed, or don't match the directory.") }
    runs.addTargets(targets)
    return runs
  }

  private static func parameters(_ section: UnsafeRawBufferPointer) -> (owner: Int, count: Int, target: Int)? {
    let low = (owner: Int(section[0]), count: Int(section[1]), target: Int(section[2]))
    let valid = BitWriter.parameters
    return valid.contains(low.owner) && valid.contains(low.count) && valid.contains(low.target) && low.target >= leastTargetLow ? low : nil
  }
}

/// Appends numbers bit by bit, highest bits first. A number has a parameter, which should be about the logarithm of the expected number
/// (Golomb-Rice coding).
final class BitWriter {
  @exclusivity(unchecked) private var base: UnsafeMutablePointer<UInt8> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var capacity = 0

  /// The valid parameters. The longest number that isn't written in full has 15 zeros, a one and 40 bits.
  static let parameters = 0...40
  /// Numbers whose quotient is this one or larger are written in full: this many zeros, then 62 bits.
  static let longQuotient = 16

  deinit { base.deallocate() }

  /// The best parameter for some numbers, given their sum: the logarithm of the mean times ln 2, rounded down.
  static func parameter(sum: Double, count: Int) -> Int {
    let mean = count > 0 ? sum / Double(count) * 0.69 : 0
    return mean < 2 ? 0 : min(Int(mean.exponent), parameters.upperBound)
  }

  /// A position to write at.
  struct Place {
    fileprivate var next: UnsafeMutablePointer<UInt8>
    /// Bits that aren't a full byte yet, at the upper end, and their number.
    private var pending: UInt64 = 0
    fileprivate var pendingCount: UInt64 = 0

    fileprivate init(_ next: UnsafeMutablePointer<UInt8>) { self.next = next }

    /// Appends the lowest bits of a value, which has no others. From 1 to 56.
    @inline(__always) mutating func put(_ value: UInt64, _ count: UInt64) {
      pendingCount &+= count
      pending |= value &<< (64 &- pendingCount)
      UnsafeMutableRawPointer(next).storeBytes(of: pending.bigEndian, as: UInt64.self)
      next += Int(truncatingIfNeeded: pendingCount >> 3)
      pending = pending &<< (pendingCount & 56)
      pendingCount &= 7
    }

    /// Appends a number below 2^62.
    @inline(__always) mutating func put(number: UInt64, _ low: Int) {
      let low = UInt64(truncatingIfNeeded: low), quotient = number &>> low
      if quotient < UInt64(BitWriter.longQuotient) {
        let one: UInt64 = 1 &<< low
        put(one | (number & (one &- 1)), quotient &+ 1 &+ low)
      } else {
        put(0, UInt64(BitWriter.longQuotient))
        put(number >> 31, 31)
        put(number & (1 << 31 - 1), 31)
      }
    }

    /// Appends two numbers, in one step if they are short.
    @inline(__always) mutating func put(numbers first: UInt64, _ firstLow: Int, _ second: UInt64, _ secondLow: Int) {
      let low = (UInt64(truncatingIfNeeded: firstLow), UInt64(truncatingIfNeeded: secondLow))
      let one: (UInt64, UInt64) = (1 &<< low.0, 1 &<< low.1), quotient = (first &>> low.0, second &>> low.1)
      let count = (quotient.0 &+ 1 &+ low.0, quotient.1 &+ 1 &+ low.1)
      if (quotient.0 | quotient.1) < UInt64(BitWriter.longQuotient), count.0 &+ count.1 <= 56 {
        put((one.0 | (first & (one.0 &- 1))) &<< count.1 | one.1 | (second & (one.1 &- 1)), count.0 &+ count.1)
      } else {
        put(number: first, firstLow)
        put(number: second, secondLow)
      }
    }
  }

  /// The beginning, with room for `count` numbers.
  func place(atMost count: Int) -> Place {
    // A number has at most 78 bits. Every step writes eight bytes.
    let needed = 10 * count + 32
    if needed > capacity {
      base.deallocate()
      base = .allocate(capacity: needed)
      capacity = needed
    }
    return Place(base)
  }

  /// The bytes up to a position. The last one is padded with zeros.
  func end(_ place: Place) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base, count: place.next - base + (place.pendingCount > 0 ? 1 : 0))
  }
}

/// Reads numbers written by ``BitWriter``, and never past the end.
struct BitReader {
  private let bytes: UnsafeRawBufferPointer
  private let bitCount: Int
  private var position: Int

  init(_ bytes: UnsafeRawBufferPointer, from offset: Int) {
    self.bytes = bytes
    bitCount = 8 * bytes.count
    position = 8 * offset
  }

  /// At least the next 57 bits, at the upper end. Bits past the end are zero.
  @inline(__always) private var window: UInt64 {
    let offset = position >> 3
    let word = offset <= bytes.count - 8 ? bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self).bigEndian : lastWord(offset)
    return word &<< UInt64(position & 7)
  }

  private func lastWord(_ offset: Int) -> UInt64 {
    var word: UInt64 = 0
    for place in offset..<offset + 8 { word = word << 8 | (place < bytes.count ? UInt64(bytes[place]) : 0) }
    return word
  }

  /// The next number; nil if it is truncated, or if it has a longer form than necessary.
  ///
  /// The number divided by 2^low is written as that many zeros and a one, followed by the remainder's bits. If there are 16 zeros, 62 bits
  /// follow with the number itself.
  @inline(__always) mutating func number(_ low: Int) -> UInt64? {
    let window = window, quotient = window.leadingZeroBitCount
    if quotient >= BitWriter.longQuotient { return longNumber(low) }
    position += quotient + 1 + low
    if position > bitCount { return nil }
    // Shifted twice, because a parameter can be 0.
    let rest = ((window &<< UInt64(quotient + 1)) >> 1) &>> UInt64(63 - low)
    return UInt64(quotient) &<< UInt64(low) | rest
  }

  private mutating func longNumber(_ low: Int) -> UInt64? {
    position += BitWriter.longQuotient
    let high = window >> 33
    position += 31
    let number = high << 31 | window >> 33
    position += 31
    return position <= bitCount && number >> UInt64(low) >= UInt64(BitWriter.longQuotient) ? number : nil
  }

  /// Whether only the padding of the last byte is left.
  var isAtEnd: Bool { bitCount - position < 8 && window == 0 }
}
