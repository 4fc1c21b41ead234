import Foundation
import Holdfast
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Whole-file stores on real disks with little space or few inodes.
@Suite(.serialized, .ownThreads) struct SmallDiskTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  #if os(Linux)
    @Test(arguments: FileStore.wholeFile)
    func RC5_onADiskOfAnySizeASaveIsCompleteOrRefusedAndSucceedsOnceThereIsSpace(store: FileStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        var report = SmallDisk.Report()
        // Up to twice the size of the old and the new file together, which are on the disk at the same time.
        let size = try SmallDisk.size(store)
        for kilobytes in stride(from: 4, through: 4 * size / 1024 + 8, by: 4) {
          try SmallDisk(store: store, folder: folder, options: "size=\(kilobytes)k").run(&report)
        }
        demand(report.refused >= 2 && report.whole >= 2, "\(report)")
        print("REPORT RC5, \(store): sizes of a disk: \(report)")
      }
      report(child)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty, "The disk was visible outside the process.")
    }

    @Test(arguments: FileStore.wholeFile)
    func RC5_onADiskOfFewInodesASaveIsCompleteOrRefusedAndSucceedsOnceThereAreMore(store: FileStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        var report = SmallDisk.Report()
        for files in 1...8 { try SmallDisk(store: store, folder: folder, options: "size=1m,nr_inodes=\(files)").run(&report) }
        demand(report.refused >= 1 && report.whole >= 1, "\(report)")
        print("REPORT RC5, \(store): numbers of files on a disk: \(report)")
      }
      report(child)
    }
  #endif
}

#if os(Linux)
  /// Runs in a separate process.
  private struct SmallDisk {
    struct Report: CustomStringConvertible {
      var refused = 0
      var whole = 0
      var description: String { "\(refused) too small, \(whole) enough" }
    }

    private static let saves = 14

    let store: FileStore
    let folder: String
    let options: String
    private var path: String { folder + "/harbour" }

    /// The size of a file after all saves.
    static func size(_ store: FileStore) throws -> Int {
      try SimulatedHarbour.contents(store, saves: saves).count
    }

    /// Saves until a save doesn't fit, gives the disk more space, and saves again.
    func run(_ report: inout Report) throws {
      System.mountDisk(at: folder, options)
      defer { System.unmountDisk(at: folder) }
      var saved = 0
      var context: ManagedObjectContext?
      do {
        let opened = try Harbour.context(store.description(at: path))
        context = opened
        while saved < Self.saves { saved = try Voyage.saveNext(opened) }
        report.whole += 1
      } catch let error as StoreError {
        report.refused += 1
        demand(error.code == .diskFull && error.isRetryable && error.path == path, "\(options), save \(saved + 1): \(error)")
        demand(context?.hasChanges != false, "\(options): the changes are missing.")
        demand(try store.fault(at: path) == nil, "\(options): a file is left behind.")
        try look(saved, while: context)
      }
      System.mountDisk(at: folder, "size=4m,nr_inodes=100", again: true)
      let again = try context ?? Harbour.context(store.description(at: path))
      if again.hasChanges {
        try again.save()
        saved += 1
      }
      demand(try Voyage.check(again) == (saved, nil), "\(options): the store doesn't have \(saved) saves.")
      try Voyage.saveNext(again)
      try again.persistentStoreCoordinator.close()
    }

    /// Checks a copy of the file on the full disk.
    private func look(_ saved: Int, while context: ManagedObjectContext?) throws {
      guard TemporaryFolder.exists(path) else { return demand(context == nil, "\(options): the file is missing.") }
      let found = try SimulatedHarbour.found(store, TemporaryFolder.read(path))
      demand(found == (saved, nil), "\(options): \(found) after \(saved) saves")
    }
  }
#endif
