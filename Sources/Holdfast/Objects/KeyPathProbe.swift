import HoldfastStore

/// Finds the property of a key path by reading it.
///
/// `\Cat.name` and `\Animal.name` are different key paths, even if `Cat` inherits `name` from `Animal`; only the latter is in the table of
/// `Animal`. So the key path is read from an object that records the properties its accessors use.
///
/// The first probe of a process takes about 2 ms and each further key path 0.2 to 0.7 ms; the result is cached. Without it, every class
/// would have to list its inherited properties again.
///
/// A computed property may use an attribute too. So the key path is also read from several rows: it is the attribute only if it returns the
/// slot's value unchanged, whatever the other slots contain.
struct KeyPathProbe {
  private let probe: AccessorProbe
  /// The number of slots of the rows that are read: those of the class, or more, for the destinations that a computed property may use.
  private let slotCount: Int

  /// The minimum number of slots of the rows that are read.
  private static let leastSlots = 128

  private static let coordinator: PersistentStoreCoordinator? = {
    guard let model = try? ManagedObjectModel(entities: [EntityDescription("Probe")]) else { return nil }
    return try? PersistentStoreCoordinator(model: model, stores: [])
  }()

  private init?(_ type: ManagedObject.Type) {
    guard let coordinator = KeyPathProbe.coordinator else { return nil }
    probe = AccessorProbe(type, entity: 0, [ManagedObject.self], coordinator)
    slotCount = max(KeyPathProbe.leastSlots, type.properties.map(\.slotEnd).max() ?? 0)
  }

  /// The name of a key path's property that isn't among the listed key paths of the class; nil if it isn't a property of the model.
  static func name(of keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> String? {
    guard let probe = KeyPathProbe(type) else { return nil }
    return probe.name(of: keyPath)
  }

  private func name(of keyPath: AnyKeyPath) -> String? {
    var rest = read(keyPath).steps[...]
    guard let step = rest.popFirst(), let binding = step.type.properties.first(where: { $0.access.property == step.access }) else {
      return nil
    }
    if case .composite(let leaves) = binding.kind { rest = rest.dropFirst(leaves().count - 1) }
    return rest.isEmpty && reads(keyPath, binding) ? binding.name : nil
  }

  private typealias Step = (type: ManagedObject.Type, access: PropertyAccess)

  /// Whether a key path returns the value of a property, unchanged.
  private func reads(_ keyPath: AnyKeyPath, _ binding: PropertyBinding) -> Bool {
    guard Swift.type(of: keyPath).valueType == Swift.type(of: binding.keyPath()).valueType else { return false }
    // Only values of attributes can be distinguished from computed ones.
    guard case .attribute(let types, let type) = binding.kind else { return true }
    guard binding.slot < slotCount, let type = type as? any AttributeValue.Type, let kind = types.types.first?.cellKind else {
      return false
    }
    let slot = SlotIndex(binding.slot)
    return (rows(kind, slot) + rows(of: type, slot)).allSatisfy { row in
      (read(keyPath, (row, kind)).value as? any AttributeValue)?.storeValue == type.load(row.pointer(0), slot).storeValue
    }
  }

  /// The value of a key path for an object with a row, and the properties that it used.
  private func read(_ keyPath: AnyKeyPath, _ row: (batch: RowBatch, kind: CellKind)? = nil) -> (value: Any?, steps: [Step]) {
    let recorder = AccessRecorder(
      slotLimit: row == nil ? AbsentRow.slotCount : slotCount, kind: row?.kind, hasDestinations: true)
    var value: Any?
    probe.record(recorder) { object in
      withExtendedLifetime(row?.batch) {
        let before = object.row
        if let row { object.row = row.batch.pointer(0) }
        defer { object.row = before }
        value = (object as Any)[keyPath: keyPath]
      }
    }
    return (value, recorder.steps)
  }

  /// Rows that distinguish a slot from others, and its value from computed ones.
  ///
  /// They have different values in all slots, a value only in that slot, values only in the others, and none.
  private func rows(_ kind: CellKind, _ slot: SlotIndex) -> [RowBatch] {
    let texts: [(SlotIndex) -> String] = [
      { "MiXed \u{DC}n\u{EF} \($0) and long" }, { String(1_000_000_000_000_000 + $0.rawValue) },
      { "x-coredata://00000000-0000-0000-0000-000000000000/Probe/p\($0)" },
    ]
    return texts.enumerated().flatMap { round, text in
      let fills: [(SlotIndex) -> Bool] = [{ _ in true }, { $0 == slot }, { $0 != slot }, { _ in false }]
      return fills.map { isSet in
        row(kind) { slot in
          if !isSet(slot) { return .null }
          let number: Int64 = round == 0 ? Int64(slot.rawValue) * 3 + 1 : -Int64(slot.rawValue) * 7 - 2
          switch kind {
          case .integer, .key: return .int64(number)
          case .real: return .double(Double(number) + 0.5)
          case .bytes: return .string(text(slot))
          }
        }
      }
    }
  }

  /// Rows that distinguish a slot of an enumeration from others: one case in the slot and another in all others, and vice versa.
  ///
  /// Other values aren't cases of the enumeration, so they would all read the same.
  private func rows(of type: any AttributeValue.Type, _ slot: SlotIndex) -> [RowBatch] {
    guard let cases = (unwrapped(type) as? any CaseIterable.Type)?.ends, let kind = type.attributeTypes.types.first?.cellKind else {
      return []
    }
    return [(cases.first, cases.last), (cases.last, cases.first)].map { here, elsewhere in
      row(kind) { $0 == slot ? here : elsewhere }
    }
  }

  private static func column(_ kind: CellKind) -> ColumnType {
    switch kind {
    case .integer: .attribute(.integer64)
    case .real: .attribute(.double)
    case .bytes: .attribute(.string)
    case .key: .toOne(destination: 0)
    }
  }

  /// A row with columns of one kind. A value that doesn't fit is null.
  private func row(_ kind: CellKind, _ value: (SlotIndex) -> StoreValue) -> RowBatch {
    let column = KeyPathProbe.column(kind)
    let builder = RowBatchBuilder(layout: RowLayout(Array(repeating: column, count: slotCount)), idPrefix: nil)
    builder.beginRow(key: 0, version: 1)
    for slot in builder.layout.slots where !builder.appendValue(value(slot), column) { builder.appendNull() }
    builder.endRow()
    return builder.seal()
  }
}

extension PropertyBinding {
  /// The number behind the property's last slot; 0 if it isn't in the row.
  fileprivate var slotEnd: Int {
    switch kind {
    case .attribute, .transformable: slot + 1
    case .composite(let leaves): slot + leaves().count
    case .relationship(let relationship): relationship.isInRow ? slot + 1 : 0
    case .transient: 0
    }
  }
}

extension CaseIterable {
  /// The raw values of the first and the last case of an enumeration that is an attribute.
  fileprivate static var ends: (first: StoreValue, last: StoreValue)? {
    let values = allCases.compactMap { ($0 as? any AttributeValue)?.storeValue }
    guard let first = values.first, let last = values.last else { return nil }
    return (first, last)
  }
}
