import HoldfastAtomicStore
import HoldfastStore

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
