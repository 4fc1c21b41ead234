import HoldfastStore
import Testing

@testable import Holdfast

@Suite struct RowCacheTests {
  /// A batch with one row.
  private func row(_ key: ObjectKey, version: RowVersion, _ value: Int64) throws -> RowBatch {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.integer64)]), idPrefix: nil)
    try builder.append(key: key, version: version, values: [.int64(value)])
    return builder.seal()
  }

  private func value(_ cache: RowCache, _ key: ObjectKey) -> Int64? {
    cache.row(root: 0, key: key).map { batch, index in batch.pointer(index).integer(0) }
  }

  @Test func aRowReadBeforeACommitDoesNotReplaceASavedRowOfTheSameVersion() throws {
    let cache = RowCache(), epoch = cache.epoch
    let saved = RowCache.SavedRows(batches: [(try row(1, version: 5, 2), 0)], turnsAwayReads: true)
    cache.publish(saved, committedIn: epoch)
    cache.publish(try row(1, version: 5, 1), root: 0, readIn: epoch)
    #expect(value(cache, 1) == 2)
  }

  @Test func aSaveReplacesRowsReadDuringItsCommit() throws {
    let cache = RowCache()
    cache.remove(root: 0, keys: [1])
    cache.publish(try row(1, version: 1, 1), root: 0, readIn: cache.epoch)
    cache.publish(RowCache.SavedRows(batches: [(try row(1, version: 2, 2), 0)]), committedIn: cache.epoch)
    #expect(value(cache, 1) == 2)
  }

  @Test func aRowThatIsRemovedAfterTheCommitIsNotInsertedAgain() throws {
    let cache = RowCache(), epoch = cache.epoch
    cache.remove(root: 0, keys: [1])
    cache.publish(RowCache.SavedRows(batches: [(try row(1, version: 2, 2), 0)]), committedIn: epoch)
    #expect(value(cache, 1) == nil)
  }

  /// Another row is removed during the commit, so the saved row isn't inserted. A read that began after that has the former version.
  @Test func aRowReadBeforeACommitIsNotInsertedAfterItIfTheSavedRowIsNot() throws {
    let cache = RowCache(), epoch = cache.epoch
    cache.remove(root: 0, keys: [9])
    let reading = cache.epoch
    cache.publish(RowCache.SavedRows(batches: [(try row(1, version: 2, 2), 0)]), committedIn: epoch)
    cache.publish(try row(1, version: 1, 1), root: 0, readIn: reading)
    #expect(value(cache, 1) == nil)
    cache.publish(try row(1, version: 2, 2), root: 0, readIn: cache.epoch)
    #expect(value(cache, 1) == 2)
  }

  @Test func aRowReadBeforeACommitIsNotInsertedAfterTheSavedRowWasReleased() throws {
    // Each publication fills one half of the cache.
    let cache = RowCache(byteLimit: 1), epoch = cache.epoch
    cache.publish(RowCache.SavedRows(batches: [(try row(1, version: 2, 2), 0)]), committedIn: epoch)
    #expect(value(cache, 1) == 2)
    for key in 2...3 { cache.publish(try row(ObjectKey(key), version: 1, 1), root: 0, readIn: cache.epoch) }
    #expect(value(cache, 1) == nil)
    cache.publish(try row(1, version: 1, 1), root: 0, readIn: epoch)
    #expect(value(cache, 1) == nil)
  }

  @Test func onlyTheRowsThatAStoreHasDeliveredAreInserted() throws {
    let cache = RowCache(), builder = RowBatchBuilder(layout: RowLayout([.attribute(.integer64)]), idPrefix: nil)
    for key in 1...4 { try builder.append(key: ObjectKey(key), version: 1, values: [.int64(Int64(key))]) }
    let batch = builder.seal()
    cache.publish(batch, .one(2), root: 0, readIn: cache.epoch)
    #expect((1...4).map { value(cache, ObjectKey($0)) } == [nil, nil, 3, nil])
    cache.publish(batch, .rows([3, 0]), root: 0, readIn: cache.epoch)
    #expect((1...4).map { value(cache, ObjectKey($0)) } == [1, nil, 3, 4])
    cache.publish(batch, root: 0, readIn: cache.epoch)
    #expect((1...4).map { value(cache, ObjectKey($0)) } == [1, 2, 3, 4])
  }

  @Test func aSaveWithDeletionsKeepsItsOwnRowsOnly() throws {
    let cache = RowCache(), epoch = cache.epoch
    for key in 1...3 { cache.publish(try row(ObjectKey(key), version: 1, 1), root: 0, readIn: epoch) }
    var saved = RowCache.SavedRows(batches: [(try row(2, version: 2, 2), 0)], removedKeys: [0: [3]])
    cache.publish(saved, committedIn: cache.epoch)
    #expect(value(cache, 1) == 1 && value(cache, 2) == 2 && value(cache, 3) == nil)
    saved = RowCache.SavedRows(batches: [(try row(2, version: 3, 3), 0)], removesAll: true)
    cache.publish(saved, committedIn: cache.epoch)
    #expect(value(cache, 1) == nil && value(cache, 2) == 3)
    cache.publish(try row(1, version: 1, 1), root: 0, readIn: epoch)
    #expect(value(cache, 1) == nil, "The row was read before the deletion.")
  }
}
