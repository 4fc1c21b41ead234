import Foundation
import HoldfastStore
import Testing

/// The fuzzer's seed models, and small changes of them.
@Suite struct ModelJSONSeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/ModelsAsJSON")

  @Test(arguments: ["kinds.json", "families.json"]) func seedsAreReadAndWhatIsNearThemIsReadOrRefused(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    #expect(throws: Never.self) { try ManagedObjectModel.decoded(canonicalJSON: bytes) }
    #expect(ModelJSONProperty.violation(bytes) == nil)
    var refused = 0
    for place in stride(from: 0, to: bytes.count, by: 7) {
      for byte in [UInt8(ascii: "}"), UInt8(ascii: "9"), 0, 0xFF] {
        var changed = bytes
        changed[place] = byte
        if let violation = ModelJSONProperty.violation(changed) {
          Issue.record("\(violation)\n\(String(decoding: changed, as: UTF8.self))")
        }
        if (try? ManagedObjectModel.decoded(canonicalJSON: changed)) == nil { refused += 1 }
      }
    }
    #expect(refused > bytes.count / 7)
  }
}
