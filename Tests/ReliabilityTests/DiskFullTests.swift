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

/// Saves without enough space: nothing is lost, and the same save succeeds when there is space.
@Suite(.ownThreads) struct DiskFullTests {
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aSaveBeyondTheMaximumFileSizeFailsAndLeavesTheContextUnchanged(journal: SQLiteStoreOptions.JournalMode) throws {
    let folder = TemporaryFolder()
    let options = SQLiteStoreOptions(journalMode: journal, maximumFileBytes: 400_000)
    try Harbour.makeFile(folder.file(), options: options)
    let context = try Harbour.context(.sqlite(at: folder.file(), options: options))
    let (large, other) = try FullDisk.changeTooMuch(context)
    let error = FullDisk.refusal(of: context)
    #expect(error?.code == .diskFull && error?.isRetryable == true && error?.path == folder.file(), "\(String(describing: error))")
    #expect(error?.coreDataCode == 134_030)
    try FullDisk.expectUnsaved(context, large, other)

    // With a smaller value, the same objects can be saved.
    large.plan = Data(repeating: 7, count: 1000)
    try context.save()
    try context.persistentStoreCoordinator.close()
    try FullDisk.expectSaved(folder.file(), planBytes: 1000)
  }

  /// On a mounted disk of one megabyte, which needs root.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func RC5_aFullDiskLosesNothingAndTheSameSaveSucceedsOnceThereIsSpace(journal: SQLiteStoreOptions.JournalMode) async throws {
    #if os(Linux)
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let folder = TemporaryFolder()
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [path = folder.path as String, journal = journal as SQLiteStoreOptions.JournalMode] in
        guard FullDisk.mountSmallDisk(path) else { return print("Skipped: this root may not mount a small disk.") }
        try FullDisk.fillAndFree(path, SQLiteStoreOptions(journalMode: journal))
      }
      for line in String(decoding: child?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n") where line.contains("Skipped")
      { print(line) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty, "The disk was visible outside the process.")
    #endif
  }

  /// With any amount of space, a save succeeds or changes nothing.
  @Test func RC5_withAnyAmountOfSpaceASaveIsCompleteOrAbsent() async throws {
    #if os(Linux)
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let folder = TemporaryFolder()
      await #expect(processExitsWith: .success) { [path = folder.path as String] in
        guard FullDisk.mountSmallDisk(path) else { return print("Skipped: this root may not mount a small disk.") }
        for kilobytes in stride(from: 0, through: 400, by: 20) { try FullDisk.saveUntilFull(path, freeBytes: kilobytes * 1024) }
      }
    #endif
  }
}

enum FullDisk {
  /// Changes, inserts, links and deletes objects, with more bytes than the disk has.
  static func changeTooMuch(_ context: ManagedObjectContext, bytes: Int = 2_000_000) throws -> (Ship, Ship) {
    let ships = try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)]))
    let large = context.insert(Ship.self)
    large.name = "Large"
    large.plan = Data(repeating: 7, count: bytes)
    large.berth = ships[0].berth
    large.routes.formUnion(ships[0].routes)
    ships[1].name = "Renamed"
    context.delete(ships[2])
    return (large, ships[1])
  }

  static func refusal(of context: ManagedObjectContext) -> StoreError? {
    do {
      try context.save()
      return nil
    } catch { return error as? StoreError }
  }

  /// Expects the changes to be in the context, and none of them in the store.
  static func expectUnsaved(_ context: ManagedObjectContext, _ large: Ship, _ other: Ship) throws {
    #expect(
      context.hasChanges && large.isInserted && large.objectID.isTemporaryID && large.berth != nil && large.routes.underestimatedCount == 0)
    #expect(large.name == "Large" && Array(large.routes).count == 2)
    #expect(other.isUpdated && other.name == "Renamed")
    #expect(context.deletedObjects.count == 1)
    let observer = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    let stored = try Voyage.check(observer)
    #expect(stored == (12, nil))
  }

  static func expectSaved(_ path: String, planBytes: Int) throws {
    let context = try Harbour.context(.sqlite(at: path))
    let large = try #require(try context.fetch(FetchRequest<Ship> { $0.name == "Large" }).first)
    #expect(large.plan == Data(repeating: 7, count: planBytes) && large.berth != nil && Array(large.routes).count == 2)
    #expect(try context.count(for: FetchRequest<Ship>()) == Voyage.life)
    #expect(try context.count(for: FetchRequest<Ship> { $0.name == "Renamed" }) == 1)
    try context.persistentStoreCoordinator.close()
    #expect(try BareDatabase(path).rows("PRAGMA integrity_check") == ["ok"])
  }

  #if os(Linux)
    /// Mounts a disk of one megabyte that is visible only to this process and unmounted when it ends.
    static func mountSmallDisk(_ path: String) -> Bool {
      guard System.leaveMounts() else { return false }
      System.mountDisk(at: path, "size=1m")
      return true
    }

    static func fillAndFree(_ folder: String, _ options: SQLiteStoreOptions) throws {
      let path = folder + "/harbour.sqlite", ballast = folder + "/ballast"
      try Harbour.makeFile(path, options: options)
      let context = try Harbour.context(.sqlite(at: path, options: options))
      try fill(ballast, leaving: 64 << 10)
      let (large, other) = try changeTooMuch(context, bytes: 150_000)
      for _ in 0..<3 {
        let error = refusal(of: context)
        #expect(error?.code == .diskFull && error?.isRetryable == true && error?.path == path, "\(String(describing: error))")
        try expectUnsaved(context, large, other)
      }
      unlink(ballast)
      try context.save()
      #expect(!context.hasChanges && !large.objectID.isTemporaryID)
      try context.persistentStoreCoordinator.close()
      try expectSaved(path, planBytes: 150_000)
    }

    static func saveUntilFull(_ folder: String, freeBytes: Int) throws {
      let path = folder + "/harbour.sqlite", ballast = folder + "/ballast"
      try fill(ballast, leaving: freeBytes)
      let saved = try savesThatFit(path, freeBytes)
      unlink(ballast)
      let context = try Harbour.context(.sqlite(at: path))
      let found = try Voyage.check(context)
      #expect(found == (saved, nil), "\(freeBytes) bytes")
      try Voyage.saveNext(context)
      try context.persistentStoreCoordinator.close()
      try Damaged(path).removeFiles()
    }

    private static func savesThatFit(_ path: String, _ freeBytes: Int) throws -> Int {
      var saved = 0
      var context: ManagedObjectContext?
      do {
        let opened = try Harbour.context(.sqlite(at: path))
        context = opened
        while saved < 60 { saved = try Voyage.saveNext(opened) }
      } catch let error as StoreError {
        #expect(error.code == .diskFull && error.isRetryable && error.path == path, "\(freeBytes) bytes: \(error)")
      }
      context?.rollback()
      try context?.persistentStoreCoordinator.close()
      return saved
    }

    private static func fill(_ ballast: String, leaving free: Int) throws {
      var status = statvfs()
      precondition(statvfs((ballast as NSString).deletingLastPathComponent, &status) == 0)
      let bytes = max(0, Int(status.f_bavail) * Int(status.f_frsize) - free)
      try TemporaryFolder.write(Array(repeating: 1, count: bytes), to: ballast)
    }
  #endif
}
