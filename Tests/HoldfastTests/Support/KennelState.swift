import Holdfast
import Testing

/// The dogs by chip, with their values and links.
struct KennelState: Equatable, Codable, CustomStringConvertible {
  struct Values: Equatable, Codable {
    var name: String
    var age: Int
    var owner: String?
  }
  struct Link: Hashable, Codable {
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
      for fan in dog.friendOf where !fan.friends.contains(dog) {
        throw Disagreement("\(fan.name) isn't a friend of \(dog.name), which knows it.")
      }
      if let owner = dog.owner, !owner.dogs.contains(dog) { throw Disagreement("\(owner.name) doesn't know \(dog.name).") }
    }
    for person in try context.fetch(FetchRequest<Person>()) {
      for dog in person.dogs where dog.owner !== person { throw Disagreement("\(dog.name) doesn't know \(person.name).") }
    }
  }

  /// Both ends of a relationship differ.
  struct Disagreement: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }

  /// The dogs whose rows or links differ from a former state, without deleted ones.
  func changed(since base: KennelState) -> Set<Int64> {
    let moved = links.symmetricDifference(base.links).filter { dogs[$0.from] != nil && dogs[$0.to] != nil }
    return Set(dogs.keys.filter { dogs[$0] != base.dogs[$0] }).union(moved.flatMap { [$0.from, $0.to] })
  }
}
