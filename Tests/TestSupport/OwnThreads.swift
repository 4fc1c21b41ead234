package import Testing

/// Runs the tests of a suite, or the cases of a test, on threads of their own, at most eight cases at a time.
///
/// Without it, an exit test blocks one or two threads of Swift's pool until its process ends, because Swift Testing reads there what the
/// process writes. The pool has one thread per processor. Each test of a serialized suite waits behind all other tests that haven't begun,
/// and so does the rest of an exit test. When its process has ended, a thread of Swift Testing uses a processor until the test continues.
package struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
  private static let turns = Turns(8)
  /// Whether the case has its turn, because a test may have the trait twice.
  @TaskLocal private static var hasTurn = false

  package var isRecursive: Bool { true }

  package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { test.isSuite || testCase != nil ? self : nil }

  package func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
    try await withTaskExecutorPreference(Threads.shared) {
      // The tasks of a suite's tests inherit its threads.
      if testCase == nil || Self.hasTurn { return try await function() }
      await Self.turns.begin()
      do { try await Self.$hasTurn.withValue(true) { try await function() } } catch {
        await Self.turns.end()
        throw error
      }
      await Self.turns.end()
    }
  }
}

extension Trait where Self == OwnThreads {
  /// Runs tests on threads of their own, for serialized suites and for exit tests.
  package static var ownThreads: Self { Self() }
}

/// Runs each part of a task on a thread that may block.
private final class Threads: TaskExecutor {
  static let shared = Threads()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    startThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Lets a limited number of tasks continue.
private actor Turns {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { free = count }

  func begin() async {
    if free == 0 { return await withCheckedContinuation { waiting.append($0) } }
    free -= 1
  }

  func end() { if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() } }
}
