import HoldfastAtomicStore
import HoldfastStore
import Synchronization

extension BinaryFile {
  func compare(_ generation: TableGeneration, everything: Bool) throws {
    if allowsUnverified { return }
    if everything {
      for case let relationship? in subjects.inverses {
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
