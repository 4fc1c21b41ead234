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
