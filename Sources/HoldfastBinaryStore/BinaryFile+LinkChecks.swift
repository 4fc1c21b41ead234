import HoldfastAtomicStore
import HoldfastStore
import Synchronization

extension BinaryFile {
  /// Compares links with their other ends, as far as these are in memory. Notes the others, which are compared when their sections are read.
  func check(_ links: PagedLinks, of owners: [ObjectKey], _ otherEnd: OtherEnd) throws {
    var claims: [(place: Int, claim: LinkClaim)] = []
    claims.reserveCapacity(links.targets.count)
    for (index, owner) in owners.enumerated() {
      for target in links.targets[links.range(ofOwner: index)] {
        if let claim = try claim(owner, target, otherEnd) { claims.append(claim) }
      }
    }
    if claims.isEmpty { return }
    let areConfirmed = pages.withLock { pages in
      pages.linkCost += BinaryFile.linkCost * claims.count
      return claims.allSatisfy { pages.confirmsOrNotes($0.claim, $0.place) }
    }
    if !areConfirmed { throw contradiction() }
  }

  /// What the other end of a link must contain, and the section that must contain it; nil if there is nothing left to compare.
  @inline(__always) private func claim(
    _ owner: ObjectKey, _ target: ObjectKey, _ otherEnd: OtherEnd
  ) throws -> (place: Int, claim: LinkClaim)? {
    switch otherEnd {
    case .slot(let slot, let entities):
      let claim = LinkClaim(key: target, other: owner, slot: slot)
      if entities.count == 1, let place = place(of: target, in: rowSections[entities[0]]) { return (place, claim) }
      if try isConfirmed(claim, entities) { return nil }
    case .sections(let sections, let isReversed):
      let claim = LinkClaim(key: isReversed ? target : owner, other: isReversed ? owner : target)
      if let place = place(of: claim.key, in: sections) { return (place, claim) }
    case .none: return nil
    }
    throw contradiction()
  }

  /// Looks up the row of a claim among several entities. Its entity is part of the answer, so the row is needed anyway.
  private func isConfirmed(_ claim: LinkClaim, _ entities: [EntityIndex]) throws -> Bool {
    for entity in entities {
      if let row = try row(entity: entity, key: claim.key) {
        return row.pointer.isPresent(claim.slot) && row.pointer.key(claim.slot) == claim.other
      }
    }
    return false
  }

  /// The error for two parts of the file that contradict each other.
  func contradiction() -> StoreError {
    errors.damaged("A link is stored at one of its ends only, or its ends contradict each other.")
  }

  /// Checks that both ends of each many-to-many relationship have the same number of links, according to the directory.
  func checkLinkCounts() throws {
    for case let relationship? in subjects.inverses where relationship.isManyToMany {
      guard let inverse = schema.model.inverse(of: relationship), let sections = linkPlaces.answering(relationship) else { continue }
      func count(_ places: Range<Int>) -> Int { places.reduce(0) { $0 &+ entries[$1].count } }
      if count(sections) != count(linkPlaces.links(inverse)) { throw contradiction() }
    }
  }
}
