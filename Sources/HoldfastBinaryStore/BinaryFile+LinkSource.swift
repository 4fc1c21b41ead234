import HoldfastAtomicStore
import HoldfastStore

extension BinaryFile {
  /// The sections from which a to-many relationship is answered, and where else its links are.
  struct LinkSource {
    /// The positions of the sections, sorted by owner.
    var sections: Range<Int>
    var isOrdered: Bool
    var otherEnd: OtherEnd
  }

  enum OtherEnd {
    /// The to-one relationship in a slot of the destinations.
    case slot(SlotIndex, [EntityIndex])
    /// Sections of links. If `isReversed` is true, their sources are the destinations.
    case sections(Range<Int>, isReversed: Bool)
    /// Nowhere, or not in the same form.
    case none
  }

  /// Finds the sections of a relationship; nil if the file has none for it.
  func source(of relationship: ManagedObjectModel.Relationship) -> LinkSource? {
    guard relationship.isToMany, !relationship.isTransient, let sections = linkPlaces.answering(relationship) else { return nil }
    if relationship.isManyToMany {
      return LinkSource(sections: sections, isOrdered: relationship.isOrdered, otherEnd: otherEnd(ofManyToMany: relationship))
    }
    guard let inverse = schema.model.inverse(of: relationship) else { return nil }
    let destinations = schema.model.entities[relationship.destinationIndex].familyIndexes
    return LinkSource(
      sections: sections, isOrdered: relationship.isOrdered,
      otherEnd: .slot(inverse.slot, destinations.filter { !rowSections[$0].isEmpty }))
  }

  private func otherEnd(ofManyToMany relationship: ManagedObjectModel.Relationship) -> OtherEnd {
    if relationship.storesLinks && relationship.isOrdered { return .sections(linkPlaces.links(relationship), isReversed: false) }
    guard let inverse = schema.model.inverse(of: relationship) else { return .none }
    if !relationship.storesLinks { return .sections(linkPlaces.links(inverse), isReversed: true) }
    // A deleted owner has no list, although its links may still exist.
    guard !relationship.isReflexive, !inverse.isOrdered, let sections = linkPlaces.answering(inverse) else { return .none }
    return .sections(sections, isReversed: true)
  }
}
