import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Callbacks when objects get and lose their rows, on every store.
@Suite struct AwakeningTests {
  class Pet: ManagedObject {
    override class var entityName: String { "Dog" }
    var age: Int {
      get { self[Dog.Slot.age] }
      set { self[Dog.Slot.age] = newValue }
    }
    var name: String {
      get { self[Dog.Slot.name] }
      set { self[Dog.Slot.name] = newValue }
    }
    var notes: String? {
      get { self[Dog.Slot.notes] }
      set { self[Dog.Slot.notes] = newValue }
    }
    var friends: ToMany<Pet> { toMany(Dog.Slot.friends) }
    override class var properties: [PropertyBinding] {
      [
        .attribute("age", \Pet.age, slot: Dog.Slot.age), .attribute("name", \Pet.name, slot: Dog.Slot.name),
        .attribute("notes", \Pet.notes, slot: Dog.Slot.notes), .toMany("friends", \Pet.friends, index: Dog.Slot.friends),
      ]
    }
  }

  /// Computes its greeting when it gets its row, and discards it with the row.
  final class Greeter: Pet {
    var greeting: String?
    override func awakeFromFetch() {
      super.awakeFromFetch()
      greeting = "I am \(name)"
      managedObjectContext.heardCalls.append("awake \(name)")
    }
    override func willTurnIntoFault() { managedObjectContext.heardCalls.append("will \(name)") }
    override func didTurnIntoFault() {
      greeting = nil
      managedObjectContext.heardCalls.append("did")
    }
  }

  /// Sets its own values when it gets its row.
  final class Setter: Pet {
    override func awakeFromFetch() { notes = "computed for \(name), and long enough to need some room of its own" }
  }

  /// Reads its friends when it gets its row.
  final class Curious: Pet {
    var seen = -1
    override func awakeFromFetch() { seen = friends.reduce(0) { $0 + $1.age } }
  }

  /// Adds itself to its friends when it gets its row.
  final class Linker: Pet {
    override func awakeFromFetch() { friends.insert(self) }
  }

  /// Counts all dogs when it gets its row, which merges what others have saved.
  final class Counter: Pet {
    var count = 0
    override func awakeFromFetch() { count = (try? managedObjectContext.count(for: FetchRequest<Counter>())) ?? -1 }
  }

  /// Refreshes itself when it gets its row.
  final class Restless: Pet {
    override func awakeFromFetch() {
      FileHandle.standardError.write(Data("awakened\n".utf8))
      try? managedObjectContext.refresh(self, mergeChanges: false)
    }
  }

  /// Reads the other dogs again when it gets its row, if it is the third one.
  final class Third: Pet {
    override func awakeFromFetch() {
      if age != 2 { return }
      for case let dog as Third in managedObjectContext.registeredObjects where dog !== self && !dog.isFault {
        try? managedObjectContext.refresh(dog, mergeChanges: false)
        #expect(dog.name.hasPrefix("dog"))
      }
    }
  }

  /// Gives the other people a city when it gets its row.
  final class Mover: ManagedObject {
    override class var entityName: String { "Person" }
    var name: String { self[Person.Slot.name] }
    var city: String? {
      get { self[Person.Slot.city] }
      set { self[Person.Slot.city] = newValue }
    }
    override func awakeFromFetch() {
      for case let person as Mover in managedObjectContext.registeredObjects where person !== self { person.city = "moved by \(name)" }
    }
  }

  private func place(_ store: TestStore, _ type: ManagedObject.Type, dogs count: Int = 3) throws -> TestStore.Place {
    let place = try store.makePlace(classes: [type]), context = try place.context()
    let dogs = try (0..<count).map { number in
      let dog = try context.insert(entityNamed: "Dog")
      try dog.setValue(.string("dog \(number)"), forKey: "name")
      try dog.setValue(.int16(Int16(number)), forKey: "age")
      return dog
    }
    for (number, dog) in dogs.enumerated() { try dog.setValue([dogs[(number + 1) % count]], forKey: "friends") }
    try context.save()
    #expect(context.heardCalls.isEmpty)
    return place
  }

  private let byAge = [FetchSortDescriptor<Greeter>(SortTerm("age"))]

  private func logging(_ place: TestStore.Place) throws -> ManagedObjectContext {
    let context = try place.context()
    context.name = UUID().uuidString
    return context
  }

  @Test func aClassIsAskedOnceWhatItOverrides() {
    #expect(ClassHooks.overridden(by: ManagedObject.self) == [] && ClassHooks.overridden(by: Pet.self) == [])
    #expect(ClassHooks.overridden(by: Dog.self) == [] && ClassHooks.overridden(by: Parrot.self) == [])
    #expect(ClassHooks.overridden(by: Greeter.self) == [.awakeFromFetch, .turnIntoFault])
    #expect(ClassHooks.overridden(by: Setter.self) == .awakeFromFetch)
    final class Will: ManagedObject { override func willTurnIntoFault() { print("never") } }
    class Did: ManagedObject { override func didTurnIntoFault() { print("never") } }
    final class Inherits: Did {}
    final class Other: ManagedObject { override func willSave() { print("never") } }
    final class After: ManagedObject { override func didSave() { print("never") } }
    #expect(ClassHooks.overridden(by: Will.self) == .turnIntoFault && ClassHooks.overridden(by: Inherits.self) == .turnIntoFault)
    #expect(ClassHooks.overridden(by: Other.self) == .save && ClassHooks.overridden(by: After.self) == .save)
  }

  @Test func contextsOfClassesThatOverrideNothingNoteNothing() throws {
    let plain = try TestStore.memory.makePlace().context(), awake = try TestStore.memory.makePlace(classes: [Greeter.self]).context()
    #expect(!plain.core.bound.awakensObjects && !plain.core.bound.turnsObjectsIntoFaults)
    #expect(awake.core.bound.awakensObjects && awake.core.bound.turnsObjectsIntoFaults && awake.core.bound.hooks.count { !$0.isEmpty } == 1)
  }

  /// Objects that an object reads while it gives up its row are awake, too.
  final class Backward: Pet {
    var greeting: String?
    override func awakeFromFetch() { greeting = "I am \(name)" }
    override func willTurnIntoFault() {
      for friend in friends.compactMap({ $0 as? Backward }) {
        managedObjectContext.heardCalls.append("\(friend.name): \(friend.greeting ?? "asleep")")
      }
    }
  }

  @Test(arguments: TestStore.allCases) func objectsThatAreReadWhileOneGivesItsRowUpAreAwake(_ store: TestStore) throws {
    let context = try logging(place(store, Backward.self, dogs: 2))
    let ids = try context.fetchObjectIDs(FetchRequest<Backward>(sortedBy: [FetchSortDescriptor(SortTerm("age"))]))
    let dog = try #require(try context.existingObject(with: ids[0]) as? Backward)
    dog.age = 9
    try context.refresh(dog, mergeChanges: false)
    #expect(context.heardCalls == ["dog 1: I am dog 1"] && dog.isFault)
  }

  @Test(arguments: TestStore.allCases) func fetchedObjectsAreAwakenedOnceInOrder(_ store: TestStore) throws {
    let context = try logging(place(store, Greeter.self))
    let dogs = try context.fetch(FetchRequest<Greeter>(sortedBy: byAge))
    #expect(dogs.map(\.greeting) == ["I am dog 0", "I am dog 1", "I am dog 2"])
    #expect(context.heardCalls == ["awake dog 0", "awake dog 1", "awake dog 2"])
    _ = try context.fetch(FetchRequest<Greeter>())
    dogs[0].age = 7
    _ = try context.fetch(
      FetchRequest<Greeter>(where: FetchPredicate(.comparison(.property("age"), .greaterThan, .constant(.int16(0)), []))))
    try context.save()
    #expect(context.heardCalls.count == 3 && dogs[0].greeting != nil)
    withExtendedLifetime(dogs) {}
  }

  @Test(arguments: TestStore.allCases) func aFaultAndItsSiblingsAreAwakenedEachOnceBeforeTheyAreSeen(_ store: TestStore) throws {
    let context = try logging(place(store, Greeter.self, dogs: 100))
    let first = try #require(try context.fetch(FetchRequest<Greeter>(sortedBy: byAge)).first)
    var dog = first
    var walked: [Greeter] = [first]
    for number in 1..<100 {
      let friend = try #require(dog.friends.first { _ in true } as? Greeter)
      // A fault is awakened by its first access. An object with a prefetched row is awakened when it is created.
      #expect(friend.name == "dog \(number)" && friend.greeting == "I am dog \(number)")
      walked.append(friend)
      dog = friend
    }
    #expect(Set(context.heardCalls).count == 100)
    #expect(Set(walked).count == 100)
  }

  @Test(arguments: TestStore.allCases) func siblingsWhoseRowsCameAlongAreAwakenedToo(_ store: TestStore) throws {
    let place = try place(store, Greeter.self, dogs: 50), first = try place.context()
    let hub = try #require(try first.fetch(FetchRequest<Greeter>(sortedBy: byAge)).first)
    for dog in try first.fetch(FetchRequest<Greeter>()) { hub.friends.insert(dog) }
    try first.save()
    let context = try logging(place)
    let same = try #require(try context.existingObject(with: hub.objectID) as? Greeter)
    let friends = same.friends.compactMap { $0 as? Greeter }
    _ = friends[49].age
    for friend in friends { #expect(friend.isFault == (friend.greeting == nil)) }
    _ = friends.map(\.age)
    #expect(friends.allSatisfy { $0.greeting == "I am \($0.name)" } && context.heardCalls.count == 50)
    #expect(Set(context.heardCalls).count == 50)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatWasRefreshedIsAwakenedAgain(_ store: TestStore) throws {
    let context = try logging(place(store, Greeter.self, dogs: 1))
    let dog = try #require(try context.fetch(FetchRequest<Greeter>()).first)
    try context.refresh(dog, mergeChanges: false)
    #expect(dog.greeting == nil && dog.isFault && dog.age == 0 && dog.greeting == "I am dog 0")
    dog.age = 5
    try context.refresh(dog, mergeChanges: true)
    #expect(dog.age == 5 && context.heardCalls == ["awake dog 0", "will dog 0", "did", "awake dog 0"])
    try context.refresh(dog, mergeChanges: false)
    // A fault has no row to give up.
    try context.refresh(dog, mergeChanges: false)
    context.reset()
    #expect(context.heardCalls.dropFirst(4) == ["will dog 0", "did"])
  }

  @Test(arguments: TestStore.allCases) func resetAndRollbackTellThoseThatGiveTheirRowsUp(_ store: TestStore) throws {
    let context = try logging(place(store, Greeter.self, dogs: 2))
    let dogs = try context.fetch(FetchRequest<Greeter>(sortedBy: byAge))
    let new = context.insert(Greeter.self)
    new.name = "new"
    dogs[0].age = 9
    context.heardCalls = []
    context.rollback()
    #expect(context.heardCalls == ["will new", "did"] && dogs[0].age == 0 && dogs[0].greeting != nil)
    context.heardCalls = []
    context.reset()
    #expect(Set(context.heardCalls.prefix(2)) == ["will dog 0", "will dog 1"] && context.heardCalls.suffix(2) == ["did", "did"])
    #expect(dogs.allSatisfy { $0.greeting == nil && $0.name == "" })
  }

  /// The bug: the object counted as deleted, and its values were nil.
  @Test(arguments: TestStore.allCases) func anObjectThatBecomesAFaultWhileItIsAwakenedIsReadAgain(_ store: TestStore) throws {
    let place = try place(store, Counter.self, dogs: 2), context = try place.context()
    let theirs = try ManagedObjectContext(coordinator: place.coordinator())
    context.automaticallyMergesChanges = true
    let theirDogs = try theirs.fetch(FetchRequest<ManagedObject>(entityName: "Dog"))
    let dogs = try theirDogs.map { try #require(try context.object(with: $0.objectID) as? Counter) }
    for dog in theirDogs { try dog.setValue(.string("theirs"), forKey: "name") }
    try theirs.save()
    #expect(dogs[0].isFault && dogs[0].name == "theirs" && !dogs[0].isInaccessible && dogs[0].count == 2)
    try theirDogs[1].setValue(.string("later"), forKey: "name")
    try theirs.save()
    #expect(dogs[1].isFault)
    #expect(try context.existingObject(with: dogs[1].objectID) === dogs[1])
    #expect(dogs[1].name == "later" && dogs[1].count == 2 && context.faultError == nil && !context.hasChanges)
  }

  @Test(.ownThreads) func anObjectThatRefreshesItselfEachTimeItIsAwakenedTraps() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      mustTrap {
        let place = try TestStore.memory.makePlace(classes: [Restless.self]), context = try place.context()
        let dog = context.insert(Restless.self)
        try dog.setValue(.string("restless"), forKey: "name")
        try context.save()
        try context.refresh(dog, mergeChanges: false)
        _ = dog.name
      }
    }
    let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(output.split(separator: "\n").count { $0 == "awakened" } == 100)
  }

  @Test(arguments: TestStore.allCases) func whatAnObjectSetsOfItselfWhileItIsAwakenedIsNoChange(_ store: TestStore) throws {
    let place = try place(store, Setter.self, dogs: 2), context = try place.context()
    let dogs = try context.fetch(FetchRequest<Setter>(sortedBy: [FetchSortDescriptor(SortTerm("age"))]))
    let wanted = "computed for dog 0, and long enough to need some room of its own"
    #expect(dogs[0].notes == wanted && !dogs[0].hasChanges && !context.hasChanges && dogs[0].changedValues().isEmpty)
    #expect(try dogs[0].committedValues(forKeys: ["notes"]) == ["notes": .null])
    try context.save()
    func stored(_ name: String) throws -> StoreValue? {
      let other = try ManagedObjectContext(coordinator: place.coordinator())
      let found = try other.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).first { try $0.value(forKey: "name") == .string(name) }
      return try found?.value(forKey: "notes").storeValue
    }
    #expect(try stored("dog 0") == .null)
    // It is saved with the first real change of the object.
    dogs[0].age = 8
    #expect(dogs[0].hasChanges)
    try context.save()
    #expect(try stored("dog 0") == .string(wanted) && stored("dog 1") == .null && dogs[0].notes == wanted)
    // The first write to a fault that sets its own values.
    try context.refresh(dogs[1], mergeChanges: false)
    dogs[1].age = 9
    #expect(dogs[1].notes?.hasPrefix("computed for dog 1") == true && dogs[1].age == 9)
    context.rollback()
    #expect(dogs[1].age == 1 && dogs[1].notes == nil && !context.hasChanges)
    try context.refresh(dogs[1], mergeChanges: false)
    #expect(dogs[1].notes?.hasPrefix("computed for dog 1") == true)
  }

  /// Values that an object sets while it is awakened don't make the save write it, so its unique value is still taken.
  @Test(arguments: TestStore.allCases) func theUniqueValueOfAnAwakenedObjectIsTaken(_ store: TestStore) throws {
    let place = try store.makePlace(classes: [Setter.self]), setup = try place.context()
    func dog(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
      let dog = try context.insert(entityNamed: "Dog")
      try dog.setValue(.string(name), forKey: "name")
      try dog.setValue(.int64(7), forKey: "chip")
      return dog
    }
    _ = try dog("first", setup)
    try setup.save()
    let context = try place.context(), first = try #require(try context.fetch(FetchRequest<Setter>()).first)
    #expect(first.notes?.hasPrefix("computed") == true && !first.hasChanges)
    _ = try dog("second", context)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict)
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(first.name == "second")
    #expect(try ManagedObjectContext(coordinator: place.coordinator()).count(for: FetchRequest<ManagedObject>(entityName: "Dog")) == 1)
  }

  @Test(arguments: TestStore.allCases) func anAwakenedObjectMayReadOthersWhichAreAwakenedToo(_ store: TestStore) throws {
    let context = try place(store, Curious.self, dogs: 40).context()
    let last = try #require(try context.fetch(FetchRequest<Curious>()).first { $0.age == 39 })
    #expect(last.seen == 0)
    var dog = last
    var walked: [Curious] = []
    for number in 0..<39 {
      dog = try #require(dog.friends.first { _ in true } as? Curious)
      #expect(dog.age == number && dog.seen == number + 1)
      walked.append(dog)
    }
    #expect(!context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func relationshipsSetWhileAwakenedAreChangesOnBothEnds(_ store: TestStore) throws {
    let place = try place(store, Linker.self, dogs: 2), context = try place.context()
    let dogs = try context.fetch(FetchRequest<Linker>())
    #expect(dogs.allSatisfy { $0.friends.count == 2 && $0.isUpdated })
    try context.save()
    let plain = try ManagedObjectContext(coordinator: place.coordinator())
    let counts = try plain.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).map { try $0.value(forKeyPath: "friendOf.@count") }
    #expect(counts.allSatisfy { $0 == .int64(2) })
  }

  /// The bug: the first read returned the friends without the dog itself.
  @Test(arguments: TestStore.allCases) func whatAnObjectAddsToAListWhileItIsAwakenedIsInTheList(_ store: TestStore) throws {
    let place = try place(store, Linker.self, dogs: 2), context = try place.context()
    for id in try place.context().fetchObjectIDs(FetchRequest<Linker>()) {
      let dog = try #require(try context.object(with: id) as? Linker)
      #expect(dog.isFault && dog.friends.count == 2 && dog.friends.contains(dog))
    }
    #expect(context.hasChanges)
  }

  /// The store returns the row of the third dog with the friends of the second one.
  ///
  /// The bug: the second dog, which was then in another group, had the friends of the first one.
  @Test(arguments: TestStore.allCases) func anObjectThatIsReadAgainMeanwhileHasTheFriendsOfNoOther(_ store: TestStore) throws {
    let place = try place(store, Third.self), context = try place.context(), byAge = [FetchSortDescriptor<Third>(SortTerm("age"))]
    let ids = try context.fetchObjectIDs(FetchRequest<Third>(sortedBy: byAge))
    let third = try context.object(with: ids[2])
    let isYoung = FetchPredicate<Third>(.comparison(.property("age"), .lessThan, .constant(.int16(2)), []))
    let dogs = try context.fetch(FetchRequest<Third>(where: isYoung, sortedBy: byAge))
    #expect(dogs.map(\.objectID) == Array(ids[..<2]) && third.isFault)
    #expect(dogs[1].friends.map(\.objectID) == [ids[2]])
    #expect(dogs[0].friends.map(\.objectID) == [ids[1]])
    withExtendedLifetime(third) {}
  }

  /// Changes make the context evaluate the request, for which it needs the rows.
  @Test(arguments: TestStore.allCases) func countsAndIDsBesideChangesCreateNoObjects(_ store: TestStore) throws {
    let place = try place(store, Greeter.self, dogs: 20), context = try logging(place)
    func isAge(_ op: ComparisonOperator, _ age: Int16) -> FetchPredicate<Greeter> {
      FetchPredicate(.comparison(.property("age"), op, .constant(.int16(age)), []))
    }
    let saved = try context.fetchObjectIDs(FetchRequest<Greeter>(sortedBy: byAge))
    let changed = try #require(try context.fetch(FetchRequest<Greeter>(where: isAge(.equalTo, 3))).first)
    changed.age = 40
    let new = context.insert(Greeter.self)
    (new.name, new.age) = ("new", 10)
    #expect(context.heardCalls == ["awake dog 3"])
    // A new object follows saved ones with the same age.
    let all: [ManagedObjectID] = Array(saved[5...10]) + [new.objectID] + Array(saved[11...]) + [saved[3]]
    let windows: [(Int, Int?)] = [(0, nil), (3, 9), (14, 9), (30, 1)]
    for (offset, limit) in windows {
      let request = FetchRequest<Greeter>(where: isAge(.greaterThanOrEqualTo, 5), sortedBy: byAge, offset: offset, limit: limit)
      let wanted = Array(all.dropFirst(offset).prefix(limit ?? .max))
      #expect(try context.count(for: request) == wanted.count && context.fetchObjectIDs(request) == wanted)
      #expect(context.heardCalls == ["awake dog 3"] && Set(context.registeredObjects) == [new, changed])
    }
    let request = FetchRequest<Greeter>(where: isAge(.greaterThanOrEqualTo, 5), sortedBy: byAge)
    #expect(try context.fetch(request).map(\.objectID) == all)
  }

  @Test(arguments: TestStore.allCases) func neitherNewNorUnreadableObjectsAreAwakened(_ store: TestStore) throws {
    let place = try place(store, Greeter.self, dogs: 1), context = try logging(place)
    let ids = try context.fetchObjectIDs(FetchRequest<Greeter>())
    let fault = try #require(try context.object(with: ids[0]) as? Greeter)
    #expect(context.heardCalls.isEmpty)
    let other = try ManagedObjectContext(coordinator: place.coordinator())
    for dog in try other.fetch(FetchRequest<ManagedObject>(entityName: "Dog")) { other.delete(dog) }
    try other.save()
    #expect(fault.name == "" && fault.isInaccessible && fault.greeting == nil)
    let new = context.insert(Greeter.self)
    new.name = "new"
    try context.save()
    #expect(new.age == 1 && new.greeting == nil && context.heardCalls.isEmpty)
  }

  /// Stores whose rows aren't in memory read both owners together. Bob changes Ann, whose row others have deleted.
  ///
  /// The bug: the empty row that all missing objects share took the place of Ann's own row, and was changed and freed as such.
  @Test(arguments: TestStore.allCases) func anAwakenedObjectMayChangeTheMissingOneThatIsRead(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), theirs = try place.context()
    for dog in try theirs.fetch(FetchRequest<Dog>()) where dog.name == "Rex" {
      dog.owner = try theirs.fetch(FetchRequest<Person>()).first { $0.name == "Bob" }
    }
    try theirs.save()
    let context = try ManagedObjectContext(coordinator: place.coordinator(), classes: [Mover.self])
    let byName = [FetchSortDescriptor<ManagedObject>(SortTerm("name"))]
    let dogs = try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog", sortedBy: byName))
    let people = try dogs.map { dog -> Mover in
      let owner: Mover? = dog.toOne(Dog.Slot.owner)
      return try #require(owner)
    }
    for person in try theirs.fetch(FetchRequest<Person>()) where person.name == "Ann" { theirs.delete(person) }
    try theirs.save()
    let ann = people[0], bob = people[1]
    #expect(ann.isFault && bob.isFault && ann.name == "" && ann.isInaccessible)
    #expect(bob.name == "Bob" && ann.city == "moved by Bob" && ann.isUpdated)
    ann.city = "a city whose name is long enough to need a larger row of its own: " + String(repeating: "Llanfair", count: 40)
    #expect(ann.city?.hasSuffix("Llanfair") == true && ann.isUpdated)
    context.rollback()
    #expect(!context.hasChanges && ann.city == nil && ann.isInaccessible && bob.name == "Bob")
    // The shared row is still empty.
    #expect(try (theirs.object(with: ann.objectID) as? Person)?.city == nil)
  }

  /// The save reads unloaded objects whose links changed. They are awakened after it, and their own changes are kept.
  @Test(arguments: TestStore.allCases) func objectsThatASaveReadsAreAwakenedAfterTheCommit(_ store: TestStore) throws {
    let place = try place(store, Greeter.self, dogs: 3)
    let ids = try place.context().fetchObjectIDs(FetchRequest<Greeter>(sortedBy: byAge))
    let context = try logging(place)
    let dogs = try ids.map { try #require(try context.object(with: $0) as? Greeter) }
    dogs[0].friends.insert(dogs[2])
    let observation = context.onSave { context, _ in context.heardCalls.append("saved") }
    defer { observation.cancel() }
    try context.save()
    #expect(Set(context.heardCalls.prefix(2)) == ["awake dog 0", "awake dog 2"] && context.heardCalls.last == "saved")
    #expect(dogs[0].greeting == "I am dog 0" && dogs[1].isFault)
  }

  /// Random reading, refreshing and saving. An object has its greeting exactly while it has its row.
  @Test(arguments: TestStore.allCases) func anObjectIsAwakeExactlyWhileItHasItsRow(_ store: TestStore) throws {
    var random = SeededGenerator()
    print("awakening on \(store): HOLDFAST_SEED=\(random.seed)")
    let place = try place(store, Greeter.self, dogs: 30)
    for _ in 0..<4 {
      let context = try logging(place)
      var held: Set<Greeter> = []
      for _ in 0..<150 {
        let some = held.randomElement(using: &random)
        switch Int.random(in: 0..<9, using: &random) {
        case 0:
          held.formUnion(
            try context.fetch(FetchRequest<Greeter>(sortedBy: byAge, offset: Int.random(in: 0..<28, using: &random), limit: 3)))
        case 1, 2: if let some { held.formUnion(some.friends.compactMap { $0 as? Greeter }) }
        case 3: if let some { _ = some.age }
        case 4: if let some { try context.refresh(some, mergeChanges: Bool.random(using: &random)) }
        case 5: if let some, let other = held.randomElement(using: &random) { some.friends.insert(other) }
        case 6: if let some { some.age += 1 }
        case 7: if Bool.random(using: &random) { try context.save() } else { context.rollback() }
        default: if let some { held.remove(some) }
        }
        for dog in held where !dog.isFault { #expect(dog.greeting == "I am \(dog.name)") }
        for dog in held where dog.isFault { #expect(dog.greeting == nil) }
      }
    }
  }
}

/// The callbacks of objects, by the names of their contexts. Contexts without a name aren't recorded.
private let heard = Mutex<[String: [String]]>([:])

extension ManagedObjectContext {
  fileprivate var heardCalls: [String] {
    get { heard.withLock { $0[name] ?? [] } }
    set { if !name.isEmpty { heard.withLock { $0[name] = newValue } } }
  }
}
