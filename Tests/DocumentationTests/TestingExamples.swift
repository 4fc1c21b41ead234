import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import HoldfastTesting
import Testing

/// The examples of `HoldfastTesting`, as tests.
@Suite struct TestingExamples {
  final class Dog: ManagedObject {
    override class var declaration: EntityDeclaration? {
      var declaration = EntityDeclaration(Dog.self)
      declaration.properties.append(.property("name", \Dog.name, default: ""))
      declaration.properties.append(.property("owner", \Dog.owner))
      return declaration
    }
    var name: String {
      get { self[property: SlotIndex(0)] }
      set { self[property: SlotIndex(0)] = newValue }
    }
    var owner: Walk? {
      get { self[property: SlotIndex(1)] }
      set { self[property: SlotIndex(1)] = newValue }
    }
  }

  final class Walk: ManagedObject {
    override class var declaration: EntityDeclaration? {
      var declaration = EntityDeclaration(Walk.self)
      declaration.properties.append(.property("dogs", \Walk.dogs, inverse: \Dog.owner))
      declaration.properties.append(.property("name", \Walk.name, default: ""))
      return declaration
    }
    var name: String {
      get { self[property: SlotIndex(0)] }
      set { self[property: SlotIndex(0)] = newValue }
    }
    var dogs: ToMany<Dog> { toMany(0) }
  }

  @Test func anOwnerWalksTheirDogs() throws {
    let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
    context.insert(Dog.self) { $0.name = "Fido" }
    test.faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    #expect(throws: StoreError.self) { try context.save() }
    #expect(context.hasChanges)
  }

  @Test(.testContainer(for: Dog.self), .requests(atMost: 4)) func anOwnerHasTwoDogs() throws {
    let context = TestContainer.current.newContext()
    try context.insertFixtures(#"{"Dog": [{ "name": "Fido" }, { "name": "Rex" }]}"#)
    try context.save()
    #expect(try context.fetch(Dog.self, sortedBy: \.name).map(\.name) == ["Fido", "Rex"])
  }

  @Test(.testContainer(for: Dog.self)) func newDogsHaveNoName() {
    let context = TestContainer.current.newContext()
    #expect(context.insert(Dog.self).name == "")
  }

  @Test(.testContainer(for: Dog.self), .requests(atMost: 3)) func savingTakesThreeRequests() throws {
    let context = TestContainer.current.newContext()
    context.insert(Dog.self) { $0.name = "Fido" }
    try context.save()
  }

  @Test(.testContainer(for: Dog.self)) func requestsAreCounted() throws {
    let context = TestContainer.current.newContext()
    func show(_ names: [String?]) {}
    let dogs = try context.fetch(Dog.self)
    expectRequests(atMost: 1, to: context.persistentStoreCoordinator) { show(dogs.map { $0.owner?.name }) }
    let coordinator = context.persistentStoreCoordinator
    let before = coordinator.requestCounts
    for dog in dogs { print(dog.owner?.name ?? "") }
    print(coordinator.requestCounts - before)  // fetches 0, rows 1, relationships 0, key reservations 0, saves 0, others 0
    coordinator.logRequests(slow: .milliseconds(100))
  }

  @Test func requestsAreRecorded() throws {
    let test = try TestContainer(for: Dog.self), context = test.newContext()
    _ = try context.fetch(Dog.self)
    #expect(test.requests.map(\.operation) == [.fetch])
  }

  @Test(.testContainer(for: Dog.self)) func fixturesHaveNames() throws {
    let fixtures = try TestContainer.current.newContext().insertFixtures(#"{"Dog": [{ "$name": "fido" }]}"#)
    let fido: Dog = try fixtures["fido"]
    #expect(fido.name == "")
  }

  @Test(.testContainer(for: Dog.self)) func aContextForAScope() throws {
    let container = TestContainer.current.container
    let count = try container.withContext { context in
      context.insert(Dog.self) { $0.name = "Fido" }
      try context.save()
      return try context.count(Dog.self)
    }
    #expect(count == 1)
  }
}
