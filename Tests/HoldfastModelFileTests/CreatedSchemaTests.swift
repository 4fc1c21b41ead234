import CHoldfastSQLite
import Foundation
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// A new SQLite store has the same tables and columns as one that Core Data creates for the model.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CreatedSchemaTests {
  /// The columns of each table with their declared types.
  private typealias Schema = [String: [String: String]]

  private static func schema(_ path: String) throws -> Schema {
    var handle: OpaquePointer?
    try #require(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
    defer { sqlite3_close(handle) }
    func strings(_ sql: String, _ columns: [Int32]) throws -> [[String]] {
      var statement: OpaquePointer?
      try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
      defer { sqlite3_finalize(statement) }
      var rows: [[String]] = []
      while sqlite3_step(statement) == SQLITE_ROW { rows.append(columns.map { String(cString: sqlite3_column_text(statement, $0)) }) }
      return rows
    }
    var schema: Schema = [:]
    for table in try strings("SELECT name FROM sqlite_master WHERE type = 'table'", [0]).map({ $0[0] }) {
      schema[table] = Dictionary(uniqueKeysWithValues: try strings("PRAGMA table_info(\"\(table)\")", [1, 2]).map { ($0[0], $0[1]) })
    }
    return schema
  }

  /// The schema of a new store.
  private static func created(_ model: ManagedObjectModel, _ folder: TemporaryFolder) throws -> Schema {
    let store = StoreDescription.sqlite(at: folder.file("new.sqlite")).makeStore()
    _ = try store.open(model: model)
    try store.close()
    return try schema(folder.file("new.sqlite"))
  }

  /// Tables that older framework versions didn't have, and tables that aren't part of the model.
  private static func isOfTheFramework(_ table: String) -> Bool {
    ["Z_MODELCACHE", "ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"].contains(table) || table.hasPrefix("sqlite_")
  }

  /// The names without the digits at their end. The digits distinguish columns of several join tables, and Core Data assigns them in either
  /// order.
  private static func withoutDigits(_ names: some Sequence<String>) -> [String] {
    names.map { name in String(name.reversed().drop { $0.isNumber }.reversed()) }.sorted()
  }

  @Test(arguments: VersionHashTests.stores) func aNewStoreHasTheTablesOfCoreDatas(_ store: String, _ contents: String) throws {
    let folder = TemporaryFolder()
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: Corpus.path(store) + end) {
      try FileManager.default.copyItem(atPath: Corpus.path(store) + end, toPath: folder.file("real.sqlite\(end)"))
    }
    let real = try Self.schema(folder.file("real.sqlite")).filter { !Self.isOfTheFramework($0.key) }
    let made = try Self.created(try ModelDocument(contentsOf: Corpus.path(contents)).model(), folder).filter {
      !Self.isOfTheFramework($0.key)
    }
    #expect(made.count == real.count, "\(made.keys.sorted()) \(real.keys.sorted())")
    for (table, columns) in made {
      if let same = real[table], same == columns { continue }
      // A join table between objects of one entity can be named after either side.
      let isLink = table.hasPrefix("Z_")
      let found = real.contains { isLink && Self.withoutDigits($0.value.keys) == Self.withoutDigits(columns.keys) }
      #expect(found, "\(table): \(columns) is \(real[table] ?? [:]) there")
    }
  }

  /// The tables and their columns according to an independent program, which was compared with Core Data's stores.
  private static let secondOpinion: [String: [String: Set<String>]] = {
    let program = """
      import sys
      sys.path.insert(0, sys.argv[1] + "/tools")
      import predict_schema
      for file in sys.argv[2:]:
          entities, order = predict_schema.load(sys.argv[1] + "/" + file)
          tables, joins = predict_schema.predict(entities, order)
          for name, columns in tables.items(): print(file, name, *columns, sep="\\t")
          for name, (columns, other) in joins.items(): print(file, name, *columns, sep="\\t")
      """
    var said: [String: [String: Set<String>]] = [:]
    for line in VersionHashTests.python(program).split(separator: "\n") {
      let cells = line.split(separator: "\t").map(String.init)
      if cells.count > 2 { said[cells[0], default: [:]][cells[1]] = Set(cells[2...]) }
    }
    return said
  }()

  @Test(.enabled(if: VersionHashTests.python != nil, "There is no python3 for a second opinion."), arguments: Corpus.contents)
  func aSecondProgramExpectsTheSameTables(_ contents: String) throws {
    let model = try ModelDocument(contentsOf: Corpus.path(contents)).model()
    // No example of Core Data's layout for composite attributes is available.
    if !model.composites.isEmpty { return }
    let said = try #require(Self.secondOpinion[contents])
    let made = try Self.created(model, TemporaryFolder()).filter {
      !Self.isOfTheFramework($0.key) && !["Z_PRIMARYKEY", "Z_METADATA"].contains($0.key)
    }
    #expect(Set(made.keys) == Set(said.keys))
    for (table, columns) in said { #expect(Set((made[table] ?? [:]).keys) == columns, "\(table)") }
  }
}
