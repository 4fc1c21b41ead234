import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// Keys by the names of their entities, which take no memory where they follow each other.
@Suite struct KeysByEntityTests {
  private func id(_ entity: String, _ key: Int64) throws -> ManagedObjectID {
    try #require(ManagedObjectID(uriRepresentation: "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/\(entity)/p\(key)"))
  }

  @Test func keysAreFoundWhileOthersAreAddedInAnyOrder() throws {
    var random = SeededGenerator(), keys = KeysByEntity(), known: [String: Set<Int64>] = [:]
    // More ranges than are kept without uniting them.
    for round in 0..<40 {
      let ids = try (0..<200).map { _ in
        let name = Bool.random(using: &random) ? "Dog" : "Owner", key = Int64.random(in: 1...6_000, using: &random)
        known[name, default: []].insert(key)
        return try id(name, key)
      }
      keys.insert(ids)
      if round % 3 == 1 { continue }
      for _ in 0..<200 {
        let name = ["Dog", "Owner", "Cat"].randomElement(using: &random) ?? "", key = Int64.random(in: 0...6_001, using: &random)
        let isFound = keys.contains(ObjectKey(key), of: name), isKnown = known[name]?.contains(key) ?? false
        #expect(isFound == isKnown, "seed \(random.seed): \(name) \(key)")
      }
    }
    var found: [String: [Int64]] = [:]
    try keys.forEachBatch { name, batch in
      #expect(batch.count <= 1_000)
      found[name, default: []] += batch.map(\.rawValue)
    }
    #expect(found == known.mapValues { $0.sorted() }, "seed \(random.seed)")
  }
}
