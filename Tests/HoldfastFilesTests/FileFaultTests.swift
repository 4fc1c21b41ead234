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

/// Calls that fail or transfer less than requested, on a simulated disk: RC1, RC3 and RC6.
@Suite struct FileFaultTests {
  private static let numbers = [EIO, ENOSPC, EDQUOT, EINTR, EAGAIN, EACCES, EROFS, EMFILE, ENFILE, ENOMEM, ESTALE, EFBIG]
  /// Calls whose failure doesn't fail a save: they only clean up.
  private static let harmless: Set<StoreFileOperation> = [.names, .unlink, .close, .unlock]

  /// The work of each case: a store is opened, read and saved once.
  private static func run(_ disk: SimulatedFileSystem, _ body: (TestStore) throws -> Void = { _ in }) throws -> TestStore {
    let store = try TestStore("/store", DurableFileOptions(lockTimeout: .seconds(0), fileSystem: disk))
    defer { store.close() }
    try body(store)
    let replacement = try store.file.beginReplacing(expectedByteCount: 1000)
    try TestImage.encode(2, byteCount: 70).withUnsafeBytes { try replacement.write($0) }
    try replacement.finish { _ in }
    try replacement.commit()
    return store
  }

  /// A disk with another user's store and a temporary file that a killed process left.
  private static func disk() throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", TestImage.encode(1, byteCount: 40))
    disk.setContents(of: ".store.0123456789abcdef.tmp", [1])
    let folder = try disk.openDirectory("/")
    let file = try disk.openLockFile("store", in: folder)
    try disk.setOwner(17, group: 18, of: file)
    try disk.close(file)
    try disk.close(folder)
    return disk
  }

  @Test(arguments: StoreFileOperation.allCases.filter { ![.link, .makeDirectory].contains($0) })
  func RC1_everyFailingCallIsATypedErrorAndLosesNothing(operation: StoreFileOperation) throws {
    var cases = 0
    for number in Self.numbers {
      for isPersistent in [false, true] {
        for nth in 1...100 {
          let disk = try Self.disk()
          disk.startRecording()
          disk.inject(FileFault(operation, nth: nth, .error(number), isPersistent: isPersistent))
          let error = storeError { try Self.run(disk) }
          guard disk.calls.contains(where: { $0.error == number && $0.operation == operation }) else {
            #expect(nth > 1, "\(operation) was never called.")
            break
          }
          cases += 1
          try check(disk, operation, number, error, "\(operation) \(nth) fails with \(number)\(isPersistent ? " from then on" : "")")
        }
      }
    }
    print("RC1: \(cases) cases of \(operation)")
    #expect(cases >= Self.numbers.count * 2)
  }

  private func check(_ disk: SimulatedFileSystem, _ operation: StoreFileOperation, _ number: Int32, _ error: StoreError?, _ name: String)
    throws
  {
    let isSaved = disk.contents(of: "store") == TestImage.encode(2, byteCount: 70)
    let isOld = disk.contents(of: "store") == TestImage.encode(1, byteCount: 40)
    if let error {
      let cause = error.cause as? FileSystemError
      #expect(cause?.operation == operation && cause?.number == number && cause?.name.isEmpty == false, "\(name): \(error)")
      #expect(error.path?.contains("store") == true && error.description.contains("(errno \(number))"), "\(name): \(error)")
      #expect(error.code == .durabilityUnknown ? isSaved : isOld, "\(name): \(error)")
      #expect(error.code != .general)
    } else {
      #expect(isSaved, "\(name): no error, and not saved")
      let isWithoutRights = number == EACCES && [.setOwner, .copyAttributes].contains(operation)
      #expect(Self.harmless.contains(operation) || isWithoutRights || operation == .status, "\(name): no error")
    }
    #expect(disk.openCount == 0, "\(name): a descriptor stays open")
    let temporary = disk.names.filter { $0.hasSuffix(".tmp") }
    #expect(operation == .unlink || operation == .names || temporary.isEmpty || isStillStale(temporary), "\(name): \(disk.names)")

    // Without the fault, the same save succeeds, and the failed save left no file.
    disk.clearFaults()
    _ = try Self.run(disk)
    #expect(disk.contents(of: "store") == TestImage.encode(2, byteCount: 70) && disk.names == [".store.lock", "store"], "\(name)")
    #expect(disk.openCount == 0)
  }

  /// Whether no save got far enough to remove the temporary file of the killed process.
  private func isStillStale(_ temporary: [String]) -> Bool { temporary == [".store.0123456789abcdef.tmp"] }

  @Test func RC1_errorsOfAFullDiskALockAndRightsHaveTheirCodes() throws {
    let expected: [(StoreFileOperation, Int32, StoreError.Code, Bool)] = [
      (.write, ENOSPC, .diskFull, true), (.write, EDQUOT, .diskFull, true), (.write, EFBIG, .diskFull, true),
      (.write, EIO, .inputOutput, false),
      (.allocate, ENOSPC, .diskFull, true), (.create, EACCES, .notPermitted, false), (.create, EROFS, .notPermitted, false),
      (.openLockFile, EROFS, .notPermitted, false), (.lock, EAGAIN, .locked, true), (.lock, EIO, .inputOutput, false),
      (.openForReading, ELOOP, .notAStore, false), (.openForReading, EMFILE, .inputOutput, true), (.synchronize, EIO, .inputOutput, false),
    ]
    for (operation, number, code, isRetryable) in expected {
      let disk = try Self.disk()
      disk.inject(FileFault(operation, .error(number)))
      let error = storeError { try Self.run(disk) }
      #expect(error?.code == code && error?.isRetryable == isRetryable, "\(operation) \(number): \(String(describing: error))")
      #expect(error?.reason.contains("Check the disk") == (number == EIO), "\(operation) \(number): \(String(describing: error))")
    }
  }

  /// The bug: the advice was to check the disk, or the path.
  @Test func errorsOfFileSystemsWithoutLocksAndOfRemovedTemporaryFilesSayWhatToDo() throws {
    let disk = try Self.disk()
    let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
    for number in [ENOLCK, ENOSYS, ENOTSUP] {
      disk.inject(FileFault(.lock, .error(number)))
      let error = storeError { try store.save() }
      #expect(error?.code == .inputOutput && error?.reason.contains("mount it with locks") == true, "\(String(describing: error))")
      disk.clearFaults()
    }
    disk.inject(FileFault(.rename, .error(ENOENT)))
    let error = storeError { try store.save() }
    #expect(error?.isRetryable == true && error?.reason.hasSuffix("Try again.") == true, "\(String(describing: error))")
    disk.clearFaults()
    try store.save()
    #expect(store.generation == 2)
  }

  @Test func RC1_whenTheFolderIsNotSynchronizedTheNewContentsAreInPlaceAndKnown() throws {
    let disk = try Self.disk()
    let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
    disk.inject(FileFault(.synchronize, nth: 2, .error(EIO)))
    let error = storeError { try store.save() }
    #expect(error?.code == .durabilityUnknown && error?.coreDataCode == 134_030)
    // A program that follows advice to repeat the save would save everything twice.
    #expect(error?.reason.hasSuffix("Check the disk; nothing has to be repeated.") == true && error?.isRetryable == false)
    let change = try store.file.change()
    #expect(store.generation == 2 && change == .none)
    try store.save()
    #expect(disk.contents(of: "store") == TestImage.encode(3, byteCount: 40))

    // A file system that doesn't support synchronizing folders isn't an error.
    for number in [EINVAL, ENOTSUP] {
      disk.inject(FileFault(.synchronize, nth: 2, .error(number)))
      try store.save()
      disk.clearFaults()
    }
  }

  @Test func RC1_aSaveWhoseFinalStatusCallFailsIsFoundAsAChangeOfTheSameGeneration() throws {
    let disk = try Self.disk()
    let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
    let before = disk.count(of: .status)
    try store.save()
    disk.inject(FileFault(.status, nth: disk.count(of: .status) - before, .error(EIO)))
    try store.save()
    let change = try store.file.change()
    #expect(store.generation == 3 && change == .replaced)
    try store.save()
    #expect(disk.contents(of: "store") == TestImage.encode(4, byteCount: 40))
  }

  /// The bug: the save failed, although all processes saw the new contents. A store then removed the external files that they name.
  @Test func RC1_aFileThatIsInPlaceIsSavedAlthoughRenamingItFailed() throws {
    let disk = try Self.disk()
    let store = try TestStore("/store", DurableFileOptions(fileSystem: FailingRenames(base: disk)))
    try store.save()
    let change = try store.file.change()
    #expect(store.generation == 2 && change == .none)
    #expect(disk.contents(of: "store") == TestImage.encode(2, byteCount: 40) && disk.names == [".store.lock", "store"])
  }

  @Test func RC3_shortReadingsAndWritingsLoseNothing() throws {
    let disk = SimulatedFileSystem()
    disk.shortenAllTransfers(seed: SeededGenerator("RC3").seed)
    let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
    let rounds = TestTier.count(1_000, full: 10_000)
    for round in 1...rounds {
      let byteCount = round * 37 % 251
      try store.save(byteCount: byteCount)
      guard disk.contents(of: "store") == TestImage.encode(UInt64(round), byteCount: byteCount) else {
        Issue.record("Save \(round) differs from the bytes that were written.")
        return
      }
      if round % 10 == 0 { try store.reload() }
    }
    #expect(store.generation == UInt64(rounds) && disk.count(of: .write) > 4 * rounds && disk.names == [".store.lock", "store"])
  }

  @Test func RC3_oneByteAtATimeIsEnough() throws {
    let disk = SimulatedFileSystem()
    disk.inject(FileFault(.read, .short(1), isPersistent: true))
    disk.inject(FileFault(.write, .short(1), isPersistent: true))
    let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
    try store.save(byteCount: 500)
    try store.reload()
    try store.file.withLock { record in
      try record.write([1, 2, 3])
      #expect(try record.read() == [1, 2, 3])
    }
    #expect(store.generation == 1 && disk.count(of: .write) > 500)
  }

  @Test func RC6_aFileWhoseSynchronizationFailedIsNeverSynchronizedAgain() throws {
    for number in Self.numbers {
      let disk = try Self.disk()
      let store = try TestStore("/store", DurableFileOptions(fileSystem: disk))
      disk.startRecording()
      disk.inject(FileFault(.synchronize, .error(number)))
      let error = storeError { try store.save() }
      #expect((error?.cause as? FileSystemError)?.operation == .synchronize)
      let failed = try #require(disk.calls.first { $0.operation == .synchronize }).name
      try store.save()
      let synchronized = disk.calls.filter { $0.operation == .synchronize }.map(\.name)
      #expect(synchronized.count == 3 && synchronized.count { $0 == failed } == 1, "\(number): \(synchronized)")
      #expect(disk.contents(of: "store") == TestImage.encode(2, byteCount: 40) && store.generation == 2)
    }
  }
}

/// Reports that renaming a file failed, although it has the new name.
private struct FailingRenames: ForwardingFileSystem {
  let base: any StoreFileSystem

  func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try base.rename(name, to: newName, in: directory)
    throw FileSystemError(.rename, name: name, number: ENOENT)
  }
}
