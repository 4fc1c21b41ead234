import HoldfastPropertyList
import HoldfastStore

/// A file as a list of sections, parsed as the format's article describes, without code of the library. A test can change it and write it
/// with valid lengths and digests, so only the test's change is wrong.
struct BinaryImage: Equatable {
  struct Section: Equatable {
    var kind: UInt32
    var subject: UInt32
    var count: UInt64
    var first: UInt64
    var last: UInt64
    var bytes: [UInt8]
    /// The number of zeros before it. A negative number makes it start inside the preceding section.
    var gap = 0
  }

  private let header: [UInt8]
  private let generation: UInt64
  var sections: [Section]
  /// The number of zeros between the last section and the directory.
  var lastGap = 0

  init(_ file: [UInt8]) {
    header = Array(file[..<32])
    let end = file.count - 64
    generation = file.number(at: end + 24)
    sections = stride(from: Int(file.number(at: end)), to: end, by: 56).map { entry in
      let (offset, byteCount) = (Int(file.number(at: entry + 8)), Int(file.number(at: entry + 16)))
      return Section(
        kind: UInt32(truncatingIfNeeded: file.number(at: entry)), subject: UInt32(truncatingIfNeeded: file.number(at: entry) >> 32),
        count: file.number(at: entry + 32), first: file.number(at: entry + 40), last: file.number(at: entry + 48),
        bytes: Array(file[offset..<offset + byteCount]))
    }
  }

  func places(of kind: UInt32) -> [Int] { sections.indices.filter { sections[$0].kind == kind } }

  /// The bytes of the file.
  var bytes: [UInt8] {
    var file = header, directory: [UInt8] = []
    var places: [(offset: Int, byteCount: Int)] = []
    for section in sections {
      let offset = file.count + section.gap
      file += [UInt8](repeating: 0, count: max(section.gap, 0))
      if section.gap < 0 { file += section.bytes.dropFirst(-section.gap) } else { file += section.bytes }
      places.append((offset, section.bytes.count))
    }
    for (section, place) in zip(sections, places) {
      // If sections share bytes, keep the existing ones.
      let digest = digest(Array(file[place.offset..<min(place.offset + place.byteCount, file.count)]))
      let kind = UInt64(section.kind) | UInt64(section.subject) << 32
      directory.append([
        kind, UInt64(place.offset), UInt64(place.byteCount), digest, section.count, section.first, section.last,
      ])
    }
    file += [UInt8](repeating: 0, count: lastGap)
    var footer: [UInt8] = []
    footer.append([
      UInt64(file.count), UInt64(directory.count), UInt64(sections.count), generation, UInt64(file.count + directory.count + 64),
      digest(directory),
    ])
    let mark = Array(header[..<8])
    footer.append([digest(header + footer)])
    return file + directory + footer + mark
  }

  /// Changes the info of the file.
  mutating func changeInfo(_ change: (inout [String: PropertyList]) -> Void) throws {
    var list = try PropertyList(binary: sections[0].bytes).dictionary ?? [:]
    change(&list)
    sections[0].bytes = PropertyList.dictionary(list).binary
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ numbers: [UInt64]) {
    for number in numbers {
      self += [UInt8](repeating: 0, count: 8)
      set(number, at: count - 8)
    }
  }
}
