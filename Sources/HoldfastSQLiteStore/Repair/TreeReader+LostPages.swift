import HoldfastFiles

// Pages without a readable parent.
extension TreeReader {
  /// Counts the pages that name each page as their parent.
  func countedChildren() throws -> [Int: Int] {
    var found: [Int: Int] = [:]
    guard pages.hasParents, pages.count >= 3 else { return found }
    for page in 3...pages.count { if case .child(let parent)? = try pages.use(of: page) { found[parent, default: 0] += 1 } }
    return found
  }

  /// The leaves by the root that their entries lead to. Most of them are found through the tree as well.
  var orphans: [Int: [Int]] {
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

  func listedFreePages() throws -> Set<Int> {
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
