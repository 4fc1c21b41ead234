import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Queries in closures give the same answers on every store as the same conditions in Swift on the objects.
@Suite struct ClosureQueryTests {
  /// A condition as a query, and in Swift.
  struct Condition: CustomStringConvertible {
    let description: String
    let query: FetchPredicate<Dog>
    let holds: (Dog) -> Bool

    init(
      _ description: String, @FetchPredicateBuilder<Dog> _ query: (FetchPath<Dog, Dog>) -> FetchPredicate<Dog>,
      _ holds: @escaping (Dog) -> Bool
    ) {
      (self.description, self.query, self.holds) = (description, FetchPredicate(query), holds)
    }
  }

  private static let births = (0..<8).map { Date(timeIntervalSinceReferenceDate: Double($0) * 86400) }

  /// Eight dogs with values, friends and owners in different combinations, some of them nil.
  private func fill(_ context: ManagedObjectContext) throws -> [Dog] {
    let owners = [context.person("Ann", city: "Oslo"), context.person("Bob"), context.person("Cid", city: "Bonn")]
    let dogs = (0..<8).map { number in
      let dog = context.dog("dog \(number % 3)", age: number, owner: number % 4 == 3 ? nil : owners[number % 3])
      (dog.isGood, dog.chip, dog.weight) = (number % 2 == 0, Int64(number * 2 % 9), number % 3 == 0 ? nil : Double(number) / 2)
      (dog.born, dog.notes, dog.uid) = (number == 5 ? nil : Self.births[number], number % 2 == 1 ? "Note \(number)" : nil, UUID())
      dog.price = number == 2 ? nil : Decimal(number) / 4
      return dog
    }
    for (index, dog) in dogs.enumerated() where index % 3 != 1 {
      for friend in dogs.prefix(index) { dog.friends.insert(friend) }
    }
    return dogs
  }

  private static func conditions(_ dogs: [Dog]) -> [Condition] {
    let (fourth, owner, births) = (dogs[4], dogs[4].owner, births)
    let (uid, id) = (dogs[2].uid, dogs[3].objectID)
    return [
      Condition("equal") {
        $0.age == 3
      } _: {
        $0.age == 3
      },
      Condition("not equal") {
        $0.name != "dog 1"
      } _: {
        $0.name != "dog 1"
      },
      Condition("order") {
        $0.age > 2 && $0.age <= 6
      } _: {
        $0.age > 2 && $0.age <= 6
      },
      Condition("text order") {
        $0.name >= "dog 1" && $0.name < "dog 2"
      } _: {
        $0.name == "dog 1"
      },
      Condition("two properties") {
        $0.age > $0.friends.count || $0.age == $0.age
      } _: { _ in
        true
      },
      Condition("optional and value") {
        $0.weight > 1.5
      } _: {
        $0.weight.map { $0 > 1.5 } ?? false
      },
      Condition("optional is nil") {
        $0.weight == nil && $0.notes != nil
      } _: {
        $0.weight == nil && $0.notes != nil
      },
      Condition("optional equals") {
        $0.notes == "Note 3"
      } _: {
        $0.notes == "Note 3"
      },
      Condition("Boolean alone") {
        $0.isGood
      } _: {
        $0.isGood
      },
      Condition("Boolean negated and joined") {
        !$0.isGood && $0.age > 1 || $0.isGood && !($0.age > 3)
      } _: {
        !$0.isGood && $0.age > 1 || $0.isGood && !($0.age > 3)
      },
      Condition("date") {
        $0.born > births[2]
      } _: {
        $0.born.map { $0 > births[2] } ?? false
      },
      Condition("dates in a range") {
        $0.born.isIn(births[1]..<births[3])
      } _: {
        $0.born.map { (births[1]..<births[3]).contains($0) } ?? false
      },
      Condition("decimal") {
        $0.price >= Decimal(string: "0.75") ?? 0
      } _: {
        $0.price.map { $0 >= Decimal(3) / 4 } ?? false
      },
      Condition("UUID") {
        $0.uid == uid
      } _: {
        $0.uid == uid
      },
      // A range from a bound is also an endless sequence. The query must not turn it into a list.
      Condition("from") {
        $0.age.isIn(6...)
      } _: {
        $0.age >= 6
      },
      Condition("from, optional") {
        $0.chip.isIn(5...)
      } _: {
        $0.chip.map { $0 >= 5 } ?? false
      },
      Condition("through") {
        $0.weight.isIn(...1)
      } _: {
        $0.weight.map { $0 <= 1 } ?? false
      },
      Condition("up to") {
        $0.age.isIn(..<2)
      } _: {
        $0.age < 2
      },
      Condition("closed range") {
        $0.age.isIn(2...4)
      } _: {
        (2...4).contains($0.age)
      },
      Condition("half-open range") {
        $0.age.isIn(2..<4)
      } _: {
        (2..<4).contains($0.age)
      },
      Condition("optional in a range") {
        $0.weight.isIn(1...2)
      } _: {
        $0.weight.map { (1...2).contains($0) } ?? false
      },
      Condition("list") {
        $0.age.isIn([1, 5, 9])
      } _: {
        [1, 5, 9].contains($0.age)
      },
      Condition("list of values of an optional") {
        $0.notes.isIn(["Note 1", "Note 7"])
      } _: {
        ["Note 1", "Note 7"].contains($0.notes)
      },
      Condition("list with nil") {
        $0.notes.isIn(["Note 1", nil])
      } _: {
        ["Note 1", nil].contains($0.notes)
      },
      Condition("remainder") {
        $0.age % 3 == 1
      } _: {
        $0.age % 3 == 1
      },
      Condition("text") {
        $0.notes.beginsWith("NOTE", .caseInsensitive) && $0.notes.endsWith("5") || $0.name.contains("2")
      } _: {
        $0.notes == "Note 5" || $0.name.contains("2")
      },
      Condition("folded text") {
        $0.notes.equals("nóte 3", [.caseInsensitive, .diacriticInsensitive])
      } _: {
        $0.notes == "Note 3"
      },
      Condition("through a relationship") {
        $0.owner.name == "Ann"
      } _: {
        $0.owner?.name == "Ann"
      },
      Condition("nil at the end of a path") {
        $0.owner.city == nil
      } _: {
        $0.owner?.city == nil
      },
      Condition("object") {
        $0.owner == owner
      } _: {
        $0.owner == owner
      },
      Condition("no object") {
        $0.owner == nil
      } _: {
        $0.owner == nil
      },
      Condition("other object") {
        $0.owner != owner
      } _: {
        $0.owner != owner
      },
      Condition("objects") {
        $0.owner.isIn([owner].compactMap { $0 })
      } _: {
        $0.owner == owner
      },
      Condition("ID of a destination") {
        $0.owner.objectID == owner?.objectID
      } _: {
        $0.owner == owner
      },
      Condition("itself") {
        $0 == fourth
      } _: {
        $0 == fourth
      },
      Condition("not itself") {
        $0 != fourth
      } _: {
        $0 != fourth
      },
      Condition("one of several") {
        $0.isIn(dogs.prefix(3))
      } _: {
        dogs.prefix(3).contains($0)
      },
      Condition("its ID") {
        $0.objectID == id || $0.objectID.isIn([fourth.objectID])
      } _: {
        $0.objectID == id || $0 == fourth
      },
      Condition("any") {
        $0.friends.any { $0.age > 1 && $0.isGood }
      } _: {
        $0.friends.contains { $0.age > 1 && $0.isGood }
      },
      Condition("all") {
        $0.friends.all { $0.age < 3 }
      } _: {
        $0.friends.allSatisfy { $0.age < 3 }
      },
      Condition("not any") {
        !$0.friends.any { $0.isGood }
      } _: {
        !$0.friends.contains { $0.isGood }
      },
      Condition("any of any") {
        $0.friends.any { $0.friends.any { $0.owner.name == "Bob" } }
      } _: {
        $0.friends.contains { $0.friends.contains { $0.owner?.name == "Bob" } }
      },
      Condition("any with a predicate") {
        $0.friends.any(FetchPredicate { $0.age > 3 })
      } _: {
        $0.friends.contains { $0.age > 3 }
      },
      Condition("all with a predicate") {
        $0.friends.all(FetchPredicate { $0.age < 3 })
      } _: {
        $0.friends.allSatisfy { $0.age < 3 }
      },
      Condition("optional whole numbers in a range") {
        $0.chip.isIn(1...5)
      } _: {
        $0.chip.map { (1...5).contains($0) } ?? false
      },
      Condition("optional whole numbers in a list") {
        $0.chip.isIn([1, 3])
      } _: {
        [1, 3].contains($0.chip)
      },
      Condition("two optionals") {
        $0.weight < $0.weight || $0.notes < $0.name
      } _: { dog in
        dog.notes.map { $0 < dog.name } ?? false
      },
      Condition("optional and not") {
        $0.name == $0.notes || $0.age > 5
      } _: {
        $0.age > 5
      },
      Condition("remainder of an optional") {
        $0.chip % 2 == 1
      } _: {
        $0.chip.map { $0 % 2 == 1 } ?? false
      },
      Condition("remainder of a count") {
        $0.friends.count % 2 == 1
      } _: {
        $0.friends.count % 2 == 1
      },
      Condition("empty behind a missing destination") {
        $0.owner.dogs.isEmpty
      } _: {
        $0.owner == nil
      },
      Condition("IDs of destinations") {
        $0.owner.objectID.isIn([owner].compactMap { $0?.objectID })
      } _: {
        $0.owner == owner
      },
      Condition("literal predicates") {
        .all
        $0.age > 3
      } _: {
        $0.age > 3
      },
      Condition("any through a to-one relationship") {
        $0.owner.dogs.any { $0.age > 5 }
      } _: {
        $0.owner?.dogs.contains { $0.age > 5 } ?? false
      },
      Condition("count") {
        $0.friends.count > 2 && $0.owner.dogs.count == 2
      } _: {
        $0.friends.count > 2 && $0.owner?.dogs.count == 2
      },
      Condition("counts and attributes") {
        $0.friends.count == $0.age
      } _: {
        $0.friends.count == $0.age
      },
      Condition("empty") {
        $0.friends.isEmpty
      } _: {
        $0.friends.isEmpty
      },
      Condition("contains") {
        $0.friends.contains(fourth)
      } _: {
        $0.friends.contains(fourth)
      },
      Condition("nothing") { _ in
      } _: { _ in
        true
      },
      Condition("several lines") {
        $0.age > 1
        $0.isGood
        if let uid { $0.uid != uid }
        if births.isEmpty { $0.age == 4 } else { $0.age != 6 }
        for number in [0, 1] { $0.name != "dog \(number)" || $0.age == 4 }
      } _: {
        $0.age > 1 && $0.isGood && $0.uid != uid && $0.age != 6 && ($0.name == "dog 2" || $0.age == 4)
      },
    ]
  }

  @Test(arguments: TestStore.allCases) func conditionsMeanWhatTheyMeanInSwift(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = try fill(context)
    // First all objects are unsaved, then saved, then some are changed.
    for step in 0..<3 {
      if step == 1 { try context.save() }
      if step == 2 {
        (dogs[1].age, dogs[1].isGood, dogs[6].owner, dogs[7].notes) = (4, true, dogs[1].owner, "Note 5")
        dogs[5].friends.remove(dogs[0])
      }
      for condition in Self.conditions(dogs) {
        let comment = Comment(rawValue: "\(condition) in step \(step) on \(store)")
        let expected = Set(dogs.filter(condition.holds))
        let found = try context.fetch(Dog.self) { _ in condition.query }
        #expect(Set(found) == expected && found.count == expected.count, comment)
        #expect(try context.count(Dog.self) { _ in condition.query } == expected.count, comment)
        #expect(try context.exists(Dog.self) { _ in condition.query } == !expected.isEmpty, comment)
      }
    }
  }

  @Test func eachConditionSelectsSomeObjectsButNotAll() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context(), dogs = try fill(context)
    defer { withExtendedLifetime(context) {} }
    let all = Self.conditions(dogs).filter { condition in dogs.allSatisfy(condition.holds) || !dogs.contains(where: condition.holds) }
    #expect(all.map(\.description) == ["two properties", "nothing"])
  }

  @Test(arguments: TestStore.allCases) func sortsFollowRelationshipsAndLimitsApplyAfterThem(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    _ = try fill(filling)
    try filling.save()
    let context = try place.context()
    #expect(try context.fetch(Dog.self, sortedBy: \.age).map(\.age) == Array(0..<8))
    #expect(try context.fetch(Dog.self, sortedBy: [.descending(\.age)], offset: 1, limit: 3).map(\.age) == [6, 5, 4])
    let byOwner = try context.fetch(Dog.self, sortedBy: [.ascending(\.owner.name), .descending(\.age)]) { $0.age < 7 }
    #expect(byOwner.map(\.age) == [3, 6, 0, 4, 1, 5, 2])
    #expect(try context.fetch(Dog.self, limit: 0).isEmpty)
    #expect(try context.fetchOne(Dog.self, sortedBy: \.owner.name) { $0.owner != nil && $0.age > 0 }?.age == 6)
    #expect(try context.fetchOne(Dog.self, sortedBy: [.descending(\.age)])?.age == 7)
    #expect(try context.fetchOne(Dog.self) { $0.age == 12 } == nil)
  }

  @Test(arguments: TestStore.allCases) func eachQueryIsOneRequest(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    _ = try fill(filling)
    try filling.save()
    let (context, recorder) = try place.recording()
    func outputs(_ body: () throws -> Void) rethrows -> [FetchOutput] {
      recorder.clear()
      try body()
      return recorder.reads.map { if case .fetch(let plan) = $0 { plan.output } else { .rows } }
    }
    let exists = try outputs { _ = try context.exists(Dog.self) { $0.age > 3 } }
    let count = try outputs { _ = try context.count(Dog.self) { $0.age > 3 } }
    let groups = try outputs { _ = try context.aggregate(Dog.self, by: \.owner) { $0.count() } }
    #expect(try outputs { _ = try context.fetchOne(Dog.self) { $0.age > 3 } } == [.rows])
    #expect(exists.count == 1 && count.count == 1 && groups.count == 1)
    if store == .sqlite { #expect(exists == [.keys] && count == [.count] && groups != [.rows]) }
    // A closure without conditions sends no predicate, which some stores couldn't count by.
    let all = try outputs { _ = try context.count(Dog.self) }
    if store != .weakest { #expect(all == [.count]) }
  }

  @Test(arguments: TestStore.allCases) func deletingByAConditionAppliesDeleteRules(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = try fill(context)
    let collar = context.insert(Collar.self)
    collar.dog = dogs[2]
    try context.save()
    dogs[7].age = 2
    #expect(try context.delete(Dog.self) { $0.age == 2 } == 2)
    #expect(dogs[2].isDeleted && dogs[7].isDeleted)
    try context.save()
    let other = try place.context()
    #expect(try other.count(Dog.self) == 6 && other.count(Collar.self) == 0)
    #expect(try other.fetch(Dog.self) { $0.friends.any { $0.age == 2 } }.isEmpty)
    #expect(try context.delete(Dog.self) { $0.age == 2 } == 0)
  }

  // MARK: Aggregates

  @Test(arguments: TestStore.allCases) func aggregatesHaveTheTypesOfTheirAttributes(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = try fill(context)
    try context.save()
    let weights = dogs.compactMap(\.weight), prices = dogs.compactMap(\.price)
    let (count, weighed, sum, average) = try context.aggregate(Dog.self) {
      ($0.count(), $0.count(\.weight), $0.sum(\.age), $0.average(\.weight))
    }
    #expect(count == 8 && weighed == weights.count && sum == 28 && average == weights.reduce(0, +) / Double(weights.count))
    let (price, cheapest, youngest, first) = try context.aggregate(Dog.self) {
      ($0.sum(\.price), $0.minimum(\.price), $0.maximum(\.born), $0.minimum(\.name))
    }
    #expect(price == prices.reduce(0, +) && cheapest == prices.min() && youngest == Self.births[7] && first == "dog 0")
    let one: Int = try context.aggregate(Dog.self) {
      $0.count()
    } where: {
      $0.age > 4
    }
    #expect(one == 3)
    let (none, least) = try context.aggregate(Dog.self) {
      ($0.sum(\.chip), $0.minimum(\.age))
    } where: {
      $0.age > 40
    }
    #expect(none == 0 && least == nil)
  }

  @Test(arguments: TestStore.allCases) func groupsHaveTheirPropertyAsKey(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = try fill(context)
    try context.save()
    let byOwner = try context.aggregate(Dog.self, by: \.owner) { ($0.count(), $0.sum(\.age)) }
    #expect(byOwner.count == 4 && byOwner.first?.key == nil)
    for (owner, (count, sum)) in byOwner {
      let owned = dogs.filter { $0.owner == owner }
      #expect(count == owned.count && sum == owned.reduce(0) { $0 + $1.age })
    }
    let byName = try context.aggregate(Dog.self, by: \.name) {
      $0.maximum(\.age)
    } where: {
      $0.isGood
    }
    #expect(byName.map(\.key) == ["dog 0", "dog 1", "dog 2"] && byName.map(\.value) == [6, 4, 2])
    let byQuality = try context.aggregate(Dog.self, by: \.isGood) { $0.count() }
    #expect(byQuality.map(\.key) == [false, true] && byQuality.map(\.value) == [4, 4])
    let byNotes = try context.aggregate(Dog.self, by: \.notes) { $0.count() }
    #expect(byNotes.map(\.key) == [nil, "Note 1", "Note 3", "Note 5", "Note 7"] && byNotes.first?.value == 4)
    #expect(
      try context.aggregate(Dog.self, by: \.name) {
        $0.count()
      } where: {
        $0.age > 40
      }.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func destinationsInGroupsAreFaultsThatSentNoRequest(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    _ = try fill(filling)
    try filling.save()
    let (context, recorder) = try place.recording()
    let owners = try context.aggregate(Dog.self, by: \.owner) { $0.count() }.compactMap(\.key)
    #expect(recorder.reads.count == 1 && owners.count == 3 && owners.allSatisfy(\.isFault))
    _ = try context.fetch(Person.self) { $0.isIn(owners) }
    #expect(recorder.reads.count == 2 && owners.map(\.name).sorted() == ["Ann", "Bob", "Cid"] && recorder.reads.count == 2)
  }

  // MARK: Names

  /// A class with properties named like members of paths.
  private final class Named: ManagedObject {
    override class var entityName: String { "Named" }
    var any: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    var contains: String {
      get { self[1] }
      set { self[1] = newValue }
    }
    var count: Int {
      get { self[2] }
      set { self[2] = newValue }
    }
    var isEmpty: Bool {
      get { self[3] }
      set { self[3] = newValue }
    }
    var path: String? {
      get { self[4] }
      set { self[4] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [
        .attribute("any", \Named.any, slot: 0), .attribute("contains", \Named.contains, slot: 1),
        .attribute("count", \Named.count, slot: 2),
        .attribute("isEmpty", \Named.isEmpty, slot: 3), .attribute("path", \Named.path, slot: 4),
      ]
    }
  }

  @Test func attributesCanBeNamedLikeMembersOfPaths() {
    let predicate = FetchPredicate<Named> {
      $0.any == 1
      $0.contains == "a"
      $0.count == 2
      $0.isEmpty
      $0.path == nil
    }
    #expect(predicate.expression.paths.map(\.description).sorted() == ["any", "contains", "count", "isEmpty", "path"])
    #expect(FetchSortDescriptor<Named>.ascending(\.count).term.path == "count")
  }
}

extension RecordingStore {
  /// The recorded requests that read rows, keys or values.
  fileprivate var reads: [RecordedRequest] {
    requests.filter {
      switch $0 {
      case .fetch, .rows, .relationships: true
      default: false
      }
    }
  }
}
