import HoldfastStore

/// The sections of a file, parsed as the format's article describes, without code of the library. A test can change one and write all
/// dependent digests.
struct BinaryParts {
  struct Entry {
    var kind: Int
    var subject: Int
    var offset: Int
    var byteCount: Int
  }

  /// The file with the change and valid digests.
  let bytes: [UInt8]
  let entries: [Entry]
  var entryCount: Int { entries.count }

  init(
    _ whole: [UInt8], header change: (inout [UInt8]) -> Void = { _ in }, info: (inout [UInt8]) -> Void = { _ in },
    directory: (inout [UInt8]) -> Void = { _ in }, footer: (inout [UInt8]) -> Void = { _ in }
  ) {
    var header = Array(whole[..<32]), end = Array(whole[(whole.count - 64)...])
    let start = Int(end.number(at: 0))
    var list = Array(whole[start..<whole.count - 64]), sections = Array(whole[32..<start])
    entries = stride(from: 0, to: list.count, by: 56).map { [list] place in
      Entry(
        kind: Int(list.number(at: place) & 0xFFFF_FFFF), subject: Int(list.number(at: place) >> 32),
        offset: Int(list.number(at: place + 8)),
        byteCount: Int(list.number(at: place + 16)))
    }
    change(&header)
    var first = Array(sections[..<entries[0].byteCount])
    info(&first)
    sections.replaceSubrange(..<entries[0].byteCount, with: first)
    list.set(digest(first), at: 24)
    directory(&list)
    end.set(digest(list), at: 40)
    footer(&end)
    end.set(digest(header + end[..<48]), at: 48)
    bytes = header + sections + list + end
  }
}

/// XXH64. Separate tests compare it with published values.
func digest(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { ContentDigest.value(of: $0) } }

extension [UInt8] {
  /// The little-endian 64-bit number at an offset.
  func number(at place: Int) -> UInt64 { self[place..<place + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) } }

  mutating func set(_ number: UInt64, at place: Int) {
    for byte in 0..<8 { self[place + byte] = UInt8(truncatingIfNeeded: number >> UInt64(8 * byte)) }
  }

  /// Replaces a text by one of the same length, wherever it occurs.
  mutating func replace(_ text: String, with other: String) {
    let (old, new) = (Array(text.utf8), Array(other.utf8))
    for place in 0...(count - old.count) where Array(self[place..<place + old.count]) == old {
      replaceSubrange(place..<place + old.count, with: new)
    }
  }
}
