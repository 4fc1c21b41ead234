import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Migrates the tables of a file to another version of its model, within a transaction.
///
/// A table that another model needs in another form is copied by one statement to a new table, which then gets its name. If it lacks only
/// columns without values, they are added, and no row is touched. Other tables stay as they are. So the time depends on the rows of the changed entities, and the memory only on SQLite's cache.
struct FileMigration {
  let mapping: MappingModel
  let old: StoreSchema
  let new: StoreSchema
  let connection: SQLiteConnection
  let options: SQLiteStoreOptions
  /// The store, and whether this framework created its file.
  let store: (uuid: String, isOwn: Bool)

  private var former: FormerColumns { FormerColumns(mapping: mapping, schema: old) }

  /// Migrates the tables.
  ///
  /// - Parameter report: Receives the completed share, from 0 to 1, when a table or the indexes are complete.
  func run(_ report: (Double) -> Void) throws {
    try new.check()
    try checkNames()
    let triggers = try dropTriggers()
    let copies = mapping.destination.entities.filter { $0.superentityIndex == nil }.map { FamilyCopy($0, mapping, former, new, store) }
    var kept: [FamilyCopy] = [], changed: [FamilyCopy] = []
    for copy in copies { if try addColumns(copy) { kept.append(copy) } else { changed.append(copy) } }
    let names = temporaryNames(changed), sizes = try changed.map { try size(of: $0) }
    // Indexes take about half of the time for the rows.
    let all = max(1.5 * sizes.reduce(0, +), 1)
    var done = 0.0
    for (copy, size) in zip(changed, sizes) {
      try copyRows(copy, to: names[copy.root.index] ?? "")
      done += size
      report(done / all)
    }
    let links = new.namedLinks.map { LinkCopy($0, mapping, former, new) }
    let (keptLinks, changedLinks) = (links.filter(\.isIdentity), links.filter { !$0.isIdentity })
    for (place, copy) in changedLinks.enumerated() { try copyLinks(copy, to: "Z_HOLDFAST_JOIN_\(place)") }
    try dropTables(except: kept, keptLinks)
    try renaming {
      for copy in changed { try rename(names[copy.root.index] ?? "", new.tables[copy.root.index].name) }
      for (place, copy) in changedLinks.enumerated() { try rename("Z_HOLDFAST_JOIN_\(place)", new.link(copy.relationship).table) }
    }
    try findEntities(changed)
    try changeIndexes(keptTables: Set(kept.map { new.tables[$0.root.index].name }))
    try createTriggers(triggers)
    try HistoryMigration(mapping: mapping, old: old, new: new, connection: connection).run()
    try CloudMigration(numbers: EntityNumbers(mapping, old, new), connection: connection).run()
    report(1)
  }

  /// About the number of rows that a copy reads: the largest key, which is found at once.
  private func size(of copy: FamilyCopy) throws -> Double {
    guard let table = copy.formerTable else { return 0 }
    return Double(try connection.int64("SELECT MAX(Z_PK) FROM \(SQLName.quoted(table))") ?? 0)
  }

  // MARK: Rows

  /// Adds columns without values to a table. Returns whether that is all that the new model needs.
  private func addColumns(_ copy: FamilyCopy) throws -> Bool {
    guard let added = copy.addedColumns else { return false }
    let table = SQLName.quoted(new.tables[copy.root.index].name)
    // A table of another program may have columns that the former model doesn't use.
    let find = try connection.prepare("SELECT name FROM pragma_table_info(?1)")
    try find.bind(new.tables[copy.root.index].name, at: 1)
    var names: Set<String> = []
    while try find.step() { names.insert(SQLName.upper(find.string(0))) }
    if added.contains(where: { names.contains(SQLName.upper($0.name)) }) { return false }
    for (name, type) in added { try connection.runScript("ALTER TABLE \(table) ADD COLUMN \(SQLName.quoted(name)) \(type)") }
    // If the entity gets subentities, requests select rows by this number from now on.
    if new.tables[copy.root.index].isShared, let number = copy.onlyNumber {
      try connection.runScript("UPDATE \(table) SET Z_ENT = \(number) WHERE Z_ENT IS NOT \(number)")
    }
    return true
  }

  private func temporaryNames(_ copies: [FamilyCopy]) -> [EntityIndex: String] {
    Dictionary(uniqueKeysWithValues: copies.enumerated().map { ($1.root.index, "Z_HOLDFAST_TABLE_\($0)") })
  }

  private func copyRows(_ copy: FamilyCopy, to table: String) throws {
    try connection.runScript(new.tableCreation(copy.root, named: table))
    for helper in copy.helpers { try fill(helper) }
    if let sql = copy.statement(to: table) {
      let statement = try connection.prepare(sql)
      // The rows of the fallback values are bound without copying.
      try withExtendedLifetime(try bind(copy, to: statement)) { try statement.run() }
    }
    for helper in copy.helpers { try connection.runScript("DROP TABLE \(helper.name)") }
  }

  /// Binds the fallback values, as rows of their entities would be.
  private func bind(_ copy: FamilyCopy, to statement: SQLiteStatement) throws -> [RowBatch] {
    var rows: [EntityIndex: RowBatch] = [:]
    for (place, parameter) in copy.parameters.enumerated() {
      let entity = mapping.destination.entities[parameter.entity]
      let batch = try rows[parameter.entity] ?? fallbacks(entity)
      rows[parameter.entity] = batch
      try RowBinder(entity: entity, path: connection.path, storesExactDecimals: options.storesExactDecimals)
        .bind(batch.pointer(0), slot: parameter.slot, to: statement, at: place + 1)
    }
    return Array(rows.values)
  }

  private func fallbacks(_ entity: ManagedObjectModel.Entity) throws -> RowBatch {
    let builder = RowBatchBuilder(layout: entity.layout, idPrefix: nil)
    try builder.append(key: 1, version: 1, values: mapping.mapping(of: entity.index).values.map(\.fallback))
    return builder.seal()
  }

  /// Fills the table of links that rows don't contain.
  private func fill(_ helper: FamilyCopy.Helper) throws {
    let (own, other, place) = helper.rowIsDestination ? ("b", "a", "oa") : ("a", "b", "ob")
    try connection.runScript("CREATE TABLE \(helper.name) (own INTEGER PRIMARY KEY, other INTEGER, place INTEGER)")
    do throws(StoreError) {
      try connection.runScript("INSERT INTO \(helper.name) SELECT \(own), \(other), \(place) FROM (\(former.pairs(helper.link)))")
      let repeats = helper.rowIsDestination ? helper.link.needsSingleDestination : helper.link.needsSingleOwner
      guard repeats, try connection.int64("SELECT 1 FROM \(helper.name) GROUP BY other HAVING COUNT(*) > 1 LIMIT 1") != nil else { return }
    } catch {
      guard error.isConstraint else { throw error }
    }
    throw violation(helper.path, "An object would have several destinations or owners, but the relationship allows one.")
  }

  // MARK: Links

  private func copyLinks(_ copy: LinkCopy, to table: String) throws {
    try connection.runScript(new.linkCreation(copy.relationship, named: table))
    if let sql = copy.statement(to: table) { try connection.runScript(sql) }
  }

  /// Sets the entities of destinations that the former table didn't name.
  private func findEntities(_ copies: [FamilyCopy]) throws {
    for relationship in copies.flatMap(\.unknownEntities) {
      let table = new.tables[relationship.entityIndex], key = SQLName.quoted(table.columns[relationship.slot])
      guard let column = table.entityColumn(relationship.slot) else { continue }
      let destination = SQLName.quoted(new.tables[relationship.destinationIndex].name), name = SQLName.quoted(table.name)
      try connection.runScript(
        "UPDATE \(name) SET \(SQLName.quoted(column)) = (SELECT d.Z_ENT FROM \(destination) AS d WHERE d.Z_PK = \(name).\(key)) "
          + "WHERE \(key) IS NOT NULL")
    }
  }

  // MARK: Tables and indexes

  private func dropTables(except kept: [FamilyCopy], _ keptLinks: [LinkCopy]) throws {
    let names = Set(kept.map { new.tables[$0.root.index].name } + keptLinks.map { new.link($0.relationship).table })
    var former = mapping.source.entities.filter { $0.superentityIndex == nil }.map { old.tables[$0.index].name }
    former += old.namedLinks.map { old.link($0).table }
    for name in former where !names.contains(name) { try connection.runScript("DROP TABLE \(SQLName.quoted(name))") }
  }

  /// Runs a closure that gives new tables the names of former ones.
  ///
  /// Views, and triggers of other programs' tables, may use the former tables. By default, SQLite refuses to rename any table while a view
  /// or trigger uses a table that is missing. With this setting it only changes the name, so they use the new table.
  private func renaming(_ body: () throws -> Void) throws {
    try connection.runScript("PRAGMA legacy_alter_table=1")
    defer { try? connection.runScript("PRAGMA legacy_alter_table=0") }
    try body()
  }

  private func rename(_ name: String, _ newName: String) throws {
    try connection.runScript("ALTER TABLE \(name) RENAME TO \(SQLName.quoted(newName))")
  }

  /// Checks that no other table or index of the file has the name of a new one.
  private func checkNames() throws {
    var former = Set(old.tables.map { SQLName.upper($0.name) })
    former.formUnion(old.namedLinks.map { SQLName.upper(old.link($0).table) })
    let find = try connection.prepare("SELECT 1 FROM sqlite_master WHERE name = ?1 COLLATE NOCASE")
    let tables = mapping.destination.entities.filter { $0.superentityIndex == nil }.map { ($0.name, new.tables[$0.index].name) }
    let joins = new.namedLinks.map { ("\(mapping.destination.entities[$0.entityIndex].name).\($0.name)", new.link($0).table) }
    for (path, name) in tables + joins where !former.contains(SQLName.upper(name)) {
      try find.bind(name, at: 1)
      defer { find.reset() }
      if try find.step() {
        throw violation(path, "The file has another table or index with the name \(name). Rename the entity or relationship.")
      }
    }
  }

  // MARK: Triggers

  /// Removes the triggers of the model's tables, and returns their statements. They maintain derived attributes in Core Data's files, and would
  /// run or fail during the changes.
  private func dropTriggers() throws -> [String] {
    let tables = Set((old.tables.map(\.name) + old.namedLinks.map { old.link($0).table }).map(SQLName.upper))
    var triggers: [(name: String, sql: String)] = []
    let find = try connection.prepare("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
    while try find.step() { if tables.contains(SQLName.upper(find.string(1))) { triggers.append((find.string(0), find.string(2))) } }
    for trigger in triggers { try connection.runScript("DROP TRIGGER \(SQLName.quoted(trigger.name))") }
    return triggers.map(\.sql)
  }

  /// Creates the triggers again for the new entity numbers, except for those of attributes that are removed or no longer derived. Compiles each
  /// statement that would run one.
  private func createTriggers(_ statements: [String]) throws {
    if statements.isEmpty { return }
    let lost = DerivedTrigger(lostDerivedColumns())
    let renumbering = TriggerRenumbering(mapping, old, new)
    let kept = try statements.filter { sql in !SQLTokens.withTokens(of: sql) { lost.recognises($0) } }.map { sql in
      guard let renumbered = renumbering.statement(sql) else { throw triggerMisfit(nil) }
      return renumbered
    }
    do throws(StoreError) {
      for sql in kept { try connection.runScript(sql) }
      try SchemaCheck(reading: connection).check(new, isReadOnly: false)
      for table in Set(new.tables.map { SQLName.quoted($0.name) }) {
        for sql in ["INSERT INTO \(table) DEFAULT VALUES", "UPDATE \(table) SET Z_OPT = Z_OPT", "DELETE FROM \(table)"] {
          _ = try connection.prepare(sql)
        }
      }
    } catch {
      guard Self.isMisfit(error) else { throw error }
      throw triggerMisfit(error)
    }
  }

  private func triggerMisfit(_ cause: StoreError?) -> MigrationError {
    MigrationError(
      .inferredMappingModel, path: connection.path,
      reason: "The file has triggers that maintain derived attributes of the former model, and they don't fit the new one. Nothing was "
        + "changed. Copy the store with copyPersistentStore, and migrate the copy.", cause: cause)
  }

  /// Whether the error of creating a trigger, or of compiling a statement that would run one, means that the trigger doesn't fit the tables.
  /// Other errors, such as that of a full disk, have nothing to do with the trigger.
  static func isMisfit(_ error: StoreError) -> Bool {
    error.code == .unsafeSchema || (error.cause as? SQLiteFailure)?.primaryCode == SQLiteResultCode.error
  }

  /// The columns of derived attributes that are removed or no longer derived, by table, in upper case. Entities of a family share columns.
  private func lostDerivedColumns() -> [String: Set<String>] {
    var lost: [String: Set<String>] = [:], kept: [String: Set<String>] = [:]
    for (entity, table) in zip(mapping.source.entities, old.tables) {
      let name = SQLName.upper(table.name), sources = derivedSources(entity)
      for attribute in entity.derivedAttributes {
        let column = SQLName.upper(table.columns[attribute.slot])
        if sources.contains(attribute.slot) {
          kept[name, default: []].insert(column)
        } else {
          lost[name, default: []].insert(column)
        }
      }
    }
    for (name, columns) in kept { lost[name]?.subtract(columns) }
    return lost
  }

  /// The slots of a former entity from which derived attributes of the new one take their values.
  private func derivedSources(_ entity: ManagedObjectModel.Entity) -> [SlotIndex] {
    guard let target = mapping.destination(of: entity.index) else { return [] }
    let values = mapping.mapping(of: target).values
    return mapping.destination.entities[target].derivedAttributes.compactMap { values[$0.slot.rawValue].source }
  }

  // MARK: Indexes

  /// Removes the indexes that only the former model declares, and creates those that the file lacks.
  private func changeIndexes(keptTables: Set<String>) throws {
    var existing: [String: [String]] = [:], taken: [String] = []
    let all = try connection.prepare(
      "SELECT type, name, substr(sql, instr(sql, ' ON ') + 1), sql LIKE 'CREATE UNIQUE %' FROM sqlite_master")
    while try all.step() {
      taken.append(all.string(1))
      if all.string(0) == "index", !all.isNull(2) {
        existing[(all.int64(3) == 1 ? "UNIQUE " : "") + all.string(2), default: []].append(all.string(1))
      }
    }
    let wanted = new.indexes, keys = Set(wanted.map(\.key))
    for index in old.indexes where !keys.contains(index.key) {
      // Core Data's index of a constraint with inherited properties contains the rows of all entities.
      for key in Set([index.key, index.keyWithoutCondition]) where !keys.contains(key) {
        for name in existing.removeValue(forKey: key) ?? [] { try connection.runScript("DROP INDEX \(SQLName.quoted(name))") }
      }
    }
    var free = IndexNames(besides: taken)
    for var index in wanted where existing[index.key] == nil {
      // A table that was copied lost its indexes.
      let isAllowed = options.indexAddition.includes(ownStore: store.isOwn) || !keptTables.contains(index.table)
      if index.purpose == .fetch && !isAllowed { continue }
      index.name = free.free(index.name)
      do throws(StoreError) { try connection.runScript(index.sql) } catch {
        guard error.isConstraint, case .entity(let entity) = index.owner else { throw error }
        throw violation(
          mapping.destination.entities[entity].name,
          "Objects have the same values in a uniqueness constraint (\(index.name)). Change them before migrating, or drop the constraint.",
          error)
      }
    }
  }

  private func violation(_ path: String, _ reason: String, _ cause: (any Error)? = nil) -> MigrationError {
    MigrationError(
      .constraintViolation, path: connection.path, reason: "Existing objects don't fit the new model. Nothing was changed.",
      problems: [MigrationError.Problem(path, reason)], cause: cause)
  }
}

extension StoreSchema.Index {
  /// What distinguishes an index, except for its name.
  fileprivate var key: String { (purpose == .uniqueness ? "UNIQUE " : "") + definition }

  fileprivate var keyWithoutCondition: String { String(key.dropLast(condition.count)) }
}

extension StoreError {
  fileprivate var isConstraint: Bool { (cause as? SQLiteFailure)?.primaryCode == SQLiteResultCode.constraint }
}
