import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// The fuzzer's seed files, and small changes of them, keep the guarantees for any bytes.
@Suite struct PropertyListSeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/PropertyLists")

  private static let seeds = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()

  private static func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: folder.appendingPathComponent(name))) }

  @Test func theSeedsSayWhatTheyShould() throws {
    #expect(Self.seeds.count >= 5)
    for name in ["archive.bplist", "archive.plist"] {
      let value = try KeyedArchive(Self.bytes(name)).propertyListValue()
      #expect(value["list"]?.array?.count == 4 && value["known"]?["known"] == .string("value"))
    }
    #expect(try PropertyList(Self.bytes("values.bplist")) == PropertyList(Self.bytes("values.plist")))
  }

  @Test(arguments: seeds) func aSeedAndWhatIsCloseToItKeepsToTheRules(_ name: String) throws {
    var random = SeededGenerator("Changed \(name)"), refused = 0
    let original = try Self.bytes(name)
    #expect(PropertyListProperty.violation(original) == nil)
    for _ in 0..<2_000 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.insert(original.randomElement(using: &random) ?? 0, at: place)
        default: bytes.swapAt(place, Int.random(in: 0..<bytes.count, using: &random))
        }
      }
      if let violation = PropertyListProperty.violation(bytes) { Issue.record("\(violation) \(bytes)") }
      if (try? PropertyList(bytes)) == nil { refused += 1 }
    }
    #expect((1_000...1_990).contains(refused), "\(refused) of 2000 refused")
  }
}
