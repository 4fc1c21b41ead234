import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Damaged stores give an answer or a typed error, never a trap. Each test runs in a separate process, so that a trap fails only that test.
@Suite(.ownThreads) struct DamageTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test func RE2_aFileTruncatedAtAnyLengthIsAnErrorOrAnAnswer() async throws {
    try Harbour.makeFile(folder.file("whole"))
    let job = Job("Cut files", folder, rounds: 20, full: 200)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]) {
      [job = job as Job] in
      let damaged = job.folder + "/harbour.sqlite"
      let whole = try TemporaryFolder.read(job.folder + "/whole")
      var random = job.random
      var lengths = [1, 15, 16, 17, 99, 100, 101, 511, 512, 1024, 2048, 4095, 4096, 4097, whole.count - 1]
      lengths += stride(from: 8192, to: whole.count, by: 4096)
      for _ in 0..<job.rounds { lengths.append(Int.random(in: 1..<whole.count, using: &random)) }
      var refused = 0
      for length in lengths {
        try TemporaryFolder.write(Array(whole.prefix(length)), to: damaged)
        if try Damaged(damaged).use() != nil { refused += 1 }
        // SQLite accepts, and then writes, a file that only lacks unused pages at its end.
        precondition(
          length > 4096 || (try? TemporaryFolder.read(damaged)) == Array(whole.prefix(length)), "A file of \(length) bytes was changed.")
        try Damaged(damaged).removeFiles()
      }
      print("\(lengths.count) lengths, \(refused) refused")
      precondition(refused > lengths.count / 2)
    }
    Job.show(child)
  }

  @Test func RE1_aFileWithRandomBytesChangedIsAnErrorOrAnAnswer() async throws {
    try Harbour.makeFile(folder.file("whole"))
    let job = Job("Changed bytes", folder, rounds: 150, full: 1500)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]) {
      [job = job as Job] in
      let damaged = job.folder + "/harbour.sqlite"
      let whole = try TemporaryFolder.read(job.folder + "/whole")
      var random = job.random
      var codes: [String: Int] = [:]
      for round in 0..<job.rounds {
        var bytes = whole
        for _ in 0...(round % 3) {
          // Half of the changes are at the beginnings of pages, where the structure is.
          let page = Int.random(in: 0..<bytes.count / 4096, using: &random)
          let place = page * 4096 + Int.random(in: 0..<(round % 2 == 0 ? 4096 : 48), using: &random)
          bytes[place] ^= UInt8.random(in: 1...255, using: &random)
        }
        try TemporaryFolder.write(bytes, to: damaged)
        codes[try Damaged(damaged).use() ?? "answered", default: 0] += 1
        try Damaged(damaged).removeFiles()
      }
      print(codes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
      let answered = codes["answered"] ?? 0
      precondition((job.rounds / 5..<job.rounds * 9 / 10).contains(answered), "\(answered) of \(job.rounds) answered")
    }
    Job.show(child)
  }

  @Test func RE1_aLogWithRandomBytesChangedIsAnErrorOrAnAnswer() async throws {
    await #expect(processExitsWith: .failure) { [path = folder.file("whole") as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      abort()
    }
    let job = Job("Changed log", folder, rounds: 50, full: 500)
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent, \.standardErrorContent]) {
      [job = job as Job] in
      let damaged = job.folder + "/harbour.sqlite"
      let (whole, log) = (try TemporaryFolder.read(job.folder + "/whole"), try TemporaryFolder.read(job.folder + "/whole-wal"))
      var random = job.random
      var (shortened, refused) = (0, 0)
      for round in 0..<job.rounds {
        var bytes = log
        if round % 4 == 0 {
          bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
        } else {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
        }
        func damage() throws {
          try TemporaryFolder.write(whole, to: damaged)
          try TemporaryFolder.write(bytes, to: damaged + "-wal")
        }
        try damage()
        // SQLite reads the log up to the damage: an earlier save, and a whole one.
        if let found = try? Voyage.check(Harbour.context(.sqlite(at: damaged))) {
          precondition(found.fault == nil && found.saves <= 12, "\(found)")
          if found.saves < 12 { shortened += 1 }
        } else {
          refused += 1
        }
        try Damaged(damaged).removeFiles()
        try damage()
        _ = try Damaged(damaged).use()
        try Damaged(damaged).removeFiles()
      }
      print("\(job.rounds) logs: \(shortened) answered with fewer saves, \(refused) refused")
      precondition(shortened + refused > job.rounds / 2)
    }
    Job.show(child)
  }

  /// Values that another program, or damage that SQLite doesn't detect, may have left in columns.
  @Test(
    arguments: [
      "UPDATE ZSHIP SET ZNAME = x'41FF'", "UPDATE ZSHIP SET ZNAME = CAST(x'41FF42' AS TEXT)",
      "UPDATE ZSHIP SET ZTONS = 'many'", "UPDATE ZSHIP SET ZTONS = 40000", "UPDATE ZSHIP SET ZTONS = 1.5",
      "UPDATE ZSHIP SET ZCREW = 3000000000",
      "UPDATE ZSHIP SET ZISAFLOAT = 2", "UPDATE ZSHIP SET ZISAFLOAT = 'yes'", "UPDATE ZSHIP SET ZNUMBER = 9e30 WHERE ZNUMBER = 9",
      "UPDATE ZSHIP SET ZLENGTH = 'long'", "UPDATE ZSHIP SET ZLAUNCHED = x'00'", "UPDATE ZSHIP SET ZPRICE = 'dear'",
      "UPDATE ZSHIP SET ZPRICE = x'FF'",
      "UPDATE ZSHIP SET ZPRICE = 9e999", "UPDATE ZSHIP SET ZUID = x'0102'",
      "UPDATE ZSHIP SET ZUID = '00000000-0000-0000-0000-000000000000'",
      "UPDATE ZSHIP SET ZPLAN = 12", "UPDATE ZSHIP SET ZBERTH = 'here'", "UPDATE ZSHIP SET ZBERTH = 1.5", "UPDATE ZSHIP SET ZBERTH = x'01'",
      "DROP INDEX Z_3SHIPS_Z_4SHIPS_INDEX; DROP TABLE Z_3SHIPS; CREATE TABLE Z_3SHIPS (Z_3ROUTES, Z_4SHIPS); INSERT INTO Z_3SHIPS SELECT Z_PK, 'x' FROM ZROUTE; INSERT INTO Z_3SHIPS SELECT 'x', Z_PK FROM ZSHIP",
    ])
  func valuesOfTheWrongStorageClassAreNamed(change: String) throws {
    let path = folder.file()
    try Harbour.makeFile(path)
    try BareDatabase.change(path, change)
    let context = try Harbour.context(.sqlite(at: path))
    do {
      let found = try Voyage.check(context)
      if let error = context.faultError { throw error }
      Issue.record("The damage wasn't detected: \(found)")
    } catch let error as StoreError {
      #expect(error.code == .wrongType && error.path == path, "\(error)")
      #expect(error.reason.contains("ZSHIP.") || error.reason.contains("destination key"), "\(error)")
    }
    context.acknowledgeFaultErrors()
    // Undamaged objects are readable, and the context stays usable.
    #expect(try context.count(for: FetchRequest<Journal>()) == 1)
    let journal = try #require(try context.fetch(FetchRequest<Journal>()).first)
    journal.saves += 1
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(folder.openDescriptors == 0)
  }

  /// Keys, versions and counters that neither this framework nor Core Data would write.
  @Test(
    arguments: [
      "UPDATE ZSHIP SET ZBERTH = -1", "UPDATE ZSHIP SET ZBERTH = 0", "UPDATE ZSHIP SET ZBERTH = 9223372036854775807",
      "UPDATE ZSHIP SET ZBERTH = -9223372036854775808", "UPDATE ZSHIP SET ZBERTH = 99999", "UPDATE ZSHIP SET Z_PK = -Z_PK",
      "UPDATE ZSHIP SET Z_PK = -9223372036854775807 - 1 WHERE ZNUMBER = 12",
      "UPDATE ZSHIP SET Z_PK = 9223372036854775807 WHERE ZNUMBER = 12",
      "UPDATE ZSHIP SET Z_PK = 0 WHERE ZNUMBER = 12", "UPDATE ZROUTE SET Z_PK = -Z_PK", "UPDATE ZJOURNAL SET Z_PK = -1",
      "UPDATE ZSHIP SET Z_OPT = 9223372036854775807", "UPDATE ZJOURNAL SET Z_OPT = 9223372036854775807",
      "UPDATE ZJOURNAL SET Z_OPT = -9223372036854775808",
      "UPDATE ZSHIP SET Z_OPT = NULL", "UPDATE ZSHIP SET Z_OPT = 'x'", "UPDATE ZSHIP SET Z_OPT = 1e300", "UPDATE ZBERTH SET Z_OPT = -5",
      "UPDATE ZSHIP SET Z_ENT = 77", "UPDATE ZSHIP SET Z_ENT = NULL", "UPDATE Z_PRIMARYKEY SET Z_MAX = -100",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 0",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807", "UPDATE Z_PRIMARYKEY SET Z_MAX = -9223372036854775808",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = NULL", "UPDATE Z_PRIMARYKEY SET Z_MAX = 'x'", "UPDATE Z_PRIMARYKEY SET Z_MAX = 2.5",
      "DELETE FROM Z_PRIMARYKEY", "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 10", "UPDATE Z_3SHIPS SET Z_4SHIPS = -Z_4SHIPS",
      "UPDATE OR IGNORE Z_3SHIPS SET Z_4SHIPS = -9223372036854775808", "UPDATE OR IGNORE Z_3SHIPS SET Z_4SHIPS = 9223372036854775807",
      "INSERT INTO Z_3SHIPS SELECT Z_PK, 5555 FROM ZROUTE", "DELETE FROM ZBERTH", "DELETE FROM ZROUTE",
      "CREATE TRIGGER t BEFORE UPDATE ON ZJOURNAL BEGIN SELECT RAISE(ABORT, 'no'); END",
      "CREATE TRIGGER t BEFORE UPDATE ON ZJOURNAL BEGIN SELECT RAISE(IGNORE); END",
      "CREATE UNIQUE INDEX u ON ZSHIP (ZTONS, ZNAME, ZISAFLOAT)",
      "DROP INDEX Z_3SHIPS_Z_4SHIPS_INDEX; DROP TABLE Z_3SHIPS; CREATE TABLE Z_3SHIPS (Z_3ROUTES, Z_4SHIPS); INSERT INTO Z_3SHIPS SELECT ZROUTE.Z_PK, ZSHIP.Z_PK FROM ZROUTE, ZSHIP; INSERT INTO Z_3SHIPS SELECT ZROUTE.Z_PK, ZSHIP.Z_PK FROM ZROUTE, ZSHIP",
      "DROP TABLE ZSHIP; CREATE VIEW ZSHIP AS SELECT * FROM ZBERTH",
      "DROP TABLE ZJOURNAL; CREATE TABLE ZJOURNAL (Z_PK, Z_ENT, Z_OPT, ZSAVES) STRICT",
    ])
  func invalidKeysVersionsAndCountersAreAnErrorOrAnAnswer(change: String) async throws {
    let path = folder.file()
    try Harbour.makeFile(path)
    // SQLite itself refuses some of these changes.
    do { try BareDatabase.change(path, change) } catch { return }
    await #expect(processExitsWith: .success) { [path = path as String] in _ = try Damaged(path).use() }
  }

  @Test func rowsWithExistingKeysAreNotOverwritten() throws {
    let path = folder.file()
    try Harbour.makeFile(path)
    try BareDatabase.change(path, "UPDATE Z_PRIMARYKEY SET Z_MAX = 2")
    let context = try Harbour.context(.sqlite(at: path))
    let before = try Voyage.check(context)
    let ship = context.insert(Ship.self)
    ship.name = "New"
    ship.number = 1000
    #expect(throws: (any Error).self) { try context.save() }
    #expect(context.hasChanges && ship.isInserted && ship.name == "New")
    context.rollback()
    #expect(try Voyage.check(context) == before)
    try context.persistentStoreCoordinator.close()
  }
}

/// The input of a process that damages files.
struct Job: Codable {
  let folder: String
  let seed: UInt64
  let rounds: Int

  init(_ purpose: String, _ folder: TemporaryFolder, rounds: Int, full: Int) {
    self.folder = folder.path
    seed = SeededGenerator(purpose).seed
    self.rounds = TestTier.count(rounds, full: full)
  }

  var random: SeededGenerator { SeededGenerator(seed: seed) }

  /// Prints the output of the process.
  static func show(_ child: ExitTest.Result?) {
    let lines = String(decoding: child?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n")
    for line in lines where line.contains("refused") || line.contains("answered") { print(line) }
    if let child, child.exitStatus != .exitCode(0) { print(String(decoding: child.standardErrorContent.suffix(4000), as: UTF8.self)) }
  }
}

/// A store that may be damaged.
struct Damaged {
  let path: String

  init(_ path: String) { self.path = path }

  /// Opens the store, reads everything, changes objects of every entity and saves.
  ///
  /// - Returns: the code of the first error; nil if there was none.
  /// - Throws: errors other than `StoreError` and `PersistenceError`.
  func use() throws -> String? {
    var first: String?
    var context: ManagedObjectContext?
    func attempt(_ body: () throws -> Void) throws {
      do {
        try body()
        if let error = context?.faultError { throw error }
      } catch let error as StoreError {
        precondition(error.path == path && !error.reason.isEmpty && !"\(error)".isEmpty, "\(error)")
        first = first ?? error.code.rawValue
      } catch let error as PersistenceError {
        precondition(!"\(error)".isEmpty)
        first = first ?? error.code.rawValue
      }
      context?.acknowledgeFaultErrors()
    }
    try attempt {
      context = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(durability: .normal, busyTimeout: .seconds(0.2))))
    }
    guard let context else { return first }
    try attempt { _ = try Voyage.check(context) }
    try attempt { try read(context) }
    try attempt { try context.save() }
    try attempt {
      for ship in try context.fetch(FetchRequest<Ship>()) {
        ship.tons = ship.tons == 1 ? 2 : 1
        ship.berth = nil
        ship.routes.removeAll()
      }
      try context.save()
    }
    context.rollback()
    try attempt { try Voyage.saveNext(context) }
    context.rollback()
    try attempt {
      for berth in try context.fetch(FetchRequest<Berth>()) { context.delete(berth) }
      for route in try context.fetch(FetchRequest<Route>()) { context.delete(route) }
      try context.save()
    }
    context.reset()
    try attempt { try context.persistentStoreCoordinator.setMetadata(["note": .string("still here")]) }
    try attempt { try context.persistentStoreCoordinator.close() }
    return first
  }

  private func read(_ context: ManagedObjectContext) throws {
    for name in Harbour.model.entities.map(\.name) {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: name)) {
        _ = object.description
        _ = object.objectID.uriRepresentation
        for slot in object.entity.slots { _ = try object.value(forKey: slot.name) }
        for relationship in object.entity.toManyRelationships {
          for target in try object.toMany(forKey: relationship.name) { _ = "\(target.description) \(target.entity.slots.count)" }
        }
        _ = try context.existingObject(with: object.objectID)
      }
    }
    _ = try context.count(for: FetchRequest<Ship> { $0.berth.number == 1 })
    _ = try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.name)]) { $0.routes.any { $0.number == 1 } })
    _ = try context.fetch(
      DictionaryFetchRequest<Ship>(columns: ["n": .count(), "t": .sum("tons"), "b": .property("berth")], groupedBy: ["berth"]))
  }

  /// Removes the file and SQLite's files beside it.
  func removeFiles() throws {
    for suffix in ["", "-wal", "-shm", "-journal"] where TemporaryFolder.exists(path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
  }
}
