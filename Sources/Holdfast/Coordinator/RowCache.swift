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
    /// Raised whenever rows are forgotten, so that what was read before is not taken in after.
    var epoch = 0
  }

  /// Results and saves of more rows than these are not worth the memory.
  static let largestPublication = 4096

  /// Guards both generations.
  private let generations = Mutex(Generations())
  private let byteLimit: Int

  init(byteLimit: Int = 16 << 20) { self.byteLimit = byteLimit }

  /// The row with a key.
  func row(root: Int, key: Int64) -> (batch: RowBatch, index: Int)? {
    generations.withLock { $0.young.row(root, key) ?? $0.old.row(root, key) }
  }

  /// A number to be asked for before rows are read, and handed in with them.
  var epoch: Int { generations.withLock { $0.epoch } }

  /// Takes in the rows of a batch, unless rows were forgotten since the epoch in which they were read.
  func publish(_ batch: RowBatch, root: Int, readIn epoch: Int) {
    generations.withLock { generations in
      if generations.epoch != epoch { return }
      generations.young.publish(batch, root, unlessNewerIn: generations.old)
      if generations.young.byteCount > byteLimit / 2 {
        generations.old = generations.young
        generations.young = RowCacheGeneration()
      }
    }
  }

  /// Keeps rows out that are being read now: they may have derived values from before a save, and derived values change without the
  /// version that would tell.
  func turnAwayReadsUnderWay() {
    generations.withLock { $0.epoch += 1 }
  }

  /// Forgets rows that were deleted.
  func remove(root: Int, keys: [Int64]) {
    generations.withLock { generations in
      generations.epoch += 1
      for key in keys {
        generations.young.remove(root, key)
        generations.old.remove(root, key)
      }
    }
  }

  /// Forgets everything.
  func removeAll() {
    generations.withLock { $0 = Generations(epoch: $0.epoch + 1) }
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
    guard let entries else { return }
    let tag = UInt32(root + 1)
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      let entry = entries + slot(tag, row.key)
      let isKnown = entry.pointee.root != 0
      let version = isKnown && entry.pointee.row != Entry.removed ? version(entry) : older.version(root, row.key)
      if let version, version > row.version { continue }
      if !isKnown { used += 1 }
      entry.pointee = Entry(key: row.key, root: tag, batch: number, row: UInt32(index))
    }
  }

  private func version(_ root: Int, _ key: Int64) -> Int64? {
    guard let entry = find(root, key), entry.pointee.row != Entry.removed else { return nil }
    return version(entry)
  }

  private func version(_ entry: UnsafeMutablePointer<Entry>) -> Int64 {
    batches[Int(entry.pointee.batch)].pointer(Int(entry.pointee.row)).version
  }

  func remove(_ root: Int, _ key: Int64) { find(root, key)?.pointee.row = Entry.removed }

  private func home(_ root: UInt32, _ key: Int64) -> Int {
    // The uppermost bits, which tell stores apart, are lost by the shift; equal keys of two stores would meet.
    let key = UInt64(bitPattern: key)
    return Int(truncatingIfNeeded: ((key &+ key >> 40 &+ UInt64(root) << 40) &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
  }

  private func find(_ root: Int, _ key: Int64) -> UnsafeMutablePointer<Entry>? {
    guard let entries else { return nil }
    let slot = slot(UInt32(root + 1), key)
    return entries[slot].root == 0 ? nil : entries + slot
  }

  /// Where a key stands, or could stand.
  private func slot(_ tag: UInt32, _ key: Int64) -> Int {
    guard let entries else { return 0 }
    var slot = home(tag, key)
    while entries[slot].root != 0, entries[slot].key != key || entries[slot].root != tag { slot = (slot + 1) & mask }
    return slot
  }

  private func reserve(_ more: Int) {
    guard (used + more) * 2 > mask + 1 else { return }
    var slots = 64
    while slots < (used + more) * 3 { slots *= 2 }
    let before = (entries, mask + 1)
    let fresh = UnsafeMutablePointer<Entry>.allocate(capacity: slots)
    fresh.initialize(repeating: Entry(key: 0, root: 0, batch: 0, row: 0), count: slots)
    (entries, mask) = (fresh, slots - 1)
    if let old = before.0 {
      for slot in 0..<before.1 where old[slot].root != 0 { fresh[self.slot(old[slot].root, old[slot].key)] = old[slot] }
      old.deallocate()
    }
  }
}
