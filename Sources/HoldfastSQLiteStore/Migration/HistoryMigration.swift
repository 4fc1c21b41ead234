import HoldfastStore

/// Adapts a file's history to another version of the model, so that tokens stay valid.
///
/// Objects keep their keys, but their entities may have other numbers. Changes of removed entities are deleted. Encoded names of changed
/// properties, and values of deleted objects, depend on the properties of the model. If an entity's properties differ, they are cleared.
/// Values of deleted objects are also cleared if they contain object IDs, and entities are renamed or removed.
/// Values of deleted objects get or lose the mark of external storage with their attribute. Values before and after changes have the names
/// of properties, so they are deleted if properties exchange their names.
struct HistoryMigration {
  let mapping: MappingModel
  let old: StoreSchema
  let new: StoreSchema
  let connection: SQLiteConnection

  func run() throws {
    guard try HistoryTables.exist(connection) else { return }
    let former = HistoryPlan(mapping.source), plan = HistoryPlan(mapping.destination)
    let tombstones = try (0..<HistoryTables.tombstoneCount(connection)).map { "ZTOMBSTONE\($0) = NULL" }
    let numbers = EntityNumbers(mapping, old, new)
    var withOtherProperties: [Int64] = [], withOtherTombstones: [Int64] = [], withOtherNames: [Int64] = []
    var withOtherMarks: [(number: Int64, column: String, isMarked: Bool)] = []
    for entity in mapping.source.entities {
      guard let destination = mapping.destination(of: entity.index) else { continue }
      let number = old.tables[entity.index].number
      let (before, after) = (former.entities[entity.index.rawValue], plan.entities[destination.rawValue])
      let target = mapping.mapping(of: destination), exchangesNames = mapping.exchangesNames(target)
      if exchangesNames { withOtherNames.append(number) }
      if before.properties != after.properties || exchangesNames { withOtherProperties.append(number) }
      if !mapping.keepsTombstones(target, former, plan) {
        withOtherTombstones.append(number)
      } else {
        for (place, slots) in zip(before.preserved, after.preserved).enumerated().prefix(tombstones.count) {
          let isMarked = mapping.destination.entities[destination].slots[slots.1].allowsExternalData
          if isMarked == entity.slots[slots.0].allowsExternalData { continue }
          withOtherMarks.append((number, "ZTOMBSTONE\(place)", isMarked))
        }
      }
    }
    // Also changes of entities that the former model didn't contain: a new entity may get their numbers.
    try run("DELETE FROM ACHANGE WHERE ZENTITY NOT IN (\(numbers.formerList))")
    try run("UPDATE ACHANGE SET ZCOLUMNS = NULL WHERE ZENTITY IN (\(list(withOtherProperties)))", unless: withOtherProperties.isEmpty)
    try run(
      "UPDATE ACHANGE SET \(tombstones.joined(separator: ", ")) WHERE ZENTITY IN (\(list(withOtherTombstones)))",
      unless: tombstones.isEmpty || withOtherTombstones.isEmpty)
    for (number, column, isMarked) in withOtherMarks { try mark(column, isMarked, number) }
    let hasValues = try HistoryTables.hasValues(connection)
    try run(
      "DELETE FROM \(HistoryTables.values) WHERE Z_PK IN (SELECT Z_PK FROM ACHANGE WHERE ZENTITY IN (\(list(withOtherNames))))",
      unless: !hasValues || withOtherNames.isEmpty)
    try numbers.replace(in: "ZENTITY", of: "ACHANGE", connection)
    if !hasValues { return }
    // The values contain object IDs with the names of entities.
    let rest = mapping.renamesEntities ? "" : " WHERE Z_PK NOT IN (SELECT Z_PK FROM ACHANGE)"
    try run("DELETE FROM \(HistoryTables.values)\(rest)")
  }

  private func list(_ numbers: [Int64]) -> String { numbers.map(String.init).joined(separator: ", ") }

  private func run(_ sql: String, unless isNeedless: Bool = false) throws {
    if !isNeedless { try connection.runScript(sql) }
  }

  /// Adds the mark of a value inside the column, or removes it. The name of an external file becomes NULL without the mark.
  private func mark(_ column: String, _ isMarked: Bool, _ number: Int64) throws {
    let value = isMarked ? "CAST(x'01' || \(column) AS BLOB)" : "CASE substr(\(column), 1, 1) WHEN x'01' THEN substr(\(column), 2) END"
    try run("UPDATE ACHANGE SET \(column) = \(value) WHERE ZENTITY = \(number) AND typeof(\(column)) = 'blob'")
  }
}
