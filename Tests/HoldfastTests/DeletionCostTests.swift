import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

/// Deleting many objects sends as many store requests as deleting few. Links are removed per owner, not one by one.
@Suite struct DeletionCostTests {
  /// Saves this number of dogs, each with an owner, friends and a vaccination.
  private func fill(_ place: TestStore.Place, _ count: Int, friends: Int) throws {
    let context = try place.context()
    let ann = context.insert(Person.self)
    ann.name = "Ann"
    let dogs = (0..<count).map { number in
      let dog = context.insert(Dog.self)
      dog.name = "Dog \(number)"
      dog.owner = ann
      let vaccination = context.insert(Vaccination.self)
      vaccination.kind = "rabies"
      vaccination.dog = dog
      return dog
    }
    for (number, dog) in dogs.enumerated() {
      for step in 1...friends { dog.friends.insert(dogs[(number + step) % count]) }
    }
    try context.save()
  }

  private struct Cost: Equatable {
    var requests: [String: Int] = [:]
    var statements = 0
  }

  /// Deletes nine of ten dogs, and returns the cost in requests and statements.
  private func deleteMost(_ store: TestStore, of count: Int, friends: Int = 6) throws -> Cost {
    let place = try store.makePlace()
    try fill(place, count, friends: friends)
    let sqlite = Mutex<SQLiteStore?>(nil)
    let (context, recorder) = try place.recording { store in
      sqlite.withLock { $0 = store as? SQLiteStore }
      return store
    }
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(dogs.count == count)
    recorder.clear()
    let before = sqlite.withLock { $0?.statementCount ?? 0 }
    for (number, dog) in dogs.enumerated() where number % 10 != 0 { context.delete(dog) }
    try context.save()
    var cost = Cost(statements: sqlite.withLock { $0?.statementCount ?? 0 } - before)
    for request in recorder.requests { cost.requests["\(request)".prefix { $0 != "(" }.description, default: 0] += 1 }
    let left = try context.fetch(FetchRequest<Dog>())
    #expect(left.count == (count + 9) / 10 && left.allSatisfy { $0.friends.allSatisfy { !$0.isDeleted } })
    #expect(try context.count(for: FetchRequest<Vaccination>()) == left.count)
    return cost
  }

  @Test(arguments: TestStore.allCases) func aStoreIsAskedAsOftenForManyAsForFew(_ store: TestStore) throws {
    let (few, many) = (try deleteMost(store, of: 100), try deleteMost(store, of: 1_000))
    #expect(few.requests == many.requests, "\(store)")
    // A store with resident rows gets single requests for a few objects before one for all others.
    #expect(many.requests.values.reduce(0, +) <= (store.hasResidentRows || store == .second ? 80 : 10), "\(many.requests)")
  }

  /// For each dog: its row, both sides of its links, the keys of its collar and vaccination; reading and deleting the vaccination. Also the
  /// version of each dog that lost friends.
  @Test(arguments: [2, 6]) func statementsOfSQLiteAreByObjectsAndNotByLinks(_ friends: Int) throws {
    let few = try deleteMost(.sqlite, of: 100, friends: friends), many = try deleteMost(.sqlite, of: 1_000, friends: friends)
    #expect(many.statements - few.statements == 7 * 810 + 90, "\(few.statements), \(many.statements)")
  }

  /// The bug: each deleted object was looked for in all lists of registered objects if a handler received the changes.
  @Test func deletingObjectsWithoutAnInverseIsNotQuadraticForAHandler() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Box", relationships: [.toMany("toys", to: "Toy", inverse: nil)]), EntityDescription("Toy"),
    ])
    func time(_ count: Int) throws -> Duration {
      let context = try TestStore.memory.makePlace(model: model, classes: []).context()
      let boxes = try (0..<count).map { _ in try context.insert(entityNamed: "Box") }
      let toys = try boxes.map { box in
        let toy = try context.insert(entityNamed: "Toy")
        try box.toMany(forKey: "toys").insert(toy)
        return toy
      }
      try context.save()
      var updated: [ManagedObjectID] = []
      let observation = context.onChange { _, changes in updated += changes.updated }
      for toy in toys { context.delete(toy) }
      let time = try processorTime { try context.processPendingChanges() }
      #expect(updated.count == count && Set(updated) == Set(boxes.map(\.objectID)))
      withExtendedLifetime(observation) {}
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  /// The bug: for a handler, the other ends of each deleted object were read by a request of their own, if only their rows determine their
  /// entities.
  @Test(arguments: TestStore.allCases) func theOtherEndsOfManyDeletedObjectsAreReadTogetherForAHandler(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Owner", relationships: [.toMany("pets", to: "Pet", inverse: "owner")]),
      EntityDescription("Pet", relationships: [.toOne("owner", to: "Owner", inverse: "pets")]),
      EntityDescription("Cat", superentity: "Pet"),
    ])
    func requests(_ count: Int) throws -> [String: Int] {
      let place = try store.makePlace(model: model, classes: []), setup = try place.context()
      for _ in 0..<count {
        let owner = try setup.insert(entityNamed: "Owner")
        try setup.insert(entityNamed: "Cat").setValue(.objectID(owner.objectID), forKey: "owner")
      }
      try setup.save()
      let (context, recorder) = try place.recording()
      var updated: [ManagedObjectID] = []
      let observation = context.onChange { _, changes in updated += changes.updated }
      let owners = try context.fetch(FetchRequest<ManagedObject>(entityName: "Owner"))
      recorder.clear()
      for owner in owners { context.delete(owner) }
      try context.processPendingChanges()
      #expect(updated.count == count && Set(updated).count == count && updated.allSatisfy { $0.entityName == "Cat" })
      withExtendedLifetime(observation) {}
      var requests: [String: Int] = [:]
      for request in recorder.requests { requests["\(request)".prefix { $0 != "(" }.description, default: 0] += 1 }
      return requests
    }
    let (few, many) = (try requests(100), try requests(1_000))
    #expect(few == many && many["rows"] == 1, "\(few), \(many)")
  }
}
