import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Another process, which uses the lock file of a copy, takes keys that this store has reserved.
@Suite(.bothReaders) struct JSONTakenKeyTests {
  private let file: JSONFile
  private let copy: JSONFile

  init() throws {
    file = try JSONFile()
    copy = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
  }

  private func insertSign(_ key: ObjectKey, _ identity: StoreIdentity) throws -> SaveRequest {
    let entity = try #require(Library.model.entity(named: "Sign"))
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    try builder.append(key: key, version: 1, values: [.string("ours")])
    var changes = SaveRequest.EntityChanges(entity: entity.index)
    changes.inserted = [builder.seal()]
    return SaveRequest(entities: [changes])
  }

  /// Makes a later version with new objects from a copy, and replaces the file with it.
  private func replaceByLaterVersion() throws {
    try copy.write(try file.bytes())
    let context = try copy.context()
    for _ in 0..<2 { try context.insert(entityNamed: "Sign").setValue(.string("theirs"), forKey: "text") }
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(rename(copy.path, file.path) == 0)
  }

  @Test func keysThatWereTakenBetweenSettingAsideAndSavingAreAnErrorAfterWhichOthersWork() throws {
    let store = WholeFileStore(jsonAt: file.path)
    let identity = try store.open(model: Library.model).identity
    let entity = try #require(Library.model.entity(named: "Sign")).index
    let taken = try store.reserveKeys(entity: entity, count: 1)[0]
    try replaceByLaterVersion()
    let theirs = try file.bytes()
    // A retry reserves other keys. It is of no use for an object that already had its permanent ID.
    for isRetryable in [true, false] {
      let error = try #require(throws: StoreError.self) { try store.prepare(insertSign(taken, identity)) }
      #expect(error.code == .storeReplaced && error.isRetryable == isRetryable && error.path == file.path, "\(error)")
    }
    let isTheirs = try file.bytes() == theirs
    #expect(isTheirs)
    let other = try store.reserveKeys(entity: entity, count: 1)[0]
    #expect(other > taken.advanced(by: 1))
    try store.prepare(insertSign(other, identity)).commit()
    try store.close()
    let context = try file.context()
    #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Sign")) == 4)
    try context.persistentStoreCoordinator.close()
  }

  /// If no other process has saved, the caller has used a key twice, and retrying doesn't help.
  @Test func aKeyThatTheCallerUsesTwiceIsNoChangeOfTheFile() throws {
    let store = WholeFileStore(jsonAt: file.path)
    let identity = try store.open(model: Library.model).identity
    let error = try #require(throws: StoreError.self) { try store.prepare(insertSign(1, identity)) }
    #expect(error.code == .general && !error.isRetryable && error.path == file.path, "\(error)")
    try store.close()
  }

  @Test func keysThatAnotherProcessUsedAreNotReserved() throws {
    let store = WholeFileStore(jsonAt: file.path)
    _ = try store.open(model: Library.model)
    let entity = try #require(Library.model.entity(named: "Sign")).index
    try replaceByLaterVersion()
    #expect(try store.reserveKeys(entity: entity, count: 2) == [4, 5])
    try store.close()
    #expect(file.names == [".store.json.lock", "store.json"])
  }
}
