import Holdfast
import TestSupport
import Testing

/// Objects that are in a list, by their IDs.
@Suite struct ObjectMembershipTests {
  @Test(arguments: TestStore.allCases) func aLongListOfObjectsIsAskedForLikeAShortOne(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = (0..<50).map { number in
      let dog = context.insert(Dog.self)
      dog.name = "Dog \(number)"
      dog.age = number
      return dog
    }
    try context.save()
    let other = try place.context()
    for count in [1, 4, 5, 30] {
      let wanted = dogs.shuffled().prefix(count), ids = wanted.map { StoreValue.objectID($0.objectID) }
      let found = try other.fetch(
        FetchRequest<Dog>(where: FetchPredicate(.membership(.object, ids)), sortedBy: [.ascending(\.age)]))
      #expect(found.map(\.age) == wanted.map(\.age).sorted(), "\(count)")
      let rest = try other.count(for: FetchRequest<Dog>(where: FetchPredicate(.not(.membership(.object, ids)))))
      #expect(rest == 50 - count)
    }
  }

  /// Each row is looked up, not compared with every object of the list. Without the look-up, 4,000 of 4,000 objects took three hundred
  /// times as long as a number.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .weakest]) func aListOfAllObjectsCostsAboutWhatAListOfNumbersCosts(
    _ store: TestStore
  )
    throws
  {
    let place = try store.makePlace(), context = try place.context()
    for number in 0..<4_000 {
      let dog = context.insert(Dog.self)
      dog.name = "a dog"
      dog.chip = Int64(number)
    }
    try context.save()
    let ids = try context.fetch(FetchRequest<Dog>()).map { StoreValue.objectID($0.objectID) }
    func time(_ predicate: QueryExpression) throws -> Duration {
      let other = try place.context()
      return try processorTime {
        let count = try other.count(for: FetchRequest<Dog>(where: FetchPredicate(predicate)))
        #expect(count == 4_000)
      }
    }
    let numbers = (0..<4_000).map { StoreValue.int64($0) }
    try expectCost(below: 30, times: { try time(.membership(.property("chip"), numbers)) }) { try time(.membership(.object, ids)) }
  }
}
