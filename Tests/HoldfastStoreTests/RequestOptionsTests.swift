import Foundation
import HoldfastStore
import Synchronization
import TestSupport
import Testing

@Suite struct RequestOptionsTests {
  private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func increment() { count.withLock { $0 += 1 } }
  }

  private func code(_ body: () throws -> Void) -> StoreError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? StoreError)?.code }
  }

  @Test func optionsWithoutContentsNeverThrow() {
    for options in [RequestOptions.none, RequestOptions(), RequestOptions(label: "import")] {
      #expect(options.isUnlimited && code { try options.check("fetch") } == nil)
    }
    #expect(RequestOptions(label: "import").label == "import")
    #expect(MemoryLayout<RequestOptions>.size == MemoryLayout<UnsafeRawPointer>.size)
  }

  @Test func aRequestThrowsAfterItsDeadline() {
    #expect(code { try RequestOptions(deadline: .now - .seconds(1)).check("fetch") } == .timedOut)
    #expect(code { try RequestOptions(deadline: .now + .seconds(1000)).check("fetch") } == nil)
    let error = #expect(throws: StoreError.self) { try RequestOptions(deadline: .now - .seconds(1)).check("fetch Person") }
    #expect(error?.operation == "fetch Person" && error?.isRetryable == true)
  }

  @Test func aRequestThrowsAfterItsCancellation() {
    let cancellation = RequestCancellation(), options = RequestOptions(deadline: .now - .seconds(1), cancellation: cancellation)
    #expect(!cancellation.isCancelled && code { try options.check("fetch") } == .timedOut)
    cancellation.cancel()
    cancellation.cancel()
    #expect(cancellation.isCancelled && code { try options.check("fetch") } == .cancelled)
    #expect(code { try options.withCancellationHandler({ Issue.record("The handler was called.") }, operation: {}) } == .cancelled)
  }

  @Test func theCurrentTaskCancelsItsRequests() async {
    let task = Task {
      let options = RequestOptions(cancellation: RequestCancellation())
      #expect(code { try options.check("fetch") } == nil)
      withUnsafeCurrentTask { $0?.cancel() }
      #expect(code { try RequestOptions.none.check("fetch") } == nil)
      return code { try options.check("fetch") }
    }
    #expect(await task.value == .cancelled)
  }

  @Test func aHandlerIsCalledOnceAndOnlyDuringItsOperation() throws {
    let cancellation = RequestCancellation(), options = RequestOptions(cancellation: cancellation)
    let calls = Counter()
    #expect(try options.withCancellationHandler({ calls.increment() }) { 7 } == 7)
    try options.withCancellationHandler({ calls.increment() }) {
      try options.withCancellationHandler({ calls.increment() }) { cancellation.cancel() }
      #expect(calls.value == 2)
    }
    cancellation.cancel()
    #expect(calls.value == 2)
  }

  @Test func aHandlerHasReturnedWhenItsOperationReturns() throws {
    for _ in 0..<50 {
      let cancellation = RequestCancellation(), connection = Counter()
      let mayCancel = DispatchSemaphore(value: 0), hasBegun = DispatchSemaphore(value: 0), hasEnded = DispatchSemaphore(value: 0)
      startThread {
        mayCancel.wait()
        cancellation.cancel()
        hasEnded.signal()
      }
      let handler: @Sendable () -> Void = {
        hasBegun.signal()
        usleep(1000)
        connection.increment()
      }
      // The operation returns while the handler runs.
      try RequestOptions(cancellation: cancellation).withCancellationHandler(handler) {
        mayCancel.signal()
        hasBegun.wait()
      }
      #expect(connection.value == 1)
      hasEnded.wait()
    }
  }
}
