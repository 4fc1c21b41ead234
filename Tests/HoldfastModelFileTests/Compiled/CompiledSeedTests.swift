import Foundation
import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// The fuzzer's seed files, and small changes of them, keep the guarantees for any bytes.
@Suite struct CompiledSeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/CompiledModels")

  private static func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: folder.appendingPathComponent(name))) }

  @Test func theSeedsAreTheZooInAllItsForms() throws {
    let zoo = try CompiledModel(bytes: ZooArchive().bytes())
    #expect(try CompiledModel(bytes: Self.bytes("zoo.mom")).model == zoo.model)
    #expect(try CompiledModel(bytes: Self.bytes("zoo.xml")).model == zoo.model)
    #expect(try CompiledModel(modelCache: Self.bytes("zoo.cache")).model == zoo.model)
  }

  @Test(arguments: ["zoo.mom", "zoo.xml", "zoo.cache"]) func changedSeedsAreReadOrRefused(_ name: String) throws {
    var random = SeededGenerator("Changed \(name)"), read = 0
    let original = try Self.bytes(name)
    for _ in 0..<400 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[place] &+= 1
        case 2: bytes.swapAt(place, Int.random(in: 0..<bytes.count, using: &random))
        default: bytes.removeLast(Int.random(in: 0..<8, using: &random))
        }
      }
      if let violation = CompiledModelProperty.violation(bytes) { Issue.record("\(violation) HOLDFAST_SEED=\(random.seed)") }
      if (try? CompiledModel(bytes: bytes)) != nil { read += 1 }
    }
    if name != "zoo.cache" { #expect((4...200).contains(read), "\(read) of 400 read") }
  }
}
