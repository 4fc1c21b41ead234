import HoldfastAtomicStore
import HoldfastStore

/// Indexes of uniqueness constraints in sections: each has the entries of a range of digests, in any order. An entry is the lower half
/// of a digest and the key of the row, of four bytes each, or eight bytes for the key where one needs them; the upper half says in
/// which section the entry is.
enum IndexSections {
  /// What a row is found by.
  struct Entry {
    var digest: UInt64
    var key: Int64
  }

  /// How many entries a section has on the average.
  private static let usualCount = 4096

  /// Hands sections of entries over: each with its bytes, its count, and the least and the largest upper half.
  static func write(_ entries: [Entry], _ section: (UnsafeRawBufferPointer, Int, ClosedRange<Int64>) throws -> Void) rethrows {
    if entries.isEmpty { return }
    var bits: UInt64 = 0
    while entries.count >> Int(bits) > usualCount && bits < 31 { bits += 1 }
    let shift = 32 - bits
    let starts = starts(entries, bits)
    let sorted = sorted(entries, starts, bits)
    var bytes = ByteWriter()
    let isWide = entries.contains { $0.key > Int64(UInt32.max) }
    for part in 0..<(1 << Int(bits)) where starts[part] < starts[part + 1] {
      bytes.removeAll()
      for entry in sorted[starts[part]..<starts[part + 1]] {
        bytes.put(UInt32(truncatingIfNeeded: entry.digest))
        if isWide { bytes.put(entry.key) } else { bytes.put(UInt32(truncatingIfNeeded: entry.key)) }
      }
      let first = Int64(part) << Int64(shift)
      try bytes.bytes.withUnsafeBytes { try section($0, starts[part + 1] - starts[part], first...first + (1 << Int64(shift) - 1)) }
    }
  }

  private static func part(_ entry: Entry, _ bits: UInt64) -> Int { bits == 0 ? 0 : Int(entry.digest >> (64 - bits)) }

  /// Where the entries of each part begin, and where the last ends.
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

  /// Sees to it that a section has as many entries as it says.
  static func check(_ section: UnsafeRawBufferPointer, _ entry: SectionEntry) throws(SectionFault) {
    guard entry.count > 0, entry.count <= section.count / 8, section.count == 8 * entry.count || section.count == 12 * entry.count,
      entry.first >= 0, entry.last <= Int64(UInt32.max)
    else { throw SectionFault("It has other entries than the directory says.") }
  }

  /// The keys of entries whose digest has a lower half, in a section that was checked.
  static func keys(_ low: UInt32, in section: UnsafeRawBufferPointer, _ entry: SectionEntry) -> [Int64] {
    let size = section.count / entry.count
    var keys: [Int64] = []
    for start in stride(from: 0, to: section.count, by: size)
    where UInt32(littleEndian: section.loadUnaligned(fromByteOffset: start, as: UInt32.self)) == low {
      keys.append(
        size == 12
          ? Int64(littleEndian: section.loadUnaligned(fromByteOffset: start + 4, as: Int64.self))
          : Int64(UInt32(littleEndian: section.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self))))
    }
    return keys
  }
}
