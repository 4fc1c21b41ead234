import HoldfastStore

/// A relationship, by the entity that declares it and its index there.
struct RelationshipPlace: Hashable, Comparable {
  let entity: EntityIndex
  let relationship: RelationshipIndex

  init(entity: EntityIndex, relationship: RelationshipIndex) {
    self.entity = entity
    self.relationship = relationship
  }

  init(_ relationship: ManagedObjectModel.Relationship) {
    self.init(entity: relationship.entityIndex, relationship: relationship.index)
  }

  static func < (a: RelationshipPlace, b: RelationshipPlace) -> Bool {
    (a.entity, a.relationship) < (b.entity, b.relationship)
  }
}
