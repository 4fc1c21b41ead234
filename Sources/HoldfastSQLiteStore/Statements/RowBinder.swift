import HoldfastStore

/// Binds the values of rows to parameters without copying bytes. The page with the bytes must stay valid until the statement has run.
final class RowBinder: Sendable {
  private let entity: ManagedObjectModel.Entity
  private let codes: [ColumnCode]
  private let path: String
  private let storesExactDecimals: Bool

  convenience init(entity: ManagedObjectModel.Entity, _ store: OpenStore) {
    self.init(entity: entity, path: store.path, storesExactDecimals: store.database.options.storesExactDecimals)
  }

  init(entity: ManagedObjectModel.Entity, path: String, storesExactDecimals: Bool) {
    self.entity = entity
    self.path = path
    self.storesExactDecimals = storesExactDecimals
    codes = entity.slots.map { ColumnCode($0) }
  }

  /// Binds all slots, starting with the parameter at the index.
  @inline(__always)
  func bindAll(_ row: RowPointer, to statement: SQLiteStatement, from index: Int) throws {
    try codes.withUnsafeBufferPointer { codes in
      for place in codes.indices { try bind(row, SlotIndex(place), codes[place], statement, at: index &+ place) }
    }
  }

  /// Binds one slot.
  func bind(_ row: RowPointer, slot: SlotIndex, to statement: SQLiteStatement, at index: Int) throws {
    try bind(row, slot, codes[slot], statement, at: index)
  }

  @inline(__always)
  private func bind(_ row: RowPointer, _ slot: SlotIndex, _ code: ColumnCode, _ statement: SQLiteStatement, at index: Int) throws {
    guard row.isPresent(slot) else { return statement.bindNull(at: index) }
    switch code {
    case .integer16, .integer32, .integer64, .boolean, .key: statement.bind(row.integer(slot), at: index)
    case .real:
      let value = row.real(slot)
      if value.isNaN { throw unstorable(row, slot, RowBinder.notANumber) }
      statement.bind(value, at: index)
    case .text, .objectID: try statement.bindText(row.bytes(slot), .borrowed, at: index)
    case .uuid, .data: try statement.bindBlob(row.bytes(slot), .borrowed, at: index)
    case .marked: try statement.bind(row.externalID(slot).map { MarkedColumn.bytes($0) } ?? MarkedColumn.bytes(row.bytes(slot)), at: index)
    case .decimal: try bindDecimal(row, slot, statement, at: index)
    }
  }

  private func bindDecimal(_ row: RowPointer, _ slot: SlotIndex, _ statement: SQLiteStatement, at index: Int) throws {
    let digits = row.bytes(slot)
    if let integer = DecimalColumn.integer(digits) { return statement.bind(integer, at: index) }
    if let real = DecimalColumn.real(digits) { return statement.bind(real, at: index) }
    guard DecimalColumn.text(digits) != nil else { throw unstorable(row, slot, RowBinder.notANumber) }
    guard storesExactDecimals else { throw unstorable(row, slot, RowBinder.inexact) }
    try statement.bindBlob(digits, .borrowed, at: index)
  }

  private static let notANumber = "is NaN, which this store can't save. Set it to nil or to a number."
  private static let inexact =
    "has more digits than a SQLite number can store without loss. Round it, or open the store with the option storesExactDecimals."

  @inline(never)
  private func unstorable(_ row: RowPointer, _ slot: SlotIndex, _ reason: String) -> StoreError {
    StoreError(
      .unstorableValue, operation: "save a row of \(entity.name)", path: path,
      reason: "\(entity.name).\(entity.slots[slot].name) of the object with key \(row.key) \(reason)")
  }
}
