import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores that keep previous versions of their file, through the whole stack.
@Suite(.serialized, .ownThreads) struct BackupTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("harbour") }

  init() throws { folder = TemporaryFolder() }

  // MARK: Several processes

  @Test(arguments: FileStore.wholeFile)
  func RD1_twoProcessesThatKeepBackupsLeaveTheLastVersionsInTheirOrder(store: FileStore) async throws {
    try Counting.begin(store, path)
    try await runTwoProcesses(store, saves: 60, failing: 0, seed: 0)
    #expect(try versions(store, path) == [120, 119, 118, 117])
  }

  @Test(arguments: FileStore.wholeFile)
  func RC1_twoProcessesThatKeepBackupsLoseNothingWhenCallsFail(store: FileStore) async throws {
    let random = SeededGenerator("RC1, two processes with backups, \(store)")
    try Counting.begin(store, path)
    let reports = try await runTwoProcesses(store, saves: 40, failing: 60, seed: random.seed)
    #expect(reports.allSatisfy { $0.faults > 0 }, "\(reports)")
    // A version may be missing, but none is duplicated or torn.
    let found = try versions(store, path)
    #expect(found.first == 80 && zip(found, found.dropFirst()).allSatisfy(>), "\(found)")
    // Without faults, the ring fills again, and failed saves left no file.
    let context = try Harbour.context(Ring.description(store, path, POSIXFileSystem()))
    for _ in 0..<4 {
      for berth in try Counting.berths(context).prefix(2) { berth.count += 1 }
      try context.save()
    }
    try context.persistentStoreCoordinator.close()
    #expect(try versions(store, path) == [84, 83, 82, 81])
    #expect(try store.fault(at: path) == nil)
  }

  @discardableResult
  private func runTwoProcesses(_ store: FileStore, saves: Int, failing: Int, seed: UInt64) async throws -> [Ring.Report] {
    await withTaskGroup(of: Void.self) { group in
      for process in 0..<2 {
        group.addTask { [folder = folder.path] in
          await #expect(processExitsWith: .success) {
            [
              folder = folder as String, store = store as FileStore, process = process as Int, saves = saves as Int,
              failing = failing as Int, seed = seed &+ UInt64(process) as UInt64
            ] in
            let report = try Ring.run(store, folder, process: process, saves: saves, failing: failing, seed: seed)
            try TemporaryFolder.write(Array(try JSONEncoder().encode(report)), to: folder + "/report\(process)")
          }
        }
      }
    }
    let reports = try (0..<2).map {
      try JSONDecoder().decode(Ring.Report.self, from: Data(try TemporaryFolder.read(folder.file("report\($0)"))))
    }
    #expect(reports.map(\.conflicts).reduce(0, +) > 0, "The processes never had a conflict.")
    return reports
  }

  /// The counter in each version of the file, newest first. Each version must open as a store.
  private func versions(_ store: FileStore, _ path: String) throws -> [Int] {
    try ["", "~1", "~2", "~3", "~4"].filter { TemporaryFolder.exists(path + $0) }.map { name in
      let context = try Harbour.context(store.description(at: path + name, file: DurableFileOptions(isReadOnly: true)))
      defer { try? context.persistentStoreCoordinator.close() }
      let counts = try Counting.berths(context).map(\.count)
      // Every save increments two of three counters, so a partial save is detected.
      #expect(counts[0] == counts[1] && counts[2] == 0, "\(name): \(counts)")
      return counts[0]
    }
  }

  // MARK: RC1

  @Test(arguments: FileStore.wholeFile) func RC1_everyFailingCallOfASaveThatKeepsBackupsLosesNothing(store: FileStore) throws {
    let disk = SimulatedFileSystem()
    try Harbour.makeFile(Ring.description(store, SimulatedHarbour.path, disk, count: 2), saves: 5)
    let files = disk.names.map { ($0, disk.contents(of: $0) ?? []) }
    try #require(disk.names == [".harbour.lock", "harbour", "harbour~1", "harbour~2"])
    var cases: [StoreFileOperation: Int] = [:]
    for operation in StoreFileOperation.allCases where ![.close, .unlock].contains(operation) {
      for nth in 1...40 {
        let copy = SimulatedFileSystem()
        for (name, bytes) in files { copy.setContents(of: name, bytes) }
        guard try check(FileFault(operation, nth: nth, .error(EIO)), store, copy) else { break }
        cases[operation, default: 0] += 1
      }
    }
    print("RC1, \(store), with backups: \(cases.values.reduce(0, +)) cases")
    // Shifting two backups needs two renames, a status of each, and a link.
    #expect(cases[.link] == 1 && cases[.rename] == 2 && (cases[.statusOfName] ?? 0) >= 5, "\(cases)")
  }

  /// - Returns: Whether the call was made.
  private func check(_ fault: FileFault, _ store: FileStore, _ disk: SimulatedFileSystem) throws -> Bool {
    let name = "\(fault.operation) \(fault.nth) fails"
    let context = try Harbour.context(Ring.description(store, SimulatedHarbour.path, disk, count: 2))
    defer { try? context.persistentStoreCoordinator.close() }
    _ = try Voyage.changeNext(context)
    let old = disk.contents(of: SimulatedHarbour.name)
    disk.startRecording()
    disk.inject(fault)
    do {
      try context.save()
      #expect(try saves(disk, SimulatedHarbour.name, store) == 6, "\(name)")
    } catch let error as StoreError {
      let isSaved = error.code == .durabilityUnknown
      #expect((error.cause as? FileSystemError)?.operation == fault.operation && error.code != .damaged, "\(name): \(error)")
      #expect(context.hasChanges != isSaved && (disk.contents(of: SimulatedHarbour.name) == old) != isSaved, "\(name)")
    }
    guard disk.calls.contains(where: { $0.error == EIO && $0.operation == fault.operation }) else { return false }
    disk.clearFaults()
    // One version may be missing. The others are complete, and in order.
    let versions = try ["harbour~1", "harbour~2"].filter(disk.names.contains).map { try saves(disk, $0, store) }
    #expect(!versions.isEmpty && zip(versions, versions.dropFirst()).allSatisfy(>), "\(name): \(versions)")
    try context.save()
    for save in 6...7 {
      if save == 7 { try Voyage.saveNext(context) }
      let all = try ["harbour", "harbour~1", "harbour~2"].map { try saves(disk, $0, store) }
      #expect(all == [save, save - 1, save - 2], "\(name): \(all)")
    }
    #expect(disk.names == [".harbour.lock", "harbour", "harbour~1", "harbour~2"], "\(name): \(disk.names)")
    return true
  }

  /// The number of saves in a version of the file. Records an issue if the version is faulty.
  private func saves(_ disk: SimulatedFileSystem, _ name: String, _ store: FileStore) throws -> Int {
    let found = try SimulatedHarbour.found(store, disk.contents(of: name))
    #expect(found.fault == nil, "\(name)")
    return found.saves
  }
}

/// Counters that processes increment in a store with backups, on a disk with failing calls.
private enum Ring {
  struct Report: Codable {
    var conflicts = 0
    var faults = 0
  }

  static func description(_ store: FileStore, _ path: String, _ fileSystem: any StoreFileSystem, count: Int = 3) -> StoreDescription {
    store.description(at: path, file: DurableFileOptions(lockTimeout: .seconds(3600), backupCount: count, fileSystem: fileSystem))
  }

  /// Saves `saves` times. Repeats saves that had a conflict or failed.
  ///
  /// - Parameter failing: One in this many calls fails; 0 for none.
  static func run(_ store: FileStore, _ folder: String, process: Int, saves: Int, failing: Int, seed: UInt64) throws -> Report {
    let disk = DisturbedFileSystem(POSIXFileSystem(), seed: seed)
    let context = try Harbour.context(description(store, folder + "/harbour", disk))
    var report = Report(), done = 0, hasMet = false
    while done < saves {
      let berths = try Counting.berths(context)
      berths[0].count += 1
      berths[1].count += 1
      // Both processes read the same version, and wait for each other's save. So one has a conflict at once. Calls fail only after that.
      if hasMet { disk.fail(oneOf: failing, [EIO, ENOSPC, EACCES]) } else { try Rendezvous.wait(in: folder, process: process, of: 2) }
      hasMet = true
      do {
        try context.save()
        done += 1
        continue
      } catch let error as PersistenceError where error.code == .conflict {
        report.conflicts += 1
      } catch let error as StoreError where error.code == .durabilityUnknown {
        // The save is in place, but a power loss could undo it.
        report.faults += 1
        done += 1
        continue
      } catch let error as StoreError where error.cause is FileSystemError {
        #expect(context.hasChanges && [.inputOutput, .diskFull, .notPermitted, .locked].contains(error.code), "\(error)")
        report.faults += 1
      }
      context.reset()
    }
    disk.fail(oneOf: 0, [])
    try context.persistentStoreCoordinator.close()
    return report
  }
}
