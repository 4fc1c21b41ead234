import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Power losses at every point of a few saves on a simulated disk, through the entire stack.
@Suite struct WholeFilePowerLossTests {
  @Test(arguments: FileStore.wholeFile, DurableFileOptions.Durability.allCases)
  func RB1_everyStateAfterAPowerLossOpensAndHasEntireSaves(store: FileStore, durability: DurableFileOptions.Durability) throws {
    for saves in [0, 3, 6, 12] {
      var losses = PowerLosses(store, durability)
      try losses.record(after: saves, 1)
      #expect(losses.summary.stateCount > 100 && (losses.summary.isExhaustive || saves == 0))
      #expect(losses.acceptsOnlyWholeSaves, "\(losses)")
      #expect(losses.continued > 10)
    }
  }

  @Test(arguments: FileStore.wholeFile)
  func RB2_aSaveThatHasReturnedSurvivesEveryPowerLoss(store: FileStore) throws {
    for (before, saves) in [(0, 2), (5, 3)] {
      var losses = PowerLosses(store, .full)
      try losses.record(after: before, saves)
      #expect(losses.acceptsOnlyWholeSaves && losses.stale == 0, "\(losses)")
      #expect(losses.versions.count == saves + (before == 0 ? 2 : 1), "Each version was seen.")
    }
  }

  @Test(arguments: FileStore.wholeFile)
  func RB2_withFastDurabilityAnOlderSaveMayComeBackButNeverAMixture(store: FileStore) throws {
    var losses = PowerLosses(store, .normal)
    try losses.record(after: 5, 3)
    #expect(losses.acceptsOnlyWholeSaves && losses.stale > 0, "\(losses)")
  }

  @Test(arguments: FileStore.wholeFile, AlteredFileSystem.Mistake.allCases)
  func RB3_everyWrongRecipeIsCaught(store: FileStore, mistake: AlteredFileSystem.Mistake) throws {
    var losses = PowerLosses(store, .full)
    try losses.record(after: 5, 1, mistake)
    switch mistake {
    case .noFolderSynchronization: #expect(losses.stale > 0 && losses.damaged == 0, "\(losses)")
    case .noSynchronization, .synchronizationAfterRenaming, .writingInPlace: #expect(losses.damaged > 0, "\(losses)")
    }
    #expect(losses.mixed == 0, "The digest detects every torn file: \(losses)")
  }
}

/// Counts of the states after power losses during a few saves.
private struct PowerLosses: CustomStringConvertible {
  /// The outcome of opening a file.
  private enum Finding: Equatable {
    case holds(Int)
    case mixture(String)
    case damage(String)
  }

  let store: FileStore
  let durability: DurableFileOptions.Durability
  var summary = CrashSummary(stateCount: 0, isExhaustive: true, seed: 0)
  /// States in which the file is refused.
  var damaged = 0
  /// States that open with part of a save, or with values that were never saved.
  var mixed = 0
  /// States that lack a save that had returned.
  var stale = 0
  /// States with a save that had not begun.
  var tooNew = 0
  /// The numbers of saves in the states; -1 for a missing file.
  var versions: Set<Int> = []
  /// How often the stack opened a state and saved.
  var continued = 0
  /// The first wrong state.
  var example = ""
  /// The number of saves on the disk before recording; -1 for no file.
  private var recorded = -1
  /// Outcomes by file contents, so that equal files are opened once. There are few, so comparing them is faster than hashing.
  private var findings: [(contents: [UInt8], finding: Finding)] = []

  var acceptsOnlyWholeSaves: Bool { damaged == 0 && mixed == 0 && tooNew == 0 }

  var description: String {
    "\(store), \(durability): HOLDFAST_SEED=\(summary.seed), \(summary.stateCount) states, \(findings.count) different files, "
      + "damaged \(damaged), mixed \(mixed), stale \(stale), too new \(tooNew). \(example)"
  }

  init(_ store: FileStore, _ durability: DurableFileOptions.Durability) {
    self.store = store
    self.durability = durability
  }

  /// Records saves, and checks every state. Without earlier saves, creating the file is recorded too.
  mutating func record(after before: Int, _ saves: Int, _ mistake: AlteredFileSystem.Mistake? = nil) throws {
    let harbour = SimulatedHarbour(store, contents: before == 0 ? nil : try SimulatedHarbour.contents(store, saves: before))
    let fileSystem: any StoreFileSystem =
      mistake.map { AlteredFileSystem(harbour.disk, $0, storeName: SimulatedHarbour.name) } ?? harbour.disk
    harbour.disk.startRecording()
    recorded = before == 0 ? -1 : before
    let context = try harbour.context(durability, through: fileSystem)
    harbour.disk.mark(before)
    for _ in 0..<saves { harbour.disk.mark(try Voyage.saveNext(context)) }
    try context.persistentStoreCoordinator.close()
    let seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) }
    summary = try harbour.disk.forEachCrashState(seed: seed, sampleSize: TestTier.count(2000, full: 20_000)) { try look(at: $0) }
    print("power losses: \(self)")
  }

  private mutating func look(at state: CrashState) throws {
    let confirmed = state.lastMark ?? recorded
    let known = findings.count
    switch try finding(state) {
    case .holds(let saves):
      let isNew = versions.insert(saves).inserted || findings.count > known
      let isStale = saves < confirmed, isTooNew = saves > confirmed + 1
      if isStale { stale += 1 }
      if isTooNew { tooNew += 1 }
      if isTooNew || isStale && durability == .full { note(state, "\(saves) saves") }
      // Saving takes as long as all other checks, so only some states are saved.
      if isNew || state.eventCount % 3 == 0 && continued < 40 { try expectUsable(state, saves) }
    case .mixture(let fault):
      mixed += 1
      note(state, fault)
    case .damage(let error):
      damaged += 1
      note(state, error)
    }
  }

  private mutating func finding(_ state: CrashState) throws -> Finding {
    guard let contents = state.fileSystem.contents(of: SimulatedHarbour.name) else { return .holds(-1) }
    if let known = findings.first(where: { TestBytes.areEqual($0.contents, contents) }) { return known.finding }
    let finding: Finding
    do {
      let found = try SimulatedHarbour.found(store, contents)
      finding = found.fault.map { .mixture($0) } ?? .holds(found.saves)
    } catch let error as StoreError {
      finding = .damage("\(error)")
    }
    findings.append((contents, finding))
    return finding
  }

  /// The store can be saved again, which removes the temporary file of the lost save.
  private mutating func expectUsable(_ state: CrashState, _ saves: Int) throws {
    continued += 1
    let context = try Harbour.context(
      store.description(at: SimulatedHarbour.path, file: DurableFileOptions(lockTimeout: .seconds(0), fileSystem: state.fileSystem)))
    let next = try Voyage.saveNext(context)
    let found = try Voyage.check(context)
    try context.persistentStoreCoordinator.close()
    guard next == max(saves, 0) + 1, found == (next, nil), state.fileSystem.names == SimulatedHarbour.names else {
      mixed += 1
      return note(state, "after \(saves) saves: \(next), \(found), \(state.fileSystem.names)")
    }
  }

  private mutating func note(_ state: CrashState, _ fault: String) {
    if example.isEmpty { example = "\(fault), after: \("\(state)".prefix(2000))" }
  }
}
