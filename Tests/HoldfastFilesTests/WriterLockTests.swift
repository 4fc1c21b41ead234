import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

/// The lock file is the one that has the name now, also if another program removes it.
@Suite struct WriterLockTests {
  /// Removes the lock file when it has been locked.
  private final class RemovingFileSystem: ForwardingFileSystem {
    let disk = SimulatedFileSystem()
    var base: any StoreFileSystem { disk }
    /// The number of removals to come. Guarded because calls come from any thread.
    private let rest: Mutex<Int>

    init(removals: Int) { rest = Mutex(removals) }

    func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
      try base.lock(file, timeout: timeout)
      let removes = rest.withLock { rest in
        rest -= 1
        return rest >= 0
      }
      if removes { disk.setContents(of: file.name, nil) }
    }
  }

  private func file(_ fileSystem: RemovingFileSystem, timeout: Duration) throws -> DurableFile {
    try DurableFile(path: "/store", options: DurableFileOptions(lockTimeout: timeout, fileSystem: fileSystem))
  }

  @Test func aLockOfARemovedFileIsTakenAgain() throws {
    let fileSystem = RemovingFileSystem(removals: 3), file = try file(fileSystem, timeout: .seconds(3600))
    do {
      let first = try file.beginReplacing()
      #expect(fileSystem.disk.names == [".store.lock"])
      let late = RequestOptions(deadline: .now + .milliseconds(20))
      #expect(storeError { try file.beginReplacing(request: late) }?.code == .timedOut)
      first.abort()
    }
    try file.replace([1])
    file.close()
    #expect(fileSystem.disk.openCount == 0)
  }

  /// The bug: closing a store waited until its watch had got the lock of another process.
  @Test func aRequestThatIsCancelledStopsWaitingForTheLock() async throws {
    let fileSystem = CountingFileSystem(), cancellation = RequestCancellation()
    let file = try DurableFile(path: "/store", options: DurableFileOptions(lockTimeout: .seconds(3600), fileSystem: fileSystem))
    do {
      let first = try file.beginReplacing()
      async let waiting = onThread {
        storeError { try file.beginReplacing(request: RequestOptions(cancellation: cancellation)) }?.code == .cancelled
      }
      #expect(await eventually { fileSystem.lockCount.withLock { $0 > 1 } })
      cancellation.cancel()
      #expect(try await waiting)
      first.abort()
    }
    try file.replace([1])
    file.close()
    #expect(fileSystem.disk.openCount == 0)
  }

  /// Counts the attempts to get the lock.
  private final class CountingFileSystem: ForwardingFileSystem {
    let disk = SimulatedFileSystem()
    var base: any StoreFileSystem { disk }
    let lockCount = Mutex(0)

    func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
      lockCount.withLock { $0 += 1 }
      try base.lock(file, timeout: timeout)
    }
  }

  @Test func aLockFileThatIsAlwaysRemovedIsARetryableErrorAfterTheTimeout() throws {
    let fileSystem = RemovingFileSystem(removals: .max), file = try file(fileSystem, timeout: .seconds(0.05))
    let error = storeError { try file.beginReplacing() }
    #expect(error?.code == .locked && error?.isRetryable == true)
    file.close()
    #expect(fileSystem.disk.openCount == 0)
  }
}
