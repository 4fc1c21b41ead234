import HoldfastStore

/// The statements that make a new file. On disk: do not change.
extension StoreSchema {
  static let systemTables = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  /// All statements, in order.
  var creation: [String] {
    tables.indices.flatMap { [tableCreation($0)] + indexCreations($0) } + linkCreations() + StoreSchema.systemTables
  }

  private func tableCreation(_ entity: Int) -> String {
    let columns = columnOrder(entity).map { slot in
      ", \(SQLName.quoted(tables[entity].columns[slot])) \(StoreSchema.declaration(model.entities[entity].slots[slot].columnType))"
    }
    return
      "CREATE TABLE \(SQLName.quoted(tables[entity].name)) ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER\(columns.joined()) )"
  }

  /// Slots in the order in which a new table has their columns: by the kind of value, then by name.
  private func columnOrder(_ entity: Int) -> [Int] {
    let slots = model.entities[entity].slots
    return slots.indices.sorted { (StoreSchema.rank(slots[$0].columnType), $0) < (StoreSchema.rank(slots[$1].columnType), $1) }
  }

  private static func rank(_ column: ColumnType) -> Int {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean): 0
    case .toOne: 1
    case .attribute(.date), .attribute(.double), .attribute(.float): 2
    case .attribute(.decimal): 3
    case .attribute(.string), .attribute(.uri): 4
    case .attribute(.uuid): 5
    case .attribute(.binaryData): 6
    }
  }

  private static func declaration(_ column: ColumnType) -> String {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean), .toOne: "INTEGER"
    case .attribute(.double), .attribute(.float): "FLOAT"
    case .attribute(.date): "TIMESTAMP"
    case .attribute(.decimal): "DECIMAL"
    case .attribute(.string), .attribute(.uri): "VARCHAR"
    case .attribute(.uuid), .attribute(.binaryData): "BLOB"
    }
  }

  /// The indexes of a new table: foreign keys, then uniqueness constraints, then fetch indexes.
  private func indexCreations(_ index: Int) -> [String] {
    let entity = model.entities[index], table = tables[index]
    let foreignKeys = entity.slots.indices.filter { entity.relationship(inSlot: $0) != nil }.map { slot in
      let column = table.columns[slot]
      return "CREATE INDEX \(SQLName.quoted("\(table.name)_\(column)_INDEX")) ON \(SQLName.quoted(table.name)) (\(SQLName.quoted(column)))"
    }
    return foreignKeys + uniqueIndexes(index).map(\.sql) + fetchIndexes(index).map(\.sql)
  }

  /// The unique index of each constraint of an entity.
  func uniqueIndexes(_ index: Int) -> [(name: String, sql: String)] {
    let entity = model.entities[index]
    return entity.uniquenessConstraints.map { names in
      indexCreation(index, name: "Z_\(entity.name)_UNIQUE_\(names.joined(separator: "_"))", names: names, kind: "UNIQUE INDEX")
    }
  }

  /// The fetch indexes of an entity.
  func fetchIndexes(_ index: Int) -> [(name: String, sql: String)] {
    let entity = model.entities[index]
    return entity.indexes.map { indexCreation(index, name: "Z_\(entity.name)_\($0.name)", names: $0.properties, kind: "INDEX") }
  }

  private func indexCreation(_ index: Int, name: String, names: [String], kind: String) -> (name: String, sql: String) {
    let entity = model.entities[index], table = tables[index]
    let columns = names.compactMap { entity.slot(named: $0) }.map { "\(SQLName.quoted(table.columns[$0])) COLLATE BINARY ASC" }
    let sql = "CREATE \(kind) \(SQLName.quoted(name)) ON \(SQLName.quoted(table.name)) (\(columns.joined(separator: ", ")))"
    return (name, sql)
  }

  private func linkCreations() -> [String] {
    StoreSchema.namingRelationships(model).flatMap { relationship -> [String] in
      let side = link(relationship)
      let table = SQLName.quoted(side.table), near = SQLName.quoted(side.near), far = SQLName.quoted(side.far)
      return [
        "CREATE TABLE \(table) ( \(near) INTEGER, \(far) INTEGER, PRIMARY KEY (\(near), \(far)) )",
        "CREATE INDEX \(SQLName.quoted("\(side.table)_\(side.far)_INDEX")) ON \(table) (\(far), \(near))",
      ]
    }
  }
}
