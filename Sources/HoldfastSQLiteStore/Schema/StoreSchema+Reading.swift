import HoldfastStore

extension StoreSchema {
  /// Finds a model's tables and columns in a file that another program created. Ignores tables, columns and indexes that the model doesn't
  /// contain.
  ///
  /// - Parameters:
  ///   - lacked: The entities that the file lacks. Defaults to none.
  ///   - check: The findings in the file's schema; nil if its definitions were checked before.
  /// - Throws: ``StoreError`` with code `damaged` if a table or column is missing, or `unsafeSchema` for a table with a finding.
  static func read(
    _ model: ManagedObjectModel, without lacked: [EntityIndex] = [], from connection: SQLiteConnection, _ check: SchemaCheck?
  ) throws -> StoreSchema {
    let numbers = try entityNumbers(model, without: lacked, connection)
    let predicted = predicted(model, numbers: numbers)
    let names = try tableNames(connection)
    let tables = try model.entities.map { entity in
      var table = predicted.tables[entity.index]
      if lacked.contains(entity.index) {
        table.name = ""
        return table
      }
      guard names.contains(table.name) else { throw missing("the table \(table.name) of \(entity.name)", connection) }
      let columns = try columnNames(table.name, connection, check)
      table.columns = try table.columns.map { column in
        guard let found = match(column, columns) else { throw missing("the column \(table.name).\(column) of \(entity.name)", connection) }
        return found
      }
      table.entityColumns = table.entityColumns.map { $0.isEmpty ? $0 : match($0, columns) ?? "" }
      return table
    }
    let sides = try namingRelationships(model).map { relationship -> LinkSide? in
      lacked.contains(relationship.entityIndex) ? nil : try readSide(of: relationship, model, numbers, names, connection, check)
    }
    let schema = StoreSchema(model: model, tables: tables, links: links(model, sides), orderColumns: [], missing: lacked)
    let orders = try model.orderedRelationships.map { relationship in
      if lacked.contains(relationship.entityIndex) { return "" }
      let (table, column) = (schema.places(relationship).table, predictedOrderColumn(relationship, schema))
      guard let found = match(column, try columnNames(table, connection, check)) else {
        throw missing("the column \(table).\(column) of \(model.entities[relationship.entityIndex].name).\(relationship.name)", connection)
      }
      return found
    }
    return StoreSchema(model: model, tables: tables, links: schema.links, orderColumns: orders, missing: lacked)
  }

  /// The entity numbers by entity index, found by name. A renamed entity may have its old name in the file, which is its renaming
  /// identifier. Otherwise, it gets the number that the model predicts, if no other entity of the model has that number. It isn't known how
  /// Core Data numbers some of a model's entities, so no number is predicted for a file that lacks others.
  private static func entityNumbers(
    _ model: ManagedObjectModel, without lacked: [EntityIndex], _ connection: SQLiteConnection
  ) throws -> [Int64] {
    var byName: [String: [Int64]] = [:]
    let statement = try connection.prepare("SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY ORDER BY Z_ENT")
    while try statement.step() { byName[statement.string(1), default: []].append(statement.int64(0)) }
    func newNumber(_ place: Int) -> Int64 { Int64(place + 1) }
    // A renamed entity may have its former name in the file, which is that of another entity now. The predicted number distinguishes them.
    // Otherwise, the smallest number of a name is taken: those of the history, named CHANGE and TRANSACTION, are above all others.
    var found = model.entities.enumerated().map { place, entity in
      byName[entity.name].flatMap { lacked.isEmpty && $0.contains(newNumber(place)) ? newNumber(place) : $0.first }
    }
    for index in lacked { found[index.rawValue] = Int64.max }
    for (place, entity) in model.entities.enumerated() where found[place] == nil {
      guard let former = entity.declaration.renamingIdentifier, let number = byName[former]?.first else { continue }
      if !found.contains(number) { found[place] = number }
    }
    let numbers = Set(byName.values.joined())
    return try zip(model.entities, found).map { entity, number in
      if let number { return number }
      let predicted = newNumber(entity.index.rawValue)
      guard lacked.isEmpty, numbers.contains(predicted), !found.contains(predicted) else {
        throw missing("the entity \(entity.name) in Z_PRIMARYKEY", connection)
      }
      return predicted
    }
  }

  /// Finds the join table of a relationship. It may be named after either side, and its columns may end with digits that distinguish them
  /// from those of other join tables.
  private static func readSide(
    of relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel, _ numbers: [Int64], _ names: Set<String>,
    _ connection: SQLiteConnection, _ check: SchemaCheck?
  ) throws -> LinkSide {
    let source = numbers[relationship.entityIndex], target = numbers[relationship.destinationIndex]
    guard let inverse = model.inverse(of: relationship) else {
      let table = SQLName.prefixed(model.entities[model.destination(of: relationship).rootIndex].name)
      if let near = match(linkColumn(source, relationship.name, hasUnderscore: false), try columnNames(table, connection, check)) {
        return LinkSide(table: table, near: near, far: "Z_PK")
      }
      throw missing("the column of \(model.entities[relationship.entityIndex].name).\(relationship.name) in \(table)", connection)
    }
    if relationship.isReflexive {
      let name = linkColumn(source, relationship.name)
      if names.contains(name), let near = match(name, try columnNames(name, connection, check)) {
        return LinkSide(table: name, near: near, far: "REFLEXIVE")
      }
      throw missing("the join table of \(model.entities[relationship.entityIndex].name).\(relationship.name)", connection)
    }
    for table in [linkColumn(source, relationship.name), linkColumn(target, inverse.name)] where names.contains(table) {
      let columns = try columnNames(table, connection, check)
      if let near = match(linkColumn(source, inverse.name), columns), let far = match(linkColumn(target, relationship.name), columns),
        near != far
      {
        return LinkSide(table: table, near: near, far: far)
      }
    }
    throw missing("the join table of \(model.entities[relationship.entityIndex].name).\(relationship.name)", connection)
  }

  /// The name itself, or otherwise the only column that is the name followed by digits.
  private static func match(_ name: String, _ columns: [String]) -> String? {
    if columns.contains(name) { return name }
    let numbered = columns.filter { $0.hasPrefix(name) && $0.utf8.dropFirst(name.utf8.count).allSatisfy { (48...57).contains($0) } }
    return numbered.count == 1 ? numbered[0] : nil
  }

  private static func tableNames(_ connection: SQLiteConnection) throws -> Set<String> {
    var names: Set<String> = []
    let statement = try connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    while try statement.step() { names.insert(statement.string(0)) }
    return names
  }

  /// The columns of a table, which is checked before: SQLite runs the code of a virtual table to find its columns.
  private static func columnNames(_ table: String, _ connection: SQLiteConnection, _ check: SchemaCheck?) throws -> [String] {
    try check?.check(table: table)
    var names: [String] = []
    let statement = try connection.prepare("PRAGMA table_info(\(SQLName.quoted(table)))")
    while try statement.step() { names.append(statement.string(1)) }
    return names
  }

  private static func missing(_ what: String, _ connection: SQLiteConnection) -> StoreError {
    StoreError(
      .damaged, operation: connection.operation, path: connection.path,
      reason: "The file lacks \(what). It may be the copy of an interrupted migration. Use the original or a backup, or recover the "
        + "objects with repairPersistentStore(_:to:model:).")
  }
}
