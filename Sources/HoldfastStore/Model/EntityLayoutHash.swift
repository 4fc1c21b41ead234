internal import HoldfastSupport

extension ManagedObjectModel {
  /// What decides how rows lie in a store and does not enter Core Data's version hashes, hashed with SHA-256, by the entity's name: the
  /// elements of composite attributes, names and types of derived ones, which values may lie in files of their own, which relationships
  /// are their own inverse. Entities without any of these are not in it, and most models have none.
  ///
  /// Stores keep it beside ``entityVersionHashesByName`` and refuse a model in which it differs, as one with other version hashes.
  public var entityLayoutHashesByName: [String: [UInt8]] {
    var hashes: [String: [UInt8]] = [:]
    for entity in entities {
      let text = layoutText(entity)
      if !text.isEmpty { hashes[entity.name] = SHA256.hash(Array(text.utf8)) }
    }
    return hashes
  }

  /// A line for each such part that the entity declares itself. On disk, by its hash: do not change.
  private func layoutText(_ entity: Entity) -> String {
    var text = ""
    for slot in entity.slots[(entity.superentityIndex.map { entities[$0].slots.count } ?? 0)...] {
      guard case .attribute(let attribute) = slot else { continue }
      if attribute.name != attribute.declaration.name { text += "element \(attribute.name) \(attribute.type.rawValue)\n" }
      if attribute.declaration.isDerived { text += "derived \(attribute.name) \(attribute.type.rawValue)\n" }
      if attribute.allowsExternalBinaryDataStorage { text += "external \(attribute.name)\n" }
    }
    for relationship in entity.ownRelationships where relationship.isReflexive { text += "reflexive \(relationship.name)\n" }
    return text
  }

  /// All such parts as one text; empty for a model without any.
  public var layoutDigest: String {
    let hashes = entityLayoutHashesByName
    return hashes.isEmpty ? "" : ModelVersionHash.digest(hashes)
  }
}
