import HoldfastStore

/// What a save checks of the objects of one entity, worked out once. A class, so that each object costs one reference.
final class EntityChecks: Sendable {
  let slots: [SlotCheck]
  let groups: [GroupCheck]
  let transients: [TransientCheck]
  /// Transient relationships that must lead to an object, or have bounds.
  let transientLinks: [ManagedObjectModel.Relationship]
  /// To-many relationships with bounds.
  let counted: [ManagedObjectModel.Relationship]
  /// Relationships whose inverses lose an object when one of the entity is deleted, and must keep some.
  let losing: [ManagedObjectModel.Relationship]

  init(_ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) {
    slots = entity.slots.indices.compactMap { SlotCheck($0, entity.slots[$0]) }
    groups = entity.composites.compactMap { GroupCheck($0, entity) }
    transients = entity.transientAttributes.compactMap { TransientCheck($0) }
    transientLinks = entity.transientRelationships.filter { !$0.isOptional || $0.isToMany && ($0.minCount > 0 || $0.maxCount > 0) }
    counted = entity.toManyRelationships.filter { !$0.isOptional || $0.minCount > 0 || $0.maxCount > 0 }
    losing = entity.relationships.filter { relationship in
      guard let inverse = model.inverse(of: relationship) else { return false }
      return relationship.deleteRule != .noAction && inverse.isToMany && (!inverse.isOptional || inverse.minCount > 0)
    }
  }

  /// Checks the attributes and to-one relationships of an object, which need not be as the row says.
  func collectFailures(_ row: RowPointer, _ object: ManagedObject, _ failures: inout [ContextError]) {
    for check in slots {
      if let failure = check.failure(row, object) { failures.append(failure) }
    }
    for group in groups { group.collectFailures(row, object, &failures) }
  }
}

/// What a save checks of a composite attribute: one that must be there has a value, and one that has a value has all those
/// that it must have.
struct GroupCheck: Sendable {
  private let name: String
  private let slots: Range<Int>
  /// Whether the group has to be there when the one that it is an element of is; that one's slots, or nil.
  private let isMandatory: Bool
  private let outer: Range<Int>?
  /// The elements that have to be there when the group is, which slots alone do not tell of an optional group.
  private let mandatory: [(slot: Int, name: String)]

  /// Nil when there is nothing to check.
  init?(_ group: ManagedObjectModel.CompositeAttribute, _ entity: ManagedObjectModel.Entity) {
    name = group.name
    slots = group.slots
    outer = entity.composites.last { group.name.hasPrefix($0.name + ".") }?.slots
    // Where elements are missed one by one, nobody needs to hear of the group.
    isMandatory = !group.declaration.isOptional && !entity.attributes.contains { group.slots.contains($0.slot) && !$0.isOptional }
    mandatory =
      !group.isOptional
      ? []
      : entity.attributes.filter { attribute in
        group.slots.contains(attribute.slot) && !attribute.declaration.isOptional
          && !attribute.name.utf8.dropFirst(group.name.utf8.count + 1).contains(UInt8(ascii: "."))
      }.map { ($0.slot, $0.name) }
    if slots.isEmpty || (!isMandatory && mandatory.isEmpty) { return nil }
  }

  func collectFailures(_ row: RowPointer, _ object: ManagedObject, _ failures: inout [ContextError]) {
    if slots.contains(where: row.isPresent) {
      for element in mandatory where !row.isPresent(element.slot) { failures.append(.missing(element.name, object)) }
    } else if isMandatory, outer?.contains(where: row.isPresent) != false {
      failures.append(.missing(name, object))
    }
  }
}
