extension ManagedObjectModel {
  /// An immutable entity: the layout of its rows, and its relationships.
  ///
  /// **Slots.** Attributes and to-one relationships have slots 0, 1, 2 …, ordered by the UTF-8 bytes of their names. The slots of a
  /// superentity come first, so they are a prefix of each subentity's. To-many relationships are numbered separately in the same order, by
  /// ``Relationship/toManyIndex``.
  public final class Entity: Sendable {
    /// The name.
    public let name: String
    /// The index in ``ManagedObjectModel/entities``.
    public let index: EntityIndex
    /// The index of the superentity, or nil for none.
    public let superentityIndex: EntityIndex?
    /// The index of the root entity; its own index if it has no superentity.
    ///
    /// Keys are unique among all entities with the same root.
    public let rootIndex: EntityIndex
    /// The indexes of this entity and all its subentities, which follow it.
    public let familyIndexes: Range<EntityIndex>
    /// The indexes of this entity and its subentities, without abstract ones.
    public let concreteIndexes: [EntityIndex]
    /// Whether only subentities have objects.
    public let isAbstract: Bool
    /// The entity's rank in the order that names many-to-many pairs.
    ///
    /// Entities are ordered by name, with each superentity before its subentities. A subentity early in the alphabet therefore moves its
    /// superentities forward. This is a file format: don't change it.
    public let namingRank: Int
    /// The declaration, including class names, custom text and renaming identifiers.
    public let declaration: EntityDescription
    /// The property in each slot.
    public let slots: [Slot]
    /// The stored attributes in slot order. Elements of composite attributes are separate.
    public let attributes: [Attribute]
    /// The composite attributes: the superentity's first, then its own by name. Nested ones follow the one that contains them.
    public let composites: [CompositeAttribute]
    /// The transient attributes: the superentity's first, then its own by name.
    ///
    /// The position of each is its ``TransientAttribute/index``.
    public let transientAttributes: [TransientAttribute]
    /// The derived attributes, in slot order.
    public let derivedAttributes: [Attribute]
    /// The fetched properties: the superentity's first, then its own by name.
    public let fetchedProperties: [FetchedPropertyDescription]
    /// The transient relationships, which stores don't see: the superentity's first, then its own by name.
    public let transientRelationships: [Relationship]
    /// The stored relationships: the superentity's first, with the same indexes, then its own by name.
    ///
    /// An inherited relationship has the same value in each subentity: ``Relationship/entityIndex`` is the entity that declares it.
    public let relationships: [Relationship]
    /// The to-many relationships. The position of each is its ``Relationship/toManyIndex``.
    public let toManyRelationships: [Relationship]
    /// The layout of a row.
    public let layout: RowLayout
    /// The slots of each uniqueness constraint: the superentity's first, then its own in declaration order.
    public let uniqueSlots: [[SlotIndex]]
    /// The property names of each uniqueness constraint, in the same order.
    public let uniquenessConstraints: [[String]]
    /// The number of inherited constraints. They apply to all objects of the entity that declares them.
    public let inheritedConstraintCount: Int
    /// The indexes to create, without inherited and ignored ones.
    public let indexes: [FetchIndexDescription]
    /// Core Data's version hash of the entity: 32 bytes.
    public let versionHash: [UInt8]
    /// The to-many relationships without inverse whose destination is this entity.
    ///
    /// A store removes their links when it deletes an object.
    public let linksWithoutInverse: [Relationship]
    let properties: [String: Property]
    /// The names and version hashes of all properties.
    let hashedProperties: [(name: String, hash: [UInt8])]

    init(
      declaration: EntityDescription, index: EntityIndex, namingRank: Int, superentity: Entity?, family: Range<EntityIndex>,
      isAbstract: [Bool], entityNames: [String],
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
      concreteIndexes = family.filter { !isAbstract[family.lowerBound.distance(to: $0)] }
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
      layout = RowLayout(slots.map(\.columnType), entityNames: entityNames)
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

    /// Whether this entity is another entity or one of its subentities.
    @inlinable public func isKind(of other: Entity) -> Bool { other.familyIndexes.contains(index) }

    /// The indexes of all slots.
    public var slotIndexes: Range<SlotIndex> { layout.slots }

    /// The slots of attributes that allow external storage.
    public var externalSlots: [SlotIndex] { attributes.compactMap { $0.allowsExternalBinaryDataStorage ? $0.slot : nil } }

    /// Returns the property with this name, or nil.
    public func property(named name: String) -> Property? { properties[name] }

    /// Returns the slot of the attribute or to-one relationship with this name, or nil.
    public func slot(named name: String) -> SlotIndex? { properties[name]?.slot }

    /// Returns the relationship with this name, or nil. Excludes transient relationships.
    public func relationship(named name: String) -> Relationship? {
      if case .relationship(let relationship)? = properties[name] { relationship } else { nil }
    }

    /// Returns the to-one relationship in a slot, or nil if the slot contains an attribute.
    public func relationship(inSlot slot: SlotIndex) -> Relationship? {
      if case .toOne(let relationship) = slots[slot] { relationship } else { nil }
    }
  }

  /// An immutable stored attribute.
  public struct Attribute: Sendable, Hashable {
    /// The name. For an element of a composite attribute, the path: `home.latitude`.
    public let name: String
    /// The type of the values.
    public let type: AttributeType
    /// Whether an object can be saved without a value. True for all elements of an optional composite attribute.
    public let isOptional: Bool
    /// The value of a new object, or nil.
    public let defaultValue: StoreValue?
    /// The slot of the value in a row.
    public let slot: SlotIndex
    /// Whether a store may keep large values in external files. False for elements of composite attributes.
    public let allowsExternalBinaryDataStorage: Bool
    /// The declaration and values computed from it, behind one reference, because attributes are copied often.
    private let details: AttributeDetails

    init(name: String, _ declared: AttributeDescription, isOptional: Bool, defaultValue: StoreValue?, slot: SlotIndex) {
      self.name = name
      type = declared.type
      self.isOptional = isOptional
      self.defaultValue = defaultValue
      self.slot = slot
      // Elements of composite attributes stay in the row, because structs are read from rows only.
      allowsExternalBinaryDataStorage = declared.allowsExternalBinaryDataStorage && name == declared.name
      details = AttributeDetails(declared)
    }

    /// The declaration. For an element of a composite attribute, its name isn't the path.
    public var declaration: AttributeDescription { details.declaration }

    /// How the value is derived, or nil for other attributes.
    public var derivation: Derivation? { details.derivation }
  }

  /// An immutable transient attribute.
  public struct TransientAttribute: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The type of the values. ``AttributeType/undefined`` allows any value.
    public let type: AttributeType
    /// Whether an object can be saved without a value.
    public let isOptional: Bool
    /// The value of a new object, or nil.
    public let defaultValue: StoreValue?
    /// The index in the entity's transient attributes.
    public let index: Int
    /// The declaration.
    public let declaration: AttributeDescription
  }

  /// An immutable composite attribute: a group of elements in consecutive slots.
  public struct CompositeAttribute: Sendable, Hashable {
    /// The name. For a nested composite attribute, the path.
    public let name: String
    /// The declaration.
    public let declaration: AttributeDescription
    /// Whether an object can be saved without any of the elements.
    public let isOptional: Bool
    /// The slots of the elements, including those of nested composite attributes. Empty if there are no elements.
    public let slots: Range<SlotIndex>

    /// The name of the ``CompositeDescription``.
    public var compositeName: String { declaration.compositeName ?? "" }
  }

  /// An immutable relationship.
  ///
  /// It refers to other parts of the model by index. Look them up with ``ManagedObjectModel/destination(of:)`` and
  /// ``ManagedObjectModel/inverse(of:)``.
  public struct Relationship: Sendable, Hashable {
    /// The name.
    public let name: String
    /// The index of the entity that declares it.
    public let entityIndex: EntityIndex
    /// The index in the entity's relationships, or in its transient relationships.
    public let index: RelationshipIndex
    /// The index of the destination entity.
    public let destinationIndex: EntityIndex
    /// The index of the inverse in the destination's relationships, or in its transient ones. -1 for none.
    public let inverseIndex: RelationshipIndex
    /// Whether it is kept in memory only.
    public let isTransient: Bool
    /// Whether it has any number of destination objects.
    public let isToMany: Bool
    /// Whether a destination may have several sources: the inverse is to-many, or there is none.
    public let inverseIsToMany: Bool
    /// Whether it is optional in the model; see ``RelationshipDescription/isOptional``.
    public let isOptional: Bool
    /// What happens to destination objects when the object is deleted.
    public let deleteRule: DeleteRule
    /// The minimum number of objects in a to-many relationship, or 0 for none. An optional relationship can also be empty.
    public let minCount: Int
    /// The maximum number of objects in a to-many relationship, or 0 for no bound.
    public let maxCount: Int
    /// Whether the objects of a to-many relationship have an order.
    public let isOrdered: Bool
    /// The slot of the destination's key in a row. -1 for a to-many or transient relationship.
    public let slot: SlotIndex
    /// The index in the entity's to-many relationships, or -1 for a to-one relationship.
    ///
    /// For a transient relationship, to-one or to-many, it is `-1 - index`.
    public let toManyIndex: Int
    /// Whether saves and stores name the links of a many-to-many pair from this side.
    ///
    /// True for exactly one side: the first, by naming rank of the entities and then by relationship name.
    public let namesLinks: Bool

    /// Whether an object can be saved without a destination object.
    ///
    /// As in Core Data, a to-many relationship needs objects only if it isn't optional and has a minimum count.
    public var canBeEmpty: Bool { isOptional || isToMany && minCount <= 0 }
    /// Whether links are separate pairs, and not a key in a row.
    ///
    /// True if both sides are to-many, or the relationship is to-many and has no inverse.
    public var isManyToMany: Bool { isToMany && inverseIsToMany }
    /// Whether stores keep the relationship's links as pairs of keys, named from this side.
    ///
    /// If not, rows contain the links, or the links are named from the inverse's side.
    public var storesLinks: Bool { isManyToMany && namesLinks }
    /// Whether the relationship has an inverse.
    public var hasInverse: Bool { inverseIndex >= 0 }
    /// Whether the relationship is its own inverse.
    public var isReflexive: Bool { inverseIndex == index && destinationIndex == entityIndex }
    /// Whether a destination belongs to only one source, so a new link removes the previous one.
    ///
    /// True for a to-many relationship without inverse.
    public var hasTargetsToItself: Bool { isToMany && !hasInverse }
  }

  /// The property in a slot.
  public enum Slot: Sendable, Hashable {
    /// A value of an attribute.
    case attribute(Attribute)
    /// The key of a to-one destination.
    case toOne(Relationship)

    /// The name of the property.
    public var name: String {
      switch self {
      case .attribute(let attribute): attribute.name
      case .toOne(let relationship): relationship.name
      }
    }

    /// Whether an object can be saved without a value.
    public var isOptional: Bool {
      switch self {
      case .attribute(let attribute): attribute.isOptional
      case .toOne(let relationship): relationship.isOptional
      }
    }

    /// Whether a store may keep large values in external files.
    public var allowsExternalData: Bool {
      if case .attribute(let attribute) = self { attribute.allowsExternalBinaryDataStorage } else { false }
    }

    /// The type of the column in a row.
    public var columnType: ColumnType {
      switch self {
      case .attribute(let attribute): .attribute(attribute.type)
      case .toOne(let relationship): .toOne(destination: relationship.destinationIndex)
      }
    }
  }

  /// A property, as found by name.
  @nonexhaustive public enum Property: Sendable, Hashable {
    /// A stored attribute.
    case attribute(Attribute)
    /// A stored relationship.
    case relationship(Relationship)
    /// A transient relationship.
    case transientRelationship(Relationship)
    /// A composite attribute.
    case composite(CompositeAttribute)
    /// A transient attribute.
    case transient(TransientAttribute)
    /// A fetched property.
    case fetched(FetchedPropertyDescription)

    /// The slot, or nil for a property without one.
    ///
    /// To-many and transient relationships, composite and transient attributes, and fetched properties have no slot.
    public var slot: SlotIndex? {
      switch self {
      case .attribute(let attribute): attribute.slot
      case .relationship(let relationship): relationship.isToMany ? nil : relationship.slot
      case .composite, .transient, .transientRelationship, .fetched: nil
      }
    }
  }
}
