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
    let bytes = try seed(name)
    var numbers = SeededGenerator("Changed JSON seeds"), refused = 0, round = 0
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
      switch JSONStoreProperty.outcome(changed) {
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
