import TestSupport
import Testing

@testable import Holdfast

/// Sequences of saved changes: several tasks that iterate over one, and those that were released.
@Suite struct SavedChangesQueueTests {
  private let queue = SavedChangesQueue(limit: 4)

  /// Begins tasks that read one element each. Each one waits before the next one begins.
  private func waitingReaders(_ count: Int) async -> [Task<SavedChanges?, Never>] {
    var readers: [Task<SavedChanges?, Never>] = []
    for number in 1...count {
      readers.append(Task { [queue] in await queue.next() })
      #expect(await eventually { queue.waitingCount == number })
    }
    return readers
  }

  @Test func readersThatWaitReceiveOneElementEachInTheOrderOfTheirCalls() async {
    let readers = await waitingReaders(3), names = ["a", "b", "c", "d"]
    for name in names { queue.add(SavedChanges(storeIdentifier: name, contextName: "")) }
    for (reader, name) in zip(readers, names) { #expect(await reader.value?.storeIdentifier == name) }
    #expect(await queue.next()?.storeIdentifier == "d")
  }

  @Test func theEndReachesAllReadersThatWait() async {
    let readers = await waitingReaders(3)
    queue.end()
    for reader in readers { #expect(await reader.value == nil) }
    #expect(await queue.next() == nil)
  }

  @Test func sequencesThatWereReleasedLeaveNothingBehindWithoutSaves() {
    let listeners = SaveListeners(), kept = listeners.stream(4)
    for _ in 0..<100 { _ = listeners.stream(4) }
    // The last one is noticed by the next call.
    #expect(listeners.readerCount == 2)
    withExtendedLifetime(kept) {}
  }
}
