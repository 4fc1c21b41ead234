import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Key paths that don't refer to one property of the class, in predicates and orders. On every store.
@Suite struct KeyPathTests {
  /// Bob owns Rex and Tom, Ann owns Fido; Stray has no owner.
  private func context(_ store: TestStore) throws -> (TestStore.Place, ManagedObjectContext) {
    let place = try store.makePlace(), context = try place.context()
    let ann = context.person("Ann", city: "Paris"), bob = context.person("Bob")
    context.dog("Fido", age: 3, owner: ann).weight = 12
    context.dog("Rex", age: 5, owner: bob).friends.insert(context.dog("Tom", age: 7, owner: bob))
    context.dog("Stray", age: 9)
    try context.save()
    return (place, context)
  }

  private func names(
    _ context: ManagedObjectContext, @FetchPredicateBuilder<Dog> _ conditions: (FetchPath<Dog, Dog>) -> FetchPredicate<Dog>
  ) throws -> [String] {
    try context.fetch(FetchRequest(sortedBy: [.ascending(\.name)], where: conditions)).map(\.name)
  }

  @Test(arguments: TestStore.allCases) func chainsThroughToOneRelationshipsAreFollowed(_ store: TestStore) throws {
    let (place, context) = try context(store)
    withExtendedLifetime(place) {}
    #expect(try names(context) { $0.owner.name == "Ann" } == ["Fido"])
    #expect(try names(context) { $0.owner.name > "Ann" } == ["Rex", "Tom"])
    #expect(try names(context) { $0.owner.city == nil } == ["Rex", "Stray", "Tom"])
    #expect(try names(context) { $0.owner != nil && $0.age < 6 } == ["Fido", "Rex"])
    #expect(try names(context) { $0.owner.name.beginsWith("B") } == ["Rex", "Tom"])
    #expect(try names(context) { $0.owner.name == "Ann" || $0.owner == nil } == ["Fido", "Stray"])
    #expect(try names(context) { $0.owner.name == "Bob" } == ["Rex", "Tom"])
    #expect(try names(context) { $0.collar.dog.owner.name == "Ann" } == [])
    let ann = try context.one(Person.self) { $0.name == "Ann" }
    #expect(try names(context) { $0.collar.dog == nil && $0.owner == ann } == ["Fido"])
    let sorted = try context.fetch(
      FetchRequest<Dog>(sortedBy: [.descending(\.owner.name), .ascending(\.name)]))
    #expect(sorted.map(\.name) == ["Rex", "Tom", "Fido", "Stray"])
  }

  @Test(arguments: TestStore.allCases) func countsOfToManyRelationshipsAreCounts(_ store: TestStore) throws {
    let (place, context) = try context(store)
    withExtendedLifetime(place) {}
    #expect(try context.fetch(FetchRequest<Person> { $0.dogs.count > 1 }).map(\.name) == ["Bob"])
    #expect(try names(context) { $0.friends.count == 1 } == ["Rex"])
    #expect(try names(context) { $0.owner.dogs.count == 2 } == ["Rex", "Tom"])
    #expect(try names(context) { $0.owner.dogs.count == 1 } == ["Fido"])
  }

  @Test(arguments: TestStore.allCases) func whatIsComputedIsRefusedByTheRequest(_ store: TestStore) throws {
    let (place, context) = try context(store)
    withExtendedLifetime(place) {}
    let computed: [FetchPredicate<Dog>] = [
      FetchPredicate { $0.isOld }, FetchPredicate { $0.doubleAge == 6 }, FetchPredicate { $0.ageOrNothing == 3 },
      FetchPredicate { $0.shoutedName == "FIDO" }, FetchPredicate { $0.owner.greeting == "Hello Ann" },
      FetchPredicate { $0.twiceTheFriends == 2 }, FetchPredicate { $0.oldestFriend.name == "Tom" },
    ]
    for (number, predicate) in computed.enumerated() {
      let error = #expect(throws: QueryError.self, "\(number)") { try context.fetch(FetchRequest(where: predicate)) }
      #expect(error?.reason.contains("none of the properties listed in") == true, "\(number): \(String(describing: error))")
    }
    #expect(throws: QueryError.self) { try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.doubleAge)])) }
  }
}

extension Dog {
  fileprivate var isOld: Bool { age > 4 }
  fileprivate var doubleAge: Int { age * 2 }
  fileprivate var ageOrNothing: Int? { age == 0 ? nil : age }
  fileprivate var shoutedName: String { name.uppercased() }
  fileprivate var twiceTheFriends: Int { friends.count * 2 }
  fileprivate var oldestFriend: Dog? { friends.max { $0.age < $1.age } }
}

extension Person {
  fileprivate var greeting: String { "Hello \(name)" }
}

extension ToMany {
  fileprivate var first: Destination? { first { _ in true } }
}
