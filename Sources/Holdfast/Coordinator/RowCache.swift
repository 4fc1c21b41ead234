import HoldfastStore
import Synchronization

/// Rows that were read or saved lately, shared by all contexts that are not pinned to a snapshot.
///
/// Bounded: when the younger of two generations has half of the allowed bytes, the older one goes. Publishing never
/// replaces a newer version of a row by an older one. Thread-safe.
final class RowCache: Sendable {
  private struct Generations {
    var young = RowCacheGeneration()
    var old = RowCacheGeneration()
  }

  /// Guards both generations.
  private let generations = Mutex(Generations())
  private let byteLimit: Int

  init(byteLimit: Int = 16 << 20) { self.byteLimit = byteLimit }

  /// The row with a key.
  func row(root: Int, key: Int64) -> (batch: RowBatch, index: Int)? {
    generations.withLock { $0.young.row(root, key) ?? $0.old.row(root, key) }
  }

  /// Takes in the rows of a batch.
  func publish(_ batch: RowBatch, root: Int) {
    generations.withLock { generations in
      generations.young.publish(batch, root, unlessNewerIn: generations.old)
      if generations.young.byteCount > byteLimit / 2 {
        generations.old = generations.young
        generations.young = RowCacheGeneration()
      }
    }
  }

  /// Forgets rows that were deleted.
  func remove(root: Int, keys: [Int64]) {
    generations.withLock { generations in
      for key in keys {
        generations.young.remove(root, key)
        generations.old.remove(root, key)
      }
    }
  }

  /// Forgets everything.
  func removeAll() {
    generations.withLock { $0 = Generations() }
  }
}

/// One generation of a ``RowCache``: open addressing over plain numbers, without the run-time generics of a dictionary.
/// Only ever used under the cache's lock.
private final class RowCacheGeneration {
  private struct Entry {
    var key: Int64
    /// The root entity's index + 1; 0 is free.
    var root: UInt32
    var batch: UInt32
    /// The row's place in the batch; `removed` when it was forgotten.
    var row: UInt32
    static let removed = UInt32.max
  }

  private var entries: UnsafeMutablePointer<Entry>?
  private var mask = -1
  private var used = 0
  private var batches: ContiguousArray<RowBatch> = []
  private(set) var byteCount = 0

  init() {}

  deinit { entries?.deallocate() }

  func row(_ root: Int, _ key: Int64) -> (batch: RowBatch, index: Int)? {
    guard let entry = find(root, key), entry.pointee.row != Entry.removed else { return nil }
    return (batches[Int(entry.pointee.batch)], Int(entry.pointee.row))
  }

  func publish(_ batch: RowBatch, _ root: Int, unlessNewerIn older: RowCacheGeneration) {
    reserve(batch.count)
    batches.append(batch)
    byteCount += batch.byteCount
    let number = UInt32(batches.count - 1)
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      if let known = self.row(root, row.key) ?? older.row(root, row.key), known.batch.pointer(known.index).version > row.version {
        continue
      }
      set(root, row.key, number, UInt32(index))
    }
  }

  func remove(_ root: Int, _ key: Int64) { find(root, key)?.pointee.row = Entry.removed }

  private func home(_ root: UInt32, _ key: Int64) -> Int {
    Int(truncatingIfNeeded: (UInt64(bitPattern: key) &+ UInt64(root) << 40) &* 0x9E37_79B9_7F4A_7C15 >> 32) & mask
  }

  private func find(_ root: Int, _ key: Int64) -> UnsafeMutablePointer<Entry>? {
    guard let entries else { return nil }
    let tag = UInt32(root + 1)
    var slot = home(tag, key)
    while entries[slot].root != 0 {
      if entries[slot].key == key && entries[slot].root == tag { return entries + slot }
      slot = (slot + 1) & mask
    }
    return nil
  }

  private func set(_ root: Int, _ key: Int64, _ batch: UInt32, _ row: UInt32) {
    guard let entries else { return }
    let tag = UInt32(root + 1)
    var slot = home(tag, key)
    while entries[slot].root != 0, entries[slot].key != key || entries[slot].root != tag { slot = (slot + 1) & mask }
    if entries[slot].root == 0 { used += 1 }
    entries[slot] = Entry(key: key, root: tag, batch: batch, row: row)
  }

  private func reserve(_ more: Int) {
    guard (used + more) * 2 > mask + 1 else { return }
    var slots = 64
    while slots < (used + more) * 3 { slots *= 2 }
    let before = (entries, mask + 1)
    let fresh = UnsafeMutablePointer<Entry>.allocate(capacity: slots)
    fresh.initialize(repeating: Entry(key: 0, root: 0, batch: 0, row: 0), count: slots)
    (entries, mask, used) = (fresh, slots - 1, 0)
    if let old = before.0 {
      for slot in 0..<before.1 where old[slot].root != 0 { set(Int(old[slot].root) - 1, old[slot].key, old[slot].batch, old[slot].row) }
      old.deallocate()
    }
  }
}
