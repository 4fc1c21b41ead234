import HoldfastStore

/// The checks that a save runs on the objects of one entity. A class, so that using it retains only one reference.
final class EntityChecks: @unchecked Sendable {  // because nothing changes after the initialiser
  let slots: [SlotCheck]
  let quick: QuickChecks
  /// Those that check more than ``quick``: rules for text and decimal numbers.
  private let others: [SlotCheck]
  let groups: [GroupCheck]
  let transients: [TransientCheck]
  /// Transient relationships that require a destination or have a minimum or maximum count.
  let transientLinks: [ManagedObjectModel.Relationship]
  /// To-many relationships that have a minimum or maximum count.
  let counted: [ManagedObjectModel.Relationship]
  /// Relationships whose inverse is a to-many relationship that requires objects. Deleting an object of this entity removes it from there.
  let losing: [ManagedObjectModel.Relationship]

  init(_ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) {
    let slots = entity.slotIndexes.compactMap { SlotCheck($0, entity.slots[$0]) }
    self.slots = slots
    others = slots.filter { $0.hasRule && $0.range == nil }
    groups = entity.composites.compactMap { GroupCheck($0, entity) }
    transients = entity.transientAttributes.compactMap { TransientCheck($0) }
    transientLinks = entity.transientRelationships.filter { !$0.canBeEmpty || $0.isToMany && ($0.minCount > 0 || $0.maxCount > 0) }
    counted = entity.toManyRelationships.filter { $0.minCount > 0 || $0.maxCount > 0 }
    losing = entity.relationships.filter { relationship in
      guard let inverse = model.inverse(of: relationship) else { return false }
      return relationship.deleteRule != .noAction && inverse.isToMany && inverse.minCount > 0
    }
    quick = QuickChecks(
      slots, wordCount: (entity.layout.columns.count + 63) / 64,
      areAll: others.count + groups.count + transientLinks.count + counted.count == 0)
  }

  deinit { quick.deallocate() }

  /// Checks the attributes and to-one relationships in a row, which can differ from the object's own row.
  func collectFailures(_ row: RowPointer, _ object: ManagedObject, _ failures: inout [PersistenceError]) {
    for check in quick.accept(row) ? others : slots {
      if let failure = check.failure(row, object) { failures.append(failure) }
    }
    for group in groups { group.collectFailures(row, object, &failures) }
  }

  /// Checks the number of an object's destinations.
  func collectCountFailure(
    _ relationship: ManagedObjectModel.Relationship, _ object: ManagedObject, _ failures: inout [PersistenceError]
  ) {
    let targets = ToMany<ManagedObject>(owner: object, index: relationship.toManyIndex), count = targets.count
    func fail(_ code: PersistenceError.Code, _ reason: String, bound: Int? = nil) {
      var failure = PersistenceError(code, objectID: object.id, property: relationship.name, reason: reason)
      failure.validation = bound.map { ValidationFailure(bound: .int64(Int64($0))) }
      failure.objectIDs = targets.map(\.objectID)
      failures.append(failure)
    }
    if count == 0 && relationship.canBeEmpty { return }
    if !relationship.isToMany {
      if count == 0 { fail(.missingMandatoryValue, "The relationship is required but empty. Set it before saving.") }
    } else if count < relationship.minCount {
      fail(.tooFewObjects, "The relationship's count is \(count); the minimum is \(relationship.minCount).", bound: relationship.minCount)
    } else if relationship.maxCount > 0 && count > relationship.maxCount {
      fail(.tooManyObjects, "The relationship's count is \(count); the maximum is \(relationship.maxCount).", bound: relationship.maxCount)
    }
  }
}

/// The checks of a composite attribute. If it is required, it must have a value. If it has a value, it must have its required elements.
struct GroupCheck: Sendable {
  private let name: String
  private let slots: Range<SlotIndex>
  /// Whether the attribute is required, if the composite attribute that contains it has a value.
  private let isMandatory: Bool
  /// The slots of the composite attribute that contains this one; nil if there is none.
  private let outer: Range<SlotIndex>?
  /// The elements that are required if an optional composite attribute has a value. Slot checks don't cover them.
  private let mandatory: [(slot: SlotIndex, name: String)]

  /// Nil when there is nothing to check.
  init?(_ group: ManagedObjectModel.CompositeAttribute, _ entity: ManagedObjectModel.Entity) {
    name = group.name
    slots = group.slots
    outer = entity.composites.last { group.name.hasPrefix($0.name + ".") }?.slots
    // If required elements are reported one by one, a failure of the entire attribute would be redundant.
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

  func collectFailures(_ row: RowPointer, _ object: ManagedObject, _ failures: inout [PersistenceError]) {
    if slots.contains(where: row.isPresent) {
      for element in mandatory where !row.isPresent(element.slot) { failures.append(.missing(element.name, object)) }
    } else if isMandatory, outer?.contains(where: row.isPresent) != false {
      failures.append(.missing(name, object))
    }
  }
}
