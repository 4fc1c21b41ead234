extension ManagedObjectModel {
  /// A frozen entity: what a row of it looks like and where its relationships lead.
  ///
  /// **Slots.** Attributes and to-one relationships have slots 0, 1, 2 … in the order of their names' UTF-8 bytes;
  /// a super entity's slots come first, so that they are a prefix of each sub-entity's. To-many relationships are
  /// counted apart, by ``Relationship/toManyIndex``, in the same order.
  public final class Entity: Sendable {
    /// The name.
    public let name: String
    /// The place in ``ManagedObjectModel/entities``.
    public let index: Int
    /// The place of the super entity; nil for none.
    public let superentityIndex: Int?
    /// The place of the entity at the root of the inheritance tree; its own when it has no super entity. Keys are
    /// unique among all entities with the same root.
    public let rootIndex: Int
    /// The places of this entity and all its sub-entities, which stand behind it.
    public let familyIndexes: Range<Int>
    /// The places of those of the family that have objects: all that are not abstract.
    public let concreteIndexes: [Int]
    /// Whether only sub-entities have objects.
    public let isAbstract: Bool
    /// The place in the order in which many-to-many pairs get their names: entities by name, but a super entity before its
    /// sub-entities, so that a sub-entity early in the alphabet pulls those above it forward. On disk: do not change.
    public let namingRank: Int
    /// What was declared: names of classes, text of the author, what the entity was called before.
    public let declaration: EntityDescription
    /// What each slot holds.
    public let slots: [Slot]
    /// The attributes that stores keep, in slot order; the elements of composite ones each for itself.
    public let attributes: [Attribute]
    /// The composite attributes, the super entity's first, then its own in the order of their names; those within another follow it.
    public let composites: [CompositeAttribute]
    /// The attributes that live in memory only, the super entity's first, then its own in the order of their names; the
    /// position of each is its ``TransientAttribute/index``.
    public let transientAttributes: [TransientAttribute]
    /// The attributes that are worked out from others, in slot order.
    public let derivedAttributes: [Attribute]
    /// The fetched properties, the super entity's first, then its own in the order of their names.
    public let fetchedProperties: [FetchedPropertyDescription]
    /// The relationships that live in memory only and that no store sees: the super entity's first, then its own in the order of their
    /// names.
    public let transientRelationships: [Relationship]
    /// The relationships that stores keep: the super entity's first, at the same places as there, then its own in the order of their names.
    /// An inherited one is the same value in each sub-entity: it names the entity that declares it.
    public let relationships: [Relationship]
    /// The to-many relationships; the position of each is its ``Relationship/toManyIndex``.
    public let toManyRelationships: [Relationship]
    /// The shape of a row.
    public let layout: RowLayout
    /// The slots of each uniqueness constraint, the super entity's first, then its own in declared order.
    public let uniqueSlots: [[Int]]
    /// The names of each uniqueness constraint, in the same order.
    public let uniquenessConstraints: [[String]]
    /// How many of the constraints are inherited: those hold among all objects of the entity that declares them.
    public let inheritedConstraintCount: Int
    /// The indexes to keep, not those that are inherited or ignored.
    public let indexes: [FetchIndexDescription]
    /// Core Data's version hash of the entity: 32 bytes.
    public let versionHash: [UInt8]
    /// The to-many relationships without inverse that lead to objects of this entity. A store removes their links when it
    /// removes an object.
    public let linksWithoutInverse: [Relationship]
    let properties: [String: Property]
    /// The names and version hashes of all properties.
    let hashedProperties: [(name: String, hash: [UInt8])]

    init(
      declaration: EntityDescription, index: Int, namingRank: Int, superentity: Entity?, family: Range<Int>, isAbstract: [Bool],
      slots ownSlots: [Slot], composites ownComposites: [CompositeAttribute], transients ownTransients: [TransientAttribute],
      relationships ownRelationships: [Relationship], transientRelationships ownTransientRelationships: [Relationship],
      linksWithoutInverse ownLinks: [Relationship]
    ) {
      name = declaration.name
      self.declaration = declaration
      self.index = index
      self.namingRank = namingRank
      superentityIndex = superentity?.index
      rootIndex = superentity?.rootIndex ?? index
      familyIndexes = family
      concreteIndexes = family.filter { !isAbstract[$0 - family.lowerBound] }
      self.isAbstract = declaration.isAbstract
      slots = (superentity?.slots ?? []) + ownSlots
      relationships = (superentity?.relationships ?? []) + ownRelationships
      transientRelationships = (superentity?.transientRelationships ?? []) + ownTransientRelationships
      linksWithoutInverse = (superentity?.linksWithoutInverse ?? []) + ownLinks
      hashedProperties = (superentity?.hashedProperties ?? []) + ModelVersionHash.properties(of: declaration)
      versionHash = ModelVersionHash.hash(of: declaration, superentity: superentity?.versionHash, hashedProperties)
      composites = (superentity?.composites ?? []) + ownComposites
      transientAttributes = (superentity?.transientAttributes ?? []) + ownTransients
      fetchedProperties =
        (superentity?.fetchedProperties ?? []) + declaration.fetchedProperties.sorted { ModelOrder.bytewise($0.name, $1.name) }
      attributes = slots.compactMap { if case .attribute(let attribute) = $0 { attribute } else { nil } }
      derivedAttributes = attributes.filter { $0.derivation != nil }
      toManyRelationships = relationships.filter(\.isToMany)
      layout = RowLayout(slots.map(\.columnType))
      uniquenessConstraints = (superentity?.uniquenessConstraints ?? []) + declaration.uniquenessConstraints
      inheritedConstraintCount = superentity?.uniquenessConstraints.count ?? 0
      indexes = declaration.indexes.filter { !$0.isIgnored }
      var properties: [String: Property] = [:]
      for attribute in attributes { properties[attribute.name] = .attribute(attribute) }
      for composite in composites { properties[composite.name] = .composite(composite) }
      for attribute in transientAttributes { properties[attribute.name] = .transient(attribute) }
      for property in fetchedProperties { properties[property.name] = .fetched(property) }
      for relationship in relationships { properties[relationship.name] = .relationship(relationship) }
      for relationship in transientRelationships { properties[relationship.name] = .transientRelationship(relationship) }
      self.properties = properties
      uniqueSlots = uniquenessConstraints.map { names in names.compactMap { properties[$0]?.slot } }
    }

    /// The relationships that the entity declares itself.
    public var ownRelationships: ArraySlice<Relationship> {
      relationships[(relationships.firstIndex { $0.entityIndex == index } ?? relationships.count)...]
    }

    /// Whether objects of this entity are objects of another: it is that entity or one of its sub-entities.
    @inlinable public func isKind(of other: Entity) -> Bool { other.familyIndexes.contains(index) }

    /// The slots of attributes whose values a store may keep in files of their own.
    public var externalSlots: [Int] { attributes.compactMap { $0.allowsExternalBinaryDataStorage ? $0.slot : nil } }

    /// The property of that name, or nil.
    public func property(named name: String) -> Property? { properties[name] }

    /// The slot of the attribute or to-one relationship of that name, or nil.
    public func slot(named name: String) -> Int? { properties[name]?.slot }

    /// The relationship of that name, or nil; not a transient one.
    public func relationship(named name: String) -> Relationship? {
      if case .relationship(let relationship)? = properties[name] { relationship } else { nil }
    }

    /// The relationship whose targets lie in a slot, or nil when the slot holds an attribute.
    public func relationship(inSlot slot: Int) -> Relationship? {
      if case .toOne(let relationship) = slots[slot] { relationship } else { nil }
    }
  }

  /// A frozen attribute that stores keep.
  public struct Attribute: Sendable, Hashable {
    /// The name; an element of a composite attribute is named by the path to it: `home.latitude`.
    public let name: String
    /// The type of the values.
    public let type: AttributeType
    /// Whether an object may be saved without a value. True for an element of a composite attribute that is optional itself.
    public let isOptional: Bool
    /// The value of a new object, or nil.
    public let defaultValue: StoreValue?
    /// Where the value lies in a row.
    public let slot: Int
    /// Whether a store may keep a large value in a file of its own; never for an element of a composite attribute.
    public let allowsExternalBinaryDataStorage: Bool
    /// The declaration and what was worked out of it, in one reference: attributes are handed about a lot.
    private let details: AttributeDetails

    init(name: String, _ declared: AttributeDescription, isOptional: Bool, defaultValue: StoreValue?, slot: Int) {
      self.name = name
      type = declared.type
      self.isOptional = isOptional
      self.defaultValue = defaultValue
      self.slot = slot
      // An element of a composite attribute stays in the row: structs are read from rows alone.
      allowsExternalBinaryDataStorage = declared.allowsExternalBinaryDataStorage && name == declared.name
      details = AttributeDetails(declared)
    }

    /// What was declared. An element of a composite attribute has its own name there, not the path.
    public var declaration: AttributeDescription { details.declaration }

    /// How the value is worked out; nil for an attribute that is set.
    public var derivation: Derivation? { details.derivation }
  }

  /// A frozen attribute that lives in memory only.
  public struct TransientAttribute: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The type of the values; ``AttributeType/undefined`` for anything.
    public let type: AttributeType
    /// Whether an object may be saved without a value.
    public let isOptional: Bool
    /// The value of a new object, or nil.
    public let defaultValue: StoreValue?
    /// The place among the entity's transient attributes.
    public let index: Int
    /// What was declared.
    public let declaration: AttributeDescription
  }

  /// A frozen composite attribute: a group of elements that lie side by side in a row.
  public struct CompositeAttribute: Sendable, Hashable {
    /// The name; one within another is named by the path to it.
    public let name: String
    /// What was declared.
    public let declaration: AttributeDescription
    /// Whether an object may be saved without any of the elements.
    public let isOptional: Bool
    /// Where the values of the elements lie in a row, those of groups within the group included; empty for a group of nothing.
    public let slots: Range<Int>

    /// The name of the ``CompositeDescription``.
    public var compositeName: String { declaration.compositeName ?? "" }
  }

  /// A frozen relationship. It names other parts of the model by index; ``ManagedObjectModel/destination(of:)``
  /// and ``ManagedObjectModel/inverse(of:)`` look them up.
  public struct Relationship: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The index of the entity that declares it.
    public let entityIndex: Int
    /// The place among the entity's relationships, or among its transient ones.
    public let index: Int
    /// The index of the entity at the other end.
    public let destinationIndex: Int
    /// The place of the inverse among the destination's relationships, or among its transient ones; -1 for none.
    public let inverseIndex: Int
    /// Whether it lives in memory only.
    public let isTransient: Bool
    /// Whether it leads to any number of objects.
    public let isToMany: Bool
    /// Whether any number of objects can lead to one: the inverse is to-many, or there is none.
    public let inverseIsToMany: Bool
    /// Whether an object may be saved while it leads nowhere.
    public let isOptional: Bool
    /// What happens to the other objects when one is deleted.
    public let deleteRule: DeleteRule
    /// The least number of objects of a to-many relationship that is not empty; 0 for no bound.
    public let minCount: Int
    /// The largest number of objects of a to-many relationship; 0 for no bound.
    public let maxCount: Int
    /// Whether the objects of a to-many relationship have an order of their own.
    public let isOrdered: Bool
    /// Where the target's key lies in a row; -1 for a to-many relationship and for a transient one.
    public let slot: Int
    /// The place among the entity's to-many relationships; -1 for a to-one relationship. Of a transient relationship, to-one or to-many,
    /// it is negative: `-1 - index`.
    public let toManyIndex: Int
    /// For a many-to-many pair: whether saves and stores name links from this side. Exactly one of the two is the
    /// naming side: the first met when entities, then relationships, are walked in the order of their names.
    public let namesLinks: Bool

    /// Whether links are pairs of their own and not a key in a row: both sides lead to any number of objects, or the
    /// relationship is to-many and has no inverse.
    public var isManyToMany: Bool { isToMany && inverseIsToMany }
    /// Whether there is a relationship that leads back.
    public var hasInverse: Bool { inverseIndex >= 0 }
    /// Whether the relationship is its own inverse.
    public var isReflexive: Bool { inverseIndex == index && destinationIndex == entityIndex }
    /// Whether an object can be the target of one object at the most, so that a new link takes it away from another: a to-many
    /// relationship without inverse.
    public var hasTargetsToItself: Bool { isToMany && !hasInverse }
  }

  /// What a slot holds.
  public enum Slot: Sendable, Hashable {
    /// A value of an attribute.
    case attribute(Attribute)
    /// The key of a to-one relationship's target.
    case toOne(Relationship)

    /// The name of the property.
    public var name: String {
      switch self {
      case .attribute(let attribute): attribute.name
      case .toOne(let relationship): relationship.name
      }
    }

    /// Whether an object may be saved without a value.
    public var isOptional: Bool {
      switch self {
      case .attribute(let attribute): attribute.isOptional
      case .toOne(let relationship): relationship.isOptional
      }
    }

    /// Whether a store may keep a large value in a file of its own.
    public var allowsExternalData: Bool {
      if case .attribute(let attribute) = self { attribute.allowsExternalBinaryDataStorage } else { false }
    }

    /// The column in a row.
    public var columnType: ColumnType {
      switch self {
      case .attribute(let attribute): .attribute(attribute.type)
      case .toOne(let relationship): .toOne(destination: relationship.destinationIndex)
      }
    }
  }

  /// A property found by name.
  public enum Property: Sendable, Hashable {
    /// An attribute that stores keep.
    case attribute(Attribute)
    /// A relationship that stores keep.
    case relationship(Relationship)
    /// A relationship that lives in memory only.
    case transientRelationship(Relationship)
    /// A composite attribute.
    case composite(CompositeAttribute)
    /// An attribute that lives in memory only.
    case transient(TransientAttribute)
    /// A fetched property.
    case fetched(FetchedPropertyDescription)

    /// The slot; nil for what has none: to-many and transient relationships, composite and transient attributes, fetched properties.
    public var slot: Int? {
      switch self {
      case .attribute(let attribute): attribute.slot
      case .relationship(let relationship): relationship.isToMany ? nil : relationship.slot
      case .composite, .transient, .transientRelationship, .fetched: nil
      }
    }
  }
}
