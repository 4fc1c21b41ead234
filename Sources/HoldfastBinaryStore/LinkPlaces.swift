import HoldfastStore

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
