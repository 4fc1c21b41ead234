import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Refreshing, changed values, key paths, and callbacks, on every store.
@Suite struct RefreshTests {
  private func kennel(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace(), context = try place.context()
    let ann = context.person("Ann", city: "Oslo"), bob = context.person("Bob")
    let fido = context.dog("Fido", age: 3, owner: ann), rex = context.dog("Rex", age: 5)
    fido.friends.insert(rex)
    bob.dogs.insert(rex)
    try context.save()
    return place
  }

  @Test(arguments: TestStore.allCases) func aRefreshedObjectShowsWhatOthersSaved(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context(), other = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.age == 3 && fido.friends.count == 1)
    let same = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    same.age = 4
    same.friends.removeAll()
    try other.save()
    #expect(fido.age == 3 && fido.friends.count == 1)
    try context.refresh(fido, mergeChanges: false)
    #expect(fido.isFault && fido.age == 4 && fido.friends.isEmpty && !context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func refreshingWithoutMergingTakesChangesBackOnBothEnds(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }),
      bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    fido.name = "Fidelio"
    fido.owner = bob
    fido.friends.remove(rex)
    rex.friends.insert(fido)
    #expect(bob.dogs.count == 2 && rex.friendOf.isEmpty && fido.friendOf.count == 1)
    try context.refresh(fido, mergeChanges: false)
    #expect(fido.name == "Fido" && fido.owner === ann && fido.friends.contains(rex) && fido.friendOf.isEmpty)
    #expect(ann.dogs.count == 1 && bob.dogs.count == 1 && rex.friendOf.count == 1 && rex.friends.isEmpty)
    try context.save()
    let last = try place.context()
    #expect(
      try last.one(Dog.self) { $0.name == "Fido" }?.owner?.name == "Ann" && last.one(Dog.self) { $0.name == "Rex" }?.friendOf.count == 1)
  }

  @Test(arguments: TestStore.allCases) func mergedChangesAreSavedOverWhatOthersSaved(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context(), other = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    fido.name = "Fidelio, which is long"
    fido.weight = 12
    fido.friendOf.insert(rex)
    let same = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    same.age = 4
    same.notes = "changed by another"
    same.friends.insert(same)
    try other.save()
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict)
    try context.refresh(fido, mergeChanges: true)
    #expect(fido.name == "Fidelio, which is long" && fido.weight == 12 && fido.age == 4 && fido.notes == "changed by another")
    #expect(fido.friends.count == 2 && fido.friendOf.count == 2 && fido.hasChanges)
    #expect(Set(fido.changedValues().keys) == ["name", "weight"])
    try context.save()
    let last = try #require(try place.context().one(Dog.self) { $0.age == 4 })
    #expect(last.name == "Fidelio, which is long" && last.notes == "changed by another" && last.friendOf.count == 2)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatIsGoneCannotBeMerged(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context(), other = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    fido.age = 9
    try other.one(Dog.self) { $0.name == "Fido" }.map(other.delete)
    try other.save()
    let error = try #require(throws: PersistenceError.self) { try context.refresh(fido, mergeChanges: true) }
    #expect(error.code == .missingObject && error.coreDataCode == 133000 && fido.age == 9)
    try context.refresh(fido, mergeChanges: false)
    #expect(fido.name == "" && fido.isInaccessible)
  }

  @Test(arguments: TestStore.allCases) func refreshingAllObjectsKeepsChangesAndNewObjects(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context(), other = try place.context()
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    let new = context.dog("New", age: 1)
    dogs[0].weight = 7
    for dog in try other.fetch(FetchRequest<Dog>()) { dog.age = 20 }
    try other.save()
    try context.refreshAllObjects()
    #expect(dogs.map(\.age) == [20, 20] && dogs[0].weight == 7 && new.name == "New" && new.isInserted)
    try context.save()
    #expect(try place.context().fetch(FetchRequest<Dog> { $0.age == 20 && $0.weight == 7 }).count == 1)
  }

  /// The bug: each changed object was read by a request of its own.
  @Test(arguments: TestStore.allCases) func refreshingManyChangedObjectsSendsTheRequestsOfAFew(_ store: TestStore) throws {
    func requests(_ count: Int) throws -> [String] {
      let place = try store.makePlace(), setup = try place.context()
      for number in 0..<count { setup.dog("Dog \(number)", age: number % 10) }
      try setup.save()
      let (context, recorder) = try place.recording()
      let dogs = try context.fetch(FetchRequest<Dog>())
      for dog in dogs { dog.notes = "changed" }
      recorder.clear()
      try context.refreshAllObjects()
      let requests = recorder.requests.map { "\($0)".prefix { $0 != "(" }.description }
      #expect(dogs.count == count && dogs.allSatisfy { $0.notes == "changed" && $0.hasChanges })
      try context.save()
      return requests
    }
    let few = try requests(5), many = try requests(500)
    #expect(few == ["beginRead", "rows"] && many == few)
  }

  /// The bug: each refresh of an object copied the errors of all objects.
  @Test func refreshingManyObjectsThatCouldNotBeReadIsNotQuadratic() throws {
    func time(_ count: Int) throws -> Duration {
      let context = try TestStore.memory.makePlace().context()
      let dogs = (0..<count).map { context.dog("Dog \($0)") }
      try context.save()
      let error = StoreError(.locked, operation: "read", reason: "A test said so.")
      for dog in dogs { context.core.noteUnread(dog.objectID, error) }
      let time = try processorTime { try context.refreshAllObjects() }
      #expect(context.faultError == nil && dogs.count == count)
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  @Test(arguments: TestStore.allCases) func changedAndCommittedValuesTellTheDifference(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.changedValues().isEmpty)
    fido.age = 8
    fido.owner = nil
    #expect(fido.changedValues() == ["age": .int16(8), "owner": .null])
    let before = try fido.committedValues(forKeys: ["age", "owner", "name"])
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    #expect(before == ["age": .int16(3), "owner": .objectID(ann.objectID), "name": .string("Fido")])
    #expect(try fido.committedValues().count == fido.entity.slots.count)
    fido.age = 3
    #expect(fido.changedValues() == ["owner": .null])
    #expect(throws: PersistenceError.self) { try fido.committedValues(forKeys: ["nothing"]) }
    let new = context.dog("New")
    #expect(new.changedValues()["name"] == .string("New") && new.changedValues()["age"] == .int16(1))
    #expect(try new.committedValues().isEmpty)
    try context.save()
    #expect(fido.changedValues().isEmpty && new.changedValues().isEmpty)
    #expect(try new.committedValues(forKeys: ["name"]) == ["name": .string("New")])
  }

  @Test(arguments: TestStore.allCases) func pathsOfKeysReachThroughToOneRelationships(_ store: TestStore) throws {
    let context = try kennel(store).context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(try fido.value(forKeyPath: "owner.city") == .string("Oslo") && fido.value(forKeyPath: "age") == .int16(3))
    #expect(try fido.value(forKeyPath: "collar.dog.name") == .null)
    try fido.setValue(.string("Bergen"), forKeyPath: "owner.city")
    #expect(fido.owner?.city == "Bergen")
    for path in ["owner.nothing", "nothing.city", "owner.name.city", "collar.dog.nothing", "", "owner.", ".", "@count", "age.@count"] {
      let error = try #require(throws: PersistenceError.self) { try fido.value(forKeyPath: path) }
      #expect(error.code == .unknownProperty && error.property == path)
    }
    let error = try #require(throws: PersistenceError.self) { try fido.setValue(.string("x"), forKeyPath: "collar.color") }
    #expect(error.code == .missingObject && error.reason.hasSuffix("Set the relationship first."))
  }

  final class Watched: ManagedObject {
    nonisolated(unsafe) static var calls: [String] = []  // because only one test uses the class
    override class var entityName: String { "Collar" }
    var color: String {
      get { self[0] }
      set { self[0] = newValue }
    }
    override func awakeFromInsert() {
      Watched.calls.append("insert \(color)")
      color = "computed"
    }
    override func prepareForDeletion() { Watched.calls.append("delete \(color)") }
    override class var properties: [PropertyBinding] { [.attribute("color", \Watched.color, slot: 0)] }
  }

  @Test func objectsHearOfTheirInsertionAndOfEachDeletion() throws {
    let place = try TestStore.memory.makePlace(classes: [Watched.self])
    let context = try place.context()
    let collar = context.insert(Watched.self)
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(.string("Fido"), forKey: "name")
    try dog.setValue(.objectID(collar.objectID), forKey: "collar")
    try context.save()
    // By a cascade, once.
    context.delete(dog)
    try context.save()
    #expect(Watched.calls == ["insert red", "delete computed"])
    Watched.calls = []
    let another = context.insert(Watched.self)
    context.delete(another)
    context.delete(another)
    #expect(Watched.calls == ["insert red", "delete computed", "delete computed"])
  }
}
