import HoldfastStore

/// The numbers of the entities that remain in a migrated file.
///
/// Core Data takes the numbers from the model: those of the entities in the order of their names. So another entity changes the numbers of
/// those behind it, and everything in the file that contains them.
struct EntityNumbers {
  private let pairs: [(old: Int64, new: Int64)]

  init(_ mapping: MappingModel, _ old: StoreSchema, _ new: StoreSchema) {
    pairs = mapping.source.entityIndexes.compactMap { index in
      mapping.destination(of: index).map { (old.tables[index].number, new.tables[$0].number) }
    }
  }

  private var changed: [(old: Int64, new: Int64)] { pairs.filter { $0.old != $0.new } }

  /// The former numbers, separated by commas.
  var formerList: String { pairs.map { String($0.old) }.joined(separator: ", ") }

  /// Replaces the numbers in a column.
  ///
  /// - Parameter isUnique: Whether the column is part of a unique index, which SQLite checks after each row.
  func replace(in column: String, of table: String, isUnique: Bool = false, _ connection: SQLiteConnection) throws {
    if changed.isEmpty { return }
    let cases = changed.map { "WHEN \($0.old) THEN \(isUnique ? -$0.new : $0.new)" }.joined(separator: " ")
    let former = changed.map { String($0.old) }.joined(separator: ", ")
    // All at once, because numbers may be exchanged.
    try connection.runScript("UPDATE \(table) SET \(column) = CASE \(column) \(cases) END WHERE \(column) IN (\(former))")
    if isUnique { try connection.runScript("UPDATE \(table) SET \(column) = -\(column) WHERE \(column) < 0") }
  }
}
