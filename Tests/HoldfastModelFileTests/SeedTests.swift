import Foundation
import HoldfastModelFile
import TestSupport
import Testing

/// The fuzzer's seed files and findings, and small changes of them, keep the guarantees for any bytes.
@Suite struct SeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/ModelContents")

  private static let seeds = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()

  @Test func thereAreSeeds() { #expect(Self.seeds.count >= 16) }

  @Test(arguments: seeds) func aSeedKeepsToTheRules(_ name: String) throws {
    let bytes = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    #expect(ContentsProperty.violation(bytes) == nil)
  }

  @Test(arguments: seeds) func aChangedSeedKeepsToTheRules(_ name: String) throws {
    var generator = SeededGenerator("Changed \(name)"), refused = 0
    let original = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    // The rules take several times as long as reading the file.
    let step = TestTier.step(3)
    for number in 0..<200 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
        case 1: bytes.insert(original.randomElement(using: &generator) ?? 0, at: place)
        case 2: bytes.removeSubrange(place..<min(bytes.count - 1, place + Int.random(in: 1...8, using: &generator)))
        default: bytes += original[place % original.count..<min(original.count, place % original.count + 20)]
        }
      }
      if (try? ModelDocument(bytes: bytes)) == nil { refused += 1 }
      if number % step == 0, let violation = ContentsProperty.violation(bytes) {
        Issue.record("\(violation) \(String(decoding: bytes, as: UTF8.self))")
      }
    }
    #expect((100...200).contains(refused), "\(refused) of 200 refused")
  }
}
