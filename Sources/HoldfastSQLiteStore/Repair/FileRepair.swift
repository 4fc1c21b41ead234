import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Fills a new file with what can be read of a damaged one, in one transaction.
///
/// The new file has the definitions of the damaged one. Definitions that can't be read are those of a new store of the model. Then it
/// removes what doesn't agree with the model: see ``RecoveredLinks``.
struct FileRepair {
  let reader: TreeReader
  let connection: SQLiteConnection
  /// The caller's model; nil for the one in the file.
  let givenModel: ManagedObjectModel?
  /// The path of the damaged file, for errors.
  let path: String
  /// The options of the request, which receive the progress.
  let request: RequestOptions
  var report = RepairReport()
  var entries: [SchemaEntry] = []
  /// The definitions of tables by name.
  var definitions: [String: SchemaEntry] = [:]
  /// The tables that were created by their own definitions, and those whose definitions can't be used.
  var ownDefinitions: Set<String> = [], refusedTables: [String] = []
  /// The roots that several tables have.
  var ambiguousRoots: Set<Int> = []
  /// Whether all definitions were read.
  var hasAllDefinitions = false
  var tables: [String: RecoveredTable] = [:]
  /// The columns of tables whose columns are known, by the name of the table.
  var expectedColumns: [String: Set<String>] = [:]
  /// The tables of the objects in the first two columns of join tables whose definitions are lost.
  var linkEnds: [String: [String]] = [:]
  var tallies: [String: TreeReader.Tally] = [:]
  /// The roots of tables whose pages without a readable parent weren't looked for yet.
  var roots: [String: Int] = [:]
  /// The numbers of the entities in each table; empty if they aren't known.
  var numbers: [String: Set<Int64>] = [:]

  init(
    _ reader: TreeReader, to connection: SQLiteConnection, model: ManagedObjectModel?, path: String, _ request: RequestOptions
  ) {
    (self.reader, self.connection, givenModel, self.path, self.request) = (reader, connection, model, path, request)
  }

  /// What is known of the new file.
  struct Result {
    /// The model and its tables; nil if they aren't known.
    var schema: StoreSchema?
    var storeUUID: String
    /// The values in separate files.
    var externalValues: [RecoveredValues.ExternalValue] = []
  }

  /// Creates the tables with their rows. Then values in separate files can be cleared, before ``complete(_:)``.
  mutating func run() throws -> Result {
    try readDefinitions()
    // The system tables show which rows the other tables can have.
    try fill(StoreSchema.systemTableNames)
    try findLost(zip(StoreSchema.systemTableNames, StoreSchema.systemTables).map { ($0, $1) })
    try fillOrphans()
    var store = try RecoveredMetadata(connection, givenModel, path, hasLostMetadata: tables["Z_METADATA"]?.rowCount != 1)
    report.notes += store.notes
    store.notes = []
    // Without all entities, rows of those that are missing would not be recovered.
    let hasAllEntities = tallies["Z_PRIMARYKEY"]?.isComplete ?? false
    if let model = store.model, store.isOwn || !hasAllEntities { try completeEntities(model, store) }
    if let model = store.model, store.isOwn { try expectColumns(model) }
    numbers = hasAllEntities || store.model != nil ? try entityNumbers(store.model) : [:]
    try fill(entries.filter { $0.type == "table" }.map(\.name).filter { tables[$0] == nil })
    try findLost(try store.model.map { try lostTables($0) } ?? [])
    try fillOrphans()
    try findLeavesWithoutTree()
    var result = Result(schema: try store.complete(connection), storeUUID: store.uuid)
    report.notes += store.notes
    if let schema = result.schema { result.externalValues = try check(schema) } else { try countTables() }
    return result
  }

  /// Creates indexes, views and triggers, which come last so that no trigger runs, and completes the report.
  mutating func complete(_ result: Result) throws {
    try removeIncompleteHistory()
    try createRest(result.schema)
    for name in refusedTables where tables[name] == nil {
      report.notes.append("The table \(name) isn't in the new file, because its definition is damaged.")
    }
    report.damagedPlaceCount += reader.damagedPages.count
    report.unreadableCount += reader.unreadableCount
    report.suspectCount += reader.suspectCount
    for (name, tally) in tallies.sorted(by: { $0.key < $1.key }) where tally.damagedLeaves > 0 {
      if tally.leaves == 0 && tally.foundLeaves == 0 { report.notes.append("All rows of the table \(name) were in damaged pages.") }
      if tally.estimatedLostCount == 0 { continue }
      if numbers[name] != nil {
        report.estimatedLostCount += tally.estimatedLostCount
      } else {
        report.notes.append("The table \(name) had about \(tally.estimatedLostCount) rows in damaged pages.")
      }
    }
    if !report.isComplete, result.schema?.model.entities.contains(where: { !$0.derivedAttributes.isEmpty }) == true {
      report.notes.append("Derived attributes weren't computed again.")
    }
  }
}
