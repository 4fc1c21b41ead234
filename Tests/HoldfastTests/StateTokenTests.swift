import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// The tokens that identify states of a store's data.
@Suite struct StateTokenTests {
  private func state(_ place: TestStore.Place) throws -> StateToken? {
    let store = place.description.makeStore()
    _ = try store.open(model: place.model)
    defer { try? store.close() }
    let view = try store.beginRead(.latest)
    defer { view.end() }
    return view.state
  }

  @Test(arguments: [TestStore.json, .xml, .binary]) func aTokenIsTheSameWhenAFileIsOpenedAgainAndAnotherAfterASave(_ kind: TestStore) throws
  {
    let place = try kind.makePlace(), context = try place.context()
    let dog = context.dog("d")
    try context.save()
    try place.close()
    let first = try #require(try state(place))
    #expect(try state(place) == first)
    #expect(try JSONDecoder().decode(StateToken.self, from: JSONEncoder().encode(first)) == first)

    let other = try place.context()
    _ = try (other.existingObject(with: dog.objectID) as? Dog).map { $0.age = 9 }
    try other.save()
    try place.close()
    #expect(try state(place) != first)
  }
}
