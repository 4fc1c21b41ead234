import Foundation
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// The fuzzer's seed files.
@Suite struct JSONSeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/JSONStores")

  private func seed(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: Self.folder.appendingPathComponent(name))) }

  @Test(.bothReaders, arguments: ["values.json", "links.json", "empty.json", "external.json", "model.json", "lines.json"])
  func theSeedsOpen(_ name: String) throws {
    let (file, bytes) = (try JSONFile(), try seed(name))
    try file.write(bytes)
    try file.open(JSONStoreProperty.model, options: JSONFile.unverified)
    #expect(JSONStoreProperty.violation(bytes) == nil)
  }

  @Test(arguments: ["values.json", "links.json", "lines.json"]) func changedSeedsAreReadOrRefused(_ name: String) throws {
    WholeFileProperty.expectOutcomes(ofChanged: try seed(name), "Changed JSON seeds", JSONStoreProperty.outcome)
  }
}
