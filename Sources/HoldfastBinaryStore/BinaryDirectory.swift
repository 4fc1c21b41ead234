import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The header, footer and directory of a file: the store's identity, and the positions of its sections.
struct BinaryDirectory: Sendable {
  let storeUUID: String
  let generation: Int64
  let entries: [SectionEntry]

  /// Reads and checks the header, footer and directory. The time is linear in the number of sections.
  ///
  /// - Parameter allowsUnverified: Whether digests that don't match are accepted.
  /// - Throws: ``StoreError`` with code `notAStore`, `newerFormat` or `damaged`, and errors from reading the file.
  init(_ file: FileBytes, _ errors: BinaryErrors, allowsUnverified: Bool) throws {
    let header = try BinaryDirectory.read(file, at: 0, BinaryLayout.headerByteCount, errors)
    guard let header, header.starts(with: BinaryLayout.mark) else {
      let start = try BinaryDirectory.read(file, at: 0, min(Int(file.byteCount), BinaryLayout.mark.count), errors) ?? []
      if start == BinaryLayout.mark { throw errors.damaged("The file is truncated.") }
      throw errors.notAStore()
    }
    var reader = Fields(header)
    reader.skip(BinaryLayout.mark.count)
    let version = reader.next(UInt32.self), flags = reader.next(UInt32.self)
    if version > BinaryLayout.version { throw errors.newerFormat("the newer format version \(version)") }
    if version < BinaryLayout.version { throw errors.damaged("The format version is invalid.") }
    if flags != 0 { throw errors.newerFormat("the unknown flags \(String(flags, radix: 16))") }
    storeUUID = header[16..<32].withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString }
    let footer = try BinaryDirectory.footer(file, header, errors, allowsUnverified: allowsUnverified)
    generation = footer.generation
    guard let bytes = try BinaryDirectory.read(file, at: footer.directoryOffset, footer.directoryByteCount, errors),
      bytes.count == footer.entryCount * BinaryLayout.entryByteCount
    else { throw errors.damaged("The footer doesn't match the position of the directory.") }
    if !allowsUnverified && footer.directoryDigest != bytes.withUnsafeBytes({ ContentDigest.value(of: $0) }) {
      throw errors.unverified("the directory")
    }
    entries = try BinaryDirectory.entries(bytes, endingAt: footer.directoryOffset, errors)
  }

  /// Whether the digest of the header and footer is right, whatever they contain.
  static func isSealed(_ file: FileBytes, _ errors: BinaryErrors) -> Bool {
    guard let header = try? read(file, at: 0, BinaryLayout.headerByteCount, errors) else { return false }
    return (try? footer(file, header, errors, allowsUnverified: false)) != nil
  }

  private static func footer(_ file: FileBytes, _ header: [UInt8], _ errors: BinaryErrors, allowsUnverified: Bool) throws -> Footer {
    let offset = file.byteCount - Int64(BinaryLayout.footerByteCount)
    guard let bytes = try read(file, at: offset, BinaryLayout.footerByteCount, errors), offset >= Int64(header.count),
      bytes.suffix(BinaryLayout.mark.count) == BinaryLayout.mark[...]
    else { throw errors.damaged("The file doesn't end with a valid footer: it was truncated, or something was appended.") }
    var reader = Fields(bytes)
    let footer = Footer(
      directoryOffset: reader.next(Int64.self), directoryByteCount: reader.next(Int.self), entryCount: reader.next(Int.self),
      generation: reader.next(Int64.self), fileByteCount: reader.next(Int64.self), directoryDigest: reader.next(UInt64.self))
    if !allowsUnverified && footer.bytes(header: header) != bytes { throw errors.unverified("the header and footer") }
    let (expected, overflow) = footer.entryCount.multipliedReportingOverflow(by: BinaryLayout.entryByteCount)
    guard footer.entryCount >= 0, !overflow, expected == footer.directoryByteCount,
      footer.directoryOffset >= Int64(header.count), footer.directoryOffset <= offset,
      Int64(footer.directoryByteCount) == offset - footer.directoryOffset, footer.fileByteCount == file.byteCount
    else { throw errors.damaged("The lengths in the footer don't match the file.") }
    return footer
  }

  /// Reads bytes; nil if the range isn't inside the file.
  private static func read(_ file: FileBytes, at offset: Int64, _ count: Int, _ errors: BinaryErrors) throws -> [UInt8]? {
    guard offset >= 0, count >= 0, Int64(count) <= file.byteCount, offset <= file.byteCount - Int64(count) else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try file.read(at: offset, into: $0, operation: errors.operation) }
    return bytes
  }

  /// Parses the entries. Sections must be contiguous and sorted by kind, subject and keys.
  private static func entries(_ bytes: [UInt8], endingAt end: Int64, _ errors: BinaryErrors) throws -> [SectionEntry] {
    var entries: [SectionEntry] = []
    entries.reserveCapacity(bytes.count / BinaryLayout.entryByteCount)
    var reader = Fields(bytes)
    var next = Int64(BinaryLayout.headerByteCount)
    for _ in 0..<bytes.count / BinaryLayout.entryByteCount {
      let kind = reader.next(UInt32.self), subject = Int(reader.next(UInt32.self))
      let offset = reader.next(Int64.self), byteCount = reader.next(Int.self)
      let digest = reader.next(UInt64.self), count = reader.next(Int.self)
      let first = reader.next(Int64.self), last = reader.next(Int64.self)
      guard let kind = BinaryLayout.Kind(rawValue: kind) else { throw errors.newerFormat("a section of the unknown kind \(kind)") }
      guard offset == next, byteCount > 0, Int64(byteCount) <= end - offset, count > 0, first <= last,
        kind.range.contains(first), kind.range.contains(last)
      else {
        throw errors.damaged("An entry of the directory is invalid.")
      }
      if (kind == .info || kind == .model || kind == .history) && (subject != 0 || count != 1) {
        throw errors.newerFormat("an unexpected section of store information or of the model, or a second history")
      }
      next += Int64(byteCount)
      let entry = SectionEntry(
        kind: kind, subject: subject, offset: offset, byteCount: byteCount, digest: digest, count: count, first: first, last: last)
      if let before = entries.last, !entry.follows(before) { throw errors.damaged("The sections are out of order.") }
      entries.append(entry)
    }
    if next != end { throw errors.damaged("The sections don't fill the file.") }
    return entries
  }
}

extension BinaryLayout.Kind {
  /// The valid range for `first` and `last`.
  fileprivate var range: ClosedRange<Int64> {
    switch self {
    case .info, .model, .history: 0...0
    case .rows, .links, .order, .inverse: TableLoader.keys.rawValues
    case .unique: 0...Int64(UInt32.max)
    }
  }
}

extension SectionEntry {
  fileprivate func follows(_ before: SectionEntry) -> Bool {
    if kind != before.kind { return kind.rawValue > before.kind.rawValue }
    if subject != before.subject { return subject > before.subject }
    return first > before.last
  }

  /// The name of the section in messages.
  var name: String {
    switch kind {
    case .info: "the store information"
    case .model: "the model"
    case .rows: "a section of rows"
    case .links: "a section of links"
    case .order: "a section of lists"
    case .unique: "an index"
    case .history: "the history"
    case .inverse: "a section of inverse links"
    }
  }
}

/// Reads integers from bytes of a known length.
private struct Fields {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func skip(_ count: Int) { offset += count }

  mutating func next<Number: FixedWidthInteger>(_: Number.Type) -> Number {
    defer { offset += Number.bitWidth / 8 }
    return bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
  }
}
