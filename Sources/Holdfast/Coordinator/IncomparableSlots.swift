import HoldfastStore

/// The slots whose values a store can't compare, such as encrypted attributes.
struct IncomparableSlots: Sendable {
  /// The slots by entity index, including those of inherited properties; empty if the store compares all values. A slot that a store
  /// reports for one entity is also in the lists of its subentities, and of its superentities that have the property.
  private let slots: [Set<SlotIndex>]

  /// - Parameters:
  ///   - listed: The slots that a store has reported.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unsupportedModel` if a slot doesn't exist, or isn't that of an attribute with a
  ///   value of its own. Stores add to derived values, so these must be comparable. The framework reads destinations by their keys.
  init(_ listed: [EntityIndex: Set<SlotIndex>], _ model: ManagedObjectModel, _ location: String?) throws {
    if listed.isEmpty {
      slots = []
      return
    }
    var all = [Set<SlotIndex>](repeating: [], count: model.entities.count)
    for (entity, slots) in listed {
      for slot in slots {
        guard model.entityIndexes.contains(entity), IncomparableSlots.isPlain(slot, model.entities[entity]) else {
          throw StoreError(
            .unsupportedModel, operation: "open the store", path: location,
            reason: "The store can't compare slot \(slot) of entity \(entity), which isn't an attribute with a value of its own. "
              + "The store may only report attributes that aren't derived.")
        }
        // A property has the same slot in the entity that declares it and in all subentities.
        for other in model.entities {
          let isBelow = model.entities[entity].familyIndexes.contains(other.index)
          let isAbove = other.familyIndexes.contains(entity) && other.slotIndexes.contains(slot)
          if isBelow || isAbove { all[other.index].insert(slot) }
        }
      }
    }
    slots = all
  }

  private static func isPlain(_ slot: SlotIndex, _ entity: ManagedObjectModel.Entity) -> Bool {
    guard entity.slotIndexes.contains(slot), case .attribute(let attribute) = entity.slots[slot] else { return false }
    return attribute.derivation == nil
  }

  var isEmpty: Bool { slots.isEmpty }

  func contains(_ slot: SlotIndex, of entity: EntityIndex) -> Bool { !slots.isEmpty && slots[entity].contains(slot) }

  func contains(_ path: ResolvedPath, _ model: ManagedObjectModel) -> Bool {
    if slots.isEmpty { return false }
    guard case .attribute(let attribute) = path.property, let slot = model.entities[path.entity].slot(named: attribute.name) else {
      return false
    }
    return contains(slot, of: path.entity)
  }

  func contains(_ plan: AggregatePlan, of entity: EntityIndex) -> Bool {
    !slots.isEmpty && (plan.groupBy + plan.columns.compactMap(\.slot)).contains { contains($0, of: entity) }
  }
}
