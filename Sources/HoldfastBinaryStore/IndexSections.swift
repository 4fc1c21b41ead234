import HoldfastAtomicStore
import HoldfastStore

/// Sections with indexes of uniqueness constraints.
///
/// A section contains the entries of a range of digests, in any order. An entry consists of the lower half of a digest (four bytes) and the
/// key of the row. The key has four bytes, or eight if a key of the section needs them. The upper half of the digest determines the
/// section.
enum IndexSections {
  /// A digest and the key of its row.
  struct Entry {
    var digest: UInt64
    var key: Int64
  }

  /// The maximum average number of entries in a section. With more, the number of sections is doubled.
  static let usualCount = 4096

  /// The entries of a section, without the upper halves of their digests.
  struct Section {
    /// The entries as stored in the file.
    private(set) var bytes: [UInt8]
    private(set) var count: Int

    init(_ entries: [Entry]) { self.init(entries.map(Place.init)) }

    private init(_ places: [Place]) {
      let isWide = places.contains(where: \.isWide), size = isWide ? 12 : 8
      count = places.count
      bytes = [UInt8](unsafeUninitializedCapacity: size * places.count) { buffer, used in
        let bytes = UnsafeMutableRawBufferPointer(buffer)
        for (index, place) in places.enumerated() {
          bytes.storeBytes(of: place.digest.littleEndian, toByteOffset: size * index, as: UInt32.self)
          if isWide {
            bytes.storeBytes(of: place.key.littleEndian, toByteOffset: size * index + 4, as: Int64.self)
          } else {
            bytes.storeBytes(of: UInt32(truncatingIfNeeded: place.key).littleEndian, toByteOffset: size * index + 4, as: UInt32.self)
          }
        }
        used = size * places.count
      }
    }

    /// Reads a section; nil if its length doesn't match its count.
    init?(_ bytes: UnsafeRawBufferPointer, _ part: FilePart) {
      guard part.count > 0, part.count <= bytes.count / 8, bytes.count == 8 * part.count || bytes.count == 12 * part.count else {
        return nil
      }
      (self.bytes, count) = (Array(bytes), part.count)
    }

    /// Removes and adds entries.
    ///
    /// - Returns: Whether all removed entries were present, once each.
    mutating func change(removing goes: [Entry], adding comes: [Entry]) -> Bool {
      let gone = Set(goes.map(Place.init)), new = comes.map(Place.init)
      if bytes.count > 8 * count || new.contains(where: \.isWide) {
        let kept = places.filter { !gone.contains($0) }, isAll = count - kept.count == gone.count
        self = Section(kept + new)
        return isAll
      }
      let isAll = gone.isEmpty || removeNarrow(gone)
      bytes += Section(new).bytes
      count += new.count
      return isAll
    }

    private var places: [Place] {
      let size = bytes.count / max(count, 1)
      return bytes.withUnsafeBytes { bytes in
        (0..<count).map { index in
          let digest = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: size * index, as: UInt32.self))
          return Place(digest: digest, key: IndexSections.key(bytes, at: size * index + 4, isWide: size == 12))
        }
      }
    }

    /// Removes entries of eight bytes.
    private mutating func removeNarrow(_ gone: Set<Place>) -> Bool {
      // A small bitmap of digests avoids looking up most entries that stay.
      var marks = [UInt64](repeating: 0, count: 1 << 6)
      for place in gone { marks[Int(place.digest & 63)] |= 1 << UInt64(place.digest >> 6 & 63) }
      let before = count
      count = bytes.withUnsafeMutableBytes { bytes in
        marks.withUnsafeBufferPointer { marks in
          var kept = 0
          for index in 0..<before {
            let entry = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
            let digest = UInt32(truncatingIfNeeded: entry)
            if marks[Int(digest & 63)] & 1 << UInt64(digest >> 6 & 63) != 0,
              gone.contains(Place(digest: digest, key: Int64(entry >> 32)))
            {
              continue
            }
            bytes.storeBytes(of: entry.littleEndian, toByteOffset: 8 * kept, as: UInt64.self)
            kept += 1
          }
          return kept
        }
      }
      bytes.removeLast(8 * (before - count))
      return before - count == gone.count
    }
  }

  /// An entry of a section.
  private struct Place: Hashable {
    var digest: UInt32
    var key: Int64

    /// Whether the key needs eight bytes.
    var isWide: Bool { key > Int64(UInt32.max) }

    init(digest: UInt32, key: Int64) { (self.digest, self.key) = (digest, key) }

    init(_ entry: Entry) { self.init(digest: UInt32(truncatingIfNeeded: entry.digest), key: entry.key) }
  }

  @inline(__always) fileprivate static func key(_ bytes: UnsafeRawBufferPointer, at offset: Int, isWide: Bool) -> Int64 {
    isWide
      ? Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int64.self))
      : Int64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }

  /// The maximum number of entries. Lookups scan a section linearly, so the number must be limited.
  static let mostEntries = 1 << 20

  /// Throws if a section has more entries than a reader accepts.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unstorableValue`.
  static func checkCount(_ count: Int, _ constraint: UniqueConstraint) throws(StoreError) {
    // Only values chosen for that purpose have this many similar digests.
    if count <= mostEntries { return }
    throw StoreError(
      .unstorableValue, operation: "write the store",
      reason: "\(count) values of the uniqueness constraint on \(constraint.names.joined(separator: ", ")) have similar digests, "
        + "and a binary store supports at most \(mostEntries). Choose other values, or a store of another kind.")
  }

  /// Divides entries into sections, and passes on the bytes, the count, and the smallest and largest upper half of each.
  static func write(_ entries: [Entry], _ section: (UnsafeRawBufferPointer, Int, ClosedRange<Int64>) throws -> Void) rethrows {
    if entries.isEmpty { return }
    var bits: UInt64 = 0
    while entries.count >> Int(bits) > usualCount && bits < 31 { bits += 1 }
    let shift = 32 - bits
    let starts = starts(entries, bits)
    let sorted = sorted(entries, starts, bits)
    for part in 0..<(1 << Int(bits)) where starts[part] < starts[part + 1] {
      let bytes = Section(Array(sorted[starts[part]..<starts[part + 1]])).bytes
      let first = Int64(part) << Int64(shift)
      try bytes.withUnsafeBytes { try section($0, starts[part + 1] - starts[part], first...first + (1 << Int64(shift) - 1)) }
    }
  }

  private static func part(_ entry: Entry, _ bits: UInt64) -> Int { bits == 0 ? 0 : Int(entry.digest >> (64 - bits)) }

  /// The index of the first entry of each section, and the end of the last one.
  private static func starts(_ entries: [Entry], _ bits: UInt64) -> [Int] {
    var starts = [Int](repeating: 0, count: 1 << Int(bits) + 1)
    for entry in entries { starts[part(entry, bits) + 1] += 1 }
    for place in 1..<starts.count { starts[place] += starts[place - 1] }
    return starts
  }

  private static func sorted(_ entries: [Entry], _ starts: [Int], _ bits: UInt64) -> [Entry] {
    var next = starts
    return [Entry](unsafeUninitializedCapacity: entries.count) { sorted, count in
      for entry in entries {
        let part = part(entry, bits)
        sorted.initializeElement(at: next[part], to: entry)
        next[part] += 1
      }
      count = entries.count
    }
  }

  /// Checks that the length of a section matches its number of entries.
  static func check(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry) throws(SectionFault) {
    guard entry.count > 0, entry.count <= mostEntries, entry.count <= section.count / 8,
      section.count == 8 * entry.count || section.count == 12 * entry.count,
      entry.first >= 0, entry.last <= Int64(UInt32.max)
    else { throw SectionFault("Its entries don't match the directory.") }
  }

  /// Calls `body` with the lower half of the digest and the key of every entry. The section must have passed `check`.
  static func forEach(in section: UnsafeRawBufferPointer, _ entry: SectionEntry, _ body: (UInt32, ObjectKey) -> Void) {
    let size = section.count / entry.count
    for start in stride(from: 0, to: section.count, by: size) {
      body(
        UInt32(littleEndian: section.loadUnaligned(fromByteOffset: start, as: UInt32.self)),
        ObjectKey(key(section, at: start + 4, isWide: size == 12)))
    }
  }

  /// The keys of entries with a given lower half of the digest. The section must have passed `check`.
  static func keys(_ low: UInt32, in section: UnsafeRawBufferPointer, _ entry: SectionEntry) -> [ObjectKey] {
    let size = section.count / entry.count
    var keys: [ObjectKey] = []
    for start in stride(from: 0, to: section.count, by: size)
    where UInt32(littleEndian: section.loadUnaligned(fromByteOffset: start, as: UInt32.self)) == low {
      keys.append(ObjectKey(key(section, at: start + 4, isWide: size == 12)))
    }
    return keys
  }
}
