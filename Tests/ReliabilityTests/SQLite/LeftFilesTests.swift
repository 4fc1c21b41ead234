import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The files that a killed process leaves beside a SQLite store are missing, old, damaged or another store's when it is opened.
@Suite(.ownThreads) struct LeftFilesTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file() }
  private var log: String { path + "-wal" }
  private var index: String { path + "-shm" }

  /// Makes a store with 12 saves whose process is killed. The last three are only in the log.
  private static func makeKilled(at path: String) async throws {
    try Harbour.makeFile(path, saves: 9)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<3 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
  }

  /// The file, the log and the index of such a store, by the ends of their names.
  private static let killed = Task { () async throws -> [String: [UInt8]] in
    let folder = TemporaryFolder(), path = folder.file()
    try await LeftFilesTests.makeKilled(at: path)
    let ends = ["", "-wal", "-shm"]
    return try withExtendedLifetime(folder) {
      Dictionary(uniqueKeysWithValues: try ends.map { ($0, try TemporaryFolder.read(path + $0)) })
    }
  }

  /// Copies the files of the killed process.
  private func copyKilled() async throws {
    for (end, bytes) in try await Self.killed.value { try TemporaryFolder.write(bytes, to: path + end) }
  }

  /// Opens the store, compares its contents, saves, and lets SQLite check the file.
  private func expectSound(saves: ClosedRange<Int>, _ name: String) throws {
    let context = try Harbour.context(.sqlite(at: path))
    let found = try Voyage.check(context)
    #expect(found.fault == nil && saves.contains(found.saves), "\(name): \(found)")
    #expect(try Voyage.saveNext(context) == found.saves + 1, "\(name)")
    try context.persistentStoreCoordinator.close()
    #expect(try BareDatabase(path).rows("PRAGMA integrity_check") == ["ok"], "\(name)")
    #expect(folder.openDescriptors == 0, "\(name)")
  }

  // MARK: The log

  /// What is done to the log. Its header has 32 bytes with two salts from byte 16 on; each frame has 24 bytes with them from byte 8 on, and a page.
  enum LogHarm: String, CaseIterable, Codable, Sendable {
    case none, missing, empty, headerAlone, shortHeader, zeros, lastByteMissing, halfMissing, longer
    case saltOfTheHeader, saltOfTheFirstFrame, saltOfTheLastFrame, checksumOfTheHeader, aPageInTheMiddle

    /// The saves that may be in the store. A frame that can't be trusted ends the log.
    var saves: ClosedRange<Int> {
      switch self {
      case .none, .longer: 12...12
      case .missing, .empty, .headerAlone, .shortHeader, .zeros, .saltOfTheHeader, .saltOfTheFirstFrame, .checksumOfTheHeader: 9...9
      case .lastByteMissing, .saltOfTheLastFrame: 11...11
      case .halfMissing, .aPageInTheMiddle: 9...11
      }
    }

    func apply(to bytes: inout [UInt8]) {
      let frame: Int = 24 + 4096, frames: Int = (bytes.count - 32) / frame
      let lastFrame: Int = 32 + (frames - 1) * frame, middleFrame: Int = 32 + frames / 2 * frame
      switch self {
      case .none: break
      case .missing, .empty: bytes = []
      case .headerAlone: bytes.removeSubrange(32...)
      case .shortHeader: bytes.removeSubrange(31...)
      case .zeros: bytes = [UInt8](repeating: 0, count: bytes.count)
      case .lastByteMissing: bytes.removeLast()
      case .halfMissing: bytes.removeSubrange((bytes.count / 2)...)
      case .longer: bytes += bytes.prefix(frame)
      case .saltOfTheHeader: bytes[17] ^= 1
      case .saltOfTheFirstFrame: bytes[32 + 8] ^= 1
      case .saltOfTheLastFrame: bytes[lastFrame + 12] ^= 1
      case .checksumOfTheHeader: bytes[24] ^= 1
      case .aPageInTheMiddle: bytes[middleFrame + 24 + 100] ^= 1
      }
    }
  }

  @Test(arguments: LogHarm.allCases, [true, false])
  func RE5_aLogThatIsHarmedIsReadUpToTheHarm(harm: LogHarm, keepsIndex: Bool) async throws {
    try await copyKilled()
    var bytes = try TemporaryFolder.read(log)
    // The killed process had written frames since the last reset of the log, and nothing behind them.
    let frameBytes = bytes.count - 32
    try #require(frameBytes % 4120 == 0 && frameBytes > 0)
    harm.apply(to: &bytes)
    if harm == .missing { unlink(log) } else { try TemporaryFolder.write(bytes, to: log) }
    if !keepsIndex { unlink(index) }
    try expectSound(saves: harm.saves, "\(harm)")
  }

  // MARK: The index of the log

  enum IndexHarm: String, CaseIterable, Codable, Sendable {
    case empty, short, zeros, ones, random, another, longer
  }

  /// The first process that opens the files rebuilds the index from the log.
  @Test(arguments: IndexHarm.allCases, [true, false])
  func RE5_anIndexThatIsHarmedIsNotTrusted(harm: IndexHarm, hasLog: Bool) async throws {
    try await copyKilled()
    let bytes = try TemporaryFolder.read(index)
    var random = SeededGenerator()
    switch harm {
    case .empty: try TemporaryFolder.write([], to: index)
    case .short: try TemporaryFolder.write(Array(bytes.prefix(100)), to: index)
    case .zeros: try TemporaryFolder.write([UInt8](repeating: 0, count: bytes.count), to: index)
    case .ones: try TemporaryFolder.write([UInt8](repeating: 0xFF, count: bytes.count), to: index)
    case .random: try TemporaryFolder.write(bytes.map { _ in UInt8.random(in: 0...255, using: &random) }, to: index)
    case .longer: try TemporaryFolder.write(bytes + bytes, to: index)
    case .another:
      let other = TemporaryFolder()
      try await Self.makeKilled(at: other.file())
      try TemporaryFolder.write(try TemporaryFolder.read(other.file() + "-shm"), to: index)
    }
    if !hasLog { unlink(log) }
    try expectSound(saves: hasLog ? 12...12 : 9...9, "\(harm), HOLDFAST_SEED=\(random.seed)")
  }

  // MARK: The journal

  enum JournalHarm: String, CaseIterable, Codable, Sendable {
    case none, missing, empty, zeros, shortHeader, magic, pageCount, aPage, lastByteMissing
  }

  /// A journal that was being written when its process was killed: with all original pages of an unfinished save, in the format of SQLite.
  @Test(arguments: JournalHarm.allCases)
  func RE5_aHotJournalIsRolledBackAndOneThatCannotBeReadIsIgnored(harm: JournalHarm) async throws {
    let options = SQLiteStoreOptions(journalMode: .delete)
    try Harbour.makeFile(path, options: options, saves: 9)
    let before = try TemporaryFolder.read(path), journal = path + "-journal"
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      // The cache is too small for the changes, so that they are in the file while the transaction is open.
      let database = try BareDatabase(path)
      _ = try database.rows("PRAGMA cache_size=1")
      _ = try database.rows("BEGIN IMMEDIATE")
      _ = try database.rows("UPDATE ZSHIP SET ZLOG = ZLOG || 'harm'")
      kill(getpid(), SIGKILL)
    }
    var bytes = try TemporaryFolder.read(journal)
    let isWritten = try TemporaryFolder.read(path) != before
    try #require(isWritten && bytes.count > 512 + 4 + 4096 + 4)
    switch harm {
    case .none, .missing: break
    case .empty: bytes = []
    case .zeros: bytes = [UInt8](repeating: 0, count: bytes.count)
    case .shortHeader: bytes.removeSubrange(20...)
    case .magic: bytes[3] ^= 1
    case .pageCount: for place in 8..<12 { bytes[place] = 0xFF }
    case .aPage: bytes[512 + 4 + 50] ^= 1
    case .lastByteMissing: bytes.removeLast()
    }
    if harm == .missing { unlink(journal) } else { try TemporaryFolder.write(bytes, to: journal) }
    switch harm {
    case .none, .pageCount, .lastByteMissing: try expectSound(saves: 9...9, "\(harm)")
    default:
      // Without the original pages, an unfinished save can't be undone. It is an error or an answer, and never a trap.
      do {
        let context = try Harbour.context(.sqlite(at: path, options: options))
        _ = try? Voyage.check(context)
        try? context.persistentStoreCoordinator.close()
      } catch let error as StoreError { #expect([.damaged, .notAStore].contains(error.code), "\(harm): \(error)") }
    }
  }
}
