import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Seven processes read and save to one SQLite store, while an eighth is killed again and again.
@Suite(.serialized, .ownThreads) struct SharedDatabaseTests {
  private let folder = TemporaryFolder()

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD2_noSaveIsLostAndNoLockIsReportedWhileAProcessIsKilled(journal: SQLiteStoreOptions.JournalMode) async throws {
    try await expectAllSaves(SharedDatabase(folder: folder.path, journal: journal, usesDefaults: false))
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func RD2_noLockIsReportedWithTheDefaultOptions(journal: SQLiteStoreOptions.JournalMode) async throws {
    try await expectAllSaves(SharedDatabase(folder: folder.path, journal: journal, usesDefaults: true))
  }

  private func expectAllSaves(_ database: SharedDatabase) async throws {
    let kills = TestTier.count(6, full: 600)
    let random = SeededGenerator("Shared database, \(database.journal)")
    try database.begin()
    await #expect(processExitsWith: .success) {
      [database = database as SharedDatabase, kills = kills as Int, seed = random.seed as UInt64] in
      var random = SeededGenerator(seed: seed)
      database.run(kills: kills, &random)
    }
    try expectAll(database, kills)
  }

  private func expectAll(_ database: SharedDatabase, _ kills: Int) throws {
    let context = try Harbour.context(database.description)
    let ships = try context.fetch(FetchRequest<Ship>()), counts = try SharedDatabase.counts(context)
    #expect(counts[0] == ships.count && counts[1] + counts[2] == counts[0])
    let found = Dictionary(grouping: ships) { Int($0.number ?? -1) / SharedDatabase.numbersPerWriter }.mapValues(\.count)
    var acknowledged = 0
    for writer in 0..<SharedDatabase.workers + kills {
      let acks = try TemporaryFolder.read(database.acks(writer)).count
      // A process may be killed between its save and the acknowledgement.
      let expected = writer < SharedDatabase.workers ? acks...acks : acks...acks + 1
      #expect(expected.contains(found[writer] ?? 0), "Writer \(writer): \(acks) saves acknowledged, \(found[writer] ?? 0) found.")
      acknowledged += acks
    }
    let options = database.usesDefaults ? ", default options" : ""
    print("\(database.journal)\(options): \(kills) kills, \(acknowledged) acknowledged saves")
    try context.persistentStoreCoordinator.close()
    #expect(try FileStore.sqlite(database.journal).fault(at: database.path) == nil)
  }
}

/// A database that several processes use. Each save inserts a ship, and increments the total and one of its two parts.
struct SharedDatabase: Codable, Sendable {
  static let workers = 7
  static let numbersPerWriter = 1_000_000
  /// So many saves of the other processes within the default timeout mean that the machine isn't too slow for it.
  private static let manySaves = 1500

  let folder: String
  let journal: SQLiteStoreOptions.JournalMode
  /// Whether a process waits for a lock only for the default timeout, and the log has the default length.
  let usesDefaults: Bool

  var path: String { folder + "/harbour" }
  private var stop: String { folder + "/stop" }
  func acks(_ writer: Int) -> String { folder + "/acks\(writer)" }

  var description: StoreDescription {
    var options = SQLiteStoreOptions(journalMode: journal)
    if !usesDefaults { (options.busyTimeout, options.checkpointPages) = (.seconds(3600), 20) }
    return .sqlite(at: path, options: options)
  }

  func begin() throws {
    let context = try Harbour.context(description)
    for number in 0..<3 {
      let berth = context.insert(Berth.self)
      (berth.number, berth.count) = (number, 0)
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  static func counts(_ context: ManagedObjectContext) throws -> [Int] {
    try context.fetch(FetchRequest<Berth>(sortedBy: [.ascending(\.number)])).map(\.count)
  }

  /// Starts the processes as forks of this one, and kills one again and again within 0.1 s of its first save. Traps if another one fails.
  ///
  /// Use it only in a separate process without other active threads.
  func run(kills: Int, _ random: inout SeededGenerator) {
    let workers = (0..<Self.workers).map { start($0) }
    for writer in 0..<Self.workers { waitUntil { acknowledged(writer) > 0 } }
    for writer in Self.workers..<Self.workers + kills {
      let victim = start(writer)
      waitUntil { acknowledged(writer) > 0 }
      usleep(UInt32.random(in: 0...100_000, using: &random))
      kill(victim, SIGKILL)
      precondition(status(victim) & 0x7F == SIGKILL, "A process ended by itself.")
    }
    precondition(FileManager.default.createFile(atPath: stop, contents: nil))
    for worker in workers { precondition(status(worker) == 0, "A process failed.") }
  }

  private func acknowledged(_ writer: Int) -> Int {
    let attributes = try? FileManager.default.attributesOfItem(atPath: acks(writer))
    return attributes?[.size] as? Int ?? 0
  }

  private func status(_ process: pid_t) -> Int32 {
    var status: Int32 = 0
    waitpid(process, &status, 0)
    return status
  }

  private func start(_ writer: Int) -> pid_t {
    let process = System.fork()
    if process != 0 { return process }
    do { try work(writer) } catch {
      FileHandle.standardError.write(Data("Writer \(writer): \(error)\n".utf8))
      _exit(1)
    }
    _exit(0)
  }

  /// Saves, reads, and repeats saves with a conflict, until a file ends it.
  private func work(_ writer: Int) throws {
    let acks = Acknowledgements(emptying: acks(writer)), context = try untilGranted { try Harbour.context(description) }
    var saves = 0
    while !FileManager.default.fileExists(atPath: stop) {
      System.limitTime()
      if try untilGranted({ try saveNext(context, writer, saves) }) {
        acks.add()
        saves += 1
      }
      context.reset()
      let counts = try untilGranted { try Self.counts(context) }
      precondition(counts[0] == counts[1] + counts[2], "One request read parts of two saves: \(counts)")
    }
    try context.persistentStoreCoordinator.close()
  }

  /// Runs a request. If it waits too long for a lock because the machine is slow, repeats it.
  ///
  /// - Throws: `locked` if the other processes got the lock often in the meantime.
  private func untilGranted<Result>(_ request: () throws -> Result) throws -> Result {
    guard usesDefaults else { return try request() }
    while true {
      let before = workersSaves
      do { return try request() } catch let error as StoreError where error.code == .locked && workersSaves - before < Self.manySaves {
        FileHandle.standardError.write(Data("The machine was too slow for the timeout: \(workersSaves - before) saves.\n".utf8))
      }
    }
  }

  /// The number of acknowledged saves of the processes that aren't killed.
  private var workersSaves: Int { (0..<Self.workers).reduce(0) { $0 + acknowledged($1) } }

  /// - Returns: Whether there was no conflict.
  private func saveNext(_ context: ManagedObjectContext, _ writer: Int, _ saves: Int) throws -> Bool {
    context.reset()
    let berths = try context.fetch(FetchRequest<Berth>(sortedBy: [.ascending(\.number)]))
    berths[0].count += 1
    berths[1 + writer % 2].count += 1
    let ship = context.insert(Ship.self)
    ship.name = "Ship \(saves) of \(writer)"
    ship.number = Int64(writer * Self.numbersPerWriter + saves)
    ship.log = String(repeating: "Day \(saves). ", count: saves % 50)
    do {
      try context.save()
      return true
    } catch let error as PersistenceError where error.code == .conflict {
      return false
    }
  }
}
