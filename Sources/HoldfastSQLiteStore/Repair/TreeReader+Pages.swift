import HoldfastFiles

// The rows of one page, and their records.
extension TreeReader {
  /// Passes the rows of a leaf whose keys are in a range, and returns how many fit the table.
  func rows(of page: TreePage, _ keys: ClosedRange<Int64>, claims: Bool = true, _ body: (Row) throws -> Bool) throws -> Int {
    let unreadable = unreadableCount
    var (count, last) = (0, Int64?.none)
    for cell in page.cells {
      // Keys are in order, so a damaged one is usually found.
      guard let cell, let found = page.cell(at: cell, usableSize: pages.usableSize), keys.contains(found.key),
        last.map({ $0 < found.key }) ?? true, let (record, chain) = try record(found, page, isSample: !claims),
        try body((found.key, record))
      else {
        unreadableCount += 1
        continue
      }
      if claims { for page in chain { isClaimed[page] = true } }
      last = found.key
      count += 1
    }
    if unreadableCount > unreadable { suspectCount += count }
    return count
  }

  /// Whether a leaf can be the page that the rest of the file expects, and not another one whose contents were written there.
  func isPlausible(_ page: TreePage, _ number: Int, _ keys: ClosedRange<Int64>) -> Bool {
    if page.kind.isInterior { return true }
    // One entry of a parent may be damaged.
    if childCounts[number, default: 0] > 1 { return false }
    guard page.kind == .tableLeaf, !page.cells.isEmpty else { return true }
    let readable = page.cells.count { cell in
      guard let found = cell.flatMap({ page.cell(at: $0, usableSize: pages.usableSize) }), keys.contains(found.key) else { return false }
      return found.rest != nil || DamagedRecord(Array(page.bytes[found.local])) != nil
    }
    // By chance, a few offsets of another page are those of cells, perhaps of deleted rows.
    return readable * 10 > page.cells.count
  }

  private func record(_ cell: TreePage.Cell, _ page: TreePage, isSample: Bool) throws -> (DamagedRecord, chain: [Int])? {
    var bytes = Array(page.bytes[cell.local]), next = cell.rest ?? 0, chain: [Int] = []
    // A record can't be larger than the file.
    guard cell.byteCount <= pages.count * pages.pageSize else { return nil }
    while bytes.count < cell.byteCount {
      // In a sound file, each page is part of one chain.
      if isSample { sampledPages += 1 } else { chainedPages += 1 }
      guard chainedPages <= 4 * pages.count + 1000, sampledPages <= 64 * pages.count + 100_000, next >= 2, next <= pages.count,
        !isClaimed[next], let content = try pages.page(next)
      else { return nil }
      chain.append(next)
      bytes += content[4..<min(4 + cell.byteCount - bytes.count, pages.usableSize)]
      next = Int(content.bigEndian32(at: 0))
      // The chain of a damaged record may be a circle.
      if chain.count > cell.byteCount / (pages.usableSize - 4) + 1 { return nil }
    }
    guard cell.rest == nil || next == 0 else { return nil }
    return DamagedRecord(bytes).map { ($0, chain) }
  }
}
