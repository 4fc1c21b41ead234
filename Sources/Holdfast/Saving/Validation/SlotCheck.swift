import HoldfastStore

/// The checks of a save on one slot.
struct SlotCheck: Sendable {
  let slot: SlotIndex
  private let name: String
  let isMandatory: Bool
  private let type: AttributeType?
  private let rule: SlotRule?

  /// Nil when there is nothing to check.
  init?(_ slot: SlotIndex, _ kind: ManagedObjectModel.Slot) {
    self.slot = slot
    name = kind.name
    switch kind {
    case .toOne:
      isMandatory = !kind.isOptional
      (type, rule) = (nil, nil)
    case .attribute(let attribute):
      // Programs can't correct derived values, so these aren't checked.
      isMandatory = !kind.isOptional && attribute.derivation == nil
      type = attribute.type
      rule = attribute.derivation == nil ? SlotRule(attribute.declaration) : nil
    }
    if !isMandatory && rule == nil { return nil }
  }

  /// Nil when there is nothing to check. A transient value is checked in a row of its own.
  init?(_ attribute: ManagedObjectModel.TransientAttribute) {
    slot = 0
    name = attribute.name
    isMandatory = !attribute.isOptional
    type = attribute.type
    rule = SlotRule(attribute.declaration)
    if !isMandatory && rule == nil { return nil }
  }

  var hasRule: Bool { rule != nil }

  /// The slot's numbers, if nothing else is checked; nil for other rules and for none.
  var range: SlotRange? { rule?.bounds.map { SlotRange(slot: slot, bounds: $0) } }

  @inline(__always) func failure(_ row: RowPointer, _ object: ManagedObject) -> PersistenceError? {
    guard row.isPresent(slot) else { return isMandatory ? .missing(name, object) : nil }
    guard let rule, let failure = rule.failure(row, slot, object.context) else { return nil }
    return error(failure, row, object)
  }

  @inline(never)
  private func error(_ failure: SlotRule.Failure, _ row: RowPointer, _ object: ManagedObject) -> PersistenceError {
    var error = PersistenceError(failure.code, objectID: object.id, property: name, reason: failure.reason)
    error.validation = ValidationFailure(value: value(row), bound: failure.bound, predicate: failure.predicate)
    return error
  }

  /// The value in the attribute's type, or as a 64-bit integer when it is out of the type's range.
  private func value(_ row: RowPointer) -> StoreValue? {
    guard let type else { return nil }
    if type.cellKind != .integer { return row.value(slot, type) }
    let value = StoreValue.int64(row.integer(slot))
    return value.converted(to: type) ?? value
  }
}

extension PersistenceError {
  static func missing(_ name: String, _ object: ManagedObject) -> PersistenceError {
    PersistenceError(
      .missingMandatoryValue, objectID: object.id, property: name,
      reason: "The property is required but has no value. Set it before saving.")
  }

  /// A single failure unchanged, or several combined in one error.
  static func together(_ failures: [PersistenceError]) -> PersistenceError {
    if failures.count == 1 { return failures[0] }
    return PersistenceError(
      .multipleValidationFailures, reason: "\(failures.count) validations failed. Correct each failure and save again.", failures: failures,
      objectIDs: failures.compactMap(\.objectID))
  }
}
