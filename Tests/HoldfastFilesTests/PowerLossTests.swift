import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Power losses at every point of a save, on a simulated disk: RB1, RB2 and RB3.
@Suite struct PowerLossTests {
  /// Counts of the states that the store's file can have after a power loss.
  private struct Findings {
    var summary = CrashSummary(stateCount: 0, isExhaustive: true, seed: 0)
    /// States in which the file is refused as damaged.
    var torn = 0
    /// States in which the file is accepted with bytes that no save wrote.
    var silentlyWrong = 0
    /// States that lack a save that had returned.
    var stale = 0
    /// States with a save that had not begun.
    var tooNew = 0
    /// The first wrong state.
    var example = ""
    var acceptsOnlyWhole: Bool { torn == 0 && silentlyWrong == 0 && tooNew == 0 }
  }

  /// The number of states that are examined if there are more.
  private static let sampleSize = TestTier.count(2000, full: 20_000)

  /// Records a few saves, and examines the states after a power loss at each point.
  private func findings(
    saves: [Int], base: Bool = true, durability: DurableFileOptions.Durability = .full, mistake: AlteredFileSystem.Mistake? = nil,
    checksDigest: Bool = true, shortens: Bool = false
  ) throws -> Findings {
    let disk = SimulatedFileSystem()
    let fileSystem: any StoreFileSystem = mistake.map { AlteredFileSystem(disk, $0) } ?? disk
    if base { disk.setContents(of: "store", TestImage.encode(1, byteCount: 40)) }
    let store = try TestStore("/store", DurableFileOptions(durability: durability, fileSystem: fileSystem), checksDigest: checksDigest)
    if shortens { disk.shortenAllTransfers(seed: 7) }
    disk.startRecording()
    disk.mark(Int(store.generation))
    var images: [UInt64: [UInt8]] = [store.generation: disk.contents(of: "store") ?? []]
    for byteCount in saves {
      images[store.generation + 1] = TestImage.encode(store.generation + 1, byteCount: byteCount)
      try store.save(byteCount: byteCount)
      disk.mark(Int(store.generation))
    }
    var found = Findings()
    found.summary = try disk.forEachCrashState(seed: SeededGenerator.seedOfEnvironment, sampleSize: Self.sampleSize) {
      try look(at: $0, images, checksDigest: checksDigest, &found)
    }
    print(
      "power losses: HOLDFAST_SEED=\(found.summary.seed), \(found.summary.stateCount) states, torn \(found.torn), silently wrong \(found.silentlyWrong), stale \(found.stale)"
    )
    return found
  }

  private func look(at state: CrashState, _ images: [UInt64: [UInt8]], checksDigest: Bool, _ found: inout Findings) throws {
    let confirmed = UInt64(state.lastMark ?? 0)
    do {
      let store = try TestStore("/store", DurableFileOptions(fileSystem: state.fileSystem), checksDigest: checksDigest)
      switch store.generation {
      case _ where images[store.generation] != state.fileSystem.contents(of: "store") ?? []: found.silentlyWrong += 1
      case ..<confirmed: found.stale += 1
      case (confirmed + 2)...: found.tooNew += 1
      default: return try expectUsable(store, state)
      }
    } catch is TestImage.Wrong {
      found.torn += 1
    }
    if found.example.isEmpty { found.example = state.description }
  }

  /// The store can be saved again, which removes the temporary file of the lost save.
  private func expectUsable(_ store: TestStore, _ state: CrashState) throws {
    let generation = store.generation
    try store.save()
    let names = state.fileSystem.names
    guard store.generation == generation + 1, names == [".store.lock", "store"] else { return #expect(names == [], "\(state)") }
  }

  @Test(arguments: DurableFileOptions.Durability.allCases, [true, false])
  func RB1_noPowerLossLeavesATornFile(durability: DurableFileOptions.Durability, base: Bool) throws {
    let found = try findings(saves: [40, 7], base: base, durability: durability)
    #expect(found.acceptsOnlyWhole, "\(found.example)")
    #expect(found.summary.isExhaustive && found.summary.stateCount > 50)
  }

  @Test(arguments: [true, false]) func RB1_noPowerLossDuringManyWritesLeavesATornFile(base: Bool) throws {
    let found = try findings(saves: [600, 3, 300], base: base, shortens: true)
    #expect(found.acceptsOnlyWhole && found.stale == 0, "\(found.example)")
    #expect(!found.summary.isExhaustive && found.summary.stateCount == Self.sampleSize)
  }

  @Test(arguments: [true, false]) func RB2_aSaveThatHasReturnedSurvivesEveryPowerLoss(base: Bool) throws {
    let found = try findings(saves: [40, 7, 100], base: base)
    #expect(found.acceptsOnlyWhole && found.stale == 0, "\(found.example)")
  }

  @Test func RB2_withFastDurabilityThePreviousVersionMayComeBack() throws {
    let found = try findings(saves: [40, 7], durability: .normal)
    #expect(found.acceptsOnlyWhole && found.stale > 0)
  }

  @Test(arguments: AlteredFileSystem.Mistake.allCases) func RB3_everyWrongRecipeIsCaught(mistake: AlteredFileSystem.Mistake) throws {
    let found = try findings(saves: [40, 7], mistake: mistake)
    switch mistake {
    case .noFolderSynchronization: #expect(found.stale > 0 && found.torn == 0)
    case .noSynchronization, .synchronizationAfterRenaming, .writingInPlace: #expect(found.torn > 0)
    }
    #expect(found.silentlyWrong == 0, "The digest detects every torn file.")
  }

  @Test func RB3_aFormatWithoutADigestIsCaught() throws {
    #expect(try findings(saves: [40, 7], mistake: .noSynchronization, checksDigest: false).silentlyWrong > 0)
  }

  /// Whether bytes of a file can be lost after a synchronization of it failed and another one succeeded.
  private func losesBytes(of path: String, _ file: StoreFileHandle, _ disk: SimulatedFileSystem) throws -> Bool {
    try disk.writeAll([UInt8](repeating: 7, count: 8), to: file, at: 0)
    disk.inject(FileFault(.synchronize, .error(5)))
    #expect(throws: FileSystemError.self) { try disk.synchronize(file) }
    try disk.synchronize(file)
    disk.mark(1)
    var isLost = false
    disk.forEachCrashState { if $0.lastMark == 1, $0.fileSystem.contents(of: path) == [] { isLost = true } }
    return isLost
  }

  @Test func aFailedSynchronizationIsNotTrustedLater() throws {
    let disk = SimulatedFileSystem()
    disk.startRecording()
    let folder = try disk.openDirectory("/")
    let file = try disk.create("a", in: folder)
    try disk.synchronize(folder)
    #expect(try losesBytes(of: "a", file, disk))
  }

  @Test func aFailedSynchronizationOfARenamedFileIsNotTrustedLater() throws {
    let disk = SimulatedFileSystem()
    disk.startRecording()
    let folder = try disk.openDirectory("/")
    let file = try disk.create("a", in: folder)
    try disk.rename("a", to: "b", in: folder)
    try disk.synchronize(folder)
    #expect(try losesBytes(of: "b", file, disk))
  }

  @Test(arguments: ["x", "y"]) func aFailedSynchronizationConcernsNoFileOfTheSameNameInAnotherFolder(name: String) throws {
    let disk = SimulatedFileSystem()
    let root = try disk.openDirectory("/")
    var files: [String: StoreFileHandle] = [:]
    for name in ["x", "y"] {
      try disk.makeDirectory(name, in: root)
      files[name] = try disk.create("a", in: disk.openDirectory(name, in: root))
    }
    let file = try #require(files[name])
    disk.startRecording()
    #expect(try losesBytes(of: name + "/a", file, disk))
  }

  @Test func oneWriteHasTheDocumentedCrashStates() throws {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "a", [1, 1])
    disk.startRecording()
    let folder = try disk.openDirectory("/")
    let file = try disk.openLockFile("a", in: folder)
    try disk.writeAll([2, 3, 4, 5], to: file, at: 0)
    var found: Set<[UInt8]> = []
    let summary = disk.forEachCrashState(seed: 3) { found.insert($0.fileSystem.contents(of: "a") ?? []) }
    #expect(summary == CrashSummary(stateCount: 7, isExhaustive: true, seed: 3))
    let garbage = found.subtracting([[1, 1], [2, 3, 4, 5], [2, 3], [2, 3, 0, 0], [1, 1, 0, 0]])
    #expect(found.count == 6 && garbage.count == 1 && garbage.first?.prefix(2) == [2, 3])

    try disk.synchronize(file)
    disk.mark(1)
    var last: Set<[UInt8]> = []
    disk.forEachCrashState { if $0.lastMark == 1 { last.insert($0.fileSystem.contents(of: "a") ?? []) } }
    #expect(last == [[2, 3, 4, 5]])
  }

  @Test func aFileThatAnotherProgramReplacesOrRemovesWhileRecordingIsDurable() throws {
    let disk = SimulatedFileSystem()
    for name in ["a", "b"] { disk.setContents(of: name, [1]) }
    disk.startRecording()
    let folder = try disk.openDirectory("/")
    try disk.rename("b", to: "a", in: folder)
    disk.setContents(of: "a", [2, 3])
    disk.setContents(of: "b", nil)
    disk.mark(1)
    var before: Set<[UInt8]> = []
    disk.forEachCrashState { state in
      if state.lastMark == 1 {
        #expect(state.fileSystem.names == ["a"] && state.fileSystem.contents(of: "a") == [2, 3], "\(state)")
      } else {
        before.insert(state.fileSystem.contents(of: "a") ?? [])
      }
    }
    #expect(before == [[1], [2, 3]], "The file is never in a state between the old and the new one.")
  }

  @Test func aFileCreatedAfterAPowerLossIsADifferentFile() throws {
    let disk = SimulatedFileSystem()
    disk.startRecording()
    let folder = try disk.openDirectory("/")
    _ = try disk.create("a", in: folder)
    _ = try disk.create("b", in: folder)
    try disk.rename("b", to: "c", in: folder)
    try disk.forEachCrashState { state in
      let folder = try state.fileSystem.openDirectory("/")
      let file = try state.fileSystem.create("new", in: folder)
      try state.fileSystem.writeAll([1], to: file, at: 0)
      for name in state.fileSystem.names where name != "new" { #expect(state.fileSystem.contents(of: name) == [], "\(state)") }
    }
  }
}
