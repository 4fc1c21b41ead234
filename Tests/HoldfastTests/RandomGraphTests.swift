import Holdfast
import TestSupport
import Testing

/// Random changes, saves, rollbacks and new contexts compared with plain dictionaries. After every step, both must agree. Prints its seed;
/// HOLDFAST_SEED repeats a run.
@Suite struct RandomGraphTests {
  /// The expected graph.
  private struct Expected: Equatable {
    var ages: [String: Int] = [:]
    var owners: [String: String] = [:]
    var friends: [String: Set<String>] = [:]
    var people: Set<String> = []
    var collars: [String: String] = [:]
  }

  @Test(arguments: TestStore.withAll) func aContextTellsWhatPlainDictionariesTell(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(5, full: 80) {
      let seed = random.next()
      do {
        try run(store, SeededGenerator(seed: seed))
      } catch {
        Issue.record("seed \(random.seed), round \(round) on \(store): \(error)")
        return
      }
    }
  }

  private struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  private func run(_ store: TestStore, _ generator: SeededGenerator) throws {
    var random = generator
    let place = try store.makePlace()
    var context = try place.context()
    var now = Expected(), saved = Expected()
    var counter = 0
    var log: [String] = []
    func dog(_ name: String) throws -> Dog {
      guard let dog = try context.one(Dog.self, where: { $0.name == name }) else {
        throw Difference(description: "There is no dog \(name). \(log)")
      }
      return dog
    }
    func person(_ name: String) throws -> Person {
      guard let person = try context.one(Person.self, where: { $0.name == name }) else {
        throw Difference(description: "There is no person \(name). \(log)")
      }
      return person
    }
    for n in 0..<45 {
      counter += 1
      context.dog("d\(counter)", age: n)
      now.ages["d\(counter)"] = n
    }
    for _ in 0..<70 {
      let dogs = now.ages.keys.sorted(), people = now.people.sorted()
      switch Int.random(in: 0..<24, using: &random) {
      case 0, 1, 2:
        counter += 1
        log.append("insert d\(counter)")
        context.dog("d\(counter)", age: counter)
        now.ages["d\(counter)"] = counter
      case 3:
        counter += 1
        log.append("insert p\(counter)")
        context.person("p\(counter)")
        now.people.insert("p\(counter)")
      case 4, 5:
        guard let name = dogs.randomElement(using: &random) else { continue }
        let owner = Bool.random(using: &random) ? people.randomElement(using: &random) : nil
        log.append("\(name).owner = \(owner ?? "nil")")
        try dog(name).owner = try owner.map { try person($0) }
        now.owners[name] = owner
      case 6, 7, 8:
        guard let a = dogs.randomElement(using: &random), let b = dogs.randomElement(using: &random) else { continue }
        log.append("\(a).friends + \(b)")
        if Bool.random(using: &random) { try dog(a).friends.insert(try dog(b)) } else { try dog(b).friendOf.insert(try dog(a)) }
        now.friends[a, default: []].insert(b)
      case 9:
        guard let a = dogs.randomElement(using: &random), let b = dogs.randomElement(using: &random) else { continue }
        log.append("\(a).friends - \(b)")
        try dog(a).friends.remove(try dog(b))
        now.friends[a]?.remove(b)
      case 10:
        guard let name = dogs.randomElement(using: &random) else { continue }
        log.append("delete \(name)")
        context.delete(try dog(name))
        now.ages[name] = nil
        now.owners[name] = nil
        now.friends[name] = nil
        now.collars[name] = nil
        for other in now.friends.keys { now.friends[other]?.remove(name) }
      case 11:
        guard let name = people.randomElement(using: &random) else { continue }
        log.append("delete \(name)")
        context.delete(try person(name))
        now.people.remove(name)
        now.owners = now.owners.filter { $0.value != name }
      case 12:
        guard let name = dogs.randomElement(using: &random) else { continue }
        counter += 1
        log.append("\(name).age = \(counter)")
        try dog(name).age = counter
        now.ages[name] = counter
      case 13:
        guard let name = dogs.randomElement(using: &random) else { continue }
        counter += 1
        log.append("\(name).collar = c\(counter)")
        let collar = context.insert(Collar.self)
        collar.color = "c\(counter)"
        if let old = try dog(name).collar { context.delete(old) }
        try dog(name).collar = collar
        now.collars[name] = "c\(counter)"
      case 14:
        log.append("save")
        try context.save()
        saved = now
      case 15:
        log.append("rollback")
        context.rollback()
        now = saved
      case 17, 18, 19:
        guard let a = dogs.randomElement(using: &random) else { continue }
        let others = dogs.shuffled(using: &random).prefix(Int.random(in: 1..<40, using: &random))
        log.append("\(a).friends + \(others)")
        let way = Int.random(in: 0..<3, using: &random)
        if way == 2 { for dog in try dog(a).friends { _ = dog.age } }
        for b in others {
          if way > 0 { try dog(a).friends.insert(try dog(b)) } else { try dog(b).friendOf.insert(try dog(a)) }
          now.friends[a, default: []].insert(b)
        }
      case 20, 21:
        guard let a = dogs.randomElement(using: &random) else { continue }
        let others = dogs.shuffled(using: &random).prefix(Int.random(in: 1..<45, using: &random))
        log.append("\(a).friends - \(others)")
        for b in others {
          if Bool.random(using: &random) { try dog(a).friends.remove(try dog(b)) } else { try dog(b).friendOf.remove(try dog(a)) }
          now.friends[a]?.remove(b)
        }
      case 22:
        guard let p = people.randomElement(using: &random) else { continue }
        for d in dogs.shuffled(using: &random).prefix(Int.random(in: 1..<40, using: &random)) {
          if Bool.random(using: &random) { try dog(d).owner = try person(p) } else { try person(p).dogs.insert(try dog(d)) }
          now.owners[d] = p
        }
      case 23:
        // A failing save, with an age out of range, and more changes after it.
        log.append("failing save")
        let bad = context.dog("bad")
        bad.age = 40_000
        for d in dogs.prefix(3) { bad.friends.insert(try dog(d)) }
        do { try context.save(); throw Difference(description: "saved") } catch is PersistenceError {}
        context.delete(bad)
      default:
        log.append("save, new context")
        try context.save()
        saved = now
        if Bool.random(using: &random) { try place.close() }
        context = try place.context()
      }
      // Checking reads every relationship. Skipping most checks leaves relationships unread when they are changed.
      guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
      let found: Expected
      do { found = try graph(context) } catch { throw Difference(description: "seed \(generator.seed): \(log)\n\(error)") }
      if found != cleaned(now) {
        throw Difference(description: "seed \(generator.seed): \(log)\nfound    \(found)\nexpected \(cleaned(now))")
      }
    }
  }

  private func cleaned(_ expected: Expected) -> Expected {
    var cleaned = expected
    cleaned.friends = expected.friends.filter { !$0.value.isEmpty }
    return cleaned
  }

  /// The entire graph as the context returns it, with both sides of every relationship compared.
  private func graph(_ context: ManagedObjectContext) throws -> Expected {
    var found = Expected()
    let dogs = try context.fetch(FetchRequest<Dog>())
    for dog in dogs {
      if found.ages.updateValue(dog.age, forKey: dog.name) != nil { throw Difference(description: "\(dog.name) is there twice.") }
      if let owner = dog.owner {
        found.owners[dog.name] = owner.name
        if !owner.dogs.contains(where: { $0 === dog }) { throw Difference(description: "\(owner.name) does not know \(dog.name).") }
      }
      let friends = dog.friends.map(\.name)
      if !friends.isEmpty { found.friends[dog.name] = Set(friends) }
      if Set(friends).count != friends.count { throw Difference(description: "\(dog.name) has a friend twice.") }
      if dog.friends.count != friends.count { throw Difference(description: "\(dog.name) has another count of friends.") }
      for friend in dog.friends where !friend.friendOf.contains(where: { $0 === dog }) {
        throw Difference(description: "\(friend.name) does not know that it is a friend of \(dog.name).")
      }
      if let collar = dog.collar {
        found.collars[dog.name] = collar.color
        if collar.dog !== dog { throw Difference(description: "The collar \(collar.color) is not \(dog.name)'s.") }
      }
    }
    for person in try context.fetch(FetchRequest<Person>()) {
      found.people.insert(person.name)
      for dog in person.dogs where dog.owner !== person { throw Difference(description: "\(dog.name) does not know \(person.name).") }
    }
    return found
  }
}
