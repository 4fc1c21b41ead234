import Dispatch
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// A store on an asynchronous client waits for it with `RequestOptions.wait`.
@Suite struct AsyncWaitTests {
  private struct Failure: Error, Equatable {}

  @Test func theResultAndErrorsOfTheOperationAreReturned() async throws {
    #expect(
      try await onThread {
        try RequestOptions.none.wait(for: "add") {
          await Task.yield()
          return 3
        }
      } == 3)
    await #expect(throws: Failure()) { try await onThread { try RequestOptions.none.wait(for: "add") { throw Failure() } } }
  }

  /// The threads of Swift's pool may all wait for such operations.
  @Test func theOperationAndItsChildrenRunOutsideThePool() async throws {
    let areOutside = try await onThread {
      try RequestOptions.none.wait(for: "add") {
        @Sendable func isOutside() async -> Bool {
          await Task.yield()
          return withUnsafeCurrentTask { $0?.unownedTaskExecutor != nil }
        }
        async let child = isOutside()
        return [await isOutside(), await child, await Task { await isOutside() }.value]
      }
    }
    #expect(areOutside == [true, true, false])
  }

  /// The bug: when 255 background contexts waited for operations, Linux had no thread left for these, so all of them waited forever.
  @Test(.ownThreads) func operationsRunIfAllThreadsThatQueuesCanGetWaitForThem() async {
    // In a process of its own, because queues of other tests would get no threads either.
    await #expect(processExitsWith: .success) {
      let count = 300, begun = Atomic(0), ended = Atomic(0), failed = Atomic(0), gate = DispatchSemaphore(value: 0)
      let deadline = ContinuousClock.now + .seconds(60)
      for _ in 0..<count {
        startThread {
          begun.add(1, ordering: .sequentiallyConsistent)
          gate.wait()
          do {
            try RequestOptions(deadline: deadline).wait(for: "fetch rows") { await Task.yield() }
          } catch { failed.add(1, ordering: .sequentiallyConsistent) }
          ended.add(1, ordering: .sequentiallyConsistent)
        }
      }
      // When no further threads begin, queues have all that they can get.
      var before = 0
      while before == 0 || before < begun.load(ordering: .sequentiallyConsistent) {
        before = begun.load(ordering: .sequentiallyConsistent)
        try await Task.sleep(for: .milliseconds(200))
      }
      for _ in 0..<count { gate.signal() }
      while ended.load(ordering: .sequentiallyConsistent) < count { try await Task.sleep(for: .milliseconds(5)) }
      let failureCount = failed.load(ordering: .sequentiallyConsistent)
      #expect(failureCount == 0)
    }
  }

  @Test func aDeadlineCancelsTheOperationAndDoesNotWaitForIt() async throws {
    let (ended, continuation) = AsyncStream<Bool>.makeStream(), hasBegun = Atomic(false)
    var time = Duration.milliseconds(2)
    // On a busy machine, a deadline may pass before the operation begins. The next one is later.
    while !hasBegun.load(ordering: .sequentiallyConsistent) {
      let deadline = ContinuousClock.now + time
      let error = try await #require(throws: StoreError.self) {
        try await onThread {
          try RequestOptions(deadline: deadline).wait(for: "fetch rows") {
            hasBegun.store(true, ordering: .sequentiallyConsistent)
            // Ends only because it is cancelled.
            try? await Task.sleep(for: .seconds(3_600))
            continuation.yield(Task.isCancelled)
          }
        }
      }
      #expect(error.code == .timedOut && error.isRetryable && error.operation == "fetch rows")
      time *= 2
    }
    var wasCancelled = ended.makeAsyncIterator()
    #expect(await wasCancelled.next() == true)
  }

  @Test func aCancellationCancelsTheOperation() async throws {
    let cancellation = RequestCancellation(), (started, continuation) = AsyncStream<Void>.makeStream()
    let request = Task {
      try await onThread {
        try RequestOptions(cancellation: cancellation).wait(for: "fetch rows") {
          continuation.yield()
          try await Task.sleep(for: .seconds(3_600))
        }
      }
    }
    var start = started.makeAsyncIterator()
    await start.next()
    cancellation.cancel()
    let error = try await #require(throws: StoreError.self) { try await request.value }
    #expect(error.code == .cancelled)
    let again = try await #require(throws: StoreError.self) {
      try await onThread { try RequestOptions(cancellation: cancellation).wait(for: "fetch rows") { 1 } }
    }
    #expect(again.code == .cancelled)
  }

  /// The bug: the client's error for its cancelled task was thrown. Clients have their own errors for that, such as `URLError.cancelled`.
  @Test func anyErrorOfACancelledOperationIsReportedAsItsCancellation() async throws {
    let cancellation = RequestCancellation(), (started, continuation) = AsyncStream<Void>.makeStream()
    let request = Task {
      try await onThread {
        try RequestOptions(cancellation: cancellation).wait(for: "fetch rows") { () async throws -> Void in
          continuation.yield()
          // Ends only because it is cancelled.
          try? await Task.sleep(for: .seconds(3_600))
          throw Failure()
        }
      }
    }
    var start = started.makeAsyncIterator()
    await start.next()
    cancellation.cancel()
    let error = try await #require(throws: StoreError.self) { try await request.value }
    #expect(error.code == .cancelled && error.operation == "fetch rows" && error.cause is Failure)
  }

  /// A context that takes it for a cancellation would save the changes again.
  @Test(arguments: [StoreError.Code.outcomeUnknown, .durabilityUnknown])
  func anErrorOfACancelledOperationThatMayHaveTakenEffectRemains(_ code: StoreError.Code) async throws {
    let cancellation = RequestCancellation(), (started, continuation) = AsyncStream<Void>.makeStream()
    let request = Task {
      try await onThread {
        try RequestOptions(cancellation: cancellation).wait(for: "save") { () async throws -> Void in
          continuation.yield()
          // Ends only because it is cancelled.
          try? await Task.sleep(for: .seconds(3_600))
          throw StoreError(code, operation: "save", reason: "The connection was closed.")
        }
      }
    }
    var start = started.makeAsyncIterator()
    await start.next()
    cancellation.cancel()
    let error = try await #require(throws: StoreError.self) { try await request.value }
    #expect(error.code == code)
  }

  /// Cancels at every moment around the beginning of the operation.
  @Test func aCancelledOperationHasEndedOrNeverBegan() async throws {
    for _ in 0..<300 {
      let cancellation = RequestCancellation(), begun = Atomic(0), ended = Atomic(0)
      async let cancelled: Void = onThread { cancellation.cancel() }
      let result = try await onThread {
        Result {
          try RequestOptions(cancellation: cancellation).wait(for: "fetch rows") {
            begun.add(1, ordering: .sequentiallyConsistent)
            defer { ended.add(1, ordering: .sequentiallyConsistent) }
            try await Task.sleep(for: .seconds(3_600))
          }
        }
      }
      #expect(throws: StoreError.self) { try result.get() }
      #expect(begun.load(ordering: .sequentiallyConsistent) == ended.load(ordering: .sequentiallyConsistent))
      try await cancelled
    }
  }
}
