import Foundation
import Holdfast
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Processes that save to one file are killed at random instants: 20 times, 500 with `HOLDFAST_TESTS=full`.
@Suite(.serialized, .ownThreads) struct WholeFileKillTests {
  private static let rounds = TestTier.count(20, full: 500)

  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: FileStore.wholeFile)
  func RA1_aKilledProcessLosesNoAcknowledgedSaveTearsNoneAndLeavesNothing(store: FileStore) async throws {
    let report = try await report(store, .afterSaving, rounds: Self.rounds)
    #expect(report.faults == [])
    #expect(report.kills == Self.rounds)
    #expect(Self.rounds < 20 || report.acknowledged > Self.rounds / 4, "Too few saves were made.")
  }

  /// A process that acknowledges saves too early.
  @Test(arguments: FileStore.wholeFile)
  func RA1_theRoundsDetectAStoreThatLosesAcknowledgedSaves(store: FileStore) async throws {
    let report = try await report(store, .beforeSaving, rounds: 200)
    #expect(report.faults.count == 1 && report.kills < 200, "\(report)")
    #expect(report.faults.first?.contains("acknowledged") == true, "\(report)")
  }

  private enum Harm: CaseIterable { case olderFile, shipGone, logChanged, linkGone, half, temporaryFile }

  @Test(arguments: FileStore.wholeFile, Harm.allCases)
  private func RA1_theRoundsDetectEveryHarm(store: FileStore, harm: Harm) throws {
    let victim = victim(store)
    try Harbour.makeFile(store.description(at: victim.path))
    let older = try TemporaryFolder.read(victim.path)
    for saves in 13...15 {
      let found = try victim.survey()
      #expect(Nursery.fault(1, saves - 2, found) == nil && Nursery.fault(0, saves - 2, found) == nil)
    }
    switch harm {
    case .olderFile: try TemporaryFolder.write(older, to: victim.path)
    case .half: try TemporaryFolder.write(Array(try TemporaryFolder.read(victim.path).prefix(older.count / 2)), to: victim.path)
    case .temporaryFile: try TemporaryFolder.write([1], to: folder.file(".other.0123456789abcdef.tmp"))
    case .shipGone, .logChanged, .linkGone: try change(harm, store, victim.path)
    }
    do {
      let found = try victim.survey()
      #expect(Nursery.fault(1, 14, found) != nil)
    } catch let error as StoreError {
      #expect(harm == .half && error.code == .damaged, "\(error)")
    }
  }

  private func change(_ harm: Harm, _ store: FileStore, _ path: String) throws {
    let context = try Harbour.context(store.description(at: path))
    let ship = try #require(try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)])).first)
    switch harm {
    case .shipGone: context.delete(ship)
    case .logChanged: ship.log = "x"
    default: ship.routes.remove(try #require(ship.routes.first { _ in true }))
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  private func victim(_ store: FileStore) -> Victim {
    Victim(path: folder.file("harbour"), acks: folder.file("acks"), store: store, microseconds: 0, countsOpening: true)
  }

  private func report(_ store: FileStore, _ order: Nursery.Order, rounds: Int) async throws -> Nursery.Report {
    let random = SeededGenerator("Kill \(store), \(rounds) rounds")
    let began = Date()
    await #expect(processExitsWith: .success) {
      [
        victim = victim(store) as Victim, order = order as Nursery.Order, rounds = rounds as Int, seed = random.seed as UInt64,
        report = folder.file("report") as String
      ] in
      var random = SeededGenerator(seed: seed)
      let found = try Nursery(victim: victim, order: order).run(rounds: rounds, random: &random)
      try TemporaryFolder.write(Array(try JSONEncoder().encode(found)), to: report)
    }
    let report = try JSONDecoder().decode(Nursery.Report.self, from: Data(try TemporaryFolder.read(folder.file("report"))))
    let seconds = Int(Date().timeIntervalSince(began).rounded())
    print(
      "\(store), \(order): \(report.kills) kills in \(seconds) s, \(report.acknowledged) acknowledged saves found, "
        + "\(report.unacknowledged) times an unacknowledged one, \(report.faults.count) faults")
    return report
  }
}
