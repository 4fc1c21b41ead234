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

/// Backups: previous versions of a file, kept beside it.
@Suite struct BackupRingTests {
  private func options(_ count: Int, _ disk: SimulatedFileSystem) -> DurableFileOptions {
    DurableFileOptions(lockTimeout: .seconds(0), backupCount: count, fileSystem: disk)
  }

  private func versions(_ disk: SimulatedFileSystem) -> [String: UInt8] {
    var versions: [String: UInt8] = [:]
    for name in disk.names where name.hasPrefix("store") { versions[name] = disk.contents(of: name)?.first }
    return versions
  }

  @Test(arguments: [1, 2, 3, 5]) func theLastVersionsHaveNamesOfTheirOwn(count: Int) throws {
    let disk = SimulatedFileSystem()
    let file = try DurableFile(path: "/store", options: options(count, disk))
    for save in UInt8(1)...8 {
      _ = try file.contents()
      try file.replace([save])
      var expected = ["store": save]
      for number in 1...count where Int(save) > number { expected["store~\(number)"] = save - UInt8(number) }
      #expect(versions(disk) == expected)
    }
    // With a smaller backup count, older backups stay unchanged.
    file.close()
    let other = try DurableFile(path: "/store", options: options(0, disk))
    _ = try other.contents()
    try other.replace([9])
    #expect(versions(disk)["store"] == 9 && versions(disk)["store~1"] == 7)
  }

  @Test func theyKeepTheirPermissionsAndNothingIsCopied() throws {
    let folder = TemporaryFolder()
    TestFile.write([1], to: folder.file(), permissions: 0o640)
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(backupCount: 2))
    let inode = TestFile.status(folder.file())?.st_ino
    for save in UInt8(2)...4 {
      _ = try file.contents()
      try file.replace([save])
    }
    #expect(folder.names == [".store.lock", "store", "store~1", "store~2"])
    #expect(TestFile.read(folder.file("store~1")) == [3] && TestFile.read(folder.file("store~2")) == [2])
    #expect(TestFile.permissions(folder.file("store~2")) == 0o640)
    TestFile.delete(folder.file("store~2"))
    try file.replace([5])
    // The gap is filled by the next save.
    #expect(TestFile.read(folder.file("store~2")) == [3] && TestFile.status(folder.file("store~2"))?.st_ino != inode)
  }

  @Test func aSaveThatFailsBehindTheBackupDoesNotKeepItTwice() throws {
    let disk = SimulatedFileSystem()
    let file = try DurableFile(path: "/store", options: options(3, disk))
    for save in UInt8(1)...2 { try file.replace([save]) }
    for _ in 0..<3 {
      // The last rename is the one of the new file.
      disk.inject(FileFault(.rename, nth: versions(disk).count == 2 ? 2 : 1, .error(EIO)))
      #expect(storeError { try file.replace([9]) }?.code == .inputOutput)
      disk.clearFaults()
      #expect(versions(disk)["store"] == 2 && !disk.names.contains { $0.hasSuffix(".tmp") })
    }
    try file.replace([3])
    try file.replace([4])
    #expect(versions(disk) == ["store": 4, "store~1": 3, "store~2": 2, "store~3": 1])
  }

  /// The bug: every save that replaced a version threw, for example in an app on Android.
  @Test(arguments: [EPERM, EACCES, ENOTSUP]) func versionsAreCopiedWhereHardLinksCannotBeCreated(number: Int32) throws {
    let disk = SimulatedFileSystem()
    var settings = options(3, disk)
    settings.fileSystem = WithoutLinks(base: disk, number: number)
    let file = try DurableFile(path: "/store", options: settings)
    for save in UInt8(1)...5 { try file.replace([save]) }
    #expect(versions(disk) == ["store": 5, "store~1": 4, "store~2": 3, "store~3": 2])
    // A version is kept only once if saves fail afterwards. The last rename is the one of the new file.
    for renames in [4, 1] {
      disk.inject(FileFault(.rename, nth: renames, .error(EIO)))
      #expect(storeError { try file.replace([9]) }?.code == .inputOutput)
      disk.clearFaults()
      #expect(versions(disk) == ["store": 5, "store~1": 5, "store~2": 4, "store~3": 3])
    }
    try file.replace([6])
    #expect(versions(disk) == ["store": 6, "store~1": 5, "store~2": 4, "store~3": 3])
    #expect(!disk.names.contains { $0.hasSuffix(".tmp") })
    file.close()
    #expect(disk.openCount == 0)
  }

  @Test(arguments: [StoreFileOperation.link, .rename, .unlink, .statusOfName])
  func RC1_aBackupThatCannotBeKeptIsAnErrorAndTheFileIsUnchanged(operation: StoreFileOperation) throws {
    var cases = 0
    for number in [EIO, ENOSPC, EACCES, EROFS, EMLINK, EPERM] {
      for nth in 1...20 {
        for count in [1, 3] {
          let disk = SimulatedFileSystem()
          let setup = try DurableFile(path: "/store", options: options(count, disk))
          for save in UInt8(1)...4 { try setup.replace([save]) }
          setup.close()
          let before = versions(disk)
          let file = try DurableFile(path: "/store", options: options(count, disk))
          _ = try file.contents()
          disk.startRecording()
          disk.inject(FileFault(operation, nth: nth, .error(number)))
          let error = storeError { try file.replace([5]) }
          guard disk.calls.contains(where: { $0.error == number && $0.operation == operation }) else { continue }
          cases += 1
          if let error {
            #expect(versions(disk)["store"] == 4 && (error.cause as? FileSystemError)?.operation == operation, "\(error)")
          } else {
            #expect(versions(disk)["store"] == 5)
          }
          #expect(!disk.names.contains { $0.hasSuffix(".tmp") })
          // At most one version is lost, and the next save succeeds.
          #expect(Set(before.values).subtracting(versions(disk).values).count <= 1)
          disk.clearFaults()
          _ = try file.contents()
          try file.replace([6])
          #expect(versions(disk)["store"] == 6)
          file.close()
          #expect(disk.openCount == 0)
        }
      }
    }
    #expect(cases >= 6)
  }

  // MARK: Removal

  private func remove(_ file: DurableFile) throws {
    let removal = try file.beginReplacing()
    defer { removal.abort() }
    try removal.commitRemoval()
  }

  @Test(arguments: 1...4) func RC1_versionsWhoseRemovalFailsAreRemovedByTheNextAttempt(call: Int) throws {
    let disk = SimulatedFileSystem()
    // The attempts can have a smaller maximum than the saves.
    let setup = try DurableFile(path: "/store", options: options(3, disk))
    for save in UInt8(1)...4 { try setup.replace([save]) }
    setup.close()
    let file = try DurableFile(path: "/store", options: options(0, disk))
    _ = try file.contents()
    disk.inject(FileFault(.unlink, nth: call, .error(EIO)))
    #expect(storeError { try remove(file) }?.code == .inputOutput)
    #expect(versions(disk)["store"] == 4 && versions(disk).count == 5 - call)
    disk.clearFaults()
    try remove(file)
    #expect(versions(disk).isEmpty)
    file.close()
    #expect(disk.openCount == 0)
  }

  @Test func aGapThatAnInterruptedSaveLeftDoesNotHideTheVersionsBehindIt() throws {
    let disk = SimulatedFileSystem()
    let file = try DurableFile(path: "/store", options: options(3, disk))
    for save in UInt8(1)...4 { try file.replace([save]) }
    disk.inject(FileFault(.link, nth: 1, .error(EIO)))
    #expect(storeError { try file.replace([5]) }?.code == .inputOutput)
    disk.clearFaults()
    #expect(versions(disk) == ["store": 4, "store~2": 3, "store~3": 2])
    try remove(file)
    #expect(versions(disk).isEmpty)
    file.close()
  }

  // MARK: Moves

  /// Two files with three backups and one.
  private func pair(_ disk: SimulatedFileSystem) throws -> (file: DurableFile, other: DurableFile) {
    let file = try DurableFile(path: "/store", options: options(3, disk)), other = try DurableFile(path: "/copy", options: options(3, disk))
    for save in UInt8(1)...4 { try file.replace([save]) }
    for save in UInt8(11)...12 { try other.replace([save]) }
    return (file, other)
  }

  private func remove(_ file: DurableFile, movingBackupsTo other: DurableFile) throws {
    let removal = try file.beginReplacing()
    defer { removal.abort() }
    try other.withLock { _ in try removal.commitRemoval(movingBackupsTo: other) }
  }

  private func contents(_ disk: SimulatedFileSystem) -> [String: [UInt8]] {
    let names = disk.names.filter { !$0.hasPrefix(".") || $0.hasSuffix(".tmp") }
    return Dictionary(uniqueKeysWithValues: names.map { ($0, disk.contents(of: $0) ?? []) })
  }

  private static let moved: [String: [UInt8]] = ["copy": [12], "copy~1": [11], "copy~2": [3], "copy~3": [2], "copy~4": [1]]

  @Test func theVersionsOfARemovedFileFollowThoseOfAnother() throws {
    let disk = SimulatedFileSystem(), (file, other) = try pair(disk)
    #expect(contents(disk).count == 6)
    try remove(file, movingBackupsTo: other)
    #expect(contents(disk) == Self.moved)
    // The next save of the other file keeps three versions, and doesn't touch the fourth.
    try other.replace([13])
    #expect(contents(disk) == ["copy": [13], "copy~1": [12], "copy~2": [11], "copy~3": [3], "copy~4": [1]])
    file.close()
    other.close()
    #expect(disk.openCount == 0)
  }

  /// The bytes of a version are copied a megabyte at a time.
  @Test func aLongVersionIsMovedWhole() throws {
    let disk = SimulatedFileSystem(), long = TestBytes.pattern(3, (2 << 20) + 77)
    let file = try DurableFile(path: "/store", options: options(3, disk)), other = try DurableFile(path: "/copy", options: options(3, disk))
    try file.replace(long)
    try file.replace([2])
    try other.replace([3])
    try remove(file, movingBackupsTo: other)
    #expect(contents(disk).keys.sorted() == ["copy", "copy~1"])
    // Compared outside of #expect, so that a failure doesn't print two million bytes.
    let isWhole = TestBytes.areEqual(disk.contents(of: "copy~1") ?? [], long)
    #expect(isWhole)
    file.close()
    other.close()
  }

  @Test func aMovedVersionIsDurableBeforeItIsRemovedFromItsFormerPlace() throws {
    let disk = SimulatedFileSystem(), (file, other) = try pair(disk)
    disk.startRecording()
    try remove(file, movingBackupsTo: other)
    let steps = disk.calls.filter { [.synchronize, .rename, .unlink].contains($0.operation) }.map { call in
      "\(call.operation) \(call.name.hasSuffix(".tmp") ? "temporary" : call.name)"
    }
    let moves = ["store~3", "store~2", "store~1"].flatMap { name in
      ["synchronize temporary", "rename temporary", "synchronize /", "unlink \(name)"]
    }
    #expect(steps == moves + ["unlink store", "synchronize /"])
    file.close()
    other.close()
  }

  /// The bug: behind a gap, no version was found, so all remained beside a file that had been moved away.
  @Test func versionsBehindAGapThatAnInterruptedSaveLeftAreMoved() throws {
    var failures = 0
    for call in 0...4 {
      let disk = SimulatedFileSystem(), (file, other) = try pair(disk)
      disk.inject(FileFault(.link, .error(EIO)))
      #expect(storeError { try file.replace([5]) }?.code == .inputOutput)
      disk.clearFaults()
      #expect(contents(disk) == ["store": [4], "store~2": [3], "store~3": [2], "copy": [12], "copy~1": [11]])
      if call > 0 {
        disk.inject(FileFault(.unlink, nth: call, .error(EIO)))
        if storeError({ try remove(file, movingBackupsTo: other) }) != nil { failures += 1 }
        disk.clearFaults()
      }
      if disk.names.contains("store") { try remove(file, movingBackupsTo: other) }
      #expect(contents(disk) == ["copy": [12], "copy~1": [11], "copy~2": [3], "copy~3": [2]], "\(call)")
      file.close()
      other.close()
      #expect(disk.openCount == 0, "\(call)")
    }
    #expect(failures >= 3)
  }

  @Test(arguments: [StoreFileOperation.openForReading, .read, .create, .write, .synchronize, .rename, .unlink])
  func RC1_versionsWhoseMoveFailsAreMovedByTheNextAttempt(operation: StoreFileOperation) throws {
    var failures = 0
    for call in 1...12 {
      let disk = SimulatedFileSystem(), (file, other) = try pair(disk)
      disk.inject(FileFault(operation, nth: call, .error(EIO)))
      if storeError({ try remove(file, movingBackupsTo: other) }) != nil { failures += 1 }
      disk.clearFaults()
      // Without the file, only the disk's confirmation was missing.
      if disk.names.contains("store") { try remove(file, movingBackupsTo: other) }
      #expect(contents(disk) == Self.moved, "\(call)")
      file.close()
      other.close()
      #expect(disk.openCount == 0, "\(call)")
    }
    #expect(failures >= 3)
  }

  @Test func RB1_noPowerLossLeavesATornFileOrBackup() throws {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", TestImage.encode(1, byteCount: 40))
    let store = try TestStore("/store", options(2, disk))
    disk.startRecording()
    disk.mark(1)
    var images = [TestImage.encode(1, byteCount: 40)]
    for generation in UInt64(2)...4 {
      images.append(TestImage.encode(generation, byteCount: 30))
      try store.save(byteCount: 30)
      disk.mark(Int(generation))
    }
    let summary = try disk.forEachCrashState(seed: SeededGenerator.seedOfEnvironment) { state in
      let names = state.fileSystem.names.filter { $0.hasPrefix("store") }
      for name in names { #expect(images.contains(state.fileSystem.contents(of: name) ?? []), "\(name): \(state)") }
      let after = try TestStore("/store", options(2, state.fileSystem))
      #expect(Int(after.generation) >= state.lastMark ?? 0, "\(state)")
      try after.save()
    }
    print("backups: HOLDFAST_SEED=\(summary.seed), \(summary.stateCount) states")
    #expect(summary.stateCount > 100)
  }
}

/// A disk on which hard links can't be created.
private struct WithoutLinks: ForwardingFileSystem {
  let base: any StoreFileSystem
  let number: Int32

  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    throw FileSystemError(.link, name: newName, number: number)
  }
}
