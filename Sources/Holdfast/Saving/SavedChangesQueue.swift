import HoldfastStore
import Synchronization

/// The changes that wait in one sequence of ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)``.
///
/// If the reader is too slow, the oldest changes are replaced by a note for each store that any of its objects may have changed. So the
/// number of saves in memory is bounded, each with the IDs of its objects, and a gap isn't silent.
///
/// Usually there is one reader. But several tasks can iterate over copies of the sequence, and `AsyncStream` doesn't serialize their calls.
/// Each change then goes to one of them.
final class SavedChangesQueue: Sendable {
  private struct Contents {
    /// The notes for changes that were dropped, one for each store, which come before the rest.
    var notes: [SavedChanges] = []
    var waiting: [SavedChanges] = []
    /// The position of the first element of ``waiting``. The elements before it were delivered.
    var first = 0
    /// The readers that wait, in the order of their calls. Empty while there are changes.
    var readers: [CheckedContinuation<SavedChanges?, Never>] = []
    var isEnded = false

    mutating func takeFirst() -> SavedChanges? { notes.isEmpty ? takeWaiting() : notes.removeFirst() }

    private mutating func takeWaiting() -> SavedChanges? {
      if first == waiting.count { return nil }
      defer {
        first += 1
        if first * 2 > waiting.count {
          waiting.removeFirst(first)
          first = 0
        }
      }
      return waiting[first]
    }

    /// Replaces the oldest changes by a note.
    mutating func dropOldest() {
      guard let dropped = takeWaiting(), !notes.contains(where: { $0.storeIdentifier == dropped.storeIdentifier }) else { return }
      notes.append(SavedChanges(storeIdentifier: dropped.storeIdentifier, contextName: "", mayIncludeOthers: true))
    }
  }

  private let contents = Mutex(Contents())
  private let limit: Int

  init(limit: Int) { self.limit = max(1, limit) }

  func add(_ changes: SavedChanges) {
    let reader = contents.withLock { contents -> CheckedContinuation<SavedChanges?, Never>? in
      if contents.isEnded { return nil }
      if !contents.readers.isEmpty { return contents.readers.removeFirst() }
      contents.waiting.append(changes)
      while contents.waiting.count - contents.first > limit { contents.dropOldest() }
      return nil
    }
    reader?.resume(returning: changes)
  }

  /// The next changes; nil at the end.
  func next() async -> SavedChanges? {
    await withCheckedContinuation { reader in
      let answer = contents.withLock { contents -> SavedChanges?? in
        if let first = contents.takeFirst() { return .some(first) }
        if contents.isEnded { return .some(nil) }
        contents.readers.append(reader)
        return nil
      }
      if let answer { reader.resume(returning: answer) }
    }
  }

  /// Ends the sequence. Changes that wait are still delivered.
  func end() {
    let readers = contents.withLock { contents in
      contents.isEnded = true
      defer { contents.readers = [] }
      return contents.readers
    }
    for reader in readers { reader.resume(returning: nil) }
  }

  /// The number of readers that wait.
  var waitingCount: Int { contents.withLock { $0.readers.count } }
}
