import HoldfastStore

/// The positions of the sections of links in a directory, by relationship.
struct LinkPlaces: Sendable {
  /// The sections of a relationship. Nil if the file has no sections of that kind.
  private struct Sections {
    var links: Range<Int>?
    var order: Range<Int>?
    var inverse: Range<Int>?
  }

  /// By the entity that declares the relationship, and by its index there.
  private var sections: [[Sections]]

  init(_ entries: [SectionEntry], _ subjects: BinarySubjects, _ model: ManagedObjectModel) {
    sections = model.entities.map { $0.relationships.map { _ in Sections() } }
    // A relationship that is listed without a section has no links.
    for case let relationship? in subjects.inverses { self[relationship].inverse = 0..<0 }
    var start = 0
    while start < entries.count {
      let entry = entries[start]
      var end = start + 1
      while end < entries.count, entries[end].kind == entry.kind, entries[end].subject == entry.subject { end += 1 }
      if let relationship = LinkPlaces.relationship(entry, subjects) {
        switch entry.kind {
        case .links: self[relationship].links = start..<end
        case .order: self[relationship].order = start..<end
        default: self[relationship].inverse = start..<end
        }
      }
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

  private subscript(relationship: ManagedObjectModel.Relationship) -> Sections {
    get { sections[relationship.entityIndex][relationship.index] }
    set { sections[relationship.entityIndex][relationship.index] = newValue }
  }

  /// The sections of links of a relationship that stores links.
  func links(_ relationship: ManagedObjectModel.Relationship) -> Range<Int> { self[relationship].links ?? 0..<0 }

  /// The sections that contain the destinations of each owner; nil if the file has none for the relationship.
  func answering(_ relationship: ManagedObjectModel.Relationship) -> Range<Int>? {
    if relationship.isOrdered { return self[relationship].order ?? 0..<0 }
    return relationship.storesLinks ? links(relationship) : self[relationship].inverse
  }
}
