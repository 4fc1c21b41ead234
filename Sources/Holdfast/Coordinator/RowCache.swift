import HoldfastStore
import Synchronization

/// Rows that were read or saved lately, shared by all contexts that are not pinned to a snapshot.
///
/// Bounded: when the younger of two generations has half of the allowed bytes, the older one goes. Publishing never
/// replaces a newer version of a row by an older one. Thread-safe.
final class RowCache: Sendable {
  private struct Entry {
    let batch: RowBatch
    let index: Int
  }

  private struct Key: Hashable {
    let root: Int
    let key: Int64
  }

  private struct Generations {
    var young: [Key: Entry] = [:]
    var old: [Key: Entry] = [:]
    var youngBytes = 0
  }

  /// Guards both generations.
  private let generations = Mutex(Generations())
  private let byteLimit: Int

  init(byteLimit: Int = 16 << 20) { self.byteLimit = byteLimit }

  /// The row with a key.
  func row(root: Int, key: Int64) -> (batch: RowBatch, index: Int)? {
    generations.withLock { generations in
      let key = Key(root: root, key: key)
      guard let entry = generations.young[key] ?? generations.old[key] else { return nil }
      return (entry.batch, entry.index)
    }
  }

  /// Takes in the rows of a batch.
  func publish(_ batch: RowBatch, root: Int) {
    generations.withLock { generations in
      for index in 0..<batch.count {
        let row = batch.pointer(index)
        let key = Key(root: root, key: row.key)
        if let known = generations.young[key] ?? generations.old[key], known.batch.pointer(known.index).version > row.version { continue }
        generations.young[key] = Entry(batch: batch, index: index)
      }
      generations.youngBytes += batch.byteCount
      if generations.youngBytes > byteLimit / 2 {
        generations.old = generations.young
        generations.young = [:]
        generations.youngBytes = 0
      }
    }
  }

  /// Forgets rows that were deleted.
  func remove(root: Int, keys: [Int64]) {
    generations.withLock { generations in
      for key in keys {
        generations.young[Key(root: root, key: key)] = nil
        generations.old[Key(root: root, key: key)] = nil
      }
    }
  }

  /// Forgets everything.
  func removeAll() {
    generations.withLock { $0 = Generations() }
  }
}
