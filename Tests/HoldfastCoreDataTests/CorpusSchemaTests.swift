import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// A new store has the schema that Apple's framework created for the model, if `HOLDFAST_CORPUS` names a folder with its stores.
@Suite(.enabled(if: CorpusFolder.path != nil, "HOLDFAST_CORPUS isn't set.")) struct CorpusSchemaTests {
  /// The columns of each table in order, with their types.
  private func tables(_ path: String) throws -> [String: [String]] {
    var tables: [String: [String]] = [:]
    for row in try SQL.rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'Z%'") {
      tables[row[0]] = try SQL.rows(path, "SELECT name || ' ' || type FROM pragma_table_info('\(row[0])')").map { $0[0] }
    }
    return tables
  }

  /// The indexes, also those of constraints in old definitions of tables: table, uniqueness and columns with order.
  ///
  /// Names differ between versions of the framework.
  private func indexes(_ path: String, of tables: [String: [String]]) throws -> Set<String> {
    var found: Set<String> = []
    for table in tables.keys {
      for row in try SQL.rows(path, "SELECT name, \"unique\" FROM pragma_index_list('\(table)') WHERE origin <> 'pk'") {
        let columns = try SQL.rows(path, "SELECT name || ' ' || desc FROM pragma_index_xinfo('\(row[0])') WHERE key").map { $0[0] }
        found.insert("\(table) \(row[1]) \(columns)")
      }
    }
    return found
  }

  @Test func aNewStoreHasTheColumnsAndIndexesOfApplesInTheirOrder() throws {
    var equal = 0, differing: [String] = []
    for path in CorpusFolder.stores {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), new = folder.file("New.sqlite")
      guard let model = try? ManagedObjectModel.model(of: .sqlite(at: file)) else { continue }
      try PersistentStoreCoordinator(model: model, store: .sqlite(at: new)).close()
      let real = try tables(file)
      // A join table of objects of one entity may be named after either side.
      let made = try tables(new).filter { real[$0.key] != nil || !$0.key.hasPrefix("Z_") }
      var differences: [String] = []
      for (name, columns) in made where real[name] != columns { differences.append("\(name): \(columns) is \(real[name] ?? [])") }
      let there = try indexes(file, of: made), here = try indexes(new, of: made)
      differences += here.subtracting(there).sorted().map { "+ \($0)" } + there.subtracting(here).sorted().map { "- \($0)" }
      if differences.isEmpty { equal += 1 } else { differing.append("\(path)\n    " + differences.joined(separator: "\n    ")) }
    }
    #expect(equal >= 31 && differing.isEmpty, "\(equal) equal\n\(differing.joined(separator: "\n"))")
  }
}
