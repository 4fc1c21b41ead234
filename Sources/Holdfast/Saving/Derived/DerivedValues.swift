import HoldfastStore

/// The values of derived attributes that one part of a save gives to rows.
final class DerivedValues {
  /// What becomes of one value that follows from other objects.
  struct Change {
    /// What the attribute has after the save.
    var value: StoreValue
    /// What the store adds to the number that it has; nil when it sets the value.
    var added: StoreValue?
  }

  let plan: DerivationPlan
  /// The date of the save in seconds since 2001.
  let date: Double
  let stored: StoredRows
  /// By the number of the attribute, and by key as the context knows it.
  var changes: [[Int64: Change]]
  /// The rows that the save writes anyway, by root entity.
  var written: [Set<Int64>]
  /// Rows that the save does not write otherwise, by concrete entity, ascending.
  var refreshed: [(entity: Int, keys: [Int64])] = []

  init(_ plan: DerivationPlan, date: Double, _ stored: StoredRows, entityCount: Int) {
    self.plan = plan
    self.date = date
    self.stored = stored
    changes = Array(repeating: [:], count: plan.followingCount)
    written = Array(repeating: [], count: entityCount)
  }

  /// The values that a row is saved with in place of those that it has, in slot order.
  struct Cell {
    let slot: Int
    let value: StoreValue
    /// Whether the row of the request says so, and not a derived row.
    let isSet: Bool
  }

  /// The derived values of a new object, in slot order.
  func cells(ofNew row: RowPointer, _ entity: Int, key: Int64) -> [Cell] {
    plan.all[entity].map { derived in
      switch derived {
      case .own(let own): Cell(slot: own.slot, value: own.value(row, date: date), isSet: true)
      case .following(let following):
        Cell(slot: following.slot, value: changes[following.number][key]?.value ?? following.initial, isSet: true)
      }
    }
  }

  /// The derived values of a changed object, in slot order: of those that follow from others what the store has, unless the save changes
  /// it.
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
          slot: following.slot, value: change?.value ?? found.value(following.slot, entity.layout.columns[following.slot], idPrefix: nil),
          isSet: change != nil && change?.added == nil)
      }
    }
  }

  /// The values that follow from others and change in a row.
  func following(_ entity: Int, _ key: Int64) -> [(slot: Int, change: Change)] {
    plan.following[entity].compactMap { attribute in changes[attribute.number][key].map { (attribute.slot, $0) } }
  }
}
