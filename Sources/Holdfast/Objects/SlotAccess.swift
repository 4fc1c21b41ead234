import HoldfastStore

/// Checks that an accessor's slot exists in the object's entity and has a type that the accessor can read and write.
///
/// A slot written by hand may be wrong. Binding a class checks only the properties in its list. The functions below check every access in all
/// builds, before memory is touched. For attributes in the first 64 slots, the check reads one word of a table that all objects of a context
/// share.
extension ManagedObject {
  /// The number of slots per entity in the table; others are looked up in the model.
  @inlinable static var tabulatedSlots: Int { 64 }

  /// Traps unless a slot has an attribute of one of the given types.
  @inlinable @inline(__always) final func checkSlot(_ slot: SlotIndex, _ types: AttributeTypeSet) {
    if UInt(bitPattern: slot.rawValue) < UInt(bitPattern: ManagedObject.tabulatedSlots),
      context.slotTypes[Int(flags.rawValue >> 16) << 6 | slot.rawValue] & types.rawValue != 0
    {
      return
    }
    checkUntabulated(slot, types)
  }

  @usableFromInline @inline(never) final func checkUntabulated(_ slot: SlotIndex, _ types: AttributeTypeSet) {
    if isProbe(.slot(slot)) { return checkKind(types) }
    let columns = entity.layout.columns
    guard entity.slotIndexes.contains(slot) else { trap("slot \(slot)", "it has \(columns.count) slots") }
    if case .attribute(let type) = columns[slot], types.contains(type) { return }
    let name = entity.slots[slot].name
    guard case .attribute(let type) = columns[slot] else { trap("slot \(slot) as an attribute", "that is the relationship \(name)") }
    trap("slot \(slot) as \(types.types.map(\.rawValue).joined(separator: " or "))", "that is \(name), of type \(type.rawValue)")
  }

  /// Traps if the probe's rows contain another kind of value.
  private func checkKind(_ types: AttributeTypeSet) {
    guard let kind = recorder?.kind, !types.types.contains(where: { $0.cellKind == kind }) else { return }
    fatalError("A request names a property of \(type(of: self)) whose getter reads different attributes, depending on their values.")
  }

  /// The to-one relationship in a slot; nil for an object that only records accesses.
  final func toOneLink(_ slot: SlotIndex) -> LinkPlan? {
    if isProbe(.slot(slot)) { return nil }
    let plan = plan
    guard slot >= 0 && slot.rawValue < plan.slotCount else { trap("slot \(slot)", "it has \(plan.slotCount) slots") }
    let link = plan.toOne[slot]
    guard link.slot >= 0 else { trap("slot \(slot) as a to-one relationship", "that is the attribute \(entity.slots[slot].name)") }
    return link
  }

  /// The index of a to-many relationship; traps unless the entity has one with that index.
  final func toManyIndex(_ index: Int, isOrdered: Bool = false) -> Int {
    let plan = plan
    if isProbe(.toMany(index)) { return index >= 0 && index < plan.toManyCount ? index : 0 }
    guard index >= 0 && index < plan.toManyCount else {
      trap("to-many relationship \(index)", "it has \(plan.toManyCount) of them")
    }
    if isOrdered && !plan.toMany[index].isOrdered {
      trap("to-many relationship \(index) as an ordered one", "\(entity.toManyRelationships[index].name) has no order")
    }
    return index
  }

  /// Traps unless the entity has a transient attribute with an index. Returns false for an object that only records accesses.
  final func hasTransientSlot(_ index: Int) -> Bool {
    if isProbe(.transient(index)) { return false }
    let count = plan.transientCount
    guard index >= 0 && index < count else { trap("transient attribute \(index)", "it has \(count) of them") }
    return true
  }

  /// The object as the class that an accessor names; traps if it is of another class.
  @inline(__always) final func typed<Destination: ManagedObject>() -> Destination {
    if type(of: self) != Destination.self { checkClass(Destination.self) }
    return unsafeDowncast(self, to: Destination.self)
  }

  @inline(never) private func checkClass(_ wanted: ManagedObject.Type) {
    if ClassBinding.isKind(type(of: self), of: wanted) { return }
    fatalError(
      "An accessor names \(wanted) as the class of a relationship's objects, but this one is a \(type(of: self)). Correct the accessor.")
  }

  final func trap(_ asked: String, _ actual: String) -> Never {
    fatalError(
      "\(type(of: self)) used \(asked) of \(entity.name), but \(actual). Correct the number or the type in the class's accessors; if the class lists the "
        + "property, creating the container reports such an error.")
  }
}
