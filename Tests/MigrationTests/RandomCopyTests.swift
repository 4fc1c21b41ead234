import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Random graphs that go from store to store and back are the same graphs.
@Suite struct RandomCopyTests {
  @Test func RX9_aGraphIsTheSameAfterAJourneyThroughAllKindsOfStores() throws {
    var random = SeededGenerator("Journeys"), copies = 0
    for _ in 0..<TestTier.count(15, full: 2_000) {
      var one = random.round()
      let seed = one.seed, zoo = RandomModel(&one), graph = RandomGraph(zoo, &one), model = try zoo.model()
      var route = MigratedStore.allCases.shuffled(using: &one)
      route.append(route[0])
      var place = MigratedStore.Place(route[0])
      try place.fill(model) { try graph.insert(into: $0, zoo) }
      let lines = try place.contents(model), digest = try PersistentStoreCoordinator.graphDigest(of: place.description, model: model)
      #expect(digest.objectCount == lines.count)
      for store in route.dropFirst() {
        let next = MigratedStore.Place(store)
        let copy = try PersistentStoreCoordinator.copyPersistentStore(place.description, to: next.description, model: model)
        #expect(copy.digest == digest, "HOLDFAST_SEED=\(seed) \(place.store) to \(store)")
        place = next
        copies += 1
      }
      #expect(try place.contents(model) == lines, "HOLDFAST_SEED=\(seed) \(route)")
    }
    #expect(copies >= 15 * 5)
  }
}
