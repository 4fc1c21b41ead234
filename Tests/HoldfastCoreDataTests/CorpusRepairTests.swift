import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores that Apple's framework wrote are recovered, if `HOLDFAST_CORPUS` names a folder with them.
@Suite struct CorpusRepairTests {
  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  /// The paths of the databases.
  private static let paths: [String] = {
    guard let corpus, let all = FileManager.default.enumerator(atPath: corpus + "/sqlite") else { return [] }
    return all.compactMap { $0 as? String }.map { corpus + "/sqlite/" + $0 }.filter { path in
      FileHandle(forReadingAtPath: path).flatMap { try? $0.read(upToCount: 16) } == Data("SQLite format 3\0".utf8)
    }.sorted()
  }()

  /// Copies a database with its log.
  private func copy(_ path: String, to folder: TemporaryFolder) throws -> String {
    for end in ["", "-wal"] where TemporaryFolder.exists(path + end) {
      try TemporaryFolder.write(try TemporaryFolder.read(path + end), to: folder.file("Store.sqlite" + end))
    }
    return folder.file("Store.sqlite")
  }

  /// All rows of all tables, as SQL literals. SQLite's own tables, virtual tables and theirs are left out.
  private func contents(_ path: String) throws -> [String: [String]] {
    var contents: [String: [String]] = [:]
    let virtual = try SQL.rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0").map { $0[0] }
    for name in try SQL.rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").map({ $0[0] }) {
      if virtual.contains(where: { name == $0 || name.hasPrefix($0 + "_") }) { continue }
      let columns = try SQL.rows(path, "SELECT name FROM pragma_table_info('\(name)')").map { "quote(\"\($0[0])\")" }
      contents[name] = try SQL.rows(path, "SELECT \(columns.joined(separator: " || ',' || ")) FROM \"\(name)\"").map { $0[0] }.sorted()
    }
    return contents
  }

  /// The keys of objects, by table.
  private func keys(_ path: String) throws -> [String: Set<String>] {
    var keys: [String: Set<String>] = [:]
    for row in try SQL.rows(
      path, "SELECT m.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE c.name = 'Z_PK' AND m.type = 'table'")
    {
      keys[row[0]] = Set(try SQL.rows(path, "SELECT Z_PK FROM \"\(row[0])\"").map { $0[0] })
    }
    return keys
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS isn't set.")) func anIntactStoreIsRecoveredRowForRow() throws {
    var withModel = 0
    for path in Self.paths {
      let folder = TemporaryFolder(), file = try copy(path, to: folder), repaired = folder.file("Repaired.sqlite")
      let model = try? ManagedObjectModel.model(of: .sqlite(at: file, isReadOnly: true)), before = try folder.snapshot()
      let report: RepairReport
      do { report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: file), to: .sqlite(at: repaired), model: model) } catch
      {
        Issue.record("\(path): \(error)")
        continue
      }
      if model != nil { withModel += 1 }
      #expect(try folder.snapshot().filter { !$0.key.hasPrefix("Repaired") } == before)
      #expect(report.damagedPlaceCount == 0 && report.unreadableCount == 0, "\(path): \(report)")
      let original = try contents(file), found = try contents(repaired)
      #expect(Set(original.keys) == Set(found.keys), "\(path): \(report.notes)")
      for (name, rows) in original where found[name] != rows {
        let lost = Set(rows).subtracting(found[name] ?? [])
        Issue.record("\(path): \(lost.count) of \(rows.count) rows of \(name) differ; \(lost.first?.prefix(200) ?? "")\n\(report)")
      }
      let definitions = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE rootpage > 0 OR type != 'table' ORDER BY 1, 2"
      #expect(try SQL.rows(repaired, definitions) == SQL.rows(file, definitions), "\(path): \(report.notes)")
    }
    #expect(Self.paths.count > 30 && withModel > 25)
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS isn't set.")) func aDamagedStoreIsRecoveredWithoutItsPage() throws {
    var random = SeededGenerator(), refused = 0, repairs = 0
    for path in Self.paths {
      let folder = TemporaryFolder(), file = try copy(path, to: folder), repaired = folder.file("Repaired.sqlite")
      guard let model = try? ManagedObjectModel.model(of: .sqlite(at: file, isReadOnly: true)) else { continue }
      // As SQLite reads it, with the log.
      _ = try SQL.rows(file, "PRAGMA journal_mode=delete")
      let original = try keys(file), bytes = try TemporaryFolder.read(file)
      for _ in 0..<TestTier.count(4, full: 100) {
        var damaged = bytes
        let page = Int.random(in: 0..<bytes.count / 4096, using: &random)
        for place in page * 4096..<page * 4096 + 4096 { damaged[place] = page % 2 == 0 ? 0 : .random(in: 0...255, using: &random) }
        try TemporaryFolder.write(damaged, to: file)
        let what = "\(path), page \(page + 1), HOLDFAST_SEED=\(random.seed)"
        repairs += 1
        do {
          try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: file), to: .sqlite(at: repaired), model: model)
        } catch let error as StoreError {
          #expect([.damaged, .incompatibleModel].contains(error.code), "\(what): \(error)")
          refused += 1
          continue
        }
        #expect(try SQL.rows(repaired, "PRAGMA integrity_check") == [["ok"]], "\(what)")
        for (name, found) in try keys(repaired) { #expect(found.isSubset(of: original[name] ?? []), "\(what): \(name)") }
        do { _ = try PersistentStoreCoordinator.graphDigest(of: .sqlite(at: repaired, isReadOnly: true), model: model) } catch {
          Issue.record("\(what): \(error)")
        }
        unlink(repaired)
      }
    }
    #expect(repairs > 100 && refused * 10 < repairs, "\(refused) of \(repairs) refused")
  }
}
