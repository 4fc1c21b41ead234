import Holdfast
import Testing

/// The dogs by chip, with their values and links.
struct KennelState: Equatable, CustomStringConvertible {
  struct Values: Equatable {
    var name: String
    var age: Int
    var owner: String?
  }
  struct Link: Hashable {
    var from: Int64, to: Int64
  }
  var dogs: [Int64: Values] = [:]
  var links: Set<Link> = []

  var description: String {
    let dogs = dogs.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.name),\($0.value.age),\($0.value.owner ?? "-")" }
    let links = links.map { "\($0.from)>\($0.to)" }.sorted()
    return (dogs + links).joined(separator: " ")
  }

  init(_ context: ManagedObjectContext) throws {
    for dog in try context.fetch(FetchRequest<Dog>()) {
      let chip = try #require(dog.chip)
      dogs[chip] = Values(name: dog.name, age: dog.age, owner: dog.owner?.name)
      for friend in dog.friends { links.insert(Link(from: chip, to: try #require(friend.chip))) }
      // Both ends are read, and agree.
      for fan in dog.friendOf { #expect(fan.friends.contains(dog)) }
      if let owner = dog.owner { #expect(owner.dogs.contains(dog)) }
    }
    for person in try context.fetch(FetchRequest<Person>()) { #expect(person.dogs.allSatisfy { $0.owner === person }) }
  }

  /// The dogs whose rows or links differ from a former state, without deleted ones.
  func changed(since base: KennelState) -> Set<Int64> {
    let moved = links.symmetricDifference(base.links).filter { dogs[$0.from] != nil && dogs[$0.to] != nil }
    return Set(dogs.keys.filter { dogs[$0] != base.dogs[$0] }).union(moved.flatMap { [$0.from, $0.to] })
  }
}
