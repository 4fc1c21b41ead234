import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Short transfers and failing synchronizations, through whole stores on this machine's file system. ``WholeFileFaultTests`` makes every call
/// fail on a simulated disk.
@Suite(.serialized, .ownThreads) struct RealDiskTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: FileStore.wholeFile) func RC3_shortReadingsAndWritingsOfARealDiskMakeTheSameFiles(store: FileStore) throws {
    let random = SeededGenerator("RC3 on a real disk, \(store)")
    let disturbed = DisturbedFileSystem(POSIXFileSystem(), seed: random.seed)
    let (path, shortPath) = (folder.file("harbour"), folder.file("short"))
    // Copies of one store, so that the files are equal to the last byte.
    try Harbour.makeFile(store.description(at: path), saves: 1)
    try TemporaryFolder.write(TemporaryFolder.read(path), to: shortPath)
    disturbed.shortenAllTransfers()
    func opened() throws -> [ManagedObjectContext] {
      try [
        Harbour.context(store.description(at: path, file: DurableFileOptions(durability: .normal))),
        Harbour.context(store.description(at: shortPath, file: DurableFileOptions(durability: .normal, fileSystem: disturbed))),
      ]
    }
    var contexts = try opened()
    for save in 2...TestTier.count(30, full: 10_000) {
      for context in contexts { #expect(try Voyage.saveNext(context) == save) }
      let isSame = try store.withoutLineage(TemporaryFolder.read(path)) == store.withoutLineage(TemporaryFolder.read(shortPath))
      try #require(isSame, "Save \(save) made another file.")
      if save % 10 == 0 {
        for context in contexts { try context.persistentStoreCoordinator.close() }
        contexts = try opened()
        for context in contexts { #expect(try Voyage.check(context) == (save, nil)) }
      }
    }
    for context in contexts { try context.persistentStoreCoordinator.close() }
    #expect(disturbed.shortened > 100)
    #expect(try store.fault(at: shortPath) == nil)
  }

  /// The disk fails to synchronize once. The same file isn't synchronized again.
  @Test(arguments: FileStore.wholeFile) func RC6_aFileOfAStoreIsNotSynchronizedAgainOnARealDisk(store: FileStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore] in
      try FailedSynchronization(store: store, path: folder + "/harbour").run(notes: folder + ".trace")
    }
    report(child)
  }
}

/// Runs in a separate process.
private struct FailedSynchronization {
  let store: FileStore
  let path: String

  func run(notes: String) throws {
    try apart { try Harbour.makeFile(store.description(at: path)) }
    let run = try Tracer.run(notes: notes, faults: ["fsync:error=EIO:when=1", "fdatasync:error=EIO:when=1"]) {
      let context = try Harbour.context(store.description(at: path))
      _ = try Voyage.changeNext(context)
      return context
    } _: { (context: ManagedObjectContext) in
      let old = try TemporaryFolder.read(path)
      do {
        try context.save()
        complain("The save did not fail.")
      } catch let error as StoreError {
        let cause = error.cause as? FileSystemError
        demand(error.code == .inputOutput && cause?.operation == .synchronize && cause?.number == EIO && error.path == path, "\(error)")
      }
      let isSame = try TemporaryFolder.read(path) == old
      demand(isSame && context.hasChanges, "The file or the changes differ.")
      try context.save()
      try context.persistentStoreCoordinator.close()
    }
    guard let run else { return print(Tracer.skipped) }
    demand(run.isSuccess, "The process ended with \(run.status).")
    // The files of the first and second save, and the folder, once each.
    let calls = run.lines.filter { $0.hasPrefix("fsync(") || $0.hasPrefix("fdatasync(") }
    let files = calls.compactMap { $0.split(separator: "<").last?.split(separator: ">").first.map(String.init) }
    demand(files.count == 3 && Set(files).count == 3 && files.last == (path as NSString).deletingLastPathComponent, "\(calls)")
    demand(calls[0].contains("EIO") && !calls.dropFirst().contains { $0.contains("EIO") }, "\(calls)")
    let context = try Harbour.context(store.description(at: path))
    let found = try Voyage.check(context), fault = try store.fault(at: path)
    demand(found == (13, nil) && fault == nil, "\(found) \(fault ?? "")")
    print("REPORT RC6, \(store): \(calls.count) synchronizations")
  }
}
