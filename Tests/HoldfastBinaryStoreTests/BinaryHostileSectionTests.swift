import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Invalid lengths, counts and numbers within sections, in files with valid digests (RX17). ``BinaryDamageTests`` covers the directory.
///
/// Each test runs in its own process, because it measures memory.
@Suite(.ownThreads) struct BinaryHostileSectionTests {
  @Test func RX17_anyByteOfAnySectionMayBeAnother() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try Hostile.measured { hostile in
        for place in image.sections.indices where image.sections[place].kind != 2 {
          // The info is a property list, whose reader has its own tests.
          let values: [UInt8] = image.sections[place].kind == 1 ? [0, 0xFF] : [0, 1, 0x7F, 0x80, 0xFF]
          for byte in Hostile.share(of: image.sections[place].bytes.indices) {
            for value in values {
              try hostile.tries("byte \(byte) of section \(place) became \(value)", image) { $0.sections[place].bytes[byte] = value }
            }
          }
        }
      }
    }
  }

  @Test func RX17_numbersOfARowsSectionMayBeAnything() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try Hostile.measured { hostile in
        for place in image.places(of: 3) {
          let section = image.sections[place]
          let fields = try RowsSection(section.bytes, count: Int(section.count), image.entity(place)).fields
          for field in fields {
            for number in Hostile.share(of: Hostile.numbers) {
              let isRefused = try hostile.tries("\(field) of section \(place) became \(number)", image) {
                $0.sections[place].bytes.set(number, at: field.offset, byteCount: field.byteCount)
              }
              if let isRefused, !field.allows(number) { #expect(isRefused, "\(field) of section \(place) became \(number)") }
            }
          }
        }
      }
    }
  }

  @Test func RX17_numbersOfLinksAndListsMayBeAnythingAndOfAnyLength() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try Hostile.measured { hostile in
        for place in image.places(of: 4) + image.places(of: 5) {
          let numbers = VaryingNumbers(image.sections[place].bytes)
          for number in numbers.ranges.indices {
            for (name, bytes) in Hostile.share(of: VaryingNumbers.hostile(numbers.value(number))) {
              let isRefused = try hostile.tries("number \(number) of section \(place) became \(name)", image) {
                $0.sections[place].bytes.replaceSubrange(numbers.ranges[number], with: bytes)
              }
              if let isRefused, name.isMalformed { #expect(isRefused, "number \(number) of section \(place) became \(name)") }
            }
          }
        }
      }
    }
  }

  /// Numbers of inverse links, which have any number of bits: all pairs of neighboring bytes.
  @Test func RX17_numbersOfInverseLinksMayBeAnything() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try #require(image.places(of: 8).count == 1)
      try Hostile.measured { hostile in
        for place in image.places(of: 8) {
          for byte in image.sections[place].bytes.indices.dropLast() {
            for number in Hostile.share(of: 0..<512 as Range<UInt64>, 16) {
              try hostile.tries("bytes \(byte) of section \(place) became \(number << 7)", image) {
                $0.sections[place].bytes.set(number << 7, at: byte, byteCount: 2)
              }
            }
          }
        }
      }
    }
  }

  /// Counts, keys and ranges in the directory that match the section's own contents.
  @Test func RX17_countsAndRangesThatFitTheirSectionsMayBeAnything() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try Hostile.measured { hostile in
        for place in image.sections.indices {
          for number in Hostile.share(of: Hostile.numbers) {
            try hostile.tries("the count of section \(place) became \(number)", image) { $0.sections[place].count = number }
            try hostile.tries("the least of section \(place) became \(number)", image) { $0.sections[place].first = number }
            try hostile.tries("the largest of section \(place) became \(number)", image) { $0.sections[place].last = number }
            try hostile.tries("both of section \(place) became \(number)", image) {
              ($0.sections[place].first, $0.sections[place].last) = (number, number)
            }
          }
          // Truncated, or with extra bytes.
          for count in Hostile.share(of: 0..<image.sections[place].bytes.count) where image.sections[place].kind != 2 {
            let isRefused = try hostile.tries("section \(place) has only \(count) bytes", image) {
              $0.sections[place].bytes.removeLast($0.sections[place].bytes.count - count)
            }
            if let isRefused { #expect(isRefused, "section \(place) has only \(count) bytes") }
          }
          try hostile.tries("section \(place) has a byte more", image) { $0.sections[place].bytes.append(0) }
        }
      }
    }
  }

  @Test func RX17_entriesOfAnIndexMayBeAnything() async {
    await #expect(processExitsWith: .success) {
      let image = try Hostile.image()
      try Hostile.measured { hostile in
        for place in image.places(of: 6) {
          let section = image.sections[place], count = Int(section.count)
          for entry in 0..<count {
            for number in Hostile.numbers {
              // Unchanged, and with eight-byte keys.
              try hostile.tries("the digest of entry \(entry) of \(place) became \(number)", image) {
                $0.sections[place].bytes.set(number, at: 8 * entry, byteCount: 4)
              }
              try hostile.tries("the key of entry \(entry) of \(place) became \(number)", image) {
                $0.sections[place].bytes.set(number, at: 8 * entry + 4, byteCount: 4)
              }
              try hostile.tries("the wide key of entry \(entry) of \(place) became \(number)", image) {
                $0.sections[place].bytes = Hostile.widened(section.bytes)
                $0.sections[place].bytes.set(number, at: 12 * entry + 4, byteCount: 8)
              }
            }
          }
          // Entries of eight bytes that could be mistaken for entries of twelve.
          for (narrow, wide) in [(3, 2), (6, 4)] {
            let isRefused = try hostile.tries("\(narrow) entries of \(place) became \(wide)", image) {
              $0.sections[place].bytes = Array((section.bytes + section.bytes + section.bytes).prefix(8 * narrow))
              $0.sections[place].count = UInt64(wide)
            }
            if let isRefused { #expect(isRefused) }
          }
          let isWideRefused = try hostile.tries("wide keys of \(place)", image) {
            $0.sections[place].bytes = Hostile.widened(section.bytes)
          }
          #expect(isWideRefused == false)
        }
      }
    }
  }
}

extension BinaryImage {
  /// The entity of a section's rows.
  fileprivate func entity(_ place: Int) throws -> ManagedObjectModel.Entity {
    let names = try PropertyList(binary: sections[0].bytes)["entities"]?.array?.compactMap(\.string) ?? []
    return try #require(BinaryStoreProperty.model.entity(named: names[Int(sections[place].subject)]))
  }
}

/// Opens files one by one and measures the memory that this process uses meanwhile.
private final class Hostile {
  /// Limits of integer types: zero, small numbers, maximums, and negative numbers.
  static let numbers: [UInt64] = [
    0, 1, 2, 4, 8, 0x7F, 0x80, 0xFE, 0xFF, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 1 << 31 - 1, 1 << 31, 1 << 31 + 1, 1 << 32 - 2, 1 << 32 - 1,
    1 << 32, 1 << 32 + 1, 1 << 53, 1 << 62, 1 << 62 + 1, 1 << 63 - 1, 1 << 63, 1 << 63 + 1, .max - 1, .max,
  ]

  /// Every seventh element from a random start, or all in the full tier. Of few elements, at least one.
  static func share<Elements: RandomAccessCollection>(of elements: Elements, _ usual: Int = 7) -> [Elements.Element] {
    let step = max(1, min(TestTier.step(usual), elements.count)), first = Int.random(in: 0..<step)
    return elements.enumerated().filter { $0.offset % step == first }.map(\.element)
  }

  private var tried = 0
  private var refused = 0

  /// Rows with and without values of every type, links and lists of several sources, and indexes.
  static func image() throws -> BinaryImage {
    let file = try BinaryTestFile()
    let context = try file.context(BinaryStoreProperty.model)
    let owners = try (0..<4).map { number in
      let object = try context.insert(entityNamed: "A")
      try object.setValue(.int64(Int64(number) * 7), forKey: "ainteger64")
      try object.setValue(.string("Text \(number)"), forKey: "astring")
      try object.setValue(.uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number)))), forKey: "auuid")
      try object.setValue(.date(0.25 + Double(number)), forKey: "adate")
      if number == 0 { return object }
      try object.setValue(.int16(Int16(number) * 300), forKey: "ainteger16")
      try object.setValue(.int32(Int32(number) << 20), forKey: "ainteger32")
      try object.setValue(.bool(true), forKey: "aboolean")
      try object.setValue(.double(Double(number)), forKey: "adouble")
      try object.setValue(.float(1.5), forKey: "afloat")
      try object.setValue(.decimal(Decimal(number) / 8), forKey: "adecimal")
      try object.setValue(.uri("a:b"), forKey: "auri")
      try object.setValue(.data(Data([1, 2, UInt8(number)])), forKey: "abinaryData")
      return object
    }
    let things = try (0..<2).map { _ in try context.insert(entityNamed: "D") }
    for owner in owners.prefix(2) {
      for _ in 0..<3 {
        let item = try context.insert(entityNamed: "B")
        try owner.ordered(forKey: "list").append(item)
        try owner.toMany(forKey: "set").insert(item)
      }
      for thing in things { try owner.toMany(forKey: "many").insert(thing) }
      try owner.toMany(forKey: "same").insert(owners[3])
      try owner.toMany(forKey: "own").insert(things[1])
    }
    try owners[0].setValue(.objectID(owners[1].objectID), forKey: "one")
    try context.save()
    // An unusual order key.
    try owners[1].ordered(forKey: "list").move(fromOffsets: [0], toOffset: 2)
    try context.save()
    try context.persistentStoreCoordinator.close()
    return BinaryImage(try file.bytes())
  }

  /// Runs a test and compares its memory use with the size of its files.
  static func measured(_ body: (Hostile) throws -> Void) throws {
    let hostile = Hostile()
    // Allocate what is only created once.
    _ = try BinaryStoreProperty.refusal(image().bytes)
    let before = Memory.now
    try body(hostile)
    let after = Memory.now
    // A file has a few kilobytes. Memory that is reserved but never used shows in the second number.
    #expect(after.resident - before.resident <= 4 << 20 && after.reserved - before.reserved <= 96 << 20, "\(before), \(after)")
    print("RX17: \(hostile.tried) files, \(hostile.refused) refused")
    #expect(hostile.refused > 20 && hostile.refused <= hostile.tried)
  }

  /// Reads a file after a change.
  ///
  /// - Returns: whether it was refused; nil if the bytes are unchanged.
  @discardableResult
  func tries(_ name: @autoclosure () -> String, _ image: BinaryImage, _ change: (inout BinaryImage) -> Void) throws -> Bool? {
    var changed = image
    change(&changed)
    if changed == image { return nil }
    let before = Memory.resident
    defer { #expect(Memory.resident - before <= 1 << 20, "\(name())") }
    tried += 1
    do {
      guard try BinaryStoreProperty.refusal(changed.bytes) != nil else { return false }
      refused += 1
      return true
    } catch {
      Issue.record("\(name()): \(error)")
      return nil
    }
  }

  /// The entries of an index, with eight-byte keys.
  static func widened(_ bytes: [UInt8]) -> [UInt8] {
    stride(from: 0, to: bytes.count, by: 8).flatMap { Array(bytes[$0..<$0 + 8]) + [0, 0, 0, 0] }
  }
}

/// The memory of this process, in bytes.
private struct Memory {
  /// The peak resident size.
  var resident: Int
  /// The peak size of the address space.
  var reserved: Int

  static var resident: Int {
    var usage = rusage()
    #if canImport(Glibc)
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return usage.ru_maxrss * 1024
    #else
      getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #endif
  }

  static var now: Memory {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmPeak:") }
    return Memory(resident: resident, reserved: (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) * 1024)
  }
}

/// The positions of the numbers in a section of rows, found as the format's article describes, without code of the library.
private struct RowsSection {
  struct Field: CustomStringConvertible {
    enum Meaning { case keyWidth, width, lengthWidth, presence, form, external, base, number }

    var meaning: Meaning
    var slot: String
    var offset: Int
    var byteCount: Int
    var description: String { "\(meaning) of \(slot), at \(offset)," }

    /// Whether a number is valid here, regardless of the other numbers.
    func allows(_ number: UInt64) -> Bool {
      let value = byteCount == 8 ? number : number & (1 << UInt64(8 * byteCount) - 1)
      switch meaning {
      case .keyWidth: return [4, 8].contains(value)
      case .width: return [0, 1, 2, 4, 8].contains(value)
      case .lengthWidth: return [0, 1, 2, 4].contains(value)
      case .presence: return value <= 2
      case .form: return [1, 4, 8].contains(value)
      case .external: return value <= 1
      case .base, .number: return true
      }
    }
  }

  private(set) var fields: [Field] = []
  private let bytes: [UInt8]
  private let count: Int
  private var offset = 0

  init(_ bytes: [UInt8], count: Int, _ entity: ManagedObjectModel.Entity) throws {
    (self.bytes, self.count) = (bytes, count)
    let width = take(.keyWidth, "keys", 1)
    for _ in 0..<count { take(.number, "keys", Int(width)) }
    whole("versions")
    for slot in entity.slots {
      if case .attribute(let attribute) = slot { column(slot.name, attribute.type) } else { column(slot.name, nil) }
    }
    try #require(offset == bytes.count, "The section was not understood.")
  }

  @discardableResult private mutating func take(_ meaning: Field.Meaning, _ slot: String, _ byteCount: Int) -> UInt64 {
    fields.append(Field(meaning: meaning, slot: slot, offset: offset, byteCount: byteCount))
    defer { offset += byteCount }
    return bytes[offset..<offset + byteCount].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Integers: a width, a base, and an offset from it for each row.
  @discardableResult private mutating func whole(_ slot: String, _ width: Field.Meaning = .width) -> [UInt64] {
    let width = take(width, slot, 1), base = take(.base, slot, 8)
    return (0..<count).map { _ in base &+ (width == 0 ? 0 : take(.number, slot, Int(width))) }
  }

  private mutating func column(_ slot: String, _ type: AttributeType?) {
    let form = take(.presence, slot, 1)
    if form == 0 { return }
    var isPresent = Array(repeating: true, count: count)
    if form == 2 {
      isPresent = isPresent.indices.map { bytes[offset + $0 / 8] >> ($0 % 8) & 1 == 1 }
      offset += (count + 7) / 8
    }
    switch type {
    case nil, .integer16, .integer32, .integer64, .boolean: whole(slot)
    case .float, .double, .date:
      let form = take(.form, slot, 1)
      if form == 1 { whole(slot) } else { offset += count * Int(form) }
    default:
      if take(.external, slot, 1) == 1 { offset += (count + 7) / 8 }
      let lengths = whole(slot, .lengthWidth)
      for (length, isPresent) in zip(lengths, isPresent) where isPresent { offset += Int(length) }
    }
  }
}

/// Numbers with seven bits per byte, without gaps.
private struct VaryingNumbers {
  private let bytes: [UInt8]
  private(set) var ranges: [Range<Int>] = []

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var start = 0
    for place in bytes.indices where bytes[place] < 0x80 {
      ranges.append(start..<place + 1)
      start = place + 1
    }
  }

  func value(_ place: Int) -> UInt64 { bytes[ranges[place]].reversed().reduce(0) { $0 << 7 | UInt64($1 & 0x7F) } }

  struct Name: CustomStringConvertible {
    var description: String
    /// Whether the bytes can't be a 64-bit number.
    var isMalformed = false
  }

  /// Replacements for a number.
  static func hostile(_ value: UInt64) -> [(name: Name, bytes: [UInt8])] {
    let numbers = (Hostile.numbers + [value &+ 1, value &- 1, value << 1, value | 1]).map { (Name(description: "\($0)"), encoded($0)) }
    let ten = (0..<9).map { UInt8(value >> (7 * $0) & 0x7F) | 0x80 }
    return numbers + [
      (Name(description: "itself in ten bytes"), ten + [UInt8(value >> 63)]),
      (Name(description: "65 bits", isMalformed: true), ten + [2]),
      (Name(description: "70 bits", isMalformed: true), ten + [0x7F]),
      (Name(description: "itself in eleven bytes", isMalformed: true), ten + [0x80, 0]),
      (Name(description: "a number without end", isMalformed: true), [UInt8](repeating: 0xFF, count: 40)),
      (Name(description: "nothing"), []),
    ]
  }

  private static func encoded(_ number: UInt64) -> [UInt8] {
    var bytes: [UInt8] = [], rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }
}

extension [UInt8] {
  /// Writes the lowest bytes of a number at an offset.
  fileprivate mutating func set(_ number: UInt64, at place: Int, byteCount: Int) {
    for byte in 0..<byteCount { self[place + byte] = UInt8(truncatingIfNeeded: number >> UInt64(8 * byte)) }
  }
}
