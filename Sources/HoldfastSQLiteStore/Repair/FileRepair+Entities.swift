import HoldfastStore

// Entities and their objects.
extension FileRepair {
  /// The numbers of the entities in each table. The superentities are the model's, if it is known.
  func entityNumbers(_ model: ManagedObjectModel?) throws -> [String: Set<Int64>] {
    var names: [Int64: String] = [:], parents: [Int64: Int64] = [:]
    let select = try connection.prepare("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY")
    while try select.step() { (names[select.int64(0)], parents[select.int64(0)]) = (select.string(1), select.int64(2)) }
    var roots: [Int64: Int64] = [:], known: [Int64: String] = [:], knownRoots: [Int64: String] = [:]
    for (number, name) in names.sorted(by: { $0.key < $1.key }) {
      // Another program's numbers may form long chains and circles, so each is followed once.
      var root = number, path: [Int64] = []
      while roots[root] == nil, let parent = parents[root] {
        path.append(root)
        roots[root] = root
        if parent > 0 { root = parent }
      }
      root = roots[root] ?? root
      for below in path { roots[below] = root }
      guard let model, let entity = model.entity(named: name) else { continue }
      known[number] = model.entities[entity.rootIndex].name
      knownRoots[root] = knownRoots[root] ?? known[number]
    }
    var numbers: [String: Set<Int64>] = [:]
    for (number, root) in roots {
      // Another program that renamed an entity may have kept its name here. Then the other entities of its family name the table.
      guard let table = known[number] ?? knownRoots[root] ?? names[root] else { continue }
      numbers[SQLName.prefixed(table), default: []].insert(number)
    }
    return numbers
  }

  /// Adds the entities that `Z_PRIMARYKEY` has lost, with the numbers that a new store gives them.
  ///
  /// If this framework laid out the file, these are its numbers. In a file of another program, another entity with such a number may be
  /// one that was renamed. So it is replaced only if nothing shows that the file is another program's, and the model has no entity of its
  /// name.
  mutating func completeEntities(_ model: ManagedObjectModel, _ store: RecoveredMetadata) throws {
    let schema = StoreSchema.predicted(model), names = model.entities.map { "'\($0.name)'" }.joined(separator: ", ")
    let find = try connection.prepare("SELECT Z_ENT, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_NAME = ?1")
    let remove = try connection.prepare("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = ?1")
    let update = "UPDATE SET Z_NAME = ?2, Z_SUPER = ?3"
    let insert = try connection.prepare(
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, 0) ON CONFLICT (Z_ENT) DO "
        + (store.isOwn ? update : store.isLost ? "\(update) WHERE Z_NAME NOT IN (\(names))" : "NOTHING"))
    for (entity, table) in zip(model.entities, schema.tables) {
      let parent = entity.superentityIndex.map { schema.tables[$0].number } ?? 0
      try find.bind(entity.name, at: 1)
      let isFound = try find.step() && (!store.isOwn || (find.int64(0) == table.number && find.int64(1) == parent))
      find.reset()
      if isFound { continue }
      try remove.bind(entity.name, at: 1)
      try remove.run()
      insert.bind(table.number, at: 1)
      try insert.bind(entity.name, at: 2)
      insert.bind(parent, at: 3)
      try insert.run()
      if connection.changes == 0 { continue }
      report.notes.append("The number of the entity \(entity.name) is lost. It has that of a new store now.")
    }
  }

  /// Clears what the model doesn't allow, and counts objects.
  mutating func check(_ schema: StoreSchema) throws -> [RecoveredValues.ExternalValue] {
    let externalValues = try RecoveredValues(schema, connection).check(&report)
    let damaged = Set(schema.tables.map(\.name)).filter { tallies[$0]?.isComplete != true }
    try RecoveredLinks(schema, connection, damagedTables: damaged).check(&report)
    for entity in schema.model.entities where !entity.isAbstract {
      let count = try connection.int64(
        "SELECT COUNT(*) FROM \(SQLName.quoted(schema.tables[entity.index].name)) WHERE Z_ENT = \(schema.tables[entity.index].number)")
      report.objectCounts[entity.name] = Int(count ?? 0)
    }
    return externalValues
  }

  mutating func countTables() throws {
    report.notes.append("Without the store's model, references and values weren't checked, and external files weren't copied.")
    for (name, table) in tables where table.rowCount > 0 && numbers[name] != nil { report.objectCounts[name] = table.rowCount }
  }
}
