import FoundationEssentials
import Holdfast
import HoldfastStoreConformance
import Testing

/// Derived values are nobody's change, so nobody is in the way of anybody by them.
@Suite struct DerivedConflictTests {
  private func place(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.park(), context = try place.context()
    let dog = context.make("Dog", ["name": .string("Rex")])
    dog.many("tricks").insert(context.make("Trick", ["level": .int32(1)]))
    dog.lead("owner", to: context.make("Person", ["name": .string("Ann")]))
    context.make("Walk", ["minutes": .int32(1), "distance": .double(1)], dog: dog)
    try context.save()
    return place
  }

  @Test(arguments: TestStore.allCases) func `two contexts add walks to one dog, and the count is right`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let (first, second) = (try one.all("Dog")[0], try two.all("Dog")[0])
    #expect(first["walkCount"] == .int64(1) && second["walkCount"] == .int64(1))
    one.make("Walk", ["minutes": .int32(10), "distance": .double(1)], dog: first)
    two.make("Walk", ["minutes": .int32(100), "distance": .double(1)], dog: second)
    try one.save()
    try two.save()
    #expect(first["walkCount"] == .int64(2) && second["walkCount"] == .int64(3) && second["minutes"] == .int32(111))
    #expect(second["distance"] == .double(3))
    try place.expectRight("after both saved")
    try one.refresh(first, mergeChanges: true)
    #expect(first["walkCount"] == .int64(3))
    try one.refresh(first, mergeChanges: false)
    #expect(first["minutes"] == .int32(111))
  }

  @Test(arguments: TestStore.allCases) func `a dog is renamed while another context adds a walk`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let (first, second) = (try one.all("Dog")[0], try two.all("Dog")[0])
    _ = (first["name"], second["name"])
    one.make("Walk", ["minutes": .int32(10)], dog: first)
    try one.save()
    second["name"] = .string("Max")
    try two.save()
    #expect(second["walkCount"] == .int64(2), "What is saved is what the store has.")
    try place.expectRight("after the dog was renamed by one who did not know the walk")
    first["name"] = .string("Moritz")
    #expect(throws: ContextError.self) { try one.save() }
    one.rollback()
    try one.refreshAllObjects()
    #expect(first["walkCount"] == .int64(2) && first["name"] == .string("Max"))
  }

  @Test(arguments: TestStore.allCases) func `a walk is changed while another context renames its owner`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let walk = try one.all("Walk")[0]
    #expect(walk["walker"] == .string("Ann"))
    try two.all("Person")[0]["name"] = .string("Bea")
    try two.save()
    walk["minutes"] = .int32(5)
    try one.save()
    #expect(walk["walker"] == .string("Bea"))
    try place.expectRight("after both saved")
  }

  @Test(arguments: TestStore.allCases) func `a fault reads what was derived last`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let dog = try one.all("Dog")[0]
    #expect(dog["walkCount"] == .int64(1))
    let id = dog.objectID
    two.make("Walk", dog: try two.all("Dog")[0])
    try two.save()
    try one.refresh(dog, mergeChanges: false)
    #expect(dog["walkCount"] == .int64(2))
    #expect(try place.context().existingObject(with: id)["walkCount"] == .int64(2))
  }

  @Test(arguments: TestStore.allCases) func `a sum of decimals is exact however long it is kept up`(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let dog = try context.all("Dog")[0]
    for _ in 0..<30 {
      context.make("Walk", ["cost": .decimal(0.1), "distance": .double(0.1)], dog: dog)
      try context.save()
    }
    #expect(dog["cost"] == .decimal(3))
    try place.expectRight("after thirty saves")
    for walk in try context.all("Walk").dropFirst() { context.delete(walk) }
    try context.save()
    #expect(dog["cost"] == .decimal(0) && dog["distance"] == .double(1))
  }

  @Test func `objects whose values follow are told as refreshed`() throws {
    let place = try place(.memory), context = try place.context()
    let (walk, dog) = (try context.all("Walk")[0], try context.all("Dog")[0])
    _ = dog["name"]
    var told: [ManagedObjectID] = []
    context.objectsDidChange { _, changes in told += changes.refreshed }
    context.delete(walk)
    try context.save()
    #expect(told.contains(dog.objectID) && dog["walkCount"] == .int64(0))
  }

  @Test func `an object goes on showing what it has read but for derived values`() throws {
    let place = try place(.sqlite), one = try place.context(), two = try place.context()
    let dog = try one.all("Dog")[0], walks = dog.many("walks")
    #expect(dog["name"] == .string("Rex") && walks.count == 1)
    try two.all("Dog")[0]["name"] = .string("Max")
    try two.save()
    one.make("Walk", dog: dog)
    try one.save()
    #expect(dog["name"] == .string("Rex") && dog["walkCount"] == .int64(2) && walks.count == 2)
  }
}
