// swift-format-ignore-file
// The examples of the articles about writing stores, word for word; `SnippetTests` compares them. The test runs.
import TestSupport

import CSVStore
import Foundation
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
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
    for rule in StoreConformance.share(for: LineHarness().capabilities) { try await rule.run(on: LineHarness()) }
  }
}
