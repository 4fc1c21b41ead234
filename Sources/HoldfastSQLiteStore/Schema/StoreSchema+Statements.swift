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
    let families = model.entities.filter { $0.superentityIndex == nil }.flatMap { root in
      [tableCreation(root)] + root.familyIndexes.flatMap(indexCreations)
    }
    return families + linkCreations() + StoreSchema.systemTables
  }

  /// The table of a family: the columns of all its entities, by the kind of value, then by entity and name.
  private func tableCreation(_ root: ManagedObjectModel.Entity) -> String {
    var columns: [(order: [Int], sql: String)] = []
    for index in root.familyIndexes {
      let entity = model.entities[index], table = tables[index]
      for slot in ownSlots(entity) {
        let rank = StoreSchema.rank(entity.slots[slot].columnType)
        var sql = ", \(SQLName.quoted(table.columns[slot])) \(StoreSchema.declaration(entity.slots[slot].columnType))"
        if let entityColumn = table.entityColumn(slot) { sql += ", \(SQLName.quoted(entityColumn)) INTEGER" }
        if let order = entity.relationship(inSlot: slot).flatMap({ orderColumn(ofInverse: $0) }) {
          sql += ", \(SQLName.quoted(order)) INTEGER"
        }
        columns.append(([max(rank, 1), index, rank, slot], sql))
      }
    }
    for relationship in linksWithoutInverse(root) {
      columns.append(
        (
          [1, relationship.destinationIndex, 1, .max],
          ", \(SQLName.quoted(link(relationship).near)) INTEGER" + orderDeclaration(relationship)
        ))
    }
    let ordered = columns.sorted { $0.order.lexicographicallyPrecedes($1.order) }.map(\.sql).joined()
    return "CREATE TABLE \(SQLName.quoted(tables[root.index].name)) ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER\(ordered) )"
  }

  private func orderDeclaration(_ relationship: ManagedObjectModel.Relationship) -> String {
    orderColumn(relationship).map { ", \(SQLName.quoted($0)) INTEGER" } ?? ""
  }

  /// The to-many relationships without inverse whose targets lie in the table of a family.
  func linksWithoutInverse(_ root: ManagedObjectModel.Entity) -> [ManagedObjectModel.Relationship] {
    StoreSchema.namingRelationships(model).filter { !$0.hasInverse && root.familyIndexes.contains($0.destinationIndex) }
  }

  /// The slots that an entity does not inherit.
  func ownSlots(_ entity: ManagedObjectModel.Entity) -> Range<Int> {
    (entity.superentityIndex.map { model.entities[$0].slots.count } ?? 0)..<entity.slots.count
  }

  private static func rank(_ column: ColumnType) -> Int {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean): 0
    case .toOne: 1
    case .attribute(.date), .attribute(.double), .attribute(.float): 2
    case .attribute(.decimal): 3
    case .attribute(.string), .attribute(.uri), .attribute(.objectID): 4
    case .attribute(.uuid), .attribute(.transformable): 5
    case .attribute(.binaryData), .attribute(.composite), .attribute(.undefined): 6
    }
  }

  private static func declaration(_ column: ColumnType) -> String {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean), .toOne: "INTEGER"
    case .attribute(.double), .attribute(.float): "FLOAT"
    case .attribute(.date): "TIMESTAMP"
    case .attribute(.decimal): "DECIMAL"
    case .attribute(.string), .attribute(.uri), .attribute(.objectID): "VARCHAR"
    case .attribute(.uuid), .attribute(.binaryData), .attribute(.transformable), .attribute(.composite), .attribute(.undefined): "BLOB"
    }
  }

  /// The indexes of a new table: foreign keys, the entity where it differs, then uniqueness constraints, then fetch indexes.
  private func indexCreations(_ index: Int) -> [String] {
    let entity = model.entities[index], table = tables[index]
    let foreignKeys = ownSlots(entity).filter { entity.relationship(inSlot: $0) != nil }.map { slot in
      let column = table.columns[slot]
      return "CREATE INDEX \(SQLName.quoted("\(table.name)_\(column)_INDEX")) ON \(SQLName.quoted(table.name)) (\(SQLName.quoted(column)))"
    }
    var families: [String] = []
    if entity.superentityIndex == nil {
      families = linksWithoutInverse(entity).map { relationship in
        let column = link(relationship).near
        return
          "CREATE INDEX \(SQLName.quoted("\(table.name)_\(column)_INDEX")) ON \(SQLName.quoted(table.name)) (\(SQLName.quoted(column)))"
      }
    }
    if table.isShared && entity.superentityIndex == nil {
      families += ["CREATE INDEX \(SQLName.quoted("\(table.name)_Z_ENT_INDEX")) ON \(SQLName.quoted(table.name)) (Z_ENT)"]
    }
    return foreignKeys + families + uniqueIndexes(index).map(\.sql) + fetchIndexes(index).map(\.sql)
  }

  /// The unique index of each constraint that an entity declares.
  func uniqueIndexes(_ index: Int) -> [(name: String, sql: String)] {
    let entity = model.entities[index]
    return entity.uniquenessConstraints.dropFirst(entity.inheritedConstraintCount).map { names in
      var made = indexCreation(index, name: "Z_\(entity.name)_UNIQUE_\(names.joined(separator: "_"))", names: names, kind: "UNIQUE INDEX")
      // Rows of other entities have no value in a column of its own; where all columns are inherited they have to be left out.
      if !names.contains(where: { entity.slot(named: $0).map(ownSlots(entity).contains) ?? false }) {
        made.sql += " WHERE Z_ENT IN (\(entity.concreteIndexes.map { String(tables[$0].number) }.joined(separator: ", ")))"
      }
      return made
    }
  }

  /// The fetch indexes of an entity.
  func fetchIndexes(_ index: Int) -> [(name: String, sql: String)] {
    let entity = model.entities[index]
    // An index over ranges in several dimensions would be a table of its own, which no query of ours asks.
    return entity.indexes.filter { $0.elements.allSatisfy { $0.kind == .binary } }.map { declared in
      let descending = Set(declared.elements.filter { !$0.isAscending }.map(\.property))
      return indexCreation(
        index, name: "Z_\(entity.name)_\(declared.name)", names: declared.properties, descending: descending, kind: "INDEX")
    }
  }

  private func indexCreation(_ index: Int, name: String, names: [String], descending: Set<String> = [], kind: String) -> (
    name: String, sql: String
  ) {
    let entity = model.entities[index], table = tables[index]
    let columns = names.compactMap { name in
      entity.slot(named: name).map {
        "\(SQLName.quoted(table.columns[$0])) COLLATE BINARY \(descending.contains(name) ? "DESC" : "ASC")"
      }
    }
    let sql = "CREATE \(kind) \(SQLName.quoted(name)) ON \(SQLName.quoted(table.name)) (\(columns.joined(separator: ", ")))"
    return (name, sql)
  }

  private func linkCreations() -> [String] {
    StoreSchema.namingRelationships(model).filter(\.hasInverse).flatMap { relationship -> [String] in
      let side = link(relationship)
      let table = SQLName.quoted(side.table), near = SQLName.quoted(side.near), far = SQLName.quoted(side.far)
      let other = relationship.isReflexive ? nil : model.inverse(of: relationship)
      let orders = orderDeclaration(relationship) + (other.map { orderDeclaration($0) } ?? "")
      return [
        "CREATE TABLE \(table) ( \(near) INTEGER, \(far) INTEGER\(orders), PRIMARY KEY (\(near), \(far)) )",
        "CREATE INDEX \(SQLName.quoted("\(side.table)_\(side.far)_INDEX")) ON \(table) (\(far), \(near))",
      ]
    }
  }
}
