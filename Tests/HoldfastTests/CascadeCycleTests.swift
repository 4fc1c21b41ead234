import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Cyclic cascades, on every store.
@Suite struct CascadeCycleTests {
  /// House → Room → Cat → House, each with several destinations, and a cat has a next cat.
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "House", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("rooms", to: "Room", inverse: "house", deleteRule: .cascade, isOrdered: true),
            .toOne("cat", to: "Cat", inverse: "houses"),
          ]),
        EntityDescription(
          "Room", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("cats", to: "Cat", inverse: "room", deleteRule: .cascade), .toOne("house", to: "House", inverse: "rooms"),
          ]),
        EntityDescription(
          "Cat", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("houses", to: "House", inverse: "cat", deleteRule: .cascade), .toOne("room", to: "Room", inverse: "cats"),
            .toOne("next", to: "Cat", inverse: "previous", deleteRule: .cascade), .toOne("previous", to: "Cat", inverse: "next"),
          ]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private static let entities = ["House", "Room", "Cat"]

  private func place(_ store: TestStore) throws -> TestStore.Place { try store.makePlace(model: Self.model, classes: []) }

  private func insert(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let object = try context.insert(entityNamed: entity)
    try object.setValue(.string(name), forKey: "name")
    return object
  }

  /// Rings of the three entities: each house has two rooms, each room has a cat, and one of the cats has the house.
  private func fill(_ context: ManagedObjectContext, rings: Int) throws {
    for ring in 0..<rings {
      let house = try insert("House", "\(ring)", context)
      for half in 0..<2 {
        let room = try insert("Room", "\(ring)", context), cat = try insert("Cat", "\(ring)", context)
        try house.ordered(forKey: "rooms").append(room)
        try room.toMany(forKey: "cats").insert(cat)
        if half == 0 { try cat.toMany(forKey: "houses").insert(house) }
      }
    }
  }

  private func names(_ entity: String, _ context: ManagedObjectContext) throws -> [String] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).map { object in
      if case .string(let name)? = try object.value(forKey: "name").storeValue { name } else { "" }
    }.sorted()
  }

  private func object(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).first { try $0.value(forKey: "name") == .string(name) })
  }

  @Test(arguments: TestStore.allCases, entities) func aRingOfThreeEntitiesGoesAsAWhole(_ store: TestStore, _ start: String) throws {
    let place = try place(store), setup = try place.context()
    try fill(setup, rings: 3)
    try setup.save()
    let context = try place.context()
    // The room and the cat of a ring that are part of the cycle.
    let first = try object("House", "1", context)
    let room = first.toMany(0) as ToMany<ManagedObject>
    let through = try #require(try room.first { try $0.toMany(forKey: "cats").contains { try !$0.toMany(forKey: "houses").isEmpty } })
    let begin: ManagedObject
    switch start {
    case "House": begin = first
    case "Room": begin = through
    default: begin = try #require(try through.toMany(forKey: "cats").first { _ in true })
    }
    context.delete(begin)
    for entity in Self.entities { #expect(try !names(entity, context).contains("1"), "\(entity)") }
    context.rollback()
    #expect(try names("Cat", context) == ["0", "0", "1", "1", "2", "2"])
    context.delete(begin)
    try context.save()
    #expect(try names("House", context) == ["0", "2"])
    try place.close()
    let last = try place.context()
    #expect(try names("House", last) == ["0", "2"])
    for entity in ["Room", "Cat"] { #expect(try names(entity, last) == ["0", "0", "2", "2"]) }
    #expect(try object("House", "2", last).ordered(forKey: "rooms").count == 2)
  }

  /// With unloaded objects, which the context finds step by step, and with new objects that were never saved.
  @Test(arguments: TestStore.allCases, [true, false]) func aRingGoesUnreadOrUnsaved(_ store: TestStore, _ isSaved: Bool) throws {
    let place = try place(store), setup = try place.context()
    try fill(setup, rings: 2)
    if isSaved { try setup.save() }
    let context = isSaved ? try place.context() : setup
    for house in isSaved ? setup.registeredObjects : setup.insertedObjects where house.entity.name == "House" {
      context.delete(isSaved ? try context.object(with: house.objectID) : house)
    }
    if isSaved {
      for house in try context.fetch(FetchRequest<ManagedObject>(entityName: "House")) { context.delete(house) }
    }
    try context.save()
    #expect(!context.hasChanges)
    for entity in Self.entities { #expect(try names(entity, place.context()) == []) }
  }

  /// Rings of cats, by a relationship to their own entity: with one, with two, and with more than recursive calls could handle.
  @Test(arguments: TestStore.allCases, [1, 2, 3, 3_000]) func aRingOfOneEntityGoesAsAWhole(_ store: TestStore, _ count: Int) throws {
    // The weakest store returns all rows for each of the requests.
    let count = store == .weakest ? min(count, TestTier.count(300, full: 3_000)) : count
    let place = try place(store), setup = try place.context()
    let cats = try (0..<count).map { try insert("Cat", "ring \($0)", setup) }
    for (place, cat) in cats.enumerated() { try cat.setValue(.objectID(cats[(place + 1) % count].objectID), forKey: "next") }
    _ = try insert("Cat", "beside", setup)
    try setup.save()
    let context = try place.context()
    context.delete(try context.existingObject(with: cats[count / 2].objectID))
    #expect(try names("Cat", context) == ["beside"])
    try context.save()
    try place.close()
    #expect(try names("Cat", place.context()) == ["beside"])
  }

  /// The bug: each object of a cascade caused a pass over all registered objects.
  @Test func aLongCascadeIsNotQuadratic() throws {
    func time(_ count: Int) throws -> Duration {
      let context = try place(.memory).context()
      let cats = try (0..<count).map { try insert("Cat", "ring \($0)", context) }
      for (place, cat) in cats.enumerated() { try cat.setValue(.objectID(cats[(place + 1) % count].objectID), forKey: "next") }
      try context.save()
      context.delete(cats[0])
      let time = try processorTime { try context.processPendingChanges() }
      #expect(context.deletedObjects.count == count)
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  /// If the targets of one object couldn't be read, the delete rules of objects deleted after it are applied by the next attempt.
  @Test(arguments: TestStore.allCases) func aCascadeThatFailsOnceContinuesWithAllDeletedObjects(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    for name in ["a", "b", "c"] {
      let vaccination = setup.insert(Vaccination.self)
      vaccination.kind = name
      vaccination.dog = setup.dog(name)
    }
    try setup.save()
    let (context, failing) = try place.faulty()
    for dog in try context.fetch(FetchRequest<Dog>()) { context.delete(dog) }
    failing.fail(.relationships, onCall: 1, with: StoreError(.inputOutput, operation: "read", reason: "The test says so."))
    #expect(throws: (any Error).self) { try context.processPendingChanges() }
    try context.save()
    let last = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try last.count(for: FetchRequest<Dog>()) == 0 && last.count(for: FetchRequest<Vaccination>()) == 0)
  }
}
