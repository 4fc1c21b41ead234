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

/// A process that saves to a SQLite store is killed at random instants: 45 times in total, 600 times with `HOLDFAST_TESTS=full`.
@Suite(.serialized, .ownThreads) struct KillTests {
  @Test func RA1_aKilledProcessLosesNoAcknowledgedSaveAndTearsNone() async throws {
    try await kill(rounds: TestTier.count(25, full: 500), journal: .wal)
  }

  @Test func RA1_aKilledProcessLosesNothingWithARollbackJournalEither() async throws {
    try await kill(rounds: TestTier.count(20, full: 100), journal: .delete)
  }

  @Test(
    arguments: [
      "UPDATE ZJOURNAL SET ZSAVES = ZSAVES + 1", "DELETE FROM ZSHIP WHERE ZNUMBER = 12",
      "UPDATE ZBERTH SET ZCOUNT = ZCOUNT + 1 WHERE ZNUMBER = 0",
      "UPDATE ZSHIP SET ZBERTH = (SELECT Z_PK FROM ZBERTH WHERE ZNUMBER <> 0) WHERE ZNUMBER = 11",
      "UPDATE ZSHIP SET ZLOG = 'x' WHERE ZNUMBER = 7",
      "DELETE FROM Z_3SHIPS WHERE rowid = (SELECT max(rowid) FROM Z_3SHIPS)",
    ])
  func RA1_theRoundsDetectPlantedLosses(change: String) throws {
    let folder = TemporaryFolder()
    try Harbour.makeFile(folder.file())
    #expect(try victim(folder).survey().fault == nil)
    try BareDatabase.change(folder.file(), change)
    #expect(try victim(folder).survey().fault != nil)
  }

  private func victim(_ folder: TemporaryFolder) -> Victim {
    Victim(path: folder.file(), acks: folder.file("acks"), store: .sqlite(.wal), microseconds: 0, countsOpening: false)
  }

  /// All rounds use one file, so it goes through many recoveries.
  private func kill(rounds: Int, journal: SQLiteStoreOptions.JournalMode) async throws {
    let folder = TemporaryFolder()
    var random = SeededGenerator("Kill, \(rounds) rounds, \(journal)")
    var saves = 0, acknowledged = 0, unacknowledged = 0
    for round in 0..<rounds {
      // Some processes are killed while they open the store.
      let microseconds = UInt32.random(in: 0...(journal == .wal ? 50_000 : 200_000), using: &random)
      let countsOpening = Int.random(in: 0..<10, using: &random) == 0
      let victim = Victim(
        path: folder.file(), acks: folder.file("acks"), store: .sqlite(journal), microseconds: microseconds, saves: round % 3,
        countsOpening: countsOpening)
      await #expect(processExitsWith: .signal(SIGKILL)) { [victim = victim as Victim] in try victim.run() }
      let acks = (try? TemporaryFolder.read(victim.acks).count) ?? 0
      let found = try victim.survey()
      #expect(found.fault == nil, "round \(round)")
      #expect((acks...acks + 1).contains(found.saves - saves), "round \(round): \(acks) saves acknowledged, \(found.saves - saves) found")
      if found.saves - saves > acks { unacknowledged += 1 }
      acknowledged += acks
      saves = found.saves + 1
      #expect(folder.openDescriptors == 0)
      if found.fault != nil { return }
    }
    print("\(rounds) kills, \(acknowledged) acknowledged saves found, \(unacknowledged) times an unacknowledged one")
    #expect(rounds < 20 || acknowledged > rounds / 4, "Too few saves were made.")
  }
}
