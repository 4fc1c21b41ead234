import Holdfast
import HoldfastMemoryStore
import TestSupport
import Testing

/// Calls of one background context within calls of another. In processes of their own, because a queue that waits for itself traps.
@Suite struct NestedPerformTests {
  static func contexts() throws -> (BackgroundContext, BackgroundContext) {
    let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: .memory())
    return (container.newBackgroundContext(), container.newBackgroundContext())
  }

  @Test(.ownThreads) func aContextIsUsedWithinAnotherOneThatWaitsWithinItsPerformAndWait() async {
    await #expect(processExitsWith: .success) {
      let (first, second) = try NestedPerformTests.contexts()
      first.performAndWait { own in
        second.performAndWait { other in
          // The second time, the context must still know that the thread has its queue.
          for name in ["Fido", "Rex"] { first.performAndWait { _ = $0.dog(name) } }
          other.dog("Max")
        }
        own.dog("Sam")
        #expect(own.insertedObjects.count == 3)
      }
      #expect(second.performAndWait { $0.insertedObjects.count } == 1)
    }
  }

  @Test(.ownThreads) func aContextIsUsedWithinAnotherOneThatWaitsWithinItsPerform() async {
    await #expect(processExitsWith: .success) {
      let (first, second) = try NestedPerformTests.contexts()
      let count = await first.perform { own in
        second.performAndWait { _ in first.performAndWait { _ = $0.dog("Fido") } }
        own.dog("Rex")
        return own.insertedObjects.count
      }
      #expect(count == 2)
    }
  }

  @Test(.ownThreads) func anErrorPassesThroughAllNestedCalls() async {
    await #expect(processExitsWith: .success) {
      let (first, second) = try NestedPerformTests.contexts()
      #expect(throws: CancellationError.self) {
        try first.performAndWait { _ in
          try second.performAndWait { _ in
            try first.performAndWait { _ throws -> Void in throw CancellationError() }
          }
        }
      }
    }
  }
}
