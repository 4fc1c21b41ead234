// swift-format-ignore-file
// The examples of the articles about row stores and row batches, word for word; `SnippetTests` compares them. The tests run.
import Foundation
import HoldfastStore
import HoldfastStoreConformance
import LogStore
import Testing

struct LogHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.log(at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return StorePlace(
      .log(at: folder.appending(path: "store.log").path), discard: { try? FileManager.default.removeItem(at: folder) })
  }
}

@Suite struct LogStoreTests {
  @Test(arguments: StoreConformance.cases(for: LogHarness().capabilities))
  func contract(_ rule: StoreConformanceCase) async throws { try await rule.run(on: LogHarness()) }
}

/// Rows by value, and cell by cell.
enum RowBatchExample {
  static func easy(_ entity: ManagedObjectModel.Entity, _ identity: StoreIdentity) throws -> RowBatchBuilder {
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    try builder.append(key: 1, version: 1, values: [.int16(3), .string("Fido"), .null])
    return builder
  }

  static func fast(_ builder: RowBatchBuilder, _ name: [UInt8]) {
    builder.beginRow(key: 2, version: 1)
    builder.append(integer: 7)
    name.withUnsafeBytes { builder.append(bytes: $0) }
    builder.appendNull()
    builder.endRow()
  }

  static func deliver(_ builder: RowBatchBuilder, to sink: any RowSink) throws {
    if builder.isFull, try sink.take(builder.seal(), .all) == .enough { return }
  }
}

@Suite struct RowBatchExampleTests {
  @Test func bothWaysGiveRows() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("age", .integer16), AttributeDescription("name", .string)],
        relationships: [.toOne("owner", to: "Dog", inverse: nil)])
    ])
    let entity = model.entities[0], identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model)
    let builder = try RowBatchExample.easy(entity, identity)
    RowBatchExample.fast(builder, Array("Rex".utf8))
    let batch = builder.seal()
    #expect(batch[0].values == [.int16(3), .string("Fido"), .null] && batch[1].values == [.int16(7), .string("Rex"), .null])
    #expect(RowBatch.count(12)[0].values == [.int64(12)])
  }
}
