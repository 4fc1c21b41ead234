import HoldfastStore

/// How a relationship and its inverse are stored.
///
/// The plan contains only integers and Booleans, because the code that uses it runs once per link.
struct LinkPlan {
  var entityNumber: Int32 = 0
  var relationshipNumber: Int32 = 0
  /// The slot of the destination's key, or -1.
  var slotNumber: Int32 = -1
  var toManyIndex: Int32 = -1
  /// The destination entity, and the index after its last subentity.
  var destinationNumber: Int32 = 0
  var destinationEnd: Int32 = 1
  /// The slot of the inverse in the destination's row, or -1 if the inverse has no slot or doesn't exist.
  var inverseSlotNumber: Int32 = -1
  /// The to-many index of the inverse, which is negative if the inverse is transient. ``none`` if the inverse has no such index.
  var inverseToManyIndex: Int32 = LinkPlan.none
  var isOrdered = false
  /// Whether the relationship is transient and to-one.
  var isTransientToOne = false
  /// Whether the inverse is transient and to-one.
  var hasTransientToOneInverse = false

  static let none = Int32.min

  /// The entity that declares the relationship.
  @inline(__always) var entity: EntityIndex { EntityIndex(Int(entityNumber)) }
  @inline(__always) var relationship: RelationshipIndex { RelationshipIndex(Int(relationshipNumber)) }
  @inline(__always) var slot: SlotIndex { SlotIndex(Int(slotNumber)) }
  @inline(__always) var inverseSlot: SlotIndex { SlotIndex(Int(inverseSlotNumber)) }
  @inline(__always) var destination: EntityIndex { EntityIndex(Int(destinationNumber)) }
  @inline(__always) var hasInverse: Bool { inverseSlotNumber >= 0 || inverseToManyIndex != LinkPlan.none }

  /// Whether the relationship can reference objects of an entity.
  @inline(__always) func leads(toEntity index: EntityIndex) -> Bool {
    let number = UInt32(truncatingIfNeeded: index.rawValue)
    return number >= UInt32(bitPattern: destinationNumber) && number < UInt32(bitPattern: destinationEnd)
  }
}

extension UnsafeMutablePointer where Pointee == GraphPlan.EntityPlan {
  /// The plan of an entity.
  subscript(index: EntityIndex) -> GraphPlan.EntityPlan {
    @inline(__always) unsafeAddress { UnsafePointer(self + index.rawValue) }
  }
}

extension UnsafeMutablePointer where Pointee == LinkPlan {
  /// The plan of the to-one relationship in a slot.
  subscript(slot: SlotIndex) -> LinkPlan {
    @inline(__always) unsafeAddress { UnsafePointer(self + slot.rawValue) }
  }
}

extension ContiguousArray {
  /// The element of an index, in an array with one element per entity.
  @inline(__always) subscript<Index: TypedInteger>(index: Index) -> Element where Index.RawValue == Int {
    get { self[index.rawValue] }
    _modify { yield &self[index.rawValue] }
  }
}

/// Link plans, empty rows and default rows, computed once per coordinator.
final class GraphPlan: @unchecked Sendable {  // because nothing changes after the initialiser
  struct EntityPlan {
    /// The plans of to-one relationships, by slot. Entries of attributes are unused.
    let toOne: UnsafeMutablePointer<LinkPlan>
    /// The plans of to-many and transient relationships, by to-many index.
    ///
    /// Transient relationships have negative indexes and are stored before the pointer.
    let toMany: UnsafeMutablePointer<LinkPlan>
    let slotCount: Int
    let toManyCount: Int
    /// The number of transient attributes.
    let transientCount: Int
    /// The number of transient relationships.
    let transientLinkCount: Int
    let root: EntityIndex
    /// The entities whose objects are also objects of this one: the entity itself and its subentities.
    let family: Range<EntityIndex>
    /// Whether other entities have the same root, so that a key alone doesn't determine the entity.
    let sharesRoot: Bool
    /// Those of ``GraphPlan/checks``, which keeps them in memory.
    let quickChecks: QuickChecks
    /// The row of default values. ``GraphPlan/templates`` keeps it in memory. Its text and data follow the fixed part without gaps.
    let newRow: RowPointer
    /// The size of ``newRow``, with its text and data.
    let newRowByteCount: Int
  }

  let model: ManagedObjectModel
  let entities: UnsafeMutablePointer<EntityPlan>
  let slotTypes: SlotTypes
  /// One batch per entity with two rows: an empty row, and the default values of a new object.
  let templates: [RowBatch]
  /// The checks that a save performs, by entity.
  let checks: [EntityChecks]
  /// The transformers by entity and slot. Nil for an unregistered transformer and for other attributes.
  let transformers: [[(any AttributeTransformer)?]]
  /// The slots of attributes of type object ID, by entity.
  let objectIDSlots: [[SlotIndex]]
  /// Whether ``objectIDSlots`` has any slots.
  let hasObjectIDs: Bool
  /// Whether any entity has transient attributes.
  let hasTransients: Bool
  /// Whether any entity has transient relationships.
  let hasTransientLinks: Bool
  /// The one-to-one relationships by entity. Both ends are stored in rows.
  let pairs: [[LinkPlan]]
  /// Whether ``pairs`` has any relationships.
  let hasPairs: Bool
  /// The many-to-many relationships with an inverse, by entity. Both ends record every change.
  let manyToMany: [[LinkPlan]]
  /// Whether relationships without an inverse can reference objects of a root entity, by entity. False for other entities.
  let isReferencedOneWay: [Bool]
  /// How to compute derived attributes; nil if the model has none.
  let derivations: DerivationPlan?

  init(_ model: ManagedObjectModel, _ registry: AttributeTransformerRegistry) {
    self.model = model
    transformers = model.entities.map { entity in
      entity.slots.map { slot in
        guard case .attribute(let attribute) = slot, attribute.type == .transformable else { return nil }
        return registry[attribute.declaration.valueTransformerName]
      }
    }
    objectIDSlots = model.entities.map { entity in
      entity.slotIndexes.filter { entity.layout.columns[$0] == .attribute(.objectID) }
    }
    hasObjectIDs = objectIDSlots.contains { !$0.isEmpty }
    hasTransients = model.entities.contains { !$0.transientAttributes.isEmpty }
    hasTransientLinks = model.entities.contains { !$0.transientRelationships.isEmpty }
    entities = .allocate(capacity: model.entities.count)
    templates = model.entities.map(GraphPlan.template)
    checks = model.entities.map { EntityChecks($0, model) }
    for entity in model.entities {
      (entities + entity.index.rawValue).initialize(to: GraphPlan.plan(entity, model, checks[entity.index].quick, templates[entity.index]))
    }
    slotTypes = GraphPlan.slotTypes(model)
    let plans = entities
    pairs = model.entities.map { entity in
      entity.slots.indices.map { plans[entity.index].toOne[$0] }.filter { $0.slot >= 0 && $0.inverseSlot >= 0 }
    }
    hasPairs = pairs.contains { !$0.isEmpty }
    manyToMany = model.entities.map { entity in
      entity.toManyRelationships.indices.map { plans[entity.index].toMany[$0] }.filter { $0.inverseToManyIndex != LinkPlan.none }
    }
    var isReferencedOneWay = Array(repeating: false, count: model.entities.count)
    for entity in model.entities {
      for relationship in entity.ownRelationships where model.inverse(of: relationship) == nil {
        isReferencedOneWay[model.destination(of: relationship).rootIndex.rawValue] = true
      }
    }
    self.isReferencedOneWay = isReferencedOneWay
    derivations = DerivationPlan(model)
  }

  deinit {
    for entity in model.entities {
      entities[entity.index].toOne.deallocate()
      (entities[entity.index].toMany - entity.transientRelationships.count).deallocate()
    }
    entities.deallocate()
    slotTypes.deallocate()
  }

  /// A row in which every slot is nil.
  func emptyRow(_ entity: EntityIndex) -> RowPointer { templates[entity].pointer(0) }

  /// The slots of an entity's derived attributes.
  @inline(__always) func derivedSlots(_ entity: EntityIndex) -> [SlotIndex] { derivations?.slots[entity] ?? [] }

  /// A row of default values.
  func newRow(_ entity: EntityIndex) -> RowPointer { entities[entity].newRow }

  private static func template(_ entity: ManagedObjectModel.Entity) -> RowBatch {
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    for _ in entity.slots { builder.appendNull() }
    builder.endRow()
    builder.beginRow(key: 0, version: 0)
    for slot in entity.slots {
      if case .attribute(let attribute) = slot, let value = attribute.defaultValue, builder.appendValue(value, slot.columnType) { continue }
      builder.appendNull()
    }
    builder.endRow()
    return builder.seal()
  }

  private static func slotTypes(_ model: ManagedObjectModel) -> SlotTypes {
    let (types, count) = (SlotTypes(entityCount: model.entities.count), ManagedObject.tabulatedSlots)
    for entity in model.entities {
      for (slot, column) in entity.layout.columns.prefix(count).enumerated() {
        if case .attribute(let type) = column { types[entity.index.rawValue * count + slot] = AttributeTypeSet(type).rawValue }
      }
    }
    return types
  }

  private static func plan(
    _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, _ quickChecks: QuickChecks, _ template: RowBatch
  ) -> EntityPlan {
    let toOne = UnsafeMutablePointer<LinkPlan>.allocate(capacity: max(1, entity.slots.count))
    toOne.initialize(repeating: LinkPlan(), count: max(1, entity.slots.count))
    let (toManyCount, transientLinkCount) = (entity.toManyRelationships.count, entity.transientRelationships.count)
    let links = UnsafeMutablePointer<LinkPlan>.allocate(capacity: transientLinkCount + max(1, toManyCount))
    links.initialize(repeating: LinkPlan(), count: transientLinkCount + max(1, toManyCount))
    let toMany = links + transientLinkCount
    for relationship in entity.relationships {
      let link = link(relationship, model)
      if relationship.isToMany { toMany[relationship.toManyIndex] = link } else { toOne[relationship.slot.rawValue] = link }
    }
    for relationship in entity.transientRelationships { toMany[relationship.toManyIndex] = link(relationship, model) }
    return EntityPlan(
      toOne: toOne, toMany: toMany, slotCount: entity.slots.count, toManyCount: toManyCount,
      transientCount: entity.transientAttributes.count, transientLinkCount: transientLinkCount, root: entity.rootIndex,
      family: entity.familyIndexes,
      sharesRoot: model.entities[entity.rootIndex].familyIndexes.count > 1, quickChecks: quickChecks,
      // The empty row before it has no text and data.
      newRow: template.pointer(1), newRowByteCount: template.byteCount - entity.layout.fixedByteCount)
  }

  private static func link(_ relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel) -> LinkPlan {
    let inverse = model.inverse(of: relationship)
    var link = LinkPlan(
      entityNumber: Int32(relationship.entityIndex.rawValue), relationshipNumber: Int32(relationship.index.rawValue),
      slotNumber: Int32(relationship.slot.rawValue),
      toManyIndex: Int32(relationship.toManyIndex), destinationNumber: Int32(relationship.destinationIndex.rawValue),
      destinationEnd: Int32(model.destination(of: relationship).familyIndexes.upperBound.rawValue),
      inverseSlotNumber: Int32(inverse?.slot.rawValue ?? -1),
      isOrdered: relationship.isOrdered)
    if let inverse, inverse.isToMany || inverse.isTransient { link.inverseToManyIndex = Int32(inverse.toManyIndex) }
    link.isTransientToOne = relationship.isTransient && !relationship.isToMany
    link.hasTransientToOneInverse = inverse.map { $0.isTransient && !$0.isToMany } ?? false
    return link
  }
}
