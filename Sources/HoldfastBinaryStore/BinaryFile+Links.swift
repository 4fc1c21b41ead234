import HoldfastAtomicStore
import HoldfastStore
import Synchronization

extension BinaryFile {
  /// The minimum of ``linkAllowance``: a section, and some owners.
  private static let leastAllowance = 72 << 10
  /// The cost of an owner. Looking it up in sections, here and before, takes longer than in tables.
  private static let ownerCost = 1 << 10
  /// The cost of comparing a link with its other end.
  static let linkCost = 32

  /// The maximum cost of answers, in bytes that are decoded. More would take too long in addition to reading the entire file, which a program
  /// needs that follows many relationships.
  private var linkAllowance: Int { max(BinaryFile.leastAllowance, Int(file.byteCount / 128)) }

  func links(of relationship: ManagedObjectModel.Relationship, from owners: [ObjectKey]) throws -> PagedLinks? {
    if allowsUnverified { return nil }
    guard let source = source(of: relationship) else { return nil }
    let places = owners.map { place(of: $0, in: source.sections) }
    guard isWorthIt(places) else { return nil }
    var links = PagedLinks(isOrdered: source.isOrdered)
    for (owner, place) in zip(owners, places) {
      guard let place else {
        links.append([], orderKeys: source.isOrdered ? [] : nil)
        continue
      }
      let runs = try runs(place), range = runs.range(of: owner)
      links.append(runs.targets[range], orderKeys: runs.orderKeys?[range])
    }
    if !source.isOrdered && !relationship.storesLinks { note(relationship, owners) }
    try check(links, of: owners, source.otherEnd)
    return links
  }

  /// Notes that owners were answered from inverse links.
  private func note(_ relationship: ManagedObjectModel.Relationship, _ owners: [ObjectKey]) {
    pages.withLock { pages in
      for owner in owners {
        pages.answered.append(AnsweredOwner(entity: relationship.entityIndex, relationship: relationship.index, owner: owner))
      }
    }
  }

  /// The position of the section that contains an owner's links; nil if it has none.
  func place(of owner: ObjectKey, in sections: Range<Int>) -> Int? {
    let place = BinaryFile.place(of: owner.rawValue, in: sections) { entries[$0].last }
    return place.flatMap { entries[$0].first <= owner.rawValue ? $0 : nil }
  }

  /// Adds the cost of an answer. Returns false if reading the entire file is better, because of this answer or all earlier ones.
  private func isWorthIt(_ places: [Int?]) -> Bool {
    pages.withLock { pages in
      var cost = BinaryFile.ownerCost * places.count, last: Int?
      var new: Set<Int> = []
      for case let place? in places where place != last {
        last = place
        if pages.links[place] == nil && new.insert(place).inserted { cost += entries[place].byteCount }
      }
      guard cost <= linkAllowance - pages.linkCost else { return false }
      pages.linkCost += cost
      return true
    }
  }

  /// The links of a section.
  func runs(_ place: Int) throws -> LinkRuns {
    if let known = pages.withLock({ $0.links[place] }) { return known }
    let read = try decoded(entries[place])
    return try pages.withLock { pages throws in
      if let runs = pages.links[place] { return runs }
      guard pages.claims.settle(place, { read.contains($0.key, $0.other) }) else { throw contradiction() }
      pages.links[place] = read
      return read
    }
  }

  private func decoded(_ entry: SectionEntry) throws -> LinkRuns {
    try withSection(entry) { section in
      switch entry.kind {
      case .inverse: return try InverseSections.runs(section, entry)
      case .order:
        var links: [SaveRequest.Link] = [], keys: [Int64] = []
        try OrderSections.read(section, entry, into: &links, &keys)
        return try LinkRuns(lists: links, keys)
      default:
        var links: [SaveRequest.Link] = []
        try LinkSections.read(section, entry, into: &links)
        return LinkRuns(links)
      }
    }
  }
}
