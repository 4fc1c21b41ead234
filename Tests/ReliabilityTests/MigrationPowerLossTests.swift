import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Power losses at every point of a migration. Each state has the former or the new version, and all objects.
@Suite(.ownThreads) struct MigrationPowerLossTests {
  /// The model with another attribute of ships, so that all rows of ships are written.
  fileprivate static let changed = Harbour.made(
    Harbour.entities.map { entity in
      var entity = entity
      // The last one in the alphabet, so that the slots of the classes remain.
      if entity.name == "Ship" { entity.attributes.append(AttributeDescription("zone", .string, default: "north")) }
      return entity
    })
  fileprivate static let saves = 12

  @Test(arguments: FileStore.wholeFile, DurableFileOptions.Durability.allCases)
  func RB5_aPowerLossDuringAMigrationOfAWholeFileLeavesTheFormerOrTheNewVersion(
    store: FileStore, durability: DurableFileOptions.Durability
  ) throws {
    let harbour = SimulatedHarbour(store, contents: try SimulatedHarbour.contents(store, saves: Self.saves))
    harbour.disk.startRecording()
    try PersistentStoreCoordinator.migratePersistentStore(harbour.description(durability), to: Self.changed)
    harbour.disk.mark(1)
    var findings = MigrationFindings(isDurable: durability == .full), known: [[UInt8]: Bool] = [:]
    let summary = harbour.disk.forEachCrashState(sampleSize: TestTier.count(2_000, full: 20_000)) { state in
      let contents = state.fileSystem.contents(of: SimulatedHarbour.name) ?? []
      if known[contents] == nil {
        known[contents] = findings.isMigrated(SimulatedHarbour(store, contents: contents).description(), state)
      }
      findings.note(known[contents] ?? false, state)
    }
    findings.check(summary, "\(store), \(durability)")
  }

  /// A SQLite store with a log is migrated in place. 1,000 states with `HOLDFAST_TESTS=full`.
  @Test func RB5_aPowerLossDuringAMigrationInSQLiteLeavesTheFormerOrTheNewVersion() async {
    let folder = TemporaryFolder()
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [folder = folder.path as String] in
      WatchedFileSystem.install()
      let path = folder + "/harbour", place = folder + "/lost"
      try Harbour.makeFile(.sqlite(at: path), saves: MigrationPowerLossTests.saves)
      let base = try TemporaryFolder.read(path)
      WatchedFileSystem.startRecording()
      try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), to: MigrationPowerLossTests.changed)
      WatchedFileSystem.mark(1)
      let disk = try SQLitePowerLosses.replayed(WatchedFileSystem.stopRecording(), on: base)
      var findings = MigrationFindings(isDurable: true)
      let summary = try disk.forEachCrashState(sampleSize: TestTier.count(150, full: 1_000)) { state in
        try? FileManager.default.removeItem(atPath: place)
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        for name in state.fileSystem.names { try TemporaryFolder.write(state.fileSystem.contents(of: name) ?? [], to: place + "/" + name) }
        findings.note(findings.isMigrated(.sqlite(at: place + "/harbour"), state), state)
        let integrity = try BareDatabase(place + "/harbour").rows("PRAGMA integrity_check")
        if integrity != ["ok"] { findings.complain("\(integrity)", state) }
      }
      demand(findings.wrong == nil, findings.wrong ?? "")
      demand(findings.former > 0 && findings.new > 0, "\(findings)")
      print("REPORT RB5, SQLite: \(summary.stateCount) states, \(findings.former) of the former version, \(findings.new) of the new one")
    }
    report(child)
  }
}

/// What the states after power losses contain.
private struct MigrationFindings {
  /// Whether a migration that has returned is never lost.
  let isDurable: Bool
  var former = 0
  var new = 0
  /// The first state that is neither the former nor the new version.
  var wrong: String?

  init(isDurable: Bool) { self.isDurable = isDurable }

  /// Whether a store has the new version. Checks all objects, after a migration if it has the former one.
  mutating func isMigrated(_ store: StoreDescription, _ state: CrashState) -> Bool {
    do {
      let isMigrated = try !Self.opens(store, with: Harbour.model)
      let coordinator = try PersistentStoreCoordinator(model: MigrationPowerLossTests.changed, store: store)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes), found = try Voyage.check(context)
      if found != (MigrationPowerLossTests.saves, nil) { complain("\(found)", state) }
      for ship in try context.fetch(FetchRequest<Ship>()) where try ship.value(forKey: "zone").storeValue != .string("north") {
        complain("\(ship.name) has no zone.", state)
      }
      try coordinator.close()
      return isMigrated
    } catch {
      complain("\(error)", state)
      return false
    }
  }

  /// Whether a store has the version of a model. Opening it completes what was interrupted.
  private static func opens(_ store: StoreDescription, with model: ManagedObjectModel) throws -> Bool {
    do {
      try PersistentStoreCoordinator(model: model, store: store.migrating(automatically: false)).close()
      return true
    } catch let error as StoreError where error.code == .incompatibleModel { return false }
  }

  mutating func note(_ isMigrated: Bool, _ state: CrashState) {
    if isMigrated { new += 1 } else { former += 1 }
    if isDurable && !isMigrated && state.lastMark != nil { complain("The migration had returned, and is lost.", state) }
  }

  mutating func complain(_ fault: String, _ state: CrashState) { wrong = wrong ?? "\(fault); \("\(state)".prefix(2_000))" }

  func check(_ summary: CrashSummary, _ what: String) {
    #expect(wrong == nil, "\(what), HOLDFAST_SEED=\(summary.seed)")
    #expect(former > 0 && new > 0, "\(what): \(self)")
    print("REPORT RB5, \(what): \(summary.stateCount) states, \(former) of the former version, \(new) of the new one")
  }
}
