/// A page of a tree of a database that may be damaged. See SQLite, *Database File Format*, "B-tree Pages".
struct TreePage {
  enum Kind: UInt8 {
    case indexInterior = 2
    case tableInterior = 5
    case indexLeaf = 10
    case tableLeaf = 13

    var isInterior: Bool { self == .indexInterior || self == .tableInterior }
    var isTable: Bool { self == .tableLeaf || self == .tableInterior }
  }

  let kind: Kind
  let bytes: [UInt8]
  /// The offsets of the cells; nil for one outside of the page's contents, or of a cell that another offset names.
  let cells: [Int?]

  /// Reads the page's header; nil if the page can't be one of a tree.
  ///
  /// - Parameters:
  ///   - number: The page's number. The first page begins with the file's header.
  ///   - usableSize: The number of bytes that SQLite uses.
  init?(_ bytes: [UInt8], number: Int, usableSize: Int) {
    let start = number == 1 ? DamagedPages.headerByteCount : 0
    guard let kind = Kind(rawValue: bytes[start]) else { return nil }
    let pointers = start + (kind.isInterior ? 12 : 8), count = bytes.bigEndian16(at: start + 3), end = pointers + 2 * count
    // The number 0 stands for 65,536.
    let content = (bytes.bigEndian16(at: start + 5) + 65_535) & 65_535 + 1
    guard end <= content, content <= usableSize else { return nil }
    // A page without cells is only an empty table's, or an interior page with one child.
    self.kind = kind
    self.bytes = bytes
    var seen: Set<Int> = []
    cells = (0..<count).map { index in
      let offset = bytes.bigEndian16(at: pointers + 2 * index)
      return offset >= content && offset < usableSize - 2 && seen.insert(offset).inserted ? offset : nil
    }
    lastChild = kind.isInterior ? Int(bytes.bigEndian32(at: start + 8)) : nil
    fragments = min(Int(bytes[start + 7]), Self.mostFragments)
    begins = kind == .tableLeaf ? Self.begins(bytes, freeBlock: bytes.bigEndian16(at: start + 1), cells.compactMap { $0 }, usableSize) : []
  }

  /// Where cells and free blocks begin, and the end of the page, ascending.
  private let begins: [Int]
  /// The number of bytes that belong to neither, and its maximum.
  private let fragments: Int
  private static let mostFragments = 60

  private static func begins(_ bytes: [UInt8], freeBlock: Int, _ cells: [Int], _ usableSize: Int) -> [Int] {
    var begins = cells + [usableSize], place = freeBlock, last = 0
    // Blocks are in order.
    while place > last, place + 4 <= usableSize {
      begins.append(place)
      (last, place) = (place, bytes.bigEndian16(at: place))
    }
    return begins.sorted()
  }

  /// Whether a cell can end at a place: cells and free blocks fill the page. So a pointer into the middle of a cell is found.
  private func isEnd(_ place: Int) -> Bool {
    var (low, high) = (0, begins.count)
    while low < high {
      let middle = (low + high) / 2
      if begins[middle] < place { low = middle + 1 } else { high = middle }
    }
    return low < begins.count && begins[low] - place <= fragments
  }

  /// The child after the last cell; nil for a leaf.
  let lastChild: Int?

  /// The child of an interior page's cell, and the largest key below it. For a page of an index, the key is 0.
  func child(at offset: Int) -> (page: Int, key: Int64)? {
    guard offset + 4 < bytes.count else { return nil }
    let page = Int(bytes.bigEndian32(at: offset))
    if kind == .indexInterior { return (page, 0) }
    var place = offset + 4
    guard let key = bytes.varint(at: &place) else { return nil }
    return (page, Int64(bitPattern: key))
  }

  /// Whether an interior page has a child.
  func hasChild(_ page: Int) -> Bool {
    lastChild == page || lastChild != nil && cells.contains { $0.flatMap { child(at: $0)?.page } == page }
  }

  /// A cell of a table's leaf: the key, the size of the row's record, the part of the record in this page, and the page with the rest.
  struct Cell {
    let key: Int64
    let byteCount: Int
    let local: Range<Int>
    /// The first overflow page; nil if the entire record is in this page.
    let rest: Int?
  }

  /// Reads a cell of a table's leaf; nil if it doesn't fit in the page.
  func cell(at offset: Int, usableSize: Int) -> Cell? {
    var place = offset
    guard let size = bytes.varint(at: &place), size >= 2, size <= UInt64(Int32.max), let key = bytes.varint(at: &place) else { return nil }
    let byteCount = Int(size), largest = usableSize - 35
    var local = byteCount
    if byteCount > largest {
      let smallest = (usableSize - 12) * 32 / 255 - 23, wanted = smallest + (byteCount - smallest) % (usableSize - 4)
      local = wanted <= largest ? wanted : smallest
    }
    let end = place + local + (local < byteCount ? 4 : 0)
    guard end <= usableSize, isEnd(end) else { return nil }
    let rest = local < byteCount ? Int(bytes.bigEndian32(at: place + local)) : nil
    return Cell(key: Int64(bitPattern: key), byteCount: byteCount, local: place..<place + local, rest: rest)
  }
}

extension Array<UInt8> {
  /// Reads a number of 1 to 9 bytes and moves the place after it; nil if the bytes end before.
  func varint(at place: inout Int) -> UInt64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard place < count else { return nil }
      let byte = self[place]
      place += 1
      if index == 8 { return value << 8 | UInt64(byte) }
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return value }
    }
    return value
  }
}
