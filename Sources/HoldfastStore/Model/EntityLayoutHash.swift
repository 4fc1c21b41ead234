internal import HoldfastSupport

extension ManagedObjectModel {
  /// A hash of each entity's row layout, by entity name.
  ///
  /// It covers declarations that affect rows but aren't part of Core Data's version hashes:
  ///
  /// - elements of composite attributes
  /// - names and types of derived attributes
  /// - attributes that allow external storage
  /// - relationships that are their own inverse
  ///
  /// Each hash is a SHA-256. Entities without such declarations are omitted; most models have none.
  ///
  /// Stores keep these hashes beside ``entityVersionHashesByName``, and refuse a model with different ones in the same way.
  public var entityLayoutHashesByName: [String: [UInt8]] {
    var hashes: [String: [UInt8]] = [:]
    for entity in entities {
      let text = layoutText(entity)
      if !text.isEmpty { hashes[entity.name] = SHA256.hash(Array(text.utf8)) }
    }
    return hashes
  }

  /// One line per such declaration of the entity itself. Its hash is a file format: don't change it.
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

  /// A digest of all layout hashes. Empty if the model has none.
  public var layoutDigest: String {
    let hashes = entityLayoutHashesByName
    return hashes.isEmpty ? "" : ModelVersionHash.digest(hashes)
  }
}
