import HoldfastStore
import HoldfastSupport
import Synchronization

/// A cache of recently read and saved rows, shared by every context that isn't pinned to a generation. Each generation has another one.
///
/// When the younger of two halves exceeds half of the limit, the older one is released. So the batches need at most the limit, and as much
/// as the largest of them. Publishing never replaces a row with an older version. Thread-safe.
final class RowCache: Sendable {
  private struct Generations {
    var young = RowCacheGeneration()
    var old = RowCacheGeneration()
    /// Incremented when rows read earlier may be outdated, so that they aren't inserted afterwards.
    var epoch = 0

    mutating func insert(_ batch: RowBatch, _ rows: RowSelection, _ root: EntityIndex, _ byteLimit: Int, isSaved: Bool) {
      if byteLimit == 0 { return }
      young.publish(batch, rows, root, unlessNewerIn: old)
      if isSaved { young.hasSavedRows = true }
      if young.byteCount > byteLimit / 2 {
        // A running read may have former versions of the saved rows, which nothing would distinguish any more.
        if old.hasSavedRows { epoch += 1 }
        old = young
        young = RowCacheGeneration()
      }
    }

    func remove(_ root: EntityIndex, _ keys: [ObjectKey]) {
      for key in keys {
        young.remove(root, key)
        old.remove(root, key)
      }
    }
  }

  /// A result or save with more rows than this isn't cached.
  static let largestPublication = 4096

  /// Guards both halves.
  private let generations = Mutex(Generations())
  private let byteLimit: Int

  /// - Parameter byteLimit: The limit in bytes; 0 for a cache that stays empty.
  init(byteLimit: Int = 16 << 20) { self.byteLimit = byteLimit }

  /// The row with a key.
  func row(root: EntityIndex, key: ObjectKey) -> (batch: RowBatch, index: Int)? {
    generations.withLock { $0.young.row(root, key) ?? $0.old.row(root, key) }
  }

  /// The row with a key, if its version is later than another one.
  func row(root: EntityIndex, key: ObjectKey, laterThan version: RowVersion) -> (batch: RowBatch, index: Int)? {
    generations.withLock { generations in
      guard let known = generations.young.version(root, key) ?? generations.old.version(root, key), known > version else { return nil }
      return generations.young.row(root, key) ?? generations.old.row(root, key)
    }
  }

  /// The cache epoch. Read it before reading rows and pass it to `publish`, so that rows invalidated in between aren't cached.
  var epoch: Int { generations.withLock { $0.epoch } }

  /// Inserts the rows of a batch that a store has delivered, unless the epoch has changed since they were read.
  ///
  /// Other rows of the batch may be former versions, or those of deleted objects.
  func publish(_ batch: RowBatch, _ rows: RowSelection = .all, root: EntityIndex, readIn epoch: Int) {
    generations.withLock { generations in
      if generations.epoch == epoch { generations.insert(batch, rows, root, byteLimit, isSaved: false) }
    }
  }

  /// What a save changes in the cache.
  struct SavedRows {
    /// The saved rows, with the indexes of their root entities.
    var batches: [(batch: RowBatch, root: EntityIndex)] = []
    /// Whether all other rows are removed.
    var removesAll = false
    /// The keys of rows to remove, by the index of the root entity.
    var removedKeys: [EntityIndex: [ObjectKey]] = [:]
    /// Whether rows of running reads stay out of the cache. Their derived values may be older than the save, although their versions are
    /// equal.
    var turnsAwayReads = false
  }

  /// Publishes a save in one step, so that rows read before the commit can't replace saved ones.
  ///
  /// - Parameter epoch: The epoch before the commit. If it has changed since, the saved rows may be outdated. Then none is inserted, their
  ///   former versions are removed, and rows of running reads stay out of the cache, because these may be the former versions.
  func publish(_ saved: SavedRows, committedIn epoch: Int) {
    generations.withLock { generations in
      let isCurrent = generations.epoch == epoch
      if saved.removesAll { generations = Generations(epoch: generations.epoch) }
      for (root, keys) in saved.removedKeys { generations.remove(root, keys) }
      if saved.removesAll || saved.turnsAwayReads || !saved.removedKeys.isEmpty || !isCurrent { generations.epoch += 1 }
      for (batch, root) in saved.batches {
        if isCurrent {
          generations.insert(batch, .all, root, byteLimit, isSaved: true)
        } else {
          generations.remove(root, (0..<batch.count).map { batch.pointer($0).key })
        }
      }
    }
  }

  /// Removes rows.
  func remove(root: EntityIndex, keys: [ObjectKey]) {
    generations.withLock { generations in
      generations.epoch += 1
      generations.remove(root, keys)
    }
  }

  /// Removes all rows.
  func removeAll() {
    generations.withLock { $0 = Generations(epoch: $0.epoch + 1) }
  }
}

/// One of the two halves of a ``RowCache``. Used only under the cache's lock.
private final class RowCacheGeneration {
  /// The location of a row.
  private struct Entry: HashSlot {
    var key: ObjectKey
    /// The root entity's index plus 1, or 0 if the slot is free.
    var root: UInt32
    var batch: UInt32
    /// The row's index in the batch.
    var row: UInt32

    static var free: Entry { Entry(key: 0, root: 0, batch: 0, row: 0) }
    var isFree: Bool { root == 0 }

    /// The hash wouldn't depend on the key's uppermost bits, which distinguish stores, so they are added to lower ones. Otherwise equal
    /// keys of two stores would collide.
    static func hash(_ root: UInt32, _ key: ObjectKey) -> Int {
      multiplicativeHash(key.rawValue &+ key.rawValue >> 40 &+ Int64(root) << 40)
    }
  }

  // The cache's lock prevents overlapping accesses, which the compiler would otherwise check at run time for each row.
  @exclusivity(unchecked) private var entries = HashTable<Entry>()
  @exclusivity(unchecked) private var batches: ContiguousArray<RowBatch> = []
  @exclusivity(unchecked) private(set) var byteCount = 0
  /// Whether any of the rows were inserted by a save.
  @exclusivity(unchecked) var hasSavedRows = false

  init() {}

  func row(_ root: EntityIndex, _ key: ObjectKey) -> (batch: RowBatch, index: Int)? {
    let entry = entries[index(UInt32(root.rawValue + 1), key)]
    return entry.isFree ? nil : (batches[Int(entry.batch)], Int(entry.row))
  }

  /// The version of a row; nil if there is none.
  func version(_ root: EntityIndex, _ key: ObjectKey) -> RowVersion? { version(entries[index(UInt32(root.rawValue + 1), key)]) }

  func publish(_ batch: RowBatch, _ rows: RowSelection, _ root: EntityIndex, unlessNewerIn older: RowCacheGeneration) {
    entries.reserve(rows.count(in: batch)) { Entry.hash($0.root, $0.key) }
    batches.append(batch)
    byteCount += batch.byteCount
    let number = UInt32(batches.count - 1), tag = UInt32(root.rawValue + 1)
    rows.forEach(in: batch) { position in
      let row = batch.pointer(position)
      insert(Entry(key: row.key, root: tag, batch: number, row: UInt32(position)), row, unlessNewerIn: older)
    }
  }

  @inline(__always) private func insert(_ entry: Entry, _ row: RowPointer, unlessNewerIn older: RowCacheGeneration) {
    let index = index(entry.root, entry.key)
    let version = version(entries[index]) ?? older.version(older.entries[older.index(entry.root, entry.key)])
    if let version, version > row.version { return }
    entries[index] = entry
  }

  private func version(_ entry: Entry) -> RowVersion? {
    entry.isFree ? nil : batches[Int(entry.batch)].pointer(Int(entry.row)).version
  }

  func remove(_ root: EntityIndex, _ key: ObjectKey) {
    let index = index(UInt32(root.rawValue + 1), key)
    if !entries[index].isFree { entries.remove(at: index) { Entry.hash($0.root, $0.key) } }
  }

  /// The index of a row's entry, or of the free slot for it.
  private func index(_ tag: UInt32, _ key: ObjectKey) -> Int {
    entries.index(hash: Entry.hash(tag, key)) { $0.key == key && $0.root == tag }
  }
}
