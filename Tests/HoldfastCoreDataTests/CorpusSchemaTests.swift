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

  /// The names of the indexes, by table, uniqueness and columns with order. Also those of constraints in old definitions of tables.
  private func indexes(_ path: String, of tables: [String: [String]]) throws -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for table in tables.keys {
      for row in try SQL.rows(path, "SELECT name, \"unique\" FROM pragma_index_list('\(table)') WHERE origin <> 'pk'") {
        let columns = try SQL.rows(path, "SELECT name || ' ' || desc FROM pragma_index_xinfo('\(row[0])') WHERE key").map { $0[0] }
        found["\(table) \(row[1]) \(columns)", default: []].insert(row[0])
      }
    }
    return found
  }

  /// Whether an old version of the framework gave an index its name: `ZMOOD_ZDATE_INDEX` for an attribute, `ZMOOD_ZDATE_ZNAME` for several,
  /// and a name of SQLite's for a constraint. Later versions use the entity's name: `Z_Mood_byDate`, `Z_Mood_UNIQUE_date`.
  private func isOld(_ real: String, insteadOf made: String) -> Bool {
    real.hasPrefix("sqlite_autoindex_Z") || (real.hasPrefix("Z") && !real.hasPrefix("Z_") && made.hasPrefix("Z_"))
  }

  @Test func aNewStoreHasTheColumnsAndIndexesOfApplesInTheirOrderAndWithTheirNames() throws {
    var equal = 0, names = 0, differing: [String] = []
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
      differences += Set(here.keys).subtracting(there.keys).sorted().map { "+ \($0)" }
      differences += Set(there.keys).subtracting(here.keys).sorted().map { "- \($0)" }
      // Apple's store may have an index twice, the second time with the names of its properties.
      for (columns, made) in here {
        guard let real = there[columns] else { continue }
        names += made.intersection(real).count
        let others = made.subtracting(real).filter { name in !real.subtracting(made).contains { isOld($0, insteadOf: name) } }
        differences += others.sorted().map { "\(columns): \($0) is \(real.sorted())" }
      }
      if differences.isEmpty { equal += 1 } else { differing.append("\(path)\n    " + differences.joined(separator: "\n    ")) }
    }
    #expect(equal >= 31 && names >= 180 && differing.isEmpty, "\(equal) equal, \(names) names\n\(differing.joined(separator: "\n"))")
  }
}
