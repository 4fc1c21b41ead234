// swift-format-ignore-file
// The examples of the articles about writing stores, word for word; `SnippetTests` compares them. The test runs.
import CSVStore
import Foundation
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import LogStore
import Testing

struct CSVHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.document(CSVFormat(), at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return StorePlace(
      .document(CSVFormat(), at: folder.appending(path: "store.csv").path),
      discard: { try? FileManager.default.removeItem(at: folder) })
  }
}

@Suite struct CSVStoreTests {
  @Test(arguments: StoreConformance.cases(for: CSVHarness().capabilities))
  func contract(_ rule: StoreConformanceCase) async throws { try await rule.run(on: CSVHarness()) }
}

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

struct LineFormat: DocumentFormat {
  let storeType = "lines"

  func encode(_ records: [DocumentRecord], header: String) throws -> [UInt8] {
    let lines = try records.map { String(decoding: try JSONEncoder().encode([$0.entity: $0.fields]), as: UTF8.self) }
    return Array(([header] + lines).joined(separator: "\n").utf8)
  }

  func decode(_ bytes: [UInt8]) throws -> [DocumentRecord] {
    try bytes.split(separator: UInt8(ascii: "\n")).dropFirst().map { line in
      let record = try JSONDecoder().decode([String: [String: String]].self, from: Data(line))
      return DocumentRecord(entity: record.first?.key ?? "", fields: record.first?.value ?? [:])
    }
  }
}

@Suite struct LineFormatTests {
  @Test func theFormatOfTheCommentPassesTheKit() async throws {
    struct LineHarness: StoreHarness {
      var capabilities: StoreCapabilities { CSVHarness().capabilities }
      func makePlace() throws -> StorePlace {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return StorePlace(
          .document(LineFormat(), at: folder.appending(path: "store").path), discard: { try? FileManager.default.removeItem(at: folder) })
      }
    }
    for rule in StoreConformance.cases(for: LineHarness().capabilities) { try await rule.run(on: LineHarness()) }
  }
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
