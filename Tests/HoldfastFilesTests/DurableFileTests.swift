import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@Suite struct DurableFileTests {
  private let folder = TemporaryFolder()

  @Test func whatWasSavedIsRead() throws {
    let file = try DurableFile(path: folder.file())
    #expect(try file.contents() == nil)
    for count in [0, 1, 4095, 1 << 20, (1 << 20) + 1, 3_500_000] {
      let bytes = TestBytes.pattern(Int64(count), count)
      try file.replace(bytes)
      // Compared outside of #expect, so that a failure doesn't print a million bytes.
      let read = try #require(try file.contents()), isRead = TestBytes.areEqual(read, bytes)
      let isStored = TestBytes.areEqual(TestFile.read(folder.file()), bytes)
      #expect(isRead && isStored, "\(count) bytes")
    }
    #expect(folder.names == [".store.lock", "store"])
  }

  @Test func theNextSaveNeedsNoReadingAfterASave() throws {
    let file = try DurableFile(path: folder.file())
    for generation in UInt8(0)..<5 {
      let replacement = try file.beginReplacing()
      #expect(replacement.foundChange == .none)
      try [generation].withUnsafeBytes { try replacement.write($0) }
      try replacement.commit()
      #expect(try file.change() == .none)
    }
    #expect(try file.contents() == [4])
  }

  @Test func smallPiecesBuffersAndLargePiecesKeepTheirOrder() throws {
    let file = try DurableFile(path: folder.file())
    let replacement = try file.beginReplacing(expectedByteCount: 10_000_000)
    var expected: [UInt8] = []
    for count in [3, 1 << 20, 700_000, 400_000, 1, (2 << 20) + 5, 77] {
      let piece = TestBytes.pattern(Int64(count), count)
      try piece.withUnsafeBytes { try replacement.write($0) }
      try replacement.withBuffer(room: 1 << 20) { free in
        #expect(free.count >= 1 << 20)
        free[0] = 200
        free[1] = 201
        return 2
      }
      expected += piece + [200, 201]
    }
    #expect(replacement.byteCount == Int64(expected.count))
    var verified: [UInt8] = []
    try replacement.finish { verified = try $0.allBytes() }
    let isVerified = TestBytes.areEqual(verified, expected)
    #expect(isVerified)
    try replacement.commit()
    let contents = try #require(try file.contents()), isRead = TestBytes.areEqual(contents, expected)
    #expect(isRead)
    #expect(
      try #require(TestFile.occupiedBytes(folder.file())) < expected.count + 100_000,
      "Reserved space that wasn't needed is released.")
  }

  @Test func anAbortedReplacementChangesNothing() throws {
    let file = try DurableFile(path: folder.file())
    try file.replace([1])
    for ending in 0..<4 {
      var replacement: FileReplacement? = try file.beginReplacing()
      try [UInt8](repeating: 2, count: 2_000_000).withUnsafeBytes { try replacement?.write($0) }
      #expect(folder.names.count == 3)
      switch ending {
      case 0: replacement?.abort()
      case 1: replacement = nil
      case 2:
        try replacement?.finish()
        replacement = nil
      default:
        #expect(throws: TestImage.Wrong.self) { try replacement?.finish { _ in throw TestImage.Wrong() } }
      }
      #expect(folder.names == [".store.lock", "store"], "\(ending)")
      #expect(TestFile.read(folder.file()) == [1])
      #expect(try file.withLock { _ in true })
    }
    #expect(folder.openDescriptors == 2, "The folder and the last saved file stay open.")
    file.close()
    #expect(folder.openDescriptors == 0)
  }

  @Test func aChangedFileIsReadAgainAndThenRefused() throws {
    let file = try DurableFile(path: folder.file())
    try file.replace([1, 2, 3])
    for stopsAfter in 0..<4 {
      var attempts = 0
      let error = storeError {
        try file.read { reader in
          attempts += 1
          _ = try reader.next()
          if attempts <= stopsAfter { TestFile.write([UInt8](repeating: 9, count: 3 + attempts), to: folder.file()) }
        }
      }
      #expect(attempts == min(stopsAfter + 1, 3))
      #expect((error == nil) == (stopsAfter < 3))
      if let error { #expect(error.code == .inputOutput && error.isRetryable && error.path == folder.file()) }
    }
  }

  @Test func aFileThatIsCutOffWhileItIsReadIsReadAgain() throws {
    let file = try DurableFile(path: folder.file())
    try file.replace([UInt8](repeating: 5, count: 3_000_000))
    var attempts = 0
    let count = try file.read { reader in
      attempts += 1
      _ = try reader.next()
      if attempts == 1 { TestFile.setSize(2_000_000, of: folder.file()) }
      return try reader.allBytes().count
    }
    #expect(attempts == 2)
    #expect(count == 2_000_000 - (1 << 20))
  }

  @Test func aReadDuringASaveSeesTheEntirePreviousVersion() throws {
    let file = try DurableFile(path: folder.file())
    try file.replace([UInt8](repeating: 1, count: 3_000_000))
    var attempts = 0
    let values = try file.read { reader in
      attempts += 1
      _ = try reader.next()
      try file.replace([UInt8](repeating: 2, count: 3_000_000))
      return Set(try reader.allBytes())
    }
    #expect(attempts == 1 && values == [1])
    #expect(try file.change() == .replaced)
    #expect(try file.contents()?.first == 2)
  }

  @Test func aFileBeyondTheLargestSizeIsNeitherReadNorSaved() throws {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(maximumByteCount: 1000))
    try file.replace([UInt8](repeating: 1, count: 1000))
    #expect(try file.contents()?.count == 1000)
    let error = storeError { try file.replace([UInt8](repeating: 2, count: 1001)) }
    #expect(error?.code == .tooLarge && error?.coreDataCode == 134_080)
    #expect(try file.contents()?.count == 1000)
    TestFile.write([UInt8](repeating: 1, count: 1001), to: folder.file())
    #expect(storeError { try file.contents() }?.code == .tooLarge)
    #expect(folder.names == [".store.lock", "store"])
  }

  @Test func temporaryFilesOfKilledProcessesAreRemovedAndNothingElse() throws {
    let stale = [".store.0123456789abcdef.tmp", ".store.ffffffffffffffff.tmp"]
    let others = [
      ".store.0123456789abcdeF.tmp", ".store.0123456789abcde.tmp", ".other.0123456789abcdef.tmp", "store.0123456789abcdef.tmp",
      ".store.x.0123456789abcdef.tmp", ".store.0123456789abcdef.tmp~",
    ]
    for name in stale + others { TestFile.write([1], to: folder.file(name)) }
    try DurableFile(path: folder.file()).replace([1])
    #expect(folder.names == (others + [".store.lock", "store"]).sorted())
  }

  @Test func aReadOnlyFileLeavesNothingBehindAndSavesNothing() throws {
    TestFile.write([7], to: folder.file())
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(isReadOnly: true))
    #expect(try file.contents() == [7])
    #expect(storeError { try file.beginReplacing() }?.code == .readOnly)
    #expect(storeError { try file.withLock { _ in } }?.code == .readOnly)
    #expect(folder.names == ["store"])
  }

  @Test func theSharedRecordOutlivesTheLockAndStartsEmpty() throws {
    let file = try DurableFile(path: folder.file())
    try file.withLock { record in
      #expect(try record.read() == [])
      try record.write([UInt8](repeating: 3, count: LockFile.maximumRecordByteCount))
      #expect(try record.read().count == LockFile.maximumRecordByteCount)
      try record.write([1, 2])
    }
    let replacement = try file.beginReplacing()
    #expect(try replacement.lockFile.read() == [1, 2])
    try replacement.lockFile.write([])
    try replacement.commit()
    #expect(try file.withLock { try $0.read() } == [])

    // A record that another program wrote isn't trusted.
    for wrong in [[9], [255, 255, 1], [3, 0, 1, 2]] as [[UInt8]] {
      TestFile.write(wrong, to: folder.file(".store.lock"))
      #expect(try file.withLock { try $0.read() } == [], "\(wrong)")
    }
  }

  @Test func aRemovedLockFileIsRecreated() throws {
    let file = try DurableFile(path: folder.file())
    try file.withLock { _ in }
    TestFile.delete(folder.file(".store.lock"))
    try file.replace([1])
    #expect(folder.names == [".store.lock", "store"])
  }

  @Test func threadsOfOneProcessSaveOneAfterTheOther() async throws {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(3600)))
    try file.replace([0])
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<25 {
            do {
              let replacement = try file.beginReplacing()
              let value = try #require(try replacement.read { try $0.allBytes() }).first ?? 0
              try [value + 1].withUnsafeBytes { try replacement.write($0) }
              try replacement.commit()
            } catch {
              Issue.record(error)
            }
          }
        }
      }
    }
    #expect(try file.contents() == [100])
  }

  @Test func aLockThatIsHeldTooLongIsARetryableError() throws {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(0.1)))
    let first = try file.beginReplacing()
    let began = System.seconds()
    let error = storeError { try file.beginReplacing() }
    #expect(System.seconds() - began >= 0.09)
    #expect(error?.code == .locked && error?.isRetryable == true && error?.coreDataCode == 134_090)
    first.abort()
    try file.replace([1])
  }

  @Test func aRequestWaitsForTheLockUntilItsDeadlineAndNotLongerThanOthers() throws {
    let file = try DurableFile(path: folder.file(), options: DurableFileOptions(lockTimeout: .seconds(3600)))
    let hasty = try DurableFile(path: folder.file("hasty"), options: DurableFileOptions(lockTimeout: .zero))
    let first = try file.beginReplacing(), other = try hasty.beginReplacing()
    for time in [Duration.milliseconds(20), .seconds(-1)] {
      let error = storeError { try file.beginReplacing(operation: "reserve keys", request: RequestOptions(deadline: .now + time)) }
      #expect(error?.code == .timedOut && error?.isRetryable == true && error?.operation == "reserve keys", "\(String(describing: error))")
    }
    #expect(storeError { try hasty.beginReplacing(request: RequestOptions(deadline: .now + .seconds(3600))) }?.code == .locked)
    first.abort()
    other.abort()
    try file.beginReplacing(request: RequestOptions(deadline: .now + .seconds(3600))).abort()
  }

  @Test func aReplacementSurvivesTheClosingOfItsFile() throws {
    let file = try DurableFile(path: folder.file())
    let replacement = try file.beginReplacing()
    file.close()
    #expect(storeError { try file.contents() }?.code == .notOpen)
    try ([1] as [UInt8]).withUnsafeBytes { try replacement.write($0) }
    try replacement.commit()
    #expect(TestFile.read(folder.file()) == [1])
  }

  @Test func errorsNameTheFileTheReasonAndWhatToDo() throws {
    let missing = try #require(storeError { try DurableFile(path: folder.file("no/store")) })
    #expect(missing.code == .notFound && missing.reason.contains("(errno 2)"), "\(missing)")
    #expect((missing.cause as? FileSystemError)?.operation == .resolve)
    for path in ["", "a\0b"] { #expect(storeError { try DurableFile(path: path) }?.code == .invalidPath) }
    #expect(storeError { try DurableFile(path: "file:///tmp/nowhere/store") }?.reason.contains("URL") == true)
    let long = String(repeating: "n", count: 255)
    let tooLong = try #require(storeError { try DurableFile(path: folder.file(long)) })
    #expect(tooLong.code == .invalidPath && tooLong.description.contains("too long"))
    try DurableFile(path: folder.file(String(long.dropFirst(22)))).replace([1])
  }

  @Test(.ownThreads) func misuseTraps() async {
    await #expect(processExitsWith: .failure) { [path = folder.file() as String] in
      mustTrap {
        let file = try DurableFile(path: path)
        let replacement = try file.beginReplacing()
        try replacement.commit()
        try replacement.write(UnsafeRawBufferPointer(start: nil, count: 0))
      }
    }
    await #expect(processExitsWith: .failure) { [path = folder.file("other") as String] in
      mustTrap {
        let file = try DurableFile(path: path)
        try file.replace([1])
        var kept: FileReader?
        try file.read { kept = $0 }
        _ = try kept?.next()
      }
    }
  }
}
