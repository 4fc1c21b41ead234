import Holdfast
import HoldfastStoreConformance
import TestSupport
import Testing

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
