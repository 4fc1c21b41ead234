import Holdfast
import HoldfastStoreConformance
import TestSupport
import Testing

/// The same objects in one store and divided between two: every query has the same result.
@Suite struct MergedFetchTests {
  @Test(arguments: StorePair.allCases) func twoStoresAnswerAsOneDoes(_ pair: StorePair) throws {
    var random = SeededGenerator()
    for _ in 0..<TestTier.count(1, full: 3) {
      let twins = try TwinGraphs(pair, &random)
      for _ in 0..<40 { try twins.compare(RandomQuestion(&random), "HOLDFAST_SEED=\(random.seed)") }
      try twins.compareDictionaries("HOLDFAST_SEED=\(random.seed)")
      try twins.change(&random)
      for _ in 0..<40 { try twins.compare(RandomQuestion(&random), "HOLDFAST_SEED=\(random.seed), with changes") }
      try twins.save()
      for _ in 0..<20 { try twins.compare(RandomQuestion(&random, isTotal: true), "HOLDFAST_SEED=\(random.seed), saved") }
      try twins.compareDictionaries("HOLDFAST_SEED=\(random.seed), saved")
    }
  }

  @Test(arguments: StorePair.allCases) func aFetchFindsItsObjectsWithoutFurtherRequests(_ pair: StorePair) throws {
    var random = SeededGenerator()
    let twins = try TwinGraphs(pair, &random)
    let context = try twins.pack.context()
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    twins.pack.clearRecords()
    #expect(dogs.map(\.name) == dogs.map(\.name).sorted())
    #expect(dogs.count == twins.dogCount)
    #expect(twins.pack.recorders.allSatisfy { $0.requests.isEmpty })
    // The owners of both stores' dogs are fetched together, with one or two requests to each store.
    #expect(dogs.allSatisfy { $0.owner.map { !$0.name.isEmpty } ?? true })
  }

  @Test func aFullWindowAsksNoFurtherStore() throws {
    let pack = try StorePack(.sqlites), context = try pack.context()
    for index in 0..<20 { try context.assign(context.dog("d\(index)"), to: pack.stores[index % 2]) }
    try context.save()
    pack.clearRecords()
    #expect(try pack.context().fetch(FetchRequest<Dog>(limit: 10)).count == 10)
    #expect(pack.recorders[0].plans.count == 1)
    #expect(pack.recorders[0].plans.first?.limit == 10)
    #expect(pack.recorders[1].requests.isEmpty)
  }

  @Test func eachStoreGetsTheWholeWindowFromItsBeginning() throws {
    let pack = try StorePack(.sqlites)
    _ = try pack.context().fetch(
      FetchRequest<Dog>(sortedBy: [.ascending(\.name)], offset: 5, limit: 10) { $0.age > 3 })
    for recorder in pack.recorders {
      let plan = try #require(recorder.plans.first)
      #expect(recorder.plans.count == 1 && plan.offset == 0 && plan.limit == 15 && plan.sorts.count == 1 && plan.predicate != nil)
    }
  }

  @Test func countsAreAskedOfEachStoreAndAdded() throws {
    let pack = try StorePack(.sqlites), context = try pack.context()
    for index in 0..<7 { try context.assign(context.dog("d\(index)"), to: pack.stores[index % 2]) }
    try context.save()
    pack.clearRecords()
    #expect(try context.count(for: FetchRequest<Dog>()) == 7)
    #expect(try context.count(for: FetchRequest<Dog>(offset: 2, limit: 3)) == 3)
    for recorder in pack.recorders { #expect(recorder.plans.map(\.output) == [.count, .count]) }
  }
}

/// One graph in one store, and the same graph divided between two. People own the dogs of their own store, and names identify objects.
final class TwinGraphs {
  let pack: StorePack
  private var one: ManagedObjectContext
  private var two: ManagedObjectContext
  private(set) var dogCount = 0

  init(_ pair: StorePair, _ random: inout SeededGenerator) throws {
    pack = try StorePack(pair)
    one = try TestStore.memory.makePlace().context()
    two = try pack.context()
    // All of the first store's objects are older than those of the second, as their keys indicate.
    for (place, store) in pack.stores.enumerated() {
      let recipe = Recipe(place, &random)
      recipe.make(in: one) { _ in }
      var failure: (any Error)?
      recipe.make(in: two) { object in do { try self.two.assign(object, to: store) } catch { failure = error } }
      if let failure { throw failure }
      dogCount += recipe.dogs.count
      try one.save()
      try two.save()
    }
    // The objects were released, so they are read again.
  }

  /// Creates objects in one store.
  private struct Recipe {
    struct DogRecipe { var name: String, age: Int, weight: Double?, owner: Int?, friends: [Int] }
    let people: [(name: String, city: String?)]
    let dogs: [DogRecipe]

    init(_ place: Int, _ random: inout SeededGenerator) {
      people = (0..<Int.random(in: 1...5, using: &random)).map { index in
        ("p\(place).\(index)", ["Bern", "Oslo", nil].randomElement(using: &random) ?? nil)
      }
      let count = Int.random(in: 0...60, using: &random), owners = people.count
      dogs = (0..<count).map { index in
        DogRecipe(
          name: "d\(place).\(index)", age: Int.random(in: 0...6, using: &random),
          weight: Bool.random(using: &random) ? nil : Double(Int.random(in: 1...6, using: &random)) / 2,
          owner: Int.random(in: 0...2, using: &random) == 0 ? nil : Int.random(in: 0..<owners, using: &random),
          friends: (0..<Int.random(in: 0...2, using: &random)).map { _ in Int.random(in: 0..<count, using: &random) })
      }
    }

    func make(in context: ManagedObjectContext, _ body: (ManagedObject) -> Void) {
      let owners = people.map { context.person($0.name, city: $0.city) }
      let made = dogs.map { recipe in
        let dog = context.dog(recipe.name, age: recipe.age, owner: recipe.owner.map { owners[$0] })
        dog.weight = recipe.weight
        return dog
      }
      for (dog, recipe) in zip(made, dogs) { for friend in recipe.friends { dog.friends.insert(made[friend]) } }
      for object in owners { body(object) }
      for object in made { body(object) }
    }
  }

  /// The same unsaved changes in both.
  func change(_ random: inout SeededGenerator) throws {
    let names = try one.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.name)
    for name in names {
      let (chance, age) = (Int.random(in: 0..<6, using: &random), Int.random(in: 0...6, using: &random))
      for context in [one, two] {
        let dog = try #require(try context.one(Dog.self) { $0.name == name })
        if chance == 0 { context.delete(dog) }
        if chance == 1 { dog.age = age }
        if chance == 2 { dog.owner = nil }
      }
    }
    for index in 0..<4 {
      let owner = try #require(try one.fetch(FetchRequest<Person>()).map(\.name).sorted().randomElement(using: &random))
      for context in [one, two] {
        let dog = context.dog("new\(index)", age: index)
        dog.owner = try context.one(Person.self) { $0.name == owner }
        if context === two { try two.assign(dog, to: #require(pack.coordinator.persistentStore(for: dog.owner!.objectID))) }
      }
    }
  }

  /// Saves both. From now on, new contexts are queried. New objects come last in the single store, but after the older objects of their own
  /// store in the divided graph. Only total orders are therefore equal.
  func save() throws {
    try one.save()
    try two.save()
    (one, two) = (try ManagedObjectContext(coordinator: one.persistentStoreCoordinator, classes: Kennel.classes), try pack.context())
  }

  func compare(_ question: RandomQuestion, _ comment: String) throws {
    let a = try question.ask(one), b = try question.ask(two)
    if question.isOrdered {
      #expect(a.names == b.names, "\(comment): \(question)")
    } else {
      #expect(a.names.sorted() == b.names.sorted(), "\(comment): \(question)")
    }
    #expect(a.count == b.count, "\(comment): \(question)")
    #expect(question.isOrdered ? a.idNames == b.idNames : a.idNames.sorted() == b.idNames.sorted(), "\(comment): \(question)")
  }

  func compareDictionaries(_ comment: String) throws {
    let columns: [String: DictionaryFetchColumn] = [
      "age": .property("age"), "count": .count(), "sum": .sum("weight"), "average": .average("weight"), "first": .minimum("name"),
      "last": .maximum("name"), "weighed": .count("weight"),
    ]
    let byAge = DictionaryFetchRequest<Dog>(columns: columns, groupedBy: ["age"])
    #expect(try one.fetch(byAge) == two.fetch(byAge), "\(comment)")
    var rest = columns
    rest["age"] = nil
    let all = DictionaryFetchRequest<Dog>(where: FetchPredicate { $0.age > 2 }, columns: rest)
    #expect(try one.fetch(all) == two.fetch(all), "\(comment)")
    let byOwner = DictionaryFetchRequest<Dog>(columns: ["owner": .property("owner"), "count": .count()], groupedBy: ["owner"])
    #expect(try owners(byOwner, one) == owners(byOwner, two), "\(comment)")
  }

  /// Groups by owner, with names instead of IDs.
  private func owners(_ request: DictionaryFetchRequest<Dog>, _ context: ManagedObjectContext) throws -> [String] {
    try context.fetch(request).map { row in
      guard case .objectID(let id)? = row["owner"] else { return "nobody \(row["count"] ?? .null)" }
      return "\(try context.existingObject(with: id).value(forKey: "name")) \(row["count"] ?? .null)"
    }
  }
}

/// A query for dogs.
struct RandomQuestion: CustomStringConvertible {
  private enum Test: Int, CaseIterable { case all, age, name, city, owner, ownerIs, friends, noFriends, owned, mixed, among }
  private enum Order: Int, CaseIterable { case none, age, weight, name, city, ownerThenAge }
  private let test: Test
  private let order: Order
  private let number: Int
  private let ascending: Bool
  private let offset: Int
  private let limit: Int
  private let isTotal: Bool

  /// - Parameter isTotal: whether objects that are equal in all sorts are sorted by name.
  init(_ random: inout SeededGenerator, isTotal: Bool = false) {
    self.isTotal = isTotal
    test = Test.allCases.randomElement(using: &random) ?? .all
    order = Order.allCases.randomElement(using: &random) ?? .none
    number = Int.random(in: 0...6, using: &random)
    ascending = Bool.random(using: &random)
    offset = Bool.random(using: &random) ? 0 : Int.random(in: 0...30, using: &random)
    limit = Bool.random(using: &random) ? 0 : Int.random(in: 1...30, using: &random)
  }

  var description: String {
    "\(test) \(number), by \(order) \(ascending ? "up" : "down"), \(offset)..\(limit)"
  }

  var isOrdered: Bool { order != .none || offset > 0 || limit > 0 }

  func ask(_ context: ManagedObjectContext) throws -> (names: [String], count: Int, idNames: [String]) {
    let request = try request(context)
    let ids = try context.fetchObjectIDs(request)
    let names = try ids.map { try #require(context.object(with: $0) as? Dog).name }
    return (try context.fetch(request).map(\.name), try context.count(for: request), names)
  }

  private func sorted<Value: AttributeValue>(by keyPath: FetchKeyPath<Dog, Value>) -> FetchSortDescriptor<Dog> {
    ascending ? .ascending(keyPath) : .descending(keyPath)
  }

  private func request(_ context: ManagedObjectContext) throws -> FetchRequest<Dog> {
    let someone = try context.one(Person.self) { $0.name == "p\(number % 2).\(number % 3)" }
    let predicate: FetchPredicate<Dog>? =
      switch test {
      case .all: nil
      case .age: FetchPredicate { $0.age > number }
      case .name: FetchPredicate { $0.name.beginsWith("d\(number % 2)") || $0.name.contains("ew") }
      case .city: FetchPredicate { $0.owner.city == "Bern" }
      case .owner: FetchPredicate { $0.owner.name == "p\(number % 2).0" }
      case .ownerIs: FetchPredicate { $0.owner == someone }
      case .friends: FetchPredicate { $0.friends.any { $0.age > number } }
      case .noFriends: FetchPredicate { $0.friends.count == number % 3 }
      case .owned: FetchPredicate { $0.owner != nil && $0.age < number }
      case .mixed: FetchPredicate { !($0.owner.city == "Oslo") && $0.friendOf.all { $0.age != number } }
      case .among:
        FetchPredicate(
          .membership(.object, try context.fetch(FetchRequest<Dog> { $0.age == number }).map { .objectID($0.objectID) }))
      }
    var sorts: [FetchSortDescriptor<Dog>] =
      switch order {
      case .none: []
      case .age: [sorted(by: \.age)]
      case .weight: [sorted(by: \.weight)]
      case .name: [sorted(by: \.name)]
      case .city: [sorted(by: \.owner.city)]
      case .ownerThenAge:
        [sorted(by: \.owner.name), .ascending(\.age)]
      }
    if isTotal { sorts.append(FetchSortDescriptor<Dog>.ascending(\.name)) }
    return FetchRequest<Dog>(where: predicate, sortedBy: sorts, offset: offset, limit: limit)
  }
}
