/// How the objects of one version of a model become objects of another version.
///
/// ``inferred(from:to:)`` finds the mapping by comparing two models. Stores use it to migrate their files.
///
/// Objects keep their keys. An object of a source entity becomes an object of the destination entity that is mapped to it; objects of a
/// source entity without such a destination are removed.
public struct MappingModel: Sendable, Hashable {
  /// The model of the existing objects.
  public let source: ManagedObjectModel
  /// The model of the migrated objects.
  public let destination: ManagedObjectModel
  /// The mapping of each entity of the destination, by entity index.
  public let entityMappings: [EntityMapping]
  /// The destination entity of each source entity, by entity index; nil if its objects are removed.
  public let destinations: [EntityIndex?]
  /// What was used instead of names; nil for a mapping by names.
  private let rules: MappingRules?

  init(source: ManagedObjectModel, destination: ManagedObjectModel, entityMappings: [EntityMapping], rules: MappingRules?) {
    self.source = source
    self.destination = destination
    self.entityMappings = entityMappings
    self.rules = rules
    var destinations = [EntityIndex?](repeating: nil, count: source.entities.count)
    for mapping in entityMappings { if let index = mapping.source { destinations[index.rawValue] = mapping.destination } }
    self.destinations = destinations
  }

  /// The same mapping, without the links of relationships that may be too many for them, and without those of their inverses.
  ///
  /// Values that are derived through them are those of objects without these links.
  ///
  /// - Parameter paths: The relationships, as in errors: "Dog.owner". Nil for all of them.
  package func withoutUncertainLinks(of paths: Set<String>?) -> MappingModel {
    var removed: Set<ManagedObjectModel.Relationship> = []
    for entity in destination.entities {
      for relationship in entity.relationships where link(relationship)?.isUncertain ?? false {
        guard paths?.contains("\(entity.name).\(relationship.name)") ?? true else { continue }
        removed.insert(relationship)
        if let inverse = destination.inverse(of: relationship) { removed.insert(inverse) }
      }
    }
    return without(removed)
  }

  /// The relationships that have no links in other mappings of the same entities, because the links may be too many for them.
  private func uncertainRelationships(missingIn others: [EntityMapping]) -> Set<ManagedObjectModel.Relationship> {
    var missing: Set<ManagedObjectModel.Relationship> = []
    for (mapping, other) in zip(entityMappings, others) {
      for (relationship, links) in zip(destination.entities[mapping.destination].relationships, zip(mapping.links, other.links))
      where links.1 == nil && links.0?.isUncertain ?? false {
        missing.insert(relationship)
      }
    }
    return missing
  }

  private func without(_ removed: Set<ManagedObjectModel.Relationship>) -> MappingModel {
    let mappings = entityMappings.map { entity in
      let relationships = destination.entities[entity.destination].relationships
      return EntityMapping(
        destination: entity.destination, source: entity.source, kind: entity.kind, values: values(entity, without: removed),
        links: zip(relationships, entity.links).map { relationship, link in removed.contains(relationship) ? nil : link })
    }
    return MappingModel(source: source, destination: destination, entityMappings: mappings, rules: rules)
  }

  private func values(_ mapping: EntityMapping, without removed: Set<ManagedObjectModel.Relationship>) -> [ValueMapping] {
    let entity = destination.entities[mapping.destination]
    var values = mapping.values
    for attribute in entity.derivedAttributes where values[attribute.slot.rawValue].source != nil {
      switch attribute.derivation {
      case .count(let name)?, .sum(let name, _)?:
        guard let relationship = entity.relationship(named: name), removed.contains(relationship) else { continue }
        values[attribute.slot.rawValue] = ValueMapping(source: nil, fallback: StoreValue.int64(0).converted(to: attribute.type) ?? .null)
      case .copy(let path)?, .text(_, let path)?:
        guard let resolved = try? ResolvedPath(path, from: entity, in: destination), resolved.hops.contains(where: removed.contains) else {
          continue
        }
        values[attribute.slot.rawValue] = ValueMapping(source: nil, fallback: .null)
      case .now?, nil: continue
      }
    }
    return values
  }

  /// The mapping of an entity of the destination.
  public func mapping(of destination: EntityIndex) -> EntityMapping { entityMappings[destination.rawValue] }

  /// The destination entity of a source entity; nil if its objects are removed.
  public func destination(of source: EntityIndex) -> EntityIndex? { destinations[source.rawValue] }

  /// The source entities whose objects are removed, without abstract ones.
  public var removedEntities: [EntityIndex] {
    source.entityIndexes.filter { !source.entities[$0].isAbstract && destination(of: $0) == nil }
  }

  /// The source entity whose family of entities has the objects of a destination's root entity; nil for new objects only.
  ///
  /// No other source family has objects for it, so that keys remain unique.
  public func sourceRoot(ofRoot root: EntityIndex) -> EntityIndex? {
    destination.entities[root].familyIndexes.lazy.compactMap { mapping(of: $0).source }.first.map { source.entities[$0].rootIndex }
  }

  /// The links of a relationship of the destination; nil if it begins without links. The same for all entities that have it.
  public func link(_ relationship: ManagedObjectModel.Relationship) -> LinkMapping? {
    destination.entities[relationship.entityIndex].familyIndexes.lazy
      .compactMap { mapping(of: $0).links[relationship.index.rawValue] }.first
  }

  /// Whether an entity of the source gets another name.
  public var renamesEntities: Bool {
    entityMappings.contains { mapping in
      mapping.source.map { source.entities[$0].name != destination.entities[mapping.destination].name } ?? false
    }
  }

  /// Whether the objects of a source entity and its subentities get entities of several families, or some of them are removed.
  ///
  /// Then an ID that names the entity doesn't show what becomes of its object, because an ID can name a superentity. The object's row does.
  public func dividesFamily(of entity: ManagedObjectModel.Entity) -> Bool {
    let roots = ([entity.index] + entity.concreteIndexes).map { index in
      destination(of: index).map { destination.entities[$0].rootIndex }
    }
    return roots.contains { $0 != roots[0] }
  }

  /// Whether IDs of the store's objects in attributes change: they contain the names of entities.
  public var changesObjectIDs: Bool {
    renamesEntities || source.entities.contains { destination(of: $0.index) == nil || dividesFamily(of: $0) }
  }

  /// The relationship that a link mapping reads.
  public func relationship(_ link: LinkMapping) -> ManagedObjectModel.Relationship {
    source.entities[link.entity].relationships[link.relationship]
  }

  /// The relationship, or the inverse of the relationship, from whose source a link mapping reads, if there is one.
  ///
  /// Its order is that of the destination objects.
  public func ordering(_ link: LinkMapping) -> ManagedObjectModel.Relationship? {
    let relationship = relationship(link), owner = link.isReversed ? source.inverse(of: relationship) : relationship
    return owner.flatMap { $0.isOrdered ? $0 : nil }
  }
}

extension MappingModel: Codable {
  private enum CodingKeys: CodingKey {
    case source, destination, entityMappings, rules
  }

  /// Decodes both models and the mappings.
  ///
  /// - Throws: `DecodingError`, also if the mappings aren't those of the models; ``ModelError`` or ``MigrationError`` if the models are
  ///   invalid or can't be mapped.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let source = try container.decode(CodableModel.self, forKey: .source).model
    let destination = try container.decode(CodableModel.self, forKey: .destination).model
    let mappings = try container.decode([EntityMapping].self, forKey: .entityMappings)
    let rules = try container.decodeIfPresent(MappingRules.self, forKey: .rules)
    // Every mapping follows from the models and the rules, so nothing else has to be trusted.
    let inferred = try MappingModel.partial(from: source, to: destination, by: rules).mapping
    let mapping = inferred.without(inferred.uncertainRelationships(missingIn: mappings))
    guard mapping.entityMappings == mappings else {
      throw DecodingError.dataCorruptedError(forKey: .entityMappings, in: container, debugDescription: "The mappings don't fit the models.")
    }
    self = mapping
  }

  /// Encodes both models and the mappings.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(CodableModel(source), forKey: .source)
    try container.encode(CodableModel(destination), forKey: .destination)
    try container.encode(entityMappings, forKey: .entityMappings)
    try container.encodeIfPresent(rules, forKey: .rules)
  }
}

/// How the objects of one entity are made.
public struct EntityMapping: Sendable, Hashable, Codable {
  /// What happens to the objects, in Core Data's terms.
  public enum Kind: Int, Sendable, Codable {
    /// The entity is new and has no objects.
    case add = 2
    /// The entity's version hash is equal in both models, and each attribute has the value that it had.
    case copy = 4
    /// Properties differ.
    case transform = 5
  }

  /// The entity in the destination.
  public let destination: EntityIndex
  /// The entity in the source; nil if the entity is new.
  public let source: EntityIndex?
  /// What happens to the objects.
  public let kind: Kind
  /// The source of each slot's value. For a to-one relationship, see ``links``.
  public let values: [ValueMapping]
  /// The source of each relationship's links, by relationship index; nil if the relationship begins without links.
  public let links: [LinkMapping?]

  /// The same mapping with other values.
  func with(_ values: [ValueMapping]) -> EntityMapping {
    EntityMapping(destination: destination, source: source, kind: kind, values: values, links: links)
  }
}

/// The value of one attribute of migrated objects.
public struct ValueMapping: Sendable, Hashable, Codable {
  /// The slot of the source with the value; nil if there is none.
  public let source: SlotIndex?
  /// The value of objects without a value in the source.
  public let fallback: StoreValue
}

/// The links of one relationship of migrated objects.
///
/// All entities that have the relationship, and its inverse, read the same links of the source.
public struct LinkMapping: Sendable, Hashable, Codable {
  /// The entity of the source that declares the relationship.
  public let entity: EntityIndex
  /// The relationship of the source.
  public let relationship: RelationshipIndex
  /// Whether the links lead from the relationship's destination to its owner.
  public let isReversed: Bool
  /// Whether the relationship is to-one, but an object may have several destinations in the source. That is an error then.
  public let needsSingleDestination: Bool
  /// Whether a destination belongs to one object only, but may have several in the source. That is an error then.
  public let needsSingleOwner: Bool
  /// The concrete entities of the source whose objects keep their links as owners.
  public let owners: [EntityIndex]
  /// The concrete entities of the source whose objects remain destinations.
  public let destinations: [EntityIndex]
  /// Whether some owners in the source aren't among ``owners``.
  public let losesOwners: Bool
  /// Whether some destinations in the source aren't among ``destinations``.
  public let losesDestinations: Bool

  /// Whether objects may have more links in the source than the destination allows.
  var isUncertain: Bool { needsSingleDestination || needsSingleOwner }
}
