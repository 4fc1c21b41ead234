import CHoldfastSQLite
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

/// Each call of SQLite to its file system fails in turn, each time with a new file.
@Suite(.ownThreads) struct SQLiteFaultTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], SQLiteFaults.Work.allCases)
  func RC2_everyFailingCallIsATypedErrorAndLosesNothing(journal: SQLiteStoreOptions.JournalMode, work: SQLiteFaults.Work) async {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode, work = work as SQLiteFaults.Work] in
      try SQLiteFaults(folder: folder, journal: journal, work: work).run()
    }
    report(child)
  }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], [true, false])
  func convertingAFileLeavesNoOtherFile(to journal: SQLiteStoreOptions.JournalMode, readsFirst: Bool) throws {
    let other: SQLiteStoreOptions.JournalMode = journal == .wal ? .delete : .wal
    try Harbour.makeFile(folder.file(), options: SQLiteStoreOptions(journalMode: other))
    let context = try Harbour.context(.sqlite(at: folder.file(), options: SQLiteStoreOptions(journalMode: journal)))
    if readsFirst { #expect(try Voyage.check(context) == (12, nil)) }
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.sqlite"])
  }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], SQLiteStoreOptions.Durability.allCases)
  func RC6_dataThatFailedToSynchronizeIsWrittenAgainBeforeTheNextSynchronization(
    journal: SQLiteStoreOptions.JournalMode, durability: SQLiteStoreOptions.Durability
  ) async {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [
        folder = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode,
        durability = durability as SQLiteStoreOptions.Durability
      ] in
      var faults = SQLiteFaults(folder: folder, journal: journal, work: .saving)
      faults.durability = durability
      for compacts in [false, true] {
        faults.compacts = compacts
        try faults.runSynchronization()
      }
    }
    report(child)
  }
}

/// Runs in a separate process.
struct SQLiteFaults {
  /// The work during which calls fail.
  enum Work: String, CaseIterable, Codable, Sendable {
    case making, opening, reading, saving, closing, settingMetadata, deletingHistory
  }

  let folder: String
  let journal: SQLiteStoreOptions.JournalMode
  let work: Work
  var durability = SQLiteStoreOptions.Durability.full
  /// Whether the store is compacted after a save.
  var compacts = false
  private var path: String { folder + "/harbour" }
  private var store: StoreDescription {
    // A short log, so that the work includes a checkpoint.
    var options = SQLiteStoreOptions(
      durability: durability, journalMode: journal, busyTimeout: .seconds(0.02), readerTimeout: .seconds(0.1), checkpointPages: 20)
    if work == .deletingHistory { options.historyTracking = .always }
    return .sqlite(at: path, options: options)
  }

  /// The ways in which calls fail.
  private static let failures: [(call: WatchedFileSystem.Call, code: Int32, number: Int32)] = [
    (.open, SQLITE_CANTOPEN, EMFILE), (.delete, FailedCall.delete, EIO), (.delete, FailedCall.synchronizeFolder, EIO),
    (.delete, FailedCall.synchronizeFolder, EINVAL), (.write, FailedCall.write, EDQUOT), (.access, FailedCall.access, EIO),
    (.read, FailedCall.read, EIO), (.write, FailedCall.write, EIO), (.write, SQLITE_FULL, ENOSPC),
    (.truncate, FailedCall.truncate, EIO), (.synchronize, FailedCall.synchronize, EIO), (.synchronize, FailedCall.synchronize, ENOSPC),
    (.size, FailedCall.size, EIO), (.lock, SQLITE_BUSY, 0), (.lock, FailedCall.lock, EIO), (.unlock, FailedCall.unlock, EIO),
    (.mapIndex, FailedCall.mapIndex, EIO), (.lockIndex, SQLITE_BUSY, 0), (.lockIndex, FailedCall.lockIndex, EIO),
  ]

  /// How much a call that reports a failure may have done.
  private static func parts(_ call: WatchedFileSystem.Call, _ code: Int32) -> [WatchedFileSystem.Fault.Part] {
    switch (call, code) {
    case (.write, SQLITE_FULL): [.half]
    // The file is deleted by then.
    case (.delete, FailedCall.synchronizeFolder): [.whole]
    case (.write, _): [.none, .half, .whole]
    case (.synchronize, _), (.delete, _), (.truncate, _): [.none, .whole]
    // A lock that can't be released is released when the file is closed, so SQLite continues.
    case (.unlock, _): [.whole]
    default: [.none]
    }
  }

  /// A call fails in one of this many ways. Few calls fail in every way, the first twelve of many in every third one, and later ones in a
  /// sample.
  ///
  /// - Parameter share: How much fewer ways there are for work that makes many calls.
  private static func step(_ nth: Int, of count: Int, share: Int) -> Int {
    if TestTier.isFull { return 1 }
    return share * (count <= 4 ? 1 : nth <= 12 ? 3 : count / 4 + 1)
  }

  func run() throws {
    WatchedFileSystem.install()
    let (base, counts) = try measured()
    var random = SeededGenerator("RC2, \(journal), \(work)")
    let all = counts.values.reduce(0, +), share = all > 30 && work != .reading ? 2 : 1
    var cases = 0, way = Int.random(in: 0..<60, using: &random)
    for (call, code, number) in Self.failures {
      guard let count = counts[call] else { continue }
      for part in Self.parts(call, code) {
        // SQLite waits up to ten seconds for a lock on the log's index, so a persistent failure would take too long.
        for isPersistent in call == .lockIndex && code == SQLITE_BUSY ? [false] : [false, true] {
          way += 1
          for nth in 1...count where (nth + way) % Self.step(nth, of: count, share: share) == 0 {
            let fault = WatchedFileSystem.Fault(
              call: call, nth: nth, code: code, number: number, part: part, isPersistent: isPersistent)
            try check(fault, base)
            cases += 1
          }
        }
      }
    }
    demand(cases >= 15, "Only \(cases) cases")
    print("REPORT RC2, \(journal), \(work): \(cases) cases of \(all) calls")
  }

  /// A file with twelve saves, and how often the work makes each call.
  private func measured() throws -> (base: [UInt8], counts: [WatchedFileSystem.Call: Int]) {
    try Harbour.makeFile(store)
    let base = try TemporaryFolder.read(path)
    let context = try prepared(base)
    WatchedFileSystem.set(nil)
    let opened = try perform(context)
    let counts = WatchedFileSystem.counts
    try opened?.persistentStoreCoordinator.close()
    return (base, counts)
  }

  /// Prepares the files and the context for the work.
  private func prepared(_ base: [UInt8]) throws -> ManagedObjectContext? {
    try clear()
    if work != .making { try TemporaryFolder.write(base, to: path) }
    if work == .making || work == .opening { return nil }
    let context = try Harbour.context(store)
    switch work {
    case .saving: _ = try Voyage.changeNext(context)
    case .closing: try Voyage.saveNext(context)
    default: break
    }
    return context
  }

  private func clear() throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) { unlink(folder + "/" + name) }
  }

  /// Does the work, and returns the open context.
  private func perform(_ context: ManagedObjectContext?) throws -> ManagedObjectContext? {
    guard let context else { return try Harbour.context(store) }
    switch work {
    case .reading:
      let found = try Voyage.check(context)
      if let error = context.faultError { throw error }
      demand(found == (12, nil), "A wrong answer: \(found)")
    case .saving:
      try context.save()
      if compacts { try context.persistentStoreCoordinator.persistentStores[0].compact() }
    case .settingMetadata: try context.persistentStoreCoordinator.setMetadata(["owner": .string("Ada")])
    case .deletingHistory: try context.persistentStoreCoordinator.deleteHistory(upTo: nil)
    default: try context.persistentStoreCoordinator.close()
    }
    return context
  }

  private func check(_ fault: WatchedFileSystem.Fault, _ base: [UInt8]) throws {
    let context = try prepared(base)
    WatchedFileSystem.set(fault)
    var error: StoreError?
    var opened = context
    do { opened = try perform(context) } catch let refusal as StoreError { error = refusal } catch {
      complain("\(fault): no store error, but \(error)")
    }
    let hits = WatchedFileSystem.hits
    WatchedFileSystem.set(nil)
    if let error {
      demand(hits > 0, "\(fault) didn't occur, but the work failed: \(error)")
      demand(error.code != .general && error.path == path && error.cause != nil && error.reason.count > 20, "\(fault): \(error)")
    }
    let saves = try expectedSaves(error, opened, fault)
    if work == .saving { try lookAtCrash(saves, fault) }
    if work == .settingMetadata { try lookAtMetadata(error, opened, fault) }
    if work == .deletingHistory { try lookAtHistory(error, opened, fault) }
    do { try expectUsable(opened, saves, error, fault) } catch { complain("\(fault): the store is unusable: \(error)") }
  }

  /// The numbers of saves that the store may have now.
  private func expectedSaves(_ error: StoreError?, _ context: ManagedObjectContext?, _ fault: WatchedFileSystem.Fault) throws -> [Int] {
    switch work {
    case .making: return [0]
    case .opening, .reading, .settingMetadata, .deletingHistory: return [12]
    case .closing: return [13]
    case .saving: break
    }
    guard let error, let context else { return [13] }
    let isSaved = error.code == .durabilityUnknown
    demand(fault.call != .write || error.code != .outcomeUnknown, "\(fault): \(error)")
    // Keys are reserved in a commit of their own, without which nothing is saved.
    let isOfSave = !error.operation.hasPrefix("reserve")
    demand(fault.code != FailedCall.synchronizeFolder || isSaved == isOfSave && fault.number == EIO, "\(fault): \(error)")
    demand(context.hasChanges != isSaved, "\(fault): \(error), and the context has \(context.hasChanges ? "" : "no ")changes")
    return isSaved ? [13] : error.code == .outcomeUnknown ? [12, 13] : [12]
  }

  /// Checks the state that another process finds if this one ends now.
  private func lookAtCrash(_ saves: [Int], _ fault: WatchedFileSystem.Fault) throws {
    let found = try afterCrash { try Voyage.check($0) }
    demand(saves.contains(found.saves) && found.fault == nil, "\(fault): after a crash there are \(found), not \(saves)")
  }

  /// What a closure finds in a copy of the files, as another process does if this one ends now.
  private func afterCrash<Found>(_ body: (ManagedObjectContext) throws -> Found) throws -> Found {
    let copy = folder + "/crashed"
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: copy) }
    for name in ["harbour", "harbour-wal", "harbour-journal"] where TemporaryFolder.exists(folder + "/" + name) {
      try TemporaryFolder.write(TemporaryFolder.read(folder + "/" + name), to: copy + "/" + name)
    }
    let context = try Harbour.context(.sqlite(at: copy + "/harbour"))
    let found = try body(context)
    try context.persistentStoreCoordinator.close()
    return found
  }

  /// Checks that a failed deletion of the history has deleted nothing, also if this process ends now.
  private func lookAtHistory(_ error: StoreError?, _ context: ManagedObjectContext?, _ fault: WatchedFileSystem.Fault) throws {
    let isDeleted = error == nil || error?.code == .durabilityUnknown
    let expected = error?.code == .outcomeUnknown ? [0, 12] : [isDeleted ? 0 : 12]
    demand(fault.call != .write || error?.code != .outcomeUnknown, "\(fault): \(String(describing: error))")
    let crashed = try afterCrash { try $0.persistentStoreCoordinator.fetchHistory().transactions.count }
    demand(expected.contains(crashed), "\(fault): after a crash there are \(crashed) transactions, not \(expected)")
    guard let found = try context?.persistentStoreCoordinator.fetchHistory().transactions.count else { return }
    demand(expected.contains(found), "\(fault): there are \(found) transactions, not \(expected)")
  }

  private func lookAtMetadata(_ error: StoreError?, _ context: ManagedObjectContext?, _ fault: WatchedFileSystem.Fault) throws {
    let metadata = context?.persistentStoreCoordinator.metadata
    let expected: [String: StoreValue] = error == nil || error?.code == .durabilityUnknown ? ["owner": .string("Ada")] : [:]
    demand(metadata == expected, "\(fault): \(String(describing: metadata))")
  }

  /// Without the fault, the same work succeeds, and so do later saves.
  private func expectUsable(_ opened: ManagedObjectContext?, _ saves: [Int], _ error: StoreError?, _ fault: WatchedFileSystem.Fault) throws
  {
    var saved = saves[0]
    if let opened, work != .closing {
      if error?.code == .outcomeUnknown {
        opened.rollback()
        try opened.refreshAllObjects()
      } else if work == .saving {
        try opened.save()
        saved = 13
      } else {
        opened.reset()
      }
      let found = try Voyage.check(opened)
      demand(
        (saves.count > 1 ? saves.contains(found.saves) : found.saves == saved) && found.fault == nil, "\(fault): \(found), not \(saved)")
      let next = try Voyage.saveNext(opened)
      demand(next == found.saves + 1, "\(fault): \(next)")
      saved = next
      try opened.persistentStoreCoordinator.close()
    }
    let again = try Harbour.context(store)
    let found = try Voyage.check(again)
    demand(found == (saved, nil), "\(fault): reopened there are \(found), not \(saved)")
    try Voyage.saveNext(again)
    try again.persistentStoreCoordinator.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    demand(names == ["harbour"], "\(fault): \(names), \(error.map { "\($0)" } ?? "no error")")
    let integrity = try BareDatabase(path).rows("PRAGMA integrity_check")
    demand(integrity == ["ok"], "\(fault): \(integrity)")
  }

  // MARK: Synchronization

  /// After a failure, the system may have dropped data that it couldn't write, and report success the next time.
  func runSynchronization() throws {
    WatchedFileSystem.install()
    let (base, counts) = try measured()
    let count = counts[.synchronize] ?? 0
    demand(count > 0, "A save synchronizes nothing.")
    for nth in 1...count {
      let context = try prepared(base)
      WatchedFileSystem.set(.init(call: .synchronize, nth: nth, code: FailedCall.synchronize, number: EIO))
      WatchedFileSystem.startRecording()
      let error: StoreError?
      do {
        _ = try perform(context)
        error = nil
      } catch let refusal as StoreError { error = refusal }
      WatchedFileSystem.set(nil)
      if error != nil { try context?.save() }
      // With reduced durability, only moving the log synchronizes it.
      if let context { try Voyage.saveNext(context) }
      let events = WatchedFileSystem.stopRecording(), trusted = events.filesTrustedAfterFailing
      demand(trusted.isEmpty, "Synchronization \(nth) failed, and a later one of the same open file was trusted: \(trusted)")
      // The bug: keys that were reserved before the failed save, or earlier saves with reduced durability, weren't written again.
      let logs = events.logsTrustedAfterFailing
      demand(logs.isEmpty, "Synchronization \(nth) failed, and a later one was trusted with what the log has before the save: \(logs)")
      try context?.persistentStoreCoordinator.close()
    }
    print("REPORT RC6, \(journal), \(durability)\(compacts ? ", compacting" : ""): \(count) synchronizations")
  }
}
