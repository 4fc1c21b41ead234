import HoldfastFiles

/// Reads the rows of tables in a database that may be damaged.
///
/// It follows each tree from its root. A damaged interior page hides the pages below it. Databases with auto-vacuum, as this framework and
/// Core Data create them, also have an entry for each page that names its parent, so these pages are found. In other databases they are
/// found by their contents, see ``unclaimedLeaves()``.
final class TreeReader {
  let pages: DamagedPages
  /// The pages that belong to a tree or to the list of free pages.
  private var isClaimed: [Bool]
  /// The pages that should be part of a tree and can't be read.
  private(set) var damagedPages: Set<Int> = []
  /// The rows whose pages were found and that can't be read.
  private(set) var unreadableCount = 0
  /// The rows beside unreadable ones in a page.
  private(set) var suspectCount = 0

  init(_ pages: DamagedPages) {
    self.pages = pages
    isClaimed = Array(repeating: false, count: pages.count + 1)
  }

  typealias Row = (key: Int64, record: DamagedRecord)

  /// What was found of a table.
  struct Tally {
    var leaves = 0
    var rows = 0
    var damagedLeaves = 0
    var unreadableRows = 0
    /// Whether each interior page could be read and had only readable children.
    var hasWholeTree = true

    /// Whether nothing of the table is damaged.
    var isComplete: Bool { damagedLeaves == 0 && unreadableRows == 0 && hasWholeTree }

    /// The leaves that were found by their contents.
    var foundLeaves = 0

    /// About how many rows the damaged pages had.
    var estimatedLostCount: Int { leaves == 0 ? 0 : (max(0, damagedLeaves - foundLeaves) * rows + leaves / 2) / leaves }
  }

  // MARK: Tables

  /// Whether a page can be the root of a table that wasn't followed yet.
  func isRoot(_ page: Int) throws -> Bool {
    guard page >= 1, page <= pages.count, !isClaimed[page], !freePages.contains(page) else { return false }
    let use = try pages.use(of: page)
    // A page's entry may be damaged, but not in the same way as another page that names it.
    guard let isTable = try treePage(page)?.kind.isTable else { return use == .root || use == nil }
    if case .child(let parent)? = use, try treePage(parent)?.hasChild(page) == true { return false }
    return isTable
  }

  /// Passes the rows of a table that its tree has.
  ///
  /// - Parameter body: Uses a row, and returns whether its values fit the table.
  func rows(root: Int, _ body: (Row) throws -> Bool) throws -> Tally {
    var tally = Tally()
    let (unreadable, broken) = (unreadableCount, brokenTreeCount)
    try walk(root, isTable: true, .min ... .max, depth: 0) { page, keys in
      guard let page else { return tally.damagedLeaves += 1 }
      tally.leaves += 1
      tally.rows += try rows(of: page, keys, body)
    }
    tally.unreadableRows = unreadableCount - unreadable
    tally.hasWholeTree = brokenTreeCount == broken
    return tally
  }

  /// Passes the rows of a table in leaves without a readable parent, whose entries lead to the root. Call it when the trees were followed: a
  /// wrong entry may lead to the root of another tree.
  func orphanRows(root: Int, _ tally: inout Tally, _ body: (Row) throws -> Bool) throws {
    for leaf in try orphans[root] ?? [] where !isClaimed[leaf] {
      guard let page = try treePage(leaf), !page.kind.isInterior, isPlausible(page, leaf, .min ... .max) else {
        isClaimed[leaf] = true
        damagedPages.insert(leaf)
        tally.damagedLeaves += 1
        continue
      }
      let (unreadable, suspect) = (unreadableCount, suspectCount)
      let count = try rows(of: page, .min ... .max, body)
      if count == 0 {
        (unreadableCount, suspectCount) = (unreadable, suspect)
        continue
      }
      isClaimed[leaf] = true
      tally.unreadableRows += unreadableCount - unreadable
      tally.leaves += 1
      tally.rows += count
    }
  }

  /// Follows an index, so that its damaged pages are counted and its other pages aren't taken for a table's.
  func claimIndex(root: Int) throws {
    try walk(root, isTable: false, .min ... .max, depth: 0) { _, _ in }
    for page in try orphans[root] ?? [] where !isClaimed[page] {
      guard let found = try treePage(page) else {
        damagedPages.insert(page)
        continue
      }
      if !found.kind.isTable { isClaimed[page] = true }
    }
  }

  /// Passes the leaves of a tree with the range of their keys; nil for a damaged one.
  private func walk(
    _ number: Int, isTable: Bool, _ keys: ClosedRange<Int64>, depth: Int, _ leaf: (TreePage?, ClosedRange<Int64>) throws -> Void
  ) throws {
    guard number >= 1, number <= pages.count, !isClaimed[number], depth <= Self.maximumDepth else { return }
    let readable = try treePage(number)
    // An index whose definition is damaged may name a table's page.
    if !isTable, readable?.kind.isTable == true { return }
    isClaimed[number] = true
    guard let page = readable, isTable == page.kind.isTable, isPlausible(page, number, keys) else {
      damagedPages.insert(number)
      // The pages below an interior page are found by their entries.
      if childCounts[number] == nil { try leaf(nil, keys) }
      return
    }
    guard let lastChild = page.lastChild else { return try leaf(page, keys) }
    var (lower, isWhole) = (keys.lowerBound, true)
    for cell in page.cells {
      guard let cell, let child = page.child(at: cell), try isChild(child.page, of: number), !isClaimed[child.page],
        !isTable || (lower...keys.upperBound).contains(child.key)
      else {
        isWhole = false
        continue
      }
      try walk(child.page, isTable: isTable, lower...(isTable ? child.key : keys.upperBound), depth: depth + 1, leaf)
      if isTable && child.key < keys.upperBound { lower = child.key + 1 }
    }
    if try isChild(lastChild, of: number), !isClaimed[lastChild] {
      try walk(lastChild, isTable: isTable, lower...keys.upperBound, depth: depth + 1, leaf)
    } else {
      isWhole = false
    }
    if !isWhole {
      damagedPages.insert(number)
      brokenTreeCount += 1
    }
  }

  /// The number of interior pages that lack children.
  private var brokenTreeCount = 0

  /// SQLite's own limit.
  private static let maximumDepth = 20

  /// Whether a page may be the child of another one.
  ///
  /// A damaged page may name any page. If the page's entry names another parent, that one is right if it can be read and names the page.
  private func isChild(_ page: Int, of parent: Int) throws -> Bool {
    guard page >= 2, page <= pages.count else { return false }
    switch try pages.use(of: page) {
    case nil: return true
    case .child(let other): return try other == parent || treePage(other)?.hasChild(page) != true
    case .free: return !freePages.contains(page)
    case .root: return !namedRoots.contains(page)
    case .overflow: return try treePage(page) != nil
    }
  }

  /// The roots that the schema names.
  var namedRoots: Set<Int> = []

  private func treePage(_ number: Int) throws -> TreePage? {
    try pages.page(number).flatMap { TreePage($0, number: number, usableSize: pages.usableSize) }
  }

  private func rows(of page: TreePage, _ keys: ClosedRange<Int64>, claims: Bool = true, _ body: (Row) throws -> Bool) throws -> Int {
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
  private func isPlausible(_ page: TreePage, _ number: Int, _ keys: ClosedRange<Int64>) -> Bool {
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

  // MARK: Records

  /// The number of pages that were read as parts of records.
  private var chainedPages = 0
  /// The same for rows that were only looked at, perhaps several times.
  private var sampledPages = 0

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

  // MARK: Pages without a readable parent

  /// The pages that other pages have as their parent, with the number of these.
  private lazy var childCounts: [Int: Int] = (try? countedChildren()) ?? [:]

  private func countedChildren() throws -> [Int: Int] {
    var found: [Int: Int] = [:]
    guard pages.hasParents, pages.count >= 3 else { return found }
    for page in 3...pages.count { if case .child(let parent)? = try pages.use(of: page) { found[parent, default: 0] += 1 } }
    return found
  }

  /// The leaves by the root that their entries lead to. Most of them are found through the tree as well.
  private var orphans: [Int: [Int]] {
    get throws {
      if let knownOrphans { return knownOrphans }
      var found: [Int: [Int]] = [:]
      if pages.hasParents && pages.count >= 3 {
        for page in 3...pages.count where childCounts[page] == nil {
          if let root = try root(of: page), root != page { found[root, default: []].append(page) }
        }
      }
      knownOrphans = found
      return found
    }
  }

  private var knownOrphans: [Int: [Int]]?

  /// The root that a page's entries lead to; nil if it isn't part of a tree.
  private func root(of page: Int) throws -> Int? {
    var page = page
    for _ in 0...Self.maximumDepth {
      switch try pages.use(of: page) {
      case .root: return page
      case .child(let parent): page = parent
      case .free, .overflow, nil: return nil
      }
    }
    return nil
  }

  /// The roots that no part of the schema names. Call it when all known trees are claimed.
  func unclaimedRoots() throws -> [Int] {
    guard pages.hasParents, pages.count >= 3 else { return [] }
    return try (3...pages.count).filter { try !isClaimed[$0] && pages.use(of: $0) == .root }
  }

  /// The leaves of tables that no tree has, in a database without entries of parents. Call it when all known trees are claimed.
  func unclaimedLeaves() throws -> [Int] {
    if pages.hasParents || pages.count < 2 { return [] }
    return try (2...pages.count).filter { try !isClaimed[$0] && !freePages.contains($0) && treePage($0)?.kind == .tableLeaf }
  }

  /// The rows of a leaf that can be read.
  func rows(ofLeaf number: Int) throws -> [Row] {
    guard let page = try treePage(number), page.kind == .tableLeaf else { return [] }
    var found: [Row] = []
    let (unreadable, suspect) = (unreadableCount, suspectCount)
    _ = try rows(of: page, .min ... .max, claims: false) { row in
      found.append(row)
      return true
    }
    (unreadableCount, suspectCount) = (unreadable, suspect)
    return found
  }

  /// Whether an unclaimed root has rows, and all rows in its first pages have a property.
  func fits(root: Int, _ isFitting: (Row) -> Bool) throws -> Bool {
    var count = 0
    for leaf in [root] + (try orphans[root] ?? []).prefix(Self.sampledLeaves) where !isClaimed[leaf] {
      guard let page = try treePage(leaf), page.kind == .tableLeaf else { continue }
      let (unreadable, suspect) = (unreadableCount, suspectCount)
      defer { (unreadableCount, suspectCount) = (unreadable, suspect) }
      let fitting = try rows(of: page, .min ... .max, claims: false, isFitting)
      if unreadableCount > unreadable { return false }
      count += fitting
    }
    return count > 0
  }

  private static let sampledLeaves = 16

  /// The pages in the list of free ones, which may contain deleted rows.
  private lazy var freePages: Set<Int> = (try? listedFreePages()) ?? []

  private func listedFreePages() throws -> Set<Int> {
    guard let header = try pages.page(1) else { return [] }
    var found: Set<Int> = [], trunk = Int(header.bigEndian32(at: 32))
    while trunk >= 2, trunk <= pages.count, found.insert(trunk).inserted, let page = try pages.page(trunk) {
      let count = min(Int(page.bigEndian32(at: 4)), pages.usableSize / 4 - 2)
      for index in 0..<count {
        let leaf = Int(page.bigEndian32(at: 8 + 4 * index))
        if leaf >= 2, leaf <= pages.count { found.insert(leaf) }
      }
      trunk = Int(page.bigEndian32(at: 0))
    }
    return found
  }
}
