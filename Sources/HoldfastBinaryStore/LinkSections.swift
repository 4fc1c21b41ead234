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
/// Each section begins with three parameters, for the distances of owners, the numbers of destinations and the distances of destinations.
/// Then, for each owner: the distance from the previous owner, the number of destinations, and their distances. All are at least 1, so 1 is
/// subtracted. The first owner has no distance. See ``BitReader/number(_:)`` for the encoding.
enum InverseSections {
  /// A section ends when it has this many owners and destinations.
  static let usualCount = 1 << 15
  /// The smallest parameter for distances of destinations. It bounds the number of links in a byte.
  static let leastTargetLow = 3
  static let headerByteCount = 3

  /// The number of links that a section of a size can contain.
  static func mostLinks(byteCount: Int) -> Int { 2 * byteCount }

  /// Collects links in ascending order, and encodes them as sections.
  struct Writer {
    private var owners: [Int64] = []
    private var counts: [Int] = []
    private var targets: [ObjectKey] = []
    private let bits = BitWriter()

    /// The number of links.
    var count: Int { targets.count }
    var isFull: Bool { owners.count + targets.count >= usualCount }
    var first: Int64 { owners.first ?? 0 }
    var last: Int64 { owners.last ?? 0 }

    /// Adds the next owner and its destinations, ascending. There must be at least one destination.
    mutating func add(_ owner: ObjectKey, _ targets: UnsafeBufferPointer<ObjectKey>) {
      owners.append(owner.rawValue)
      counts.append(targets.count)
      self.targets.append(contentsOf: targets)
    }

    mutating func removeAll() {
      owners.removeAll(keepingCapacity: true)
      counts.removeAll(keepingCapacity: true)
      targets.removeAll(keepingCapacity: true)
    }

    /// The section. Valid until the next call.
    func encode() -> UnsafeRawBufferPointer {
      let lows = parameters()
      bits.begin(numberCount: 2 * owners.count + targets.count)
      for low in [lows.owner, lows.count, lows.target] { bits.put(UInt64(low), 8) }
      var next = 0, before = first
      targets.withUnsafeBufferPointer { targets in
        for index in owners.indices {
          if index > 0 { bits.put(number: UInt64(bitPattern: owners[index] &- before &- 1), lows.owner) }
          before = owners[index]
          bits.put(number: UInt64(counts[index] - 1), lows.count)
          var target: Int64 = 0
          for place in next..<next + counts[index] {
            bits.put(number: UInt64(bitPattern: targets[place].rawValue &- target &- 1), lows.target)
            target = targets[place].rawValue
          }
          next += counts[index]
        }
      }
      return bits.end()
    }

    private func parameters() -> (owner: Int, count: Int, target: Int) {
      var sum = 0.0, next = 0
      for count in counts {
        // The distances add up to the last destination.
        next += count
        sum += Double(targets[next - 1].rawValue)
      }
      return (
        BitWriter.parameter(sum: Double(last - first) - Double(owners.count - 1), count: owners.count - 1),
        BitWriter.parameter(sum: Double(targets.count - owners.count), count: owners.count),
        max(BitWriter.parameter(sum: sum - Double(targets.count), count: targets.count), leastTargetLow)
      )
    }
  }

  /// Reads a section. Passes each owner with the number of its destinations, then the destinations in ascending order.
  @inline(__always) static func read(
    _ section: UnsafeRawBufferPointer, _ entry: SectionEntry, owner take: (ObjectKey, Int) throws -> Void,
    target takeTarget: (ObjectKey) throws -> Void
  ) throws {
    let most = UInt64(TableLoader.keys.upperBound.rawValue)
    guard entry.count > 0, section.count > headerByteCount, entry.count <= mostLinks(byteCount: section.count),
      let low = parameters(section)
    else { throw SectionFault("It is too short for its links.") }
    var bits = BitReader(section, from: headerByteCount)
    var owner = entry.first, rest = entry.count, isFirst = true
    while rest > 0 {
      if !isFirst {
        guard let distance = bits.number(low.owner), distance < UInt64(bitPattern: entry.last &- owner) else {
          throw SectionFault("Its owners are malformed.")
        }
        owner &+= Int64(bitPattern: distance) &+ 1
      }
      isFirst = false
      guard let more = bits.number(low.count), more < UInt64(rest) else { throw SectionFault("Its links are malformed.") }
      rest -= Int(more) + 1
      try take(ObjectKey(owner), Int(more) + 1)
      var target: UInt64 = 0
      for _ in 0...Int(more) {
        guard let distance = bits.number(low.target), distance < most - target else { throw SectionFault("Its links are malformed.") }
        target += distance + 1
        try takeTarget(ObjectKey(Int64(bitPattern: target)))
      }
    }
    if !bits.isAtEnd || owner != entry.last { throw SectionFault("Its links don't match the directory.") }
  }

  private static func parameters(_ section: UnsafeRawBufferPointer) -> (owner: Int, count: Int, target: Int)? {
    let low = (owner: Int(section[0]), count: Int(section[1]), target: Int(section[2]))
    let valid = BitWriter.parameters
    return valid.contains(low.owner) && valid.contains(low.count) && valid.contains(low.target) && low.target >= leastTargetLow ? low : nil
  }

  /// The links of a section.
  static func runs(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry) throws -> LinkRuns {
    var runs = LinkRuns()
    guard entry.count <= mostLinks(byteCount: section.count) else { throw SectionFault("It is too short for its links.") }
    runs.reserve(linkCount: entry.count)
    try read(section, entry, owner: { owner, _ in runs.begin(owner) }, target: { runs.append($0) })
    return runs
  }
}

/// Appends numbers bit by bit, highest bits first. A number has a parameter, which should be about the logarithm of the expected number
/// (Golomb-Rice coding).
final class BitWriter {
  @exclusivity(unchecked) private var base: UnsafeMutablePointer<UInt8> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var capacity = 0
  @exclusivity(unchecked) private var byteCount = 0
  /// Bits that aren't a full byte yet, at the upper end, and their number.
  @exclusivity(unchecked) private var pending: UInt64 = 0
  @exclusivity(unchecked) private var pendingCount = 0

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

  func begin(numberCount: Int) {
    (byteCount, pending, pendingCount) = (0, 0, 0)
    // A number has at most 78 bits. Every step writes eight bytes.
    let needed = 10 * numberCount + 32
    if needed <= capacity { return }
    base.deallocate()
    base = .allocate(capacity: needed)
    capacity = needed
  }

  /// Appends the lowest bits of a value, which has no others. At most 56.
  @inline(__always) func put(_ value: UInt64, _ count: Int) {
    pending |= value &<< UInt64(64 - pendingCount - count)
    pendingCount += count
    UnsafeMutableRawPointer(base + byteCount).storeBytes(of: pending.bigEndian, as: UInt64.self)
    let full = pendingCount >> 3
    byteCount += full
    pending = pending &<< UInt64(8 * full)
    pendingCount &= 7
  }

  /// Appends a number below 2^62.
  @inline(__always) func put(number: UInt64, _ low: Int) {
    let quotient = number >> UInt64(low)
    if quotient < UInt64(BitWriter.longQuotient) {
      put(1 &<< UInt64(low) | number & (1 &<< UInt64(low) - 1), Int(quotient) + 1 + low)
    } else {
      put(0, BitWriter.longQuotient)
      put(number >> 31, 31)
      put(number & (1 << 31 - 1), 31)
    }
  }

  /// The bytes. The last one is padded with zeros.
  func end() -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: byteCount + (pendingCount > 0 ? 1 : 0)) }
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
