import Foundation
import Holdfast
import HoldfastFiles
import HoldfastSQLiteStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Power losses during saves to SQLite. SQLite's writes are replayed on a simulated disk, and each state after a power loss is opened.
@Suite(.ownThreads) struct SQLitePowerLossTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  /// 10,000 states with `HOLDFAST_TESTS=full`.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], SQLiteStoreOptions.Durability.allCases)
  func RB4_everyStateAfterAPowerLossOpensAndHasEntireSaves(
    journal: SQLiteStoreOptions.JournalMode, durability: SQLiteStoreOptions.Durability
  ) async {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [
        folder = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode,
        durability = durability as SQLiteStoreOptions.Durability
      ] in
      var losses = SQLitePowerLosses(folder: folder, journal: journal, durability: durability)
      try losses.run()
      demand(losses.wrong == nil, losses.wrong ?? "")
      // With reduced durability a save may be lost, and some must be, or the power losses aren't realistic.
      let mayLose = durability == .normal && journal == .wal
      demand(mayLose ? losses.lost > 0 : losses.lost == 0, "\(losses.lost) of \(losses.states) states lack a save that had returned")
      print("REPORT RB4, \(journal), \(durability): \(losses.states) states, \(losses.lost) lack a save that had returned")
    }
    report(child)
  }

  /// The test above must detect a disk that ignores synchronization.
  @Test func RB4_aDiskThatSynchronizesNothingIsDetected() async {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [folder = folder.path as String] in
      var losses = SQLitePowerLosses(folder: folder, journal: .delete, durability: .full)
      losses.synchronizes = false
      try losses.run()
      demand(losses.lost > 0 || losses.wrong != nil, "Every state is whole, and none lacks a save.")
      print("REPORT RB4, nothing synchronized: \(losses.lost) of \(losses.states) states lack a save; \(losses.wrong?.prefix(100) ?? "")")
    }
    report(child)
  }

  /// Another program keeps the log, so closing the file doesn't move the log into the database.
  @Test func theMetadataOfAClosedStoreAreDurableWhileAnotherProgramHasTheFileOpen() async {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) { [folder = folder.path as String] in
      WatchedFileSystem.install()
      let path = folder + "/harbour", description = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(durability: .normal))
      try Harbour.makeFile(description, saves: 2)
      let other = try BareDatabase(path)
      _ = try other.rows("SELECT COUNT(*) FROM Z_METADATA")
      WatchedFileSystem.startRecording()
      try PersistentStoreCoordinator.setMetadata(["port": "Bergen"], for: description)
      let events = WatchedFileSystem.stopRecording()
      let written = events.lastIndex { if case .write(let file, _, _) = $0 { file.name == "harbour-wal" } else { false } }
      let synchronized = events.lastIndex { if case .synchronize(let file) = $0 { file.name == "harbour-wal" } else { false } }
      demand(written != nil, "Nothing was written to the log.")
      demand((synchronized ?? -1) > (written ?? .max), "The log wasn't synchronized after it was written.")
      other.close()
      print("REPORT The metadata of a closed store are durable.")
    }
    report(child)
  }
}

/// Runs in a separate process.
struct SQLitePowerLosses {
  let folder: String
  let journal: SQLiteStoreOptions.JournalMode
  let durability: SQLiteStoreOptions.Durability
  /// Whether the disk synchronizes on request.
  var synchronizes = true
  private(set) var states = 0
  /// The number of states that lack a save that had returned.
  private(set) var lost = 0
  /// The first state that doesn't consist of entire saves.
  private(set) var wrong: String?

  private var path: String { folder + "/harbour" }
  private var options: SQLiteStoreOptions { SQLiteStoreOptions(durability: durability, journalMode: journal, checkpointPages: 20) }

  init(folder: String, journal: SQLiteStoreOptions.JournalMode, durability: SQLiteStoreOptions.Durability) {
    (self.folder, self.journal, self.durability) = (folder, journal, durability)
  }

  mutating func run() throws {
    WatchedFileSystem.install()
    let random = SeededGenerator("RB4, \(journal), \(durability)")
    let workloads = TestTier.count(2, full: 10)
    for workload in 0..<workloads {
      let before = 12 + workload * 3
      try clear(folder)
      try Harbour.makeFile(.sqlite(at: path, options: options), saves: before)
      let base = try TemporaryFolder.read(path)
      let events = try recorded()
      let disk = try Self.replayed(events, on: base, synchronizes: synchronizes)
      let summary = try disk.forEachCrashState(
        seed: random.seed &+ UInt64(workload), sampleSize: TestTier.count(75, full: 1000)
      ) { try look(at: $0, before) }
      states += summary.stateCount
    }
  }

  /// The events of opening, three saves and closing.
  private func recorded() throws -> [WatchedFileSystem.Event] {
    WatchedFileSystem.startRecording()
    let context = try Harbour.context(.sqlite(at: path, options: options))
    for _ in 0..<3 { WatchedFileSystem.mark(try Voyage.saveNext(context)) }
    try context.persistentStoreCoordinator.close()
    return WatchedFileSystem.stopRecording()
  }

  /// A simulated disk with a file `harbour` on which events were recorded.
  static func replayed(
    _ events: [WatchedFileSystem.Event], on base: [UInt8], synchronizes: Bool = true
  ) throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "harbour", base)
    disk.startRecording()
    let place = try disk.openDirectory("/")
    var files = ["harbour": try disk.openLockFile("harbour", in: place)]
    /// SQLite's file system synchronizes the folder the first time it synchronizes a journal or log that it created.
    var made: Set<String> = []
    for event in events {
      switch event {
      case .create(let name):
        files[name] = try disk.create(name, in: place)
        made.insert(name)
      case .write(let file, let offset, let bytes):
        if let file = files[file.name] { try disk.writeAll(bytes, to: file, at: Int64(offset)) }
      case .truncate(let file, let size): if let file = files[file.name] { try disk.setSize(Int64(size), of: file) }
      case .synchronize(let opened):
        guard synchronizes, let file = files[opened.name] else { continue }
        try disk.synchronize(file)
        if made.remove(opened.name) != nil { try disk.synchronize(place) }
      case .delete(let name, let isSynchronized):
        if let file = files.removeValue(forKey: name) { try disk.close(file) }
        try disk.unlink(name, in: place)
        if isSynchronized && synchronizes { try disk.synchronize(place) }
      case .mark(let number): disk.mark(number)
      case .failToSynchronize: complain("A synchronization failed.")
      }
    }
    return disk
  }

  private mutating func look(at state: CrashState, _ before: Int) throws {
    let place = folder + "/lost"
    try clear(place)
    for name in state.fileSystem.names { try TemporaryFolder.write(state.fileSystem.contents(of: name) ?? [], to: place + "/" + name) }
    let confirmed = state.lastMark ?? before
    do {
      let context = try Harbour.context(.sqlite(at: place + "/harbour", options: options))
      let found = try Voyage.check(context)
      if found.saves < confirmed { lost += 1 }
      if found.fault != nil || found.saves > confirmed + 1 { note("\(found) after \(confirmed) saves", state) }
      if found.fault == nil { try Voyage.saveNext(context) }
      try context.persistentStoreCoordinator.close()
      let integrity = try BareDatabase(place + "/harbour").rows("PRAGMA integrity_check")
      if integrity != ["ok"] { note("\(integrity)", state) }
    } catch {
      note("\(error)", state)
    }
  }

  private mutating func note(_ fault: String, _ state: CrashState) { wrong = wrong ?? "\(fault); \(state)" }

  private func clear(_ folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) { unlink(folder + "/" + name) }
  }
}
