// swift-format-ignore-file
// The examples of queries, word for word; `SnippetTests` compares them, `QueryTests` runs them.
import Holdfast
import HoldfastMemoryStore
import Testing

enum QueriedKennel {
  final class Dog: ManagedObject {
    override class var entityName: String { "Dog" }
    var name: String { get { self[0] } set { self[0] = newValue } }
    var walks: ToMany<Walk> { toMany(0) }
    override class var properties: [PropertyBinding] {
      [.attribute("name", \Dog.name, slot: 0), .toMany("walks", \Dog.walks, index: 0)]
    }
  }

  final class Walk: ManagedObject {
    override class var entityName: String { "Walk" }
    var dog: Dog? { get { toOne(0) } set { setToOne(0, newValue) } }
    var minutes: Int { get { self[1] } set { self[1] = newValue } }
    override class var properties: [PropertyBinding] {
      [.toOne("dog", \Walk.dog, slot: 0), .attribute("minutes", \Walk.minutes, slot: 1)]
    }
  }

  /// Fido with walks of 20, 40 and 60 minutes, Rex with one of 50, and a walk of 90 without a dog.
  static func context() throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [.init("name", .string)], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription("Walk", attributes: [.init("minutes", .integer32)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .memory())
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Dog.self, Walk.self])
    let (fido, rex) = (context.insert(Dog.self) { $0.name = "Fido" }, context.insert(Dog.self) { $0.name = "Rex" })
    for (minutes, dog) in [(20, fido), (40, fido), (60, fido), (50, rex), (90, nil)] {
      context.insert(Walk.self) { ($0.minutes, $0.dog) = (minutes, dog) }
    }
    try context.save()
    return context
  }

  static func withFido(_ context: ManagedObjectContext) throws -> [Walk] {
    let walks = try context.fetch(Walk.self) { $0.minutes > 30 && $0.dog.name == "Fido" }
    return walks
  }

  static func long(_ context: ManagedObjectContext) throws -> [Walk] {
    let long = try context.fetch(Walk.self, sortedBy: [.descending(\.minutes)], limit: 10) { $0.minutes > 30 && $0.dog.name == "Fido" }
    return long
  }

  static func named(_ name: String?, _ context: ManagedObjectContext) throws -> [Walk] {
    let walks = try context.fetch(Walk.self) {
      $0.minutes > 30
      if let name { $0.dog.name == name }
    }
    return walks
  }

  static func sorted(_ context: ManagedObjectContext) throws -> ([Walk], [Walk]) {
    let longest = try context.fetch(Walk.self, sortedBy: [.descending(\.minutes), .ascending(\.dog.name)], limit: 3)
    let walks = try context.fetch(Walk.self, sortedBy: [.descending(\.minutes), .ascending(\.dog.name, folding: .caseInsensitive)])
    return (longest, walks)
  }

  static func request(_ context: ManagedObjectContext) throws -> [Walk] {
    var request = FetchRequest<Walk>(sortedBy: [.ascending(\.minutes)]) { $0.minutes > 30 }
    request.fetchLimit = 10
    let walks = try context.fetch(request)
    return walks
  }

  static func predicates(_ context: ManagedObjectContext) throws -> [Walk] {
    let isLong = FetchPredicate<Walk> { $0.minutes > 30 }
    let isWithFido = FetchPredicate<Walk> { $0.dog.name.beginsWith("Fi", .caseInsensitive) }
    let walks = try context.fetch(FetchRequest(where: isLong && !isWithFido))
    return walks
  }

  static func total(_ context: ManagedObjectContext) throws -> (Int, Int) {
    let (count, minutes) = try context.aggregate(Walk.self) { ($0.count(), $0.sum(\.minutes)) }
    return (count, minutes)
  }

  static func byDog(_ context: ManagedObjectContext) throws -> [String: Double?] {
    let walks = try context.aggregate(Walk.self, by: \.dog) { ($0.count(), $0.average(\.minutes)) }
    for (dog, (count, minutes)) in walks { print(dog?.name ?? "no dog", count, minutes ?? 0) }
    return Dictionary(uniqueKeysWithValues: walks.map { ($0.key?.name ?? "no dog", $0.value.1) })
  }

  static func filtered(_ context: ManagedObjectContext) throws -> [Walk] {
    func walks(of name: String?, longerThan minutes: Int, in context: ManagedObjectContext) throws -> [Walk] {
      try context.fetch(Walk.self, sortedBy: \.minutes) {
        $0.minutes > minutes
        if let name { $0.dog.name == name }
      }
    }
    return try walks(of: "Fido", longerThan: 30, in: context)
  }
}

@Suite struct QueryTests {
  @Test func theExamplesOfQueriesFindWhatTheySay() throws {
    let context = try QueriedKennel.context()
    #expect(try QueriedKennel.withFido(context).map(\.minutes).sorted() == [40, 60])
    #expect(try QueriedKennel.long(context).map(\.minutes) == [60, 40])
    #expect(try QueriedKennel.named(nil, context).count == 4 && QueriedKennel.named("Rex", context).map(\.minutes) == [50])
    let (longest, all) = try QueriedKennel.sorted(context)
    #expect(longest.map(\.minutes) == [90, 60, 50] && all.map(\.minutes) == [90, 60, 50, 40, 20])
    #expect(try QueriedKennel.request(context).map(\.minutes) == [40, 50, 60, 90])
    #expect(try QueriedKennel.predicates(context).map(\.minutes).sorted() == [50, 90])
    #expect(try QueriedKennel.total(context) == (5, 260))
    #expect(try QueriedKennel.byDog(context) == ["Fido": 40, "Rex": 50, "no dog": 90])
    #expect(try QueriedKennel.filtered(context).map(\.minutes) == [40, 60])
  }
}
