import HoldfastFiles
import HoldfastStore

/// The pages of a database file that may be damaged, and what its header says of them. See SQLite, *Database File Format*.
///
/// Only the copy that ``DamagedFile`` makes is read this way: no lock protects these reads.
final class DamagedPages {
  /// The number of bytes of a page.
  let pageSize: Int
  /// The bytes of a page that SQLite uses.
  let usableSize: Int
  /// The number of pages.
  let count: Int
  /// Whether texts are in UTF-16, and whether its first byte is the more significant one.
  var encoding: TextEncoding
  /// Whether pages have entries that name their parents.
  let hasParents: Bool
  private let file: StoreFileHandle
  private let files = POSIXFileSystem()

  enum TextEncoding: UInt32 { case utf8 = 1, utf16LittleEndian, utf16BigEndian }

  /// The part of the first page before its tree.
  static let headerByteCount = 100

  init(_ path: String) throws(FileSystemError) {
    file = try files.openForReading(path, in: .workingDirectory)
    let header = try files.bytes(of: file, at: 0, count: Self.headerByteCount)
    pageSize = DatabaseHeader.pageSize(header) ?? DatabaseHeader.usualPageSize
    count = Int(try files.status(of: file).identity.size) / pageSize
    usableSize = try Self.usableSize(header, pageSize, files, file)
    encoding = header.count < Self.headerByteCount ? .utf8 : TextEncoding(rawValue: header.bigEndian32(at: 56)) ?? .utf8
    hasParents = header.count >= Self.headerByteCount && header.bigEndian32(at: 52) != 0
  }

  deinit { try? files.close(file) }

  /// The size without the bytes that the header reserves, unless more cells of the first pages agree with the whole page.
  private static func usableSize(
    _ header: [UInt8], _ pageSize: Int, _ files: POSIXFileSystem, _ file: StoreFileHandle
  ) throws(FileSystemError) -> Int {
    let reserved = header.count > 20 ? Int(header[20]) : 0
    if reserved == 0 || reserved > pageSize - 480 { return pageSize }
    let bytes = try files.bytes(of: file, at: 0, count: 64 * pageSize)
    func cells(_ usableSize: Int) -> Int {
      (1..<max(1, bytes.count / pageSize)).reduce(0) { count, index in
        guard let page = TreePage(Array(bytes[index * pageSize..<(index + 1) * pageSize]), number: index + 1, usableSize: usableSize),
          page.kind == .tableLeaf
        else { return count }
        return count + page.cells.count { $0.map { page.cell(at: $0, usableSize: usableSize) != nil } ?? false }
      }
    }
    return cells(pageSize - reserved) >= cells(pageSize) ? pageSize - reserved : pageSize
  }

  /// The bytes of a page; nil if there is no such page.
  func page(_ number: Int) throws(FileSystemError) -> [UInt8]? {
    guard number >= 1, number <= count else { return nil }
    let bytes = try files.bytes(of: file, at: Int64(number - 1) * Int64(pageSize), count: pageSize)
    return bytes.count == pageSize ? bytes : nil
  }

  // MARK: Parents

  /// What an entry says of its page.
  enum PageUse: Equatable {
    case root, free, overflow
    case child(of: Int)
  }

  /// The page whose entries describe a page.
  func parentPage(of number: Int) -> Int {
    let entries = usableSize / 5
    return 2 + (number - 2) / (entries + 1) * (entries + 1)
  }

  /// What a page is used for; nil if it isn't known, for example because the page with its entry is damaged.
  func use(of number: Int) throws(FileSystemError) -> PageUse? {
    if number == 1 { return .root }
    let map = parentPage(of: number)
    guard hasParents, map != number, let bytes = try trusted(map) else { return nil }
    let place = 5 * (number - map - 1)
    let parent = Int(bytes.bigEndian32(at: place + 1))
    switch bytes[place] {
    case 1: return .root
    case 2: return .free
    case 3, 4: return .overflow
    case 5: return parent >= 1 && parent <= count && parent != number ? .child(of: parent) : nil
    default: return nil
    }
  }

  /// The last page of entries, because they are usually read one after the other; no bytes if an entry of the page can't be one.
  private var lastMap: (number: Int, bytes: [UInt8]?)?

  private func trusted(_ number: Int) throws(FileSystemError) -> [UInt8]? {
    if let lastMap, lastMap.number == number { return lastMap.bytes }
    let bytes = try page(number).flatMap { hasValidEntries($0, number) ? $0 : nil }
    lastMap = (number, bytes)
    return bytes
  }

  private func hasValidEntries(_ page: [UInt8], _ number: Int) -> Bool {
    let entries = min(usableSize / 5, count - number)
    return (0..<max(0, entries)).allSatisfy { (1...5).contains(page[5 * $0]) && page.bigEndian32(at: 5 * $0 + 1) <= UInt32(count) }
  }
}

/// The header of a database file.
enum DatabaseHeader {
  static let usualPageSize = 4096
  static let magic = Array("SQLite format 3\0".utf8)

  /// The size of the pages; nil if the header is damaged.
  static func pageSize(_ header: [UInt8]) -> Int? {
    guard header.count >= 24, header.starts(with: magic), header[21...23].elementsEqual([64, 32, 32]) else { return nil }
    let size = Int(header[16]) << 8 | Int(header[17])
    if size == 1 { return 65_536 }
    return size >= 512 && size & (size - 1) == 0 ? size : nil
  }

  /// Whether the second page of a file contains entries that name the parents of pages.
  static func hasParentEntries(_ page: [UInt8], pageCount: Int) -> Bool {
    let entries = stride(from: 0, to: min(page.count / 5, pageCount - 2) * 5, by: 5)
    return pageCount >= 3 && entries.allSatisfy { (1...5).contains(page[$0]) && Int(page.bigEndian32(at: $0 + 1)) <= pageCount }
  }

  /// A header for a file whose own one is damaged.
  ///
  /// - Parameters:
  ///   - pageSize: The size of the pages.
  ///   - hasLog: Whether the file has a log.
  ///   - hasParents: Whether the second page contains entries.
  static func replacement(pageSize: Int, hasLog: Bool, hasParents: Bool) -> [UInt8] {
    var header = magic + [UInt8](repeating: 0, count: DamagedPages.headerByteCount - magic.count)
    header[16] = UInt8(truncatingIfNeeded: pageSize == 65_536 ? 0 : pageSize >> 8)
    header[17] = pageSize == 65_536 ? 1 : 0
    (header[18], header[19]) = hasLog ? (2, 2) : (1, 1)
    (header[21], header[22], header[23]) = (64, 32, 32)
    // These numbers differ, so SQLite takes the number of pages from the file's size.
    (header[27], header[95]) = (1, 0)
    header[47] = 4
    // A non-zero number of the largest root means that pages have entries; its value is used only by SQLite itself when it writes.
    header[55] = hasParents ? 1 : 0
    header[59] = 1
    return header
  }
}

extension Array<UInt8> {
  /// A number of four bytes.
  func bigEndian32(at place: Int) -> UInt32 {
    UInt32(self[place]) << 24 | UInt32(self[place + 1]) << 16 | UInt32(self[place + 2]) << 8 | UInt32(self[place + 3])
  }

  /// A number of two bytes.
  func bigEndian16(at place: Int) -> Int { Int(self[place]) << 8 | Int(self[place + 1]) }
}
