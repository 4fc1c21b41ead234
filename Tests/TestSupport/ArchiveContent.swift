package import Holdfast
package import HoldfastStore

/// An object's entity, values and the IDs that it is linked to, of a store that is damaged and repaired.
///
/// The test targets aren't optimised and this one is, so thousands of objects are read and compared here.
package struct ArchiveContent: Equatable, Sendable {
  package var entity: String
  package var values: [String: StoreValue]
  package var links: [String: [String]]

  /// What a damaged page can have besides objects.
  package enum Loss: Sendable {
    case none, values, links
    /// The report says that values beside unreadable rows may be wrong.
    case suspect
  }

  /// The first property that differs from another content in which some objects and more are lost; nil if none does.
  private func difference(
    _ other: ArchiveContent, among existing: Dictionary<String, ArchiveContent>.Keys, _ loss: Loss
  ) -> String? {
    if entity != other.entity { return "\(other.entity)" }
    // SQLite's format has no digests, so a changed byte of a text or data value isn't found.
    let texts = ["text", "image"] + (loss == .suspect ? ["title", "uid", "place", "name", "heading"] : [])
    for (name, value) in values where other.values[name] != value && !(loss != .none && texts.contains(name)) {
      return "\(name): \(value), \(other.values[name].map { "\($0)" } ?? "missing")"
    }
    for (name, ids) in links {
      // A deletion leaves references without an inverse.
      let (ids, others) = (ids.filter { existing.contains($0) }, (other.links[name] ?? []).filter { existing.contains($0) })
      let isSame = loss == .suspect || (loss == .links ? Set(ids).isSuperset(of: others) : ids == others)
      if !isSame { return "\(name): \(ids.map { $0.suffix(6) }), \(others.map { $0.suffix(6) })" }
    }
    return nil
  }

  /// Compares the objects of a repaired store with those of the original.
  ///
  /// - Returns: The IDs of lost objects, whether the repaired store has objects that never existed, and the first other difference.
  package static func compare(
    _ found: [String: ArchiveContent], with original: [String: ArchiveContent], _ loss: Loss
  ) -> (lost: Set<String>, hasOthers: Bool, difference: String?) {
    let lost = Set(original.keys.filter { found[$0] == nil })
    var hasOthers = false, difference: String?
    for (id, content) in found {
      guard let expected = original[id] else {
        hasOthers = true
        continue
      }
      if difference == nil, let first = expected.difference(content, among: found.keys, loss) { difference = "\(id): \(first)" }
    }
    return (lost, hasOthers, difference)
  }

  // MARK: Reading

  /// All objects by entity and key, for example `Book/p1`. The lists of unordered relationships are sorted.
  package static func all(in context: ManagedObjectContext) throws -> [String: ArchiveContent] {
    var contents: [String: ArchiveContent] = [:]
    for entity in context.persistentStoreCoordinator.model.entities where entity.superentityIndex == nil {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) {
        var content = ArchiveContent(entity: object.entity.name, values: [:], links: [:])
        for attribute in object.entity.attributes { content.values[attribute.name] = try object.value(forKey: attribute.name).storeValue }
        for relationship in object.entity.relationships {
          content.links[relationship.name] = try links(of: object, relationship)
        }
        contents[id(object.objectID)] = content
      }
    }
    return contents
  }

  /// The ID without the store's UUID, which may be lost.
  private static func id(_ id: ManagedObjectID) -> String { "\(id.entityName)/p\(id.key)" }

  private static func links(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [String] {
    let name = relationship.name
    guard relationship.isToMany else { return object.toOneID(relationship.slot).map { [id($0)] } ?? [] }
    if relationship.isOrdered { return try object.ordered(forKey: name).map { id($0.objectID) } }
    return try object.toMany(forKey: name).map { id($0.objectID) }.sorted()
  }
}
