import HoldfastAtomicStore
import HoldfastStore
import Synchronization

extension BinaryFile {
  /// The sections from which a to-many relationship is answered, and where else its links are.
  private struct LinkSource {
    /// The positions of the sections, sorted by owner.
    var sections: Range<Int>
    var isOrdered: Bool
    var otherEnd: OtherEnd
  }

  private enum OtherEnd {
    /// The to-one relationship in a slot of the destinations.
    case slot(SlotIndex, [EntityIndex])
    /// Sections of links. If `isReversed` is true, their sources are the destinations.
    case sections(Range<Int>, isReversed: Bool)
    /// Nowhere, or not in the same form.
    case none
  }

  /// Finds the sections of a relationship; nil if the file has none for it.
  private func source(of relationship: ManagedObjectModel.Relationship) -> LinkSource? {
    guard relationship.isToMany, !relationship.isTransient, let sections = linkPlaces.answering(relationship) else { return nil }
    var otherEnd = OtherEnd.none
    if !relationship.isManyToMany {
      guard let inverse = schema.model.inverse(of: relationship) else { return nil }
      let destinations = schema.model.entities[relationship.destinationIndex].familyIndexes
      otherEnd = .slot(inverse.slot, destinations.filter { !rowSections[$0].isEmpty })
    } else if relationship.storesLinks {
      if relationship.isOrdered {
        otherEnd = .sections(linkPlaces.links(relationship), isReversed: false)
      } else if !relationship.isReflexive, let inverse = schema.model.inverse(of: relationship), !inverse.isOrdered,
        let sections = linkPlaces.answering(inverse)
      {
        otherEnd = .sections(sections, isReversed: true)
      }
    } else if let inverse = schema.model.inverse(of: relationship) {
      otherEnd = .sections(linkPlaces.links(inverse), isReversed: true)
    }
    return LinkSource(sections: sections, isOrdered: relationship.isOrdered, otherEnd: otherEnd)
  }

  // MARK: Answers

  /// The minimum of ``linkAllowance``: a section, and some owners.
  private static let leastAllowance = 72 << 10
  /// The cost of an owner. Looking it up in sections, here and before, takes longer than in tables.
  private static let ownerCost = 1 << 10
  private static let linkCost = 32

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
    if !source.isOrdered && !relationship.storesLinks {
      pages.withLock { pages in
        for owner in owners {
          pages.answered.append(AnsweredOwner(entity: relationship.entityIndex, relationship: relationship.index, owner: owner))
        }
      }
    }
    try check(links, of: owners, source.otherEnd)
    return links
  }

  /// The position of the section that contains an owner's links; nil if it has none.
  private func place(of owner: ObjectKey, in sections: Range<Int>) -> Int? {
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
  private func runs(_ place: Int) throws -> LinkRuns {
    if let known = pages.withLock({ $0.links[place] }) { return known }
    let entry = entries[place]
    let read = try withSection(entry) { section in
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
    return try pages.withLock { pages throws in
      if let runs = pages.links[place] { return runs }
      guard pages.claims.settle(place, { read.contains($0.key, $0.other) }) else { throw contradiction() }
      pages.links[place] = read
      return read
    }
  }

  // MARK: Checks

  /// Compares links with their other ends, as far as these are in memory. Notes the others, which are compared when their sections are read.
  private func check(_ links: PagedLinks, of owners: [ObjectKey], _ otherEnd: OtherEnd) throws {
    var claims: [(place: Int, claim: LinkClaim)] = []
    claims.reserveCapacity(links.targets.count)
    for (index, owner) in owners.enumerated() {
      for target in links.targets[links.range(ofOwner: index)] {
        switch otherEnd {
        case .slot(let slot, let entities):
          let claim = LinkClaim(key: target, other: owner, slot: slot)
          if entities.count == 1, let place = place(of: target, in: rowSections[entities[0]]) {
            claims.append((place, claim))
          } else if try !isConfirmed(claim, entities) {
            throw contradiction()
          }
        case .sections(let sections, let isReversed):
          let claim = LinkClaim(key: isReversed ? target : owner, other: isReversed ? owner : target)
          guard let place = place(of: claim.key, in: sections) else { throw contradiction() }
          claims.append((place, claim))
        case .none: break
        }
      }
    }
    if claims.isEmpty { return }
    let areConfirmed = pages.withLock { pages in
      pages.linkCost += BinaryFile.linkCost * claims.count
      return claims.allSatisfy { pages.confirmsOrNotes($0.claim, $0.place) }
    }
    if !areConfirmed { throw contradiction() }
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
    for relationship in subjects.inverses.compacted() where relationship.isManyToMany {
      guard let inverse = schema.model.inverse(of: relationship), let sections = linkPlaces.answering(relationship) else { continue }
      func count(_ places: Range<Int>) -> Int { places.reduce(0) { $0 &+ entries[$1].count } }
      if count(sections) != count(linkPlaces.links(inverse)) { throw contradiction() }
    }
  }

  func compare(_ generation: TableGeneration, everything: Bool) throws {
    if allowsUnverified { return }
    if everything {
      for relationship in subjects.inverses.compacted() {
        if let sections = linkPlaces.answering(relationship) { try compare(sections, with: generation, relationship) }
      }
    } else {
      for answer in pages.withLock({ $0.answered }) { try compare(answer, with: generation) }
    }
    // The tables replace what was read of links.
    pages.withLock { $0.releaseLinks() }
  }

  /// Compares an answer with the tables.
  private func compare(_ answer: AnsweredOwner, with generation: TableGeneration) throws {
    let relationship = schema.model.entities[answer.entity].relationships[answer.relationship]
    let sections = linkPlaces.answering(relationship) ?? 0..<0
    let links = try place(of: answer.owner, in: sections).map { try runs($0) } ?? LinkRuns()
    let targets = generation.targets(of: answer.owner, relationship)
    if !links.targets[links.range(of: answer.owner)].elementsEqual(targets) { throw mismatch(relationship) }
  }

  /// Compares sections of inverse links with the tables, owner by owner.
  private func compare(
    _ sections: Range<Int>, with generation: TableGeneration, _ relationship: ManagedObjectModel.Relationship
  ) throws {
    let reader = generation.links(of: relationship)
    var isSame = true, count = 0
    for place in sections {
      let entry = entries[place]
      count &+= entry.count
      let runs = try withSection(entry) { try InverseSections.runs($0, entry) }
      for index in 0..<runs.ownerCount where isSame {
        let (owner, range) = runs.owner(index), targets = reader.targets(of: owner)
        isSame = targets.count == range.count && runs.targets[range].elementsEqual(targets)
      }
    }
    // As many links as in the tables, so no owner is missing.
    if !isSame || count != generation.linkCount(of: relationship) { throw mismatch(relationship) }
  }

  private func mismatch(_ relationship: ManagedObjectModel.Relationship) -> StoreError {
    let entity = schema.model.entities[relationship.entityIndex].name
    return errors.damaged("The inverse links of \(relationship.name) of \(entity) don't match the links.")
  }
}

extension Array {
  /// The elements that aren't nil.
  fileprivate func compacted<Wrapped>() -> [Wrapped] where Element == Wrapped? { compactMap { $0 } }
}

/// The positions of the sections of links in a directory, by relationship.
struct LinkPlaces: Sendable {
  private struct Key: Hashable {
    var kind: BinaryLayout.Kind
    var entity: EntityIndex
    var relationship: RelationshipIndex
  }

  private var places: [Key: Range<Int>] = [:]

  init(_ entries: [SectionEntry], _ subjects: BinarySubjects, _ model: ManagedObjectModel) {
    // A relationship that is listed without a section has no links.
    for case let relationship? in subjects.inverses { places[LinkPlaces.key(.inverse, relationship)] = 0..<0 }
    var start = 0
    while start < entries.count {
      let entry = entries[start]
      var end = start + 1
      while end < entries.count, entries[end].kind == entry.kind, entries[end].subject == entry.subject { end += 1 }
      if let relationship = LinkPlaces.relationship(entry, subjects) { places[LinkPlaces.key(entry.kind, relationship)] = start..<end }
      start = end
    }
  }

  private static func relationship(_ entry: SectionEntry, _ subjects: BinarySubjects) -> ManagedObjectModel.Relationship? {
    switch entry.kind {
    case .links, .order: entry.subject < subjects.relationships.count ? subjects.relationships[entry.subject] : nil
    case .inverse: entry.subject < subjects.inverses.count ? subjects.inverses[entry.subject] : nil
    case .info, .model, .rows, .unique, .history: nil
    }
  }

  private static func key(_ kind: BinaryLayout.Kind, _ relationship: ManagedObjectModel.Relationship) -> Key {
    Key(kind: kind, entity: relationship.entityIndex, relationship: relationship.index)
  }

  /// The sections of links of a relationship that stores links.
  func links(_ relationship: ManagedObjectModel.Relationship) -> Range<Int> { places[LinkPlaces.key(.links, relationship)] ?? 0..<0 }

  /// The sections that contain the destinations of each owner; nil if the file has none for the relationship.
  func answering(_ relationship: ManagedObjectModel.Relationship) -> Range<Int>? {
    if relationship.isOrdered { return places[LinkPlaces.key(.order, relationship)] ?? 0..<0 }
    return relationship.storesLinks ? links(relationship) : places[LinkPlaces.key(.inverse, relationship)]
  }
}

/// A link that an answer contained, and that its other end must contain as well.
struct LinkClaim {
  /// The key of the row, or of the source of a link.
  var key: ObjectKey
  /// The key that it must point to.
  var other: ObjectKey
  /// The slot of the row; unused for links.
  var slot: SlotIndex = -1
}

/// An owner whose destinations were answered from inverse links.
struct AnsweredOwner {
  var entity: EntityIndex
  var relationship: RelationshipIndex
  var owner: ObjectKey
}

/// Links to be compared with sections that weren't read yet, by directory index.
struct LinkClaims {
  private var claims: [Int: [LinkClaim]] = [:]

  mutating func add(_ claim: LinkClaim, _ place: Int) { claims[place, default: []].append(claim) }

  /// Removes the claims on a section if all are confirmed. Returns whether they are.
  mutating func settle(_ place: Int, _ isConfirmed: (LinkClaim) -> Bool) -> Bool {
    guard let found = claims[place] else { return true }
    guard found.allSatisfy(isConfirmed) else { return false }
    claims[place] = nil
    return true
  }
}

/// What was read of a file's rows and links, by directory index.
struct ReadPages {
  var batches: [RowBatch?]
  var links: [Int: LinkRuns] = [:]
  var claims = LinkClaims()
  /// The cost of all answers to requests for relationships; see ``BinaryFile/links(of:from:)``.
  var linkCost = 0
  /// The answers from inverse links, to be compared when tables are built.
  var answered: [AnsweredOwner] = []

  init(count: Int) { batches = Array(repeating: nil, count: count) }

  /// Checks a claim on a section. Notes it if the section wasn't read yet.
  mutating func confirmsOrNotes(_ claim: LinkClaim, _ place: Int) -> Bool {
    if let batch = batches[place] { return batch.confirms(claim) }
    if let runs = links[place] { return runs.contains(claim.key, claim.other) }
    claims.add(claim, place)
    return true
  }

  /// Releases links, claims and answers.
  mutating func releaseLinks() { (links, claims, answered) = ([:], LinkClaims(), []) }
}

extension RowBatch {
  /// Whether the row of a claim exists and points to the other key.
  func confirms(_ claim: LinkClaim) -> Bool {
    var (low, high) = (0, count)
    while low < high {
      let middle = low + (high - low) / 2
      if pointer(middle).key < claim.key { low = middle + 1 } else { high = middle }
    }
    return low < count && pointer(low).key == claim.key && pointer(low).isPresent(claim.slot) && pointer(low).key(claim.slot) == claim.other
  }
}
