import HoldfastStore

/// The statements that create the tables of a new file. On disk: do not change.
extension StoreSchema {
  static let systemTableNames = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]
  static let systemTables = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  /// All statements, in order.
  var creation: [String] {
    let indexes = Dictionary(grouping: indexes, by: \.owner)
    func creations(of owner: Index.Owner) -> [String] { indexes[owner, default: []].map(\.sql) }
    let families = model.entities.filter { $0.superentityIndex == nil }.flatMap { root in
      [tableCreation(root)] + root.familyIndexes.flatMap { creations(of: .entity($0)) }
    }
    let links = namedLinks.flatMap { [linkCreation($0)] + creations(of: .linkTable(link($0).table)) }
    return families + links + StoreSchema.systemTables
  }

  /// Writes the numbers of the entities into a file.
  ///
  /// - Parameter maxima: The largest key that was reserved, by root entity. Defaults to none.
  func insertEntities(_ connection: SQLiteConnection, maxima: [EntityIndex: Int64] = [:]) throws(StoreError) {
    let insert = try connection.prepare("INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, ?4)")
    for (entity, table) in zip(model.entities, tables) {
      insert.bind(table.number, at: 1)
      try insert.bind(entity.name, at: 2)
      insert.bind(entity.superentityIndex.map { tables[$0].number } ?? 0, at: 3)
      insert.bind(maxima[entity.index] ?? 0, at: 4)
      try insert.run()
    }
  }

  /// The statement that creates the table of a root entity and its subentities. The columns of all these entities are sorted by the kind of
  /// value, then by entity and name.
  ///
  /// - Parameter name: The table's name in the statement; nil for that of the schema.
  func tableCreation(_ root: ManagedObjectModel.Entity, named name: String? = nil) -> String {
    var columns: [(order: [Int], sql: String)] = []
    for index in root.familyIndexes {
      let entity = model.entities[index], table = tables[index]
      for slot in ownSlots(entity) {
        let rank = StoreSchema.rank(entity.slots[slot].columnType)
        var sql = ", \(SQLName.quoted(table.columns[slot])) \(StoreSchema.declaration(entity.slots[slot].columnType))"
        if let entityColumn = table.entityColumn(slot) { sql += ", \(SQLName.quoted(entityColumn)) INTEGER" }
        columns.append(([max(rank, 1), index.rawValue, rank, slot.rawValue], sql))
        // Positions come after all keys of the entity.
        if let order = entity.relationship(inSlot: slot).flatMap({ orderColumn(ofInverse: $0) }) {
          columns.append(([1, index.rawValue, 2, slot.rawValue], ", \(SQLName.quoted(order)) INTEGER"))
        }
      }
    }
    for relationship in linksWithoutInverse(root) {
      columns.append(
        (
          [1, relationship.destinationIndex.rawValue, 1, .max],
          ", \(SQLName.quoted(link(relationship).near)) INTEGER" + orderDeclaration(relationship)
        ))
    }
    let ordered = columns.sorted { $0.order.lexicographicallyPrecedes($1.order) }.map(\.sql).joined()
    return
      "CREATE TABLE \(SQLName.quoted(name ?? tables[root.index].name)) ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER\(ordered) )"
  }

  private func orderDeclaration(_ relationship: ManagedObjectModel.Relationship) -> String {
    orderColumn(relationship).map { ", \(SQLName.quoted($0)) INTEGER" } ?? ""
  }

  /// The to-many relationships without an inverse whose destination is a root entity or one of its subentities.
  func linksWithoutInverse(_ root: ManagedObjectModel.Entity) -> [ManagedObjectModel.Relationship] {
    StoreSchema.namingRelationships(model).filter {
      !$0.hasInverse && root.familyIndexes.contains($0.destinationIndex) && !missingEntities.contains($0.entityIndex)
    }
  }

  /// The slots that an entity doesn't inherit.
  func ownSlots(_ entity: ManagedObjectModel.Entity) -> Range<SlotIndex> {
    (entity.superentityIndex.map { model.entities[$0].slotIndexes.upperBound } ?? 0)..<entity.slotIndexes.upperBound
  }

  private static func rank(_ column: ColumnType) -> Int {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean): 0
    case .toOne: 1
    case .attribute(.date), .attribute(.double), .attribute(.float): 2
    case .attribute(.decimal): 3
    case .attribute(.string), .attribute(.uri), .attribute(.objectID): 4
    case .attribute(.uuid): 5
    case .attribute(.transformable): 6
    case .attribute(.binaryData), .attribute(.composite), .attribute(.undefined): 7
    }
  }

  static func declaration(_ column: ColumnType) -> String {
    switch column {
    case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64), .attribute(.boolean), .toOne: "INTEGER"
    case .attribute(.double), .attribute(.float): "FLOAT"
    case .attribute(.date): "TIMESTAMP"
    case .attribute(.decimal): "DECIMAL"
    case .attribute(.string), .attribute(.uri), .attribute(.objectID): "VARCHAR"
    case .attribute(.uuid), .attribute(.binaryData), .attribute(.transformable), .attribute(.composite), .attribute(.undefined): "BLOB"
    }
  }

  /// The many-to-many relationships with their own table, which is named after them.
  var namedLinks: [ManagedObjectModel.Relationship] {
    StoreSchema.namingRelationships(model).filter { $0.hasInverse && !missingEntities.contains($0.entityIndex) }
  }

  /// The statement that creates a join table.
  ///
  /// - Parameter name: The table's name in the statement; nil for that of the schema.
  func linkCreation(_ relationship: ManagedObjectModel.Relationship, named name: String? = nil) -> String {
    let side = link(relationship)
    let near = SQLName.quoted(side.near), far = SQLName.quoted(side.far)
    let other = relationship.isReflexive ? nil : model.inverse(of: relationship)
    let orders = orderDeclaration(relationship) + (other.map { orderDeclaration($0) } ?? "")
    return "CREATE TABLE \(SQLName.quoted(name ?? side.table)) ( \(near) INTEGER, \(far) INTEGER\(orders), PRIMARY KEY (\(near), \(far)) )"
  }
}
