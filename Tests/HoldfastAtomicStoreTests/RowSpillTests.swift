import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// Rows of a migration in a temporary file.
@Suite struct RowSpillTests {
  private func batches(_ count: Int) throws -> [RowBatch] {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Dog", attributes: [.init("age", .integer64), .init("name", .string, isOptional: true)])])
    let entity = try #require(model.entity(named: "Dog"))
    let identity = StoreIdentity.intern(storeUUID: SaveOrigin.newID().uuidString, model: model)
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    return try (0..<count).map { number in
      for row in 0..<100 {
        let key = Int64(100 * number + row + 1)
        try builder.append(
          key: ObjectKey(rawValue: key), version: 1, values: [.int64(key), row % 3 == 0 ? .null : .string("dog \(key)")])
      }
      return builder.seal()
    }
  }

  private func rows(_ batch: RowBatch) -> [[StoreValue]] { (0..<batch.count).map { batch[$0].values } }

  @Test func rowsBeyondASizeAreInTheFileAndEqual() throws {
    let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
    defer { file.close() }
    let batches = try batches(20), byteCount = batches[0].byteCount
    RowSpill.$residentByteCount.withValue(3 * byteCount) {
      let spill = RowSpill(beside: file), kept = batches.map { spill.kept($0) }
      var room = 3 * byteCount
      let moved = batches.count { batch in
        let stays = room >= batch.byteCount
        if stays { room -= batch.byteCount }
        return !stays
      }
      #expect(spill.batchCount == moved && moved >= 15 && moved < 20)
      for (before, after) in zip(batches, kept) {
        after.load()
        #expect(rows(after) == rows(before) && after.layout == before.layout)
        #expect(after.idPrefix == before.idPrefix && after.pointer(7).key == before.pointer(7).key)
        after.evict()
        after.load()
        #expect(after[99].values == before[99].values)
        after.evict()
      }
      #expect(folder.names.isEmpty, "\(folder.names)")
    }
  }

  #if os(Linux)
    @Test func rowsThatCannotBeReadAreEmptyAndAnError() throws {
      let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
      defer { file.close() }
      let batches = try batches(3)
      try RowSpill.$residentByteCount.withValue(0) {
        let spill = RowSpill(beside: file), kept = batches.map { spill.kept($0) }
        try spill.verifying {}
        #expect(folder.truncateUnnamedFiles() == 1)
        let error = #expect(throws: StoreError.self) {
          try spill.verifying {
            for batch in kept { batch.load() }
            #expect(kept.allSatisfy { batch in rows(batch).allSatisfy { $0 == [.null, .null] } })
          }
        }
        #expect(error?.code == .inputOutput && error?.path == file.path, "\(String(describing: error))")
        // An error that may follow from it isn't thrown.
        let other = #expect(throws: StoreError.self) {
          try spill.verifying { () throws -> Void in throw StoreError(.damaged, operation: "read rows", reason: "") }
        }
        #expect(other?.code == .inputOutput)
      }
    }
  #endif

  @Test func rowsStayInMemoryInOtherFileSystems() throws {
    struct Other: ForwardingFileSystem { let base: any StoreFileSystem = POSIXFileSystem() }
    let folder = TemporaryFolder()
    let file = try DurableFile(path: folder.file("store"), options: DurableFileOptions(fileSystem: Other()))
    defer { file.close() }
    let batches = try batches(3)
    RowSpill.$residentByteCount.withValue(0) {
      let spill = RowSpill(beside: file)
      #expect(batches.allSatisfy { spill.kept($0) === $0 } && spill.batchCount == 0)
    }
  }

  /// As many rows as in a large file: their links and values are collected in parts.
  @Test func manyRowsHaveTheSameIndexesAsFew() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Dog", attributes: [.init("chip", .integer64, isOptional: true)],
          relationships: [
            .toOne("friend", to: "Dog", inverse: "friends"), .toMany("friends", to: "Dog", inverse: "friend"),
            .toOne("owner", to: "Owner", inverse: "dogs"),
          ], uniquenessConstraints: [["chip"]]),
        EntityDescription("Owner", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      ])
    let identity = StoreIdentity.intern(storeUUID: SaveOrigin.newID().uuidString, model: model)
    let dog = try #require(model.entity(named: "Dog")), owner = try #require(model.entity(named: "Owner"))
    let friends = try #require(dog.relationship(named: "friends")), dogs = try #require(owner.relationship(named: "dogs"))
    let count = 300_000
    func changes(_ entity: ManagedObjectModel.Entity, _ count: Int, _ values: (Int) -> [String: StoreValue]) throws
      -> SaveRequest.EntityChanges
    {
      let builder = RowBatchBuilder(entity: entity, identity: identity)
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      for number in 1...count {
        let row = values(number)
        try builder.append(key: ObjectKey(rawValue: Int64(number)), version: 1, values: entity.slots.map { row[$0.name] ?? .null })
        if builder.isFull { changes.inserted.append(builder.seal()) }
      }
      if builder.count > 0 { changes.inserted.append(builder.seal()) }
      return changes
    }
    func chip(_ number: Int) -> StoreValue { number % 10 == 0 ? .null : .int64(Int64(number * 7)) }
    var request = SaveRequest(
      entities: [
        try changes(dog, count) { number in
          ["chip": chip(number), "friend": .int64(Int64(number / 2 + 1)), "owner": .int64(Int64(number % 100 + 1))]
        }, try changes(owner, 100) { _ in [:] },
      ])
    let empty = TableGeneration(empty: TableSchema(model: model, identity: identity))
    let generation = try TableSave.next(request, after: empty)
    #expect(generation.targets(of: 5, dogs).map(\.rawValue) == (1...count).filter { $0 % 100 == 4 }.map(Int64.init))
    #expect(generation.targets(of: 1_000, friends) == [1_998, 1_999])
    #expect(generation.linkCount(of: friends) == count && generation.linkCount(of: dogs) == count)

    // A value that is far away is found, too.
    request.entities[0] = try changes(dog, count) { number in ["chip": number == count - 1 ? chip(11) : chip(number)] }
    let error = #expect(throws: StoreError.self) { try TableSave.next(request, after: empty) }
    #expect(error?.constraintConflicts.map(\.objectID.key.rawValue) == [Int64(count - 1)])
    #expect(error?.constraintConflicts.map(\.existing?.key.rawValue) == [11])
  }
}
