import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// To-many relationships as collections.
@Suite struct ToManyCollectionTests {
  private func filled(_ store: TestStore) throws -> (Dog, RecordingStore) {
    let place = try store.makePlace(), filling = try place.context(), fido = filling.dog("Fido")
    for name in ["Ann", "Bob", "Cid", "Dan"] { fido.friends.insert(filling.dog(name)) }
    try filling.save()
    let (context, recorder) = try place.recording()
    let dog = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    recorder.clear()
    return (dog, recorder)
  }

  private func names(_ dogs: some Sequence<Dog>) -> [String] { dogs.map(\.name).sorted() }

  @Test(arguments: TestStore.withChild) func indicesVisitEveryObjectThatIsNotBeingDeleted(_ store: TestStore) throws {
    let (dog, _) = try filled(store), friends = dog.friends
    #expect(names(friends.indices.map { friends[$0] }) == ["Ann", "Bob", "Cid", "Dan"])
    #expect(friends.indices.count == 4 && friends.startIndex < friends.endIndex)
    let bob = try #require(friends.first { $0.name == "Bob" })
    #expect(friends.firstIndex(of: bob).map { friends[$0] } === bob)
    dog.managedObjectContext.delete(bob)
    #expect(names(friends.indices.map { friends[$0] }) == ["Ann", "Cid", "Dan"] && friends.count == 3)
    for other in Array(friends) { dog.managedObjectContext.delete(other) }
    #expect(friends.isEmpty && friends.startIndex == friends.endIndex && friends.first == nil && friends.randomElement() == nil)
    friends.insert(dog)
    #expect(friends.count == 1 && friends.indices.map { friends[$0] } == [dog] && friends.randomElement() === dog)
  }

  /// The bug: `first` and `isEmpty` copied all keys of the list.
  @Test(arguments: TestStore.withChild) func aLoopThatRemovesTheFirstObjectCopiesFewKeysEachTime(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), fido = context.dog("Fido"), count = 2 * RowGroup.size
    var all = Set((0..<count).map { context.dog("\($0)") })
    fido.friends.formUnion(all)
    let index = try #require(fido.entity.relationship(named: "friends")).toManyIndex
    #expect(fido.friends.count == count && !fido.friends.isEmpty)
    var number = 0
    while let friend = fido.friends.first {
      #expect(fido.leadingTargets(index).count <= RowGroup.size && fido.friends.contains(friend))
      let isKnown = all.remove(friend) != nil
      #expect(isKnown && !fido.friends.isEmpty)
      number += 1
      if number % 2 == 0 { fido.friends.remove(friend) } else { context.delete(friend) }
      #expect(!fido.friends.contains(friend))
    }
    #expect(all.isEmpty && fido.friends.isEmpty && fido.friends.count == 0)
    fido.friends.insert(fido)
    #expect(fido.friends.first === fido && fido.friends.contains(fido) && fido.friends.count == 1)
    try context.save()
    let fresh = try place.context(), saved = try #require(try fresh.fetchOne(Dog.self) { $0.name == "Fido" })
    #expect(saved.friends.map(\.name) == ["Fido"])
  }

  @Test(arguments: TestStore.withChild) func algorithmsOfCollectionsWork(_ store: TestStore) throws {
    let (dog, _) = try filled(store), friends = dog.friends
    #expect(
      friends.prefix(2).count == 2 && friends.dropFirst().count == 3 && friends.sorted { $0.name < $1.name }.map(\.name).last == "Dan")
    #expect(Set(friends).count == 4 && friends.filter { $0.name > "B" }.count == 3 && friends.contains { $0.name == "Cid" })
    #expect(names(friends.shuffled()) == ["Ann", "Bob", "Cid", "Dan"] && friends.reduce(0) { $0 + $1.age } == 4)
  }

  @Test(arguments: TestStore.withChild) func objectsAreAddedAndReplacedAsInAnArray(_ store: TestStore) throws {
    let (dog, _) = try filled(store), context = dog.managedObjectContext, eve = context.dog("Eve"), friends = dog.friends
    let bob = try #require(friends.first { $0.name == "Bob" })
    friends.append(eve)
    friends.append(contentsOf: [eve, bob])
    #expect(names(friends) == ["Ann", "Bob", "Cid", "Dan", "Eve"])
    friends.replaceAll(with: [bob, eve, bob])
    #expect(names(friends) == ["Bob", "Eve"] && friends.first.map { $0 === bob || $0 === eve } == true)
    try context.save()
    #expect(names(friends) == ["Bob", "Eve"])
    friends.replaceAll(with: [])
    #expect(friends.first == nil && friends.isEmpty)
    try context.save()
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    #expect(try #require(try other.fetchOne(Dog.self) { $0.name == "Fido" }).friends.isEmpty)
  }

  @Test(arguments: TestStore.withChild) func objectsCanBeChangedReleasedAndDeletedDuringAnIteration(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context(), star = setup.dog("Star")
    for number in 0..<40 { star.friends.insert(setup.dog("Friend \(number)")) }
    try setup.save()
    let context = try place.context(), dog = try #require(try context.fetchOne(Dog.self) { $0.name == "Star" })
    var others = Array(dog.friends), visited: [String] = []
    let deleted = [others[30], others[31]], expected = Set(others.map(\.name)).subtracting(deleted.map(\.name))
    for (number, friend) in dog.friends.enumerated() {
      visited.append(friend.name)
      switch number {
      case 3: for place in [10, 17, 24] { try context.refresh(others[place], mergeChanges: false) }
      case 5: for other in deleted { context.delete(other) }
      case 9: others.removeLast(5)
      case 12: others[20].age = 7
      case 15: try context.save()
      default: break
      }
    }
    #expect(visited.count == 38 && Set(visited) == expected)
  }

  /// The bug: lists still have the key of a deleted object, which they hide. The object counted as contained, and removing it trapped.
  @Test(arguments: TestStore.withChild) func deletedObjectsAreNotContainedAfterTheSave(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido").friends.insert(setup.dog("Rex"))
    try setup.save()
    let context = try place.context(), fido = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    let rex = try #require(fido.friends.first)
    context.delete(rex)
    #expect(fido.friends.isEmpty && !fido.friends.contains(rex))
    try context.save()
    #expect(fido.friends.isEmpty && !fido.friends.contains(rex))
    fido.friends.remove(rex)
    fido.friends.subtract([rex])
    fido.friendOf.remove(rex)
    #expect(!context.hasChanges && fido.friends.isEmpty)
    fido.friends.insert(fido)
    try context.save()
    #expect(fido.friends.map(\.name) == ["Fido"])
  }

  /// The bug: only keys were compared, which are unique within an entity and those it inherits from.
  @Test(arguments: TestStore.withChild) func objectsOfOtherEntitiesAreNotContained(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let dogs = (0..<3).map { context.dog("dog \($0)") }, people = (0..<3).map { context.person("person \($0)") }
    let vaccinations = dogs.map { dog -> Vaccination in
      let vaccination = context.insert(Vaccination.self)
      vaccination.kind = "k"
      vaccination.dog = dog
      return vaccination
    }
    for person in people {
      let licence = context.insert(Licence.self)
      licence.number = 1
      licence.holder = person
    }
    dogs[0].friends.formUnion(dogs)
    try context.save()
    let friends = try dogs[0].toMany(forKey: "friends")
    #expect(dogs.allSatisfy { friends.contains($0) } && !people.contains { friends.contains($0) })
    for person in people {
      let licences = try person.toMany(forKey: "licences")
      #expect(licences.count == 1 && licences.allSatisfy { licences.contains($0) })
      #expect(!vaccinations.contains { licences.contains($0) })
    }
  }

  /// The bug: only keys were compared. Objects of different stores can have the same key.
  @Test(arguments: TestStore.withChild) func objectsOfOtherContextsAndOfAFormerGraphAreNotContained(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido", owner: setup.person("Ann")).friends.insert(setup.dog("Rex"))
    try setup.save()
    let context = try place.context(), other = try place.context()
    let fido = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" }), rex = try #require(fido.friends.first)
    let ann = try #require(fido.owner), foreign = try #require(try other.fetchOne(Dog.self) { $0.name == "Fido" })
    let foreignRex = try #require(foreign.friends.first)
    #expect(fido.friends.contains(rex) && rex.friendOf.contains(fido) && ann.dogs.contains(fido))
    #expect(!fido.friends.contains(foreignRex) && !rex.friendOf.contains(foreign) && !ann.dogs.contains(foreign))
    context.reset()
    let again = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    #expect(again.friends.map(\.name) == ["Rex"] && !again.friends.contains(rex) && again.owner?.dogs.contains(fido) == false)
    // The relationships of an owner from before the reset are empty.
    let againRex = try #require(again.friends.first)
    #expect(ann.dogs.isEmpty && !ann.dogs.contains(again) && fido.friends.isEmpty && !fido.friends.contains(againRex))
  }

  /// The general algorithm of collections would count the objects first, and read each row when it is used.
  @Test(arguments: TestStore.withChild) func arraysAndMapsSendAsManyRequestsAsALoop(_ store: TestStore) throws {
    let uses: [(Dog) -> Int] = [
      { $0.friends.map(\.name).count }, { Array($0.friends).reduce(0) { $0 + $1.age } }, { Set($0.friends.map(\.age)).count + 3 },
      { $0.friends.sorted { $0.name < $1.name }.count }, { $0.friends.filter { $0.age == 1 }.count },
    ]
    let (looped, recorder) = try filled(store)
    var count = 0
    for friend in looped.friends where friend.age == 1 { count += 1 }
    let requests = recorder.requests.count
    #expect(count == 4)
    for use in uses {
      let (dog, recorder) = try filled(store)
      #expect(use(dog) == 4 && recorder.requests.count == requests)
    }
  }
}
