import HoldfastFiles

/// Reads the rows of tables in a database that may be damaged.
///
/// It follows each tree from its root. A damaged interior page hides the pages below it. Databases with auto-vacuum, as this framework and
/// Core Data create them, also have an entry for each page that names its parent, so these pages are found. In other databases they are
/// found by their contents, see ``unclaimedLeaves()``.
final class TreeReader {
  let pages: DamagedPages
  /// The pages that belong to a tree or to the list of free pages.
  var isClaimed: [Bool]
  /// The pages that should be part of a tree and can't be read.
  private(set) var damagedPages: Set<Int> = []
  /// The rows whose pages were found and that can't be read.
  var unreadableCount = 0
  /// The rows beside unreadable ones in a page.
  var suspectCount = 0
  /// The number of interior pages that lack children.
  private var brokenTreeCount = 0
  /// The roots that the schema names.
  var namedRoots: Set<Int> = []
  /// The pages that other pages have as their parent, with the number of these.
  lazy var childCounts: [Int: Int] = (try? countedChildren()) ?? [:]
  /// The leaves by the root that their entries lead to; nil until they are found.
  var knownOrphans: [Int: [Int]]?
  /// The pages in the list of free ones, which may contain deleted rows.
  lazy var freePages: Set<Int> = (try? listedFreePages()) ?? []
  /// The number of pages that were read as parts of records.
  var chainedPages = 0
  /// The same for rows that were only looked at, perhaps several times.
  var sampledPages = 0

  /// SQLite's own limit.
  static let maximumDepth = 20

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

  /// A page of a tree; nil if it can't be read as one.
  func treePage(_ number: Int) throws -> TreePage? {
    try pages.page(number).flatMap { TreePage($0, number: number, usableSize: pages.usableSize) }
  }
}
