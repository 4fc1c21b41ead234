import HoldfastStore
import Synchronization

/// A cache of recently read and saved rows, shared by every context that isn't pinned to a generation.
///
/// Its memory is bounded: when the younger of two halves exceeds half of the limit, the older one is released. Publishing never replaces a
/// row with an older version. Thread-safe.
final class RowCache: Sendable {
  private struct Generations {
    var young = RowCacheGeneration()
    var old = RowCacheGeneration()
    /// Incremented whenever rows are removed, so that rows read before aren't inserted afterwards.
    var epoch = 0
  }

  /// The maximum number of rows of a result or save that are cached. More aren't worth the memory.
  static let largestPublication = 4096

  /// Guards both generations.
  private let generations = Mutex(Generations())
  private let byteLimit: Int

  init(byteLimit: Int = 16 << 20) { self.byteLimit = byteLimit }

  /// The row with a key.
  func row(root: Int, key: Int64) -> (batch: RowBatch, index: Int)? {
    generations.withLock { $0.young.row(root, key) ?? $0.old.row(root, key) }
  }

  /// The cache epoch. Read it before reading rows and pass it to `publish`, so that rows invalidated in between aren't cached.
  var epoch: Int { generations.withLock { $0.epoch } }

  /// Inserts the rows of a batch, unless rows were removed since the given epoch.
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

  /// Keeps rows that are being read now out of the cache.
  ///
  /// They may have derived values from before a save, which a version can't show.
  func turnAwayReadsUnderWay() {
    generations.withLock { $0.epoch += 1 }
  }

  /// Removes deleted rows.
  func remove(root: Int, keys: [Int64]) {
    generations.withLock { generations in
      generations.epoch += 1
      for key in keys {
        generations.young.remove(root, key)
        generations.old.remove(root, key)
      }
    }
  }

  /// Removes all rows.
  func removeAll() {
    generations.withLock { $0 = Generations(epoch: $0.epoch + 1) }
  }
}

/// One of the two halves of a ``RowCache``: a hash table with open addressing, without the run-time generics of a dictionary.
///
/// Used only under the cache's lock.
private final class RowCacheGeneration {
  private struct Entry {
    var key: Int64
    /// The root entity's index + 1; 0 is free.
    var root: UInt32
    var batch: UInt32
    /// The row's index in the batch; `removed` for a removed row.
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
    // The hash wouldn't depend on the uppermost bits, which distinguish stores, so they are added to lower ones. Otherwise equal keys of two
    // stores would collide.
    let key = UInt64(bitPattern: key)
    return Int(truncatingIfNeeded: ((key &+ key >> 40 &+ UInt64(root) << 40) &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
  }

  private func find(_ root: Int, _ key: Int64) -> UnsafeMutablePointer<Entry>? {
    guard let entries else { return nil }
    let slot = slot(UInt32(root + 1), key)
    return entries[slot].root == 0 ? nil : entries + slot
  }

  /// The slot of a key, or the free slot for it.
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
