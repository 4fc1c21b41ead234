import HoldfastStore

/// How a relationship is followed and kept in step with its inverse: plain numbers, for the paths that run per link.
struct LinkPlan {
  var entity: Int32 = 0
  var relationship: Int32 = 0
  /// Where the target's key lies, or -1.
  var slot: Int32 = -1
  var toManyIndex: Int32 = -1
  /// The entity at the other end, and the one behind the last of its sub-entities.
  var destination: Int32 = 0
  var destinationEnd: Int32 = 1
  /// Where the inverse's key lies in the target, or -1 when the inverse is to-many or there is none.
  var inverseSlot: Int32 = -1
  /// The to-many index of the inverse in the target, or -1.
  var inverseToManyIndex: Int32 = -1
  var isOrdered = false

  @inline(__always) var hasInverse: Bool { inverseSlot >= 0 || inverseToManyIndex >= 0 }

  /// Whether the relationship may lead to objects of an entity.
  @inline(__always) func leads(toEntity entity: UInt32) -> Bool {
    entity >= UInt32(bitPattern: destination) && entity < UInt32(bitPattern: destinationEnd)
  }
}

/// What the stack works out once per model: link plans, empty rows, rows of defaults.
final class GraphPlan: @unchecked Sendable {  // because nothing changes after the initialiser
  struct EntityPlan {
    /// By slot; entries of attributes are unused.
    let toOne: UnsafeMutablePointer<LinkPlan>
    let toMany: UnsafeMutablePointer<LinkPlan>
    let slotCount: Int
    let toManyCount: Int
    let transientCount: Int
    let root: Int
    /// The entities whose objects are objects of this one: itself and its sub-entities.
    let family: Range<Int>
    /// Whether other entities have the same root, so that a key alone does not tell the entity.
    let sharesRoot: Bool
  }

  let model: ManagedObjectModel
  let entities: UnsafeMutablePointer<EntityPlan>
  /// One batch per entity with two rows: all nil, and the defaults of a new object.
  let templates: [RowBatch]
  /// What a save checks, by entity.
  let checks: [EntityChecks]
  /// The transformers of transformable attributes by entity and slot; nil for those that are not registered.
  let transformers: [[(any AttributeTransformer)?]]
  /// The slots of attributes that are IDs of objects, by entity.
  let objectIDSlots: [[Int]]
  /// Whether there is any.
  let hasObjectIDs: Bool
  /// Whether an entity has transient attributes.
  let hasTransients: Bool
  /// The one-to-one relationships by entity, both ends of which lie in rows.
  let pairs: [[LinkPlan]]
  /// Whether there is any.
  let hasPairs: Bool
  /// The many-to-many relationships with an inverse by entity, both ends of which record every change.
  let manyToMany: [[LinkPlan]]
  /// How derived attributes are worked out; nil when there is none.
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
      entity.layout.columns.indices.filter { entity.layout.columns[$0] == .attribute(.objectID) }
    }
    hasObjectIDs = objectIDSlots.contains { !$0.isEmpty }
    hasTransients = model.entities.contains { !$0.transientAttributes.isEmpty }
    entities = .allocate(capacity: model.entities.count)
    templates = model.entities.map(GraphPlan.template)
    checks = model.entities.map { EntityChecks($0, model) }
    for entity in model.entities { (entities + entity.index).initialize(to: GraphPlan.plan(entity, model)) }
    let plans = entities
    pairs = model.entities.map { entity in
      entity.slots.indices.map { plans[entity.index].toOne[$0] }.filter { $0.slot >= 0 && $0.inverseSlot >= 0 }
    }
    hasPairs = pairs.contains { !$0.isEmpty }
    manyToMany = model.entities.map { entity in
      entity.toManyRelationships.indices.map { plans[entity.index].toMany[$0] }.filter { $0.inverseToManyIndex >= 0 }
    }
    derivations = DerivationPlan(model)
  }

  deinit {
    for entity in model.entities {
      entities[entity.index].toOne.deallocate()
      entities[entity.index].toMany.deallocate()
    }
    entities.deallocate()
  }

  /// A row of nothing but nil.
  func emptyRow(_ entity: Int) -> RowPointer { templates[entity].pointer(0) }

  /// A row of defaults.
  func newRow(_ entity: Int) -> RowPointer { templates[entity].pointer(1) }

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

  private static func plan(_ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) -> EntityPlan {
    let toOne = UnsafeMutablePointer<LinkPlan>.allocate(capacity: max(1, entity.slots.count))
    toOne.initialize(repeating: LinkPlan(), count: max(1, entity.slots.count))
    let toMany = UnsafeMutablePointer<LinkPlan>.allocate(capacity: max(1, entity.toManyRelationships.count))
    toMany.initialize(repeating: LinkPlan(), count: max(1, entity.toManyRelationships.count))
    for relationship in entity.relationships {
      let inverse = model.inverse(of: relationship)
      let link = LinkPlan(
        entity: Int32(relationship.entityIndex), relationship: Int32(relationship.index), slot: Int32(relationship.slot),
        toManyIndex: Int32(relationship.toManyIndex), destination: Int32(relationship.destinationIndex),
        destinationEnd: Int32(model.destination(of: relationship).familyIndexes.upperBound), inverseSlot: Int32(inverse?.slot ?? -1),
        inverseToManyIndex: Int32(inverse?.toManyIndex ?? -1), isOrdered: relationship.isOrdered)
      if relationship.isToMany { toMany[relationship.toManyIndex] = link } else { toOne[relationship.slot] = link }
    }
    return EntityPlan(
      toOne: toOne, toMany: toMany, slotCount: entity.slots.count, toManyCount: entity.toManyRelationships.count,
      transientCount: entity.transientAttributes.count, root: entity.rootIndex, family: entity.familyIndexes,
      sharesRoot: model.entities[entity.rootIndex].familyIndexes.count > 1)
  }
}
