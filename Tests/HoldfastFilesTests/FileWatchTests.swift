import Dispatch
import Foundation
import HoldfastStore
import Synchronization
import TestSupport
import Testing

@testable import HoldfastFiles

/// Looks for changes of a file.
@Suite struct FileWatchTests {
  private let folder = TemporaryFolder()

  /// A slow disk delays the moment from which a reported change is visible.
  @Test func aChangeThatBecomesVisibleLateIsFound() async throws {
    let path = folder.file("file"), start = ContinuousClock.now
    try Data("old".utf8).write(to: URL(fileURLWithPath: path))
    let reports = Mutex(0)
    let watch = try FileWatch(
      path: path,
      find: {
        // Later than all looks of the first second.
        guard ContinuousClock.now - start > .milliseconds(1300), reports.withLock({ $0 == 0 }) else { return nil }
        return StoreChange(mayIncludeOthers: true)
      }, report: { _ in reports.withLock { $0 += 1 } })
    try Data("new".utf8).write(to: URL(fileURLWithPath: path))
    #expect(await eventually { reports.withLock { $0 == 1 } })
    watch.cancel()
  }

  /// Another program can change a file faster than a look takes. A look for each change would take memory, and hours of time.
  @Test func changesDuringALookShareTheNextOne() async throws {
    let looks = Mutex(0), isFirst = Mutex(true), mayEnd = DispatchSemaphore(value: 0)
    let watch = try FileWatch(
      path: folder.file("file"),
      find: {
        looks.withLock { $0 += 1 }
        let waits = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        if waits { mayEnd.wait() }
        return nil
      }, report: { _ in })
    #expect(await eventually { looks.withLock { $0 == 1 } })
    for _ in 0..<100_000 { watch.noteChange() }
    mayEnd.signal()
    // A look that is queued, and at least one that follows it.
    #expect(await eventually { looks.withLock { $0 >= 3 } })
    try await Task.sleep(for: .milliseconds(200))
    // Fewer than 30 follow in a month.
    let count = looks.withLock { $0 }
    #expect(count < 30)
    watch.cancel()
  }

  /// However long a process stalls while it saves, a look follows. There are few looks while nothing changes.
  @Test func aChangeIsFoundWithinTwiceTheTimeUntilItIsVisible() {
    let month = 30 * 86_400_000
    var elapsed = 0, lookCount = 0
    while elapsed < month {
      let before = elapsed
      elapsed += FileWatch.interval(beforeLook: lookCount)
      if before >= 30_000 { #expect(elapsed <= 2 * before) }
      lookCount += 1
    }
    #expect(lookCount < 30)
    // Later looks follow, too.
    #expect(FileWatch.interval(beforeLook: 1_000_000) > 0)
  }

  @Test func aFolderWithoutEventsIsLookedAtEverySecond() async {
    let looks = Mutex(0)
    let watch = FolderWatch(FolderWatch.timer(DispatchQueue(label: "looks")) { looks.withLock { $0 += 1 } })
    #expect(await eventually { looks.withLock { $0 >= 2 } })
    watch.cancel()
  }

  #if os(Linux)
    /// The bug: the 129th store of a user, with the usual limit, couldn't be opened.
    @Test(.ownThreads) func theSystemsLimitOfWatchedFoldersIsNoError() async {
      await #expect(processExitsWith: .success) { [path = folder.path as String] in
        let events = try Self.withoutEvents { try FolderEvents(path, "file") }
        precondition(events == nil)
      }
    }

    /// The bug: each second began the looks that follow a change, six in the first second.
    @Test(.ownThreads) func aFileInAFolderWithoutEventsIsLookedAtOnceEachSecond() async {
      await #expect(processExitsWith: .success) { [path = folder.file("file") as String] in
        let looks = Mutex(0), clock = ContinuousClock()
        let watch = try Self.withoutEvents {
          try FileWatch(
            path: path,
            find: {
              looks.withLock { $0 += 1 }
              return nil
            }, report: { _ in })
        }
        // The beginning of a watch is followed by the looks after a change. After the first second, one of these comes within 5 seconds.
        _ = await eventually { looks.withLock { $0 >= 7 } }
        let start = clock.now, former = looks.withLock { $0 }
        _ = await eventually { looks.withLock { $0 >= former + 8 } }
        // One may be the last of the first looks, and another one late.
        precondition(clock.now - start >= .seconds(4))
        watch.cancel()
      }
    }

    /// Runs a closure in which the system has no descriptors for events.
    private static func withoutEvents<Value>(_ body: () throws -> Value) rethrows -> Value {
      let files = __rlimit_resource_t(7)  // RLIMIT_NOFILE, whose type depends on the C library
      var former = rlimit()
      getrlimit(files, &former)
      defer { setrlimit(files, &former) }
      // The next descriptor is beyond the limit, also if another thread closes one meanwhile.
      var limit = rlimit(rlim_cur: 3, rlim_max: former.rlim_max)
      setrlimit(files, &limit)
      return try body()
    }

    /// The system has few queues for the events of folders. A watch that fails doesn't keep one.
    @Test func aFolderThatCannotBeWatchedIsATypedError() throws {
      let missing = folder.file("missing")
      for _ in 0..<2000 {
        let error = try #require(throws: StoreError.self) { _ = try FolderWatch(folder: missing, prefix: "file", onChange: {}) }
        #expect(error.code == .inputOutput && error.path == missing && error.reason.contains("access rights"), "\(error)")
      }
    }
  #endif
}
