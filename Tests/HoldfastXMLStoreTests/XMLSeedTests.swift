import Foundation
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// The fuzzer's seed files.
@Suite struct XMLSeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/XMLStores")

  private let file: XMLFile
  init() throws { file = try XMLFile() }

  @Test(.bothReaders, arguments: ["values.xml", "links.xml", "bare.xml", "empty.xml", "identifier.xml", "objects.xml"])
  func theSeedsOpen(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    try file.write(bytes)
    #expect(file.refusal(XMLStoreProperty.model) == nil)
    #expect(XMLStoreProperty.violation(bytes) == nil)
  }

  @Test(arguments: ["values.xml", "links.xml", "identifier.xml", "objects.xml"]) func changedSeedsAreReadOrRefused(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    WholeFileProperty.expectOutcomes(ofChanged: bytes, "Changed XML seeds", XMLStoreProperty.outcome)
  }
}
