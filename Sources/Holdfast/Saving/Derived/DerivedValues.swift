import HoldfastStore

/// The derived values that a save writes to the rows of one store.
final class DerivedValues {
  /// A change of a value that is derived from other objects.
  struct Change {
    /// The attribute's value after the save.
    var value: StoreValue
    /// The number that the store adds to its stored number; nil if the store sets ``value``.
    var added: StoreValue?
  }

  let plan: DerivationPlan
  /// The date of the save in seconds since 2001.
  let date: Double
  let stored: StoredRows
  /// The changes by attribute number and by the context's key.
  var changes: [[ObjectKey: Change]]
  /// The rows that the save writes anyway, by root entity.
  var written: [Set<ObjectKey>]
  /// The rows in which the save changes only derived values, by concrete entity, with ascending keys.
  var refreshed: [(entity: EntityIndex, keys: [ObjectKey])] = []
  /// The numbers that don't fit their attributes.
  var failures: [PersistenceError] = []

  init(_ plan: DerivationPlan, date: Double, _ stored: StoredRows, entityCount: Int) {
    self.plan = plan
    self.date = date
    self.stored = stored
    changes = Array(repeating: [:], count: plan.followingCount)
    written = Array(repeating: [], count: entityCount)
  }

  /// A value that replaces the one in a saved row.
  struct Cell {
    let slot: SlotIndex
    let value: StoreValue
    /// Whether the request's updated row sets the value, rather than a derived row.
    let isSet: Bool
  }

  /// The derived values of a new object, in slot order.
  func cells(ofNew row: RowPointer, _ entity: EntityIndex, key: ObjectKey) -> [Cell] {
    plan.all[entity].map { derived in
      switch derived {
      case .own(let own): Cell(slot: own.slot, value: own.value(row, date: date), isSet: true)
      case .following(let following):
        Cell(slot: following.slot, value: changes[following.number][key]?.value ?? following.initial, isSet: true)
      }
    }
  }

  /// The derived values of a changed object, in slot order.
  ///
  /// Values derived from other objects are those of the store, unless the save changes them.
  func cells(ofChanged row: RowPointer, since committed: RowPointer, _ entity: ManagedObjectModel.Entity) -> [Cell] {
    let found = plan.following[entity.index].isEmpty ? committed : stored.row(root: entity.rootIndex, row.key)?.row ?? committed
    return plan.all[entity.index].map { derived in
      switch derived {
      case .own(let own):
        if own.isDue(row, committed, entity.layout.kinds) { return Cell(slot: own.slot, value: own.value(row, date: date), isSet: true) }
        return Cell(slot: own.slot, value: committed.isPresent(own.slot) ? committed.value(own.slot, own.type) : .null, isSet: false)
      case .following(let following):
        let change = changes[following.number][row.key]
        return Cell(
          slot: following.slot, value: change?.value ?? found.value(following.slot, entity.layout.columns[following.slot]),
          isSet: change != nil && change?.added == nil)
      }
    }
  }

  /// The changed values of a row that are derived from other objects.
  func following(_ entity: EntityIndex, _ key: ObjectKey) -> [(slot: SlotIndex, change: Change)] {
    plan.following[entity].compactMap { attribute in changes[attribute.number][key].map { (attribute.slot, $0) } }
  }
}
