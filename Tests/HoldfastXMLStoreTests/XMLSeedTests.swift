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
    var numbers = SeededGenerator("Changed XML seeds"), refused = 0, round = 0
    let rounds = TestTier.count(200, full: 1_000)
    // Further rounds follow until a file is accepted.
    while round < rounds || refused == round && round < 1_000 {
      round += 1
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &numbers) {
        let place = Int.random(in: 0..<changed.count, using: &numbers)
        switch Int.random(in: 0..<3, using: &numbers) {
        case 0: changed[place] = UInt8.random(in: 0...255, using: &numbers)
        case 1: changed.remove(at: place)
        default: changed.insert(contentsOf: bytes[min(place, bytes.count)..<min(place + 20, bytes.count)], at: place)
        }
      }
      switch XMLStoreProperty.outcome(changed) {
      case .accepted: break
      case .refused: refused += 1
      case .violation(let violation):
        Issue.record("\(violation)\n\(String(decoding: changed, as: UTF8.self))")
        return
      }
    }
    #expect((round * 8 / 10..<round).contains(refused), "\(refused) of \(round) refused")
  }
}
