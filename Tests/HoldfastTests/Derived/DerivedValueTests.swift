import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

@Suite struct DerivedValueTests {
  @Test(arguments: TestStore.allCases) func `derived values are nil before the first save and set after it`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let owner = context.make("Person", ["name": .string("Ann")])
    let dog = context.make("Dog", ["name": .string("Straße É")])
    dog.lead("owner", to: owner)
    let trick = context.make("Trick", ["level": .int32(3)])
    dog.many("tricks").insert(trick)
    for minutes in [10, 20] { context.make("Walk", ["minutes": .int32(Int32(minutes)), "cost": .decimal(0.1)], dog: dog) }
    for name in dog.entity.derivedAttributes.map(\.name) { #expect(dog[name] == .null) }
    try context.save()
    #expect(dog["canonicalName"] == .string("strasse e") && dog["upperName"] == .string("STRASSE É"))
    #expect(dog["lowerName"] == .string("straße é") && dog["nameCopy"] == .string("Straße É"))
    #expect(dog["walkCount"] == .int64(2) && dog["minutes"] == .int32(30) && dog["cost"] == .decimal(Decimal(string: "0.2")!))
    #expect(
      dog["trickCount"] == .int16(1) && dog["difficulty"] == .int64(3) && dog["toyCount"] == .int64(0) && dog["distance"] == .double(0))
    #expect(dog["ownerName"] == .string("Ann") && dog["loudOwner"] == .string("ANN") && dog["breedName"] == .null)
    #expect(owner["dogCount"] == .int16(1) && trick["dogCount"] == .int64(1))
    #expect(try context.all("Walk").map { $0["walker"] } == [.string("Ann"), .string("Ann")])
    try place.expectRight("after the first save")
    try place.close()
    try place.expectRight("after reopening")
  }

  @Test(arguments: TestStore.allCases) func `added, moved, changed and deleted walks are counted and summed`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let (rex, ada) = (context.make("Dog", ["name": .string("Rex")]), context.make("Dog", ["name": .string("Ada")]))
    let walks = (1...4).map {
      context.make("Walk", ["minutes": .int32(Int32($0)), "cost": .decimal(Decimal($0)), "distance": .double(0.5)], dog: rex)
    }
    let long = context.make("LongWalk", ["minutes": .int32(100)], dog: rex)
    try context.save()
    func expect(_ dog: ManagedObject, _ count: Int64, _ minutes: Int32, _ distance: Double, _ location: SourceLocation = #_sourceLocation)
      throws
    {
      #expect(dog["walkCount"] == .int64(count) && dog["minutes"] == .int32(minutes), sourceLocation: location)
      #expect(dog["distance"] == .double(distance), sourceLocation: location)
      #expect(!dog.hasChanges, sourceLocation: location)
      try place.expectRight("after a step", location)
    }
    try expect(rex, 5, 110, 2)
    walks[0].lead("dog", to: ada)
    try context.save()
    try expect(rex, 4, 109, 1.5)
    try expect(ada, 1, 1, 0.5)
    walks[1]["minutes"] = .int32(50)
    long["minutes"] = .null
    try context.save()
    try expect(rex, 4, 57, 1.5)
    walks[1].lead("dog", to: nil)
    context.delete(walks[2])
    try context.save()
    try expect(rex, 2, 4, 0.5)
    rex.many("walks").insert(walks[1])
    ada.many("walks").remove(walks[0])
    try context.save()
    try expect(rex, 3, 54, 1)
    try expect(ada, 0, 0, 0)
    context.delete(rex)
    try context.save()
    #expect(try context.all("Walk").map(\.objectID) == [walks[0].objectID])
    try place.expectRight("after a cascade")
  }

  @Test(arguments: TestStore.allCases) func `the values of an owner that isn't loaded are updated`(_ store: TestStore) throws {
    let place = try store.park()
    do {
      let context = try place.context()
      let owner = context.make("Person", ["name": .string("Ann")]), dog = context.make("Dog", ["name": .string("Rex")])
      dog.lead("owner", to: owner)
      for _ in 0..<3 { context.make("Walk", ["minutes": .int32(5)], dog: dog) }
      try context.save()
    }
    let context = try place.context()
    context.delete(try context.all("Walk")[0])
    try context.save()
    try place.expectRight("after a walk was deleted")
    let other = try place.context()
    try other.all("Person")[0]["name"] = .string("Bea")
    try other.save()
    try place.expectRight("after an owner's name changed, two steps from the walks")
    other.delete(try other.all("Person")[0])
    try other.save()
    try place.expectRight("after the owner was deleted")
    #expect(try place.context().all("Walk").map { $0["walker"] } == [.null, .null])
  }

  @Test(arguments: TestStore.allCases)
  func `a sum of floating-point numbers doesn't depend on the order of the objects, and is that of a query`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let orders: [[Double]] = [[1, 1e16, -1e16], [1e16, 1, -1e16], [1e16, -1e16, 1]]
    let dogs = orders.map { distances in
      let dog = context.make("Dog")
      for distance in distances { context.make("Walk", ["distance": .double(distance)], dog: dog) }
      return dog
    }
    try context.save()
    #expect(dogs.allSatisfy { $0["distance"] == .double(1) })
    // Also if the sums are those of other objects, too.
    for dog in dogs { context.make("Walk", dog: dog) }
    for dog in dogs { context.make("Walk", ["distance": .double(0.25)], dog: dog) }
    try context.save()
    #expect(dogs.allSatisfy { $0["distance"] == .double(1.25) })
    let request = DictionaryFetchRequest<ManagedObject>(entityName: "Walk", columns: ["sum": .sum("distance")], groupedBy: ["dog"])
    #expect(try context.fetch(request).map { $0["sum"] } == Array(repeating: .double(1.25), count: 3))
    try place.expectRight("after walks were added")
  }

  @Test(arguments: TestStore.allCases) func `links are counted whichever end records them, and whether they existed or not`(
    _ store: TestStore
  ) throws {
    let place = try store.park(), context = try place.context()
    let dogs = (0..<3).map { context.make("Dog", ["name": .string("d\($0)")]) }
    let tricks = (1...3).map { context.make("Trick", ["level": .int32(Int32($0)), "ease": .double(0.25)]) }
    dogs[0].many("tricks").formUnion(tricks)
    try context.save()
    #expect(dogs[0]["trickCount"] == .int16(3) && dogs[0]["difficulty"] == .int64(6) && dogs[0]["ease"] == .double(0.75))
    tricks[0].many("dogs").insert(dogs[1])
    dogs[0].many("tricks").remove(tricks[2])
    try context.save()
    #expect(dogs[1]["trickCount"] == .int16(1) && dogs[0]["difficulty"] == .int64(3))
    try place.expectRight("after links from both ends")
    // A context that hasn't read the links adds an existing one and removes a missing one.
    let fresh = try place.context()
    let (first, others) = (try fresh.all("Dog")[0], try fresh.all("Trick"))
    first.many("tricks").insert(others[0])
    others[2].many("dogs").remove(first)
    first["name"] = .string("again")
    try fresh.save()
    try place.expectRight("after links that come to nothing")
    others[1]["level"] = .int32(70)
    try fresh.save()
    try place.expectRight("after a level changed")
    fresh.delete(others[0])
    try fresh.save()
    try place.expectRight("after a trick was deleted")
    #expect(first["trickCount"] == .int16(1) && first["difficulty"] == .int64(70))
    first.many("friends").formUnion([first, try fresh.all("Dog")[1]])
    try fresh.save()
    try place.expectRight("after friends")
    fresh.delete(try fresh.all("Dog")[1])
    try fresh.save()
    try place.expectRight("after a friend was deleted")
    #expect(first["friendCount"] == .int64(1))
  }

  @Test(arguments: TestStore.allCases) func `a relationship without inverse, and deletions without action, are counted`(_ store: TestStore)
    throws
  {
    let place = try store.park(), context = try place.context()
    let (rex, ada) = (context.make("Dog", ["name": .string("Rex")]), context.make("Dog", ["name": .string("Ada")]))
    let toys = (1...3).map { context.make("Toy", ["price": .int32(Int32($0))]) }
    rex.many("toys").formUnion(toys)
    let sitters = (1...2).map { context.make("Sitter", ["age": .int16(Int16($0))]) }
    for dog in [rex, ada] { dog.many("sitters").formUnion(sitters) }
    let bills = (0..<2).map { context.make("Bill", ["sum": .int32($0)], dog: ada) }
    try context.save()
    try place.expectRight("at first")
    #expect(ada["billCount"] == .int64(2) && bills[0]["payer"] == .string("Ada"))
    ada.many("toys").insert(toys[0])
    try context.save()
    #expect(rex["toyCount"] == .int64(2) && ada["toyCount"] == .int64(1) && rex["toyPrice"] == .decimal(5))
    try place.expectRight("after a toy changed hands")
    let fresh = try place.context()
    let more = try fresh.all("Toy")
    try fresh.all("Dog")[1].many("toys").insert(more[1])
    try fresh.save()
    try place.expectRight("after a toy changed hands unseen")
    fresh.delete(more[2])
    more[0]["price"] = .int32(9)
    try fresh.save()
    try place.expectRight("after a toy was deleted and one got dearer")
    context.delete(sitters[0])
    context.delete(bills[0])
    try context.save()
    #expect(rex["sitterCount"] == .int64(1) && ada["sitterAges"] == .int64(2) && ada["billCount"] == .int64(1))
    try place.expectRight("after deletions without action")
    try context.refreshAllObjects()
    context.delete(ada)
    try context.save()
    #expect(bills[1]["payer"] == .null && sitters[1]["chargeCount"] == .int64(1))
    try place.expectRight("after the dog with bills was deleted")
  }

  @Test(arguments: TestStore.allCases) func `copies are updated through relationships with and without inverse`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let breed = context.make("Breed", ["name": .string("Poodle")]), collar = context.make("Collar", ["colour": .string("red")])
    let dog = context.make("Dog", ["name": .string("Rex")])
    dog.lead("breed", to: breed)
    dog.lead("collar", to: collar)
    let walk = context.make("LongWalk", dog: dog)
    try context.save()
    #expect(walk["breed"] == .string("poodle") && walk["colour"] == .string("red") && collar["wearer"] == .string("Rex"))
    let other = try place.context()
    try other.all("Breed")[0]["name"] = .string("Pug")
    try other.save()
    try place.expectRight("after a breed was renamed without inverse")
    try other.all("Collar")[0]["colour"] = .string("blue")
    try other.save()
    try place.expectRight("after a collar changed, over a one-to-one relationship")
    #expect(walk["colour"] == .string("red"), "Another context is stale until it is refreshed.")
    try context.refreshAllObjects()
    #expect(walk["colour"] == .string("blue") && walk["breed"] == .string("pug"))
    collar.lead("dog", to: context.make("Dog", ["name": .string("Ada")]))
    try context.save()
    #expect(walk["colour"] == .null && collar["wearer"] == .string("Ada") && dog["collarColour"] == .null)
    try place.expectRight("after the collar moved")
    try other.refreshAllObjects()
    other.delete(try other.all("Breed")[0])
    try other.save()
    try place.expectRight("after the breed was deleted")
  }

  @Test(arguments: TestStore.allCases) func `all objects of a save get its date, and no others`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let clock = context.persistentStoreCoordinator.saveClock
    clock.stop(at: 1000)
    let dogs = (0..<3).map { context.make("Dog", ["name": .string("d\($0)")]) }
    try context.save()
    clock.stop(at: 2000)
    dogs[0]["name"] = .string("changed")
    context.make("Walk", dog: dogs[1])
    dogs[2].many("tricks").insert(context.make("Trick"))
    try context.save()
    #expect(dogs.map { $0["changed"] } == [.date(2000), .date(1000), .date(2000)])
    #expect(dogs[1]["walkCount"] == .int64(1))
    #expect(try place.context().all("Dog").map { $0["changed"] } == [.date(2000), .date(1000), .date(2000)])
    clock.stop(at: nil)
    dogs[1]["name"] = .string("now")
    let before = Date()
    try context.save()
    guard case .date(let now) = dogs[1]["changed"] else { throw StoreError(.general, operation: "read a date", reason: "There is none.") }
    #expect((before.timeIntervalSinceReferenceDate...Date().timeIntervalSinceReferenceDate).contains(now))
  }

  @Test(arguments: TestStore.allCases) func `a value that the program sets is overwritten by the save`(_ store: TestStore) throws {
    let place = try store.park(), context = try place.context()
    let dog = context.make("Dog", ["name": .string("Rex"), "walkCount": .int64(70), "upperName": .string("wrong")])
    try context.save()
    #expect(dog["walkCount"] == .int64(0) && dog["upperName"] == .string("REX"))
    dog["walkCount"] = .int64(99)
    dog["cost"] = .null
    dog["ownerName"] = .string("nobody")
    dog["canonicalName"] = .string("wrong")
    try context.save()
    #expect(dog["walkCount"] == .int64(0) && dog["canonicalName"] == .string("rex") && !context.hasChanges)
    dog["walkCount"] = .int64(99)
    dog["ownerName"] = .string("nobody")
    dog["canonicalName"] = .string("wrong")
    dog["name"] = .string("Max")
    context.make("Walk", dog: dog)
    try context.save()
    #expect(dog["walkCount"] == .int64(1) && dog["canonicalName"] == .string("max") && dog["ownerName"] == .null)
    try place.expectRight("after values were set by hand")
  }

  @Test(arguments: TestStore.allCases) func `a number out of range is a validation error and changes nothing`(_ store: TestStore)
    throws
  {
    let place = try store.park(), context = try place.context()
    let dog = context.make("Dog", ["name": .string("Rex")])
    let walk = context.make("Walk", ["minutes": .int32(.max)], dog: dog)
    try context.save()
    let more = context.make("Walk", ["minutes": .int32(1)], dog: dog)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .numberTooLarge && error.property == "minutes" && error.objectID == dog.objectID)
    #expect(dog["minutes"] == .int32(.max) && dog["walkCount"] == .int64(1) && more.isInserted)
    #expect(try place.context().all("Walk").count == 1)
    more["minutes"] = .int32(-1)
    try context.save()
    #expect(dog["minutes"] == .int32(.max - 1))
    walk["minutes"] = .int32(.min)
    let low = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(low.code == .numberTooSmall)
    context.rollback()
    #expect(dog["minutes"] == .int32(.max - 1))
    let another = context.make("Dog", ["name": .string("Ada")])
    for _ in 0..<2 { context.make("Walk", ["minutes": .int32(.max)], dog: another) }
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .numberTooLarge)
    context.rollback()
    try place.expectRight("after refusals")
  }

  /// The bug: the save was refused, because the sums of a new bird didn't fit attributes that only cats have.
  @Test(arguments: TestStore.allCases)
  func `numbers of a subentity aren't derived for new objects of another one`(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, relationships: [.toMany("visits", to: "Visit", inverse: "animal")]),
      EntityDescription("Bird", superentity: "Animal"),
      EntityDescription(
        "Cat", superentity: "Animal",
        attributes: [.derived("minutes", .integer16, "visits.minutes.@sum"), .derived("length", .float, "visits.length.@sum")]),
      EntityDescription(
        "Visit",
        attributes: [
          AttributeDescription("minutes", .integer32, isOptional: true), AttributeDescription("length", .double, isOptional: true),
        ],
        relationships: [.toOne("animal", to: "Animal", inverse: "visits")]),
    ])
    let place = try store.park(model), context = try place.context()
    let bird = context.make("Bird"), cat = context.make("Cat")
    func visit(_ animal: ManagedObject, _ minutes: Int32, _ length: Double) {
      context.make("Visit", ["minutes": .int32(minutes), "length": .double(length)]).lead("animal", to: animal)
    }
    visit(bird, 100_000, 1e300)
    visit(cat, 5, 0.5)
    try context.save()
    #expect(cat["minutes"] == .int16(5) && cat["length"] == .float(0.5))
    visit(bird, 100_000, 1e300)
    visit(cat, 1, 0.25)
    try context.save()
    #expect(cat["minutes"] == .int16(6) && cat["length"] == .float(0.75))
    visit(context.make("Cat"), 100_000, 1)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .numberTooLarge)
  }

  /// The bug: the copies were nil. When the save computed them, the object still had the temporary ID.
  @Test(arguments: TestStore.allCases) func `a copy of the ID of an object that the save inserts has its permanent ID`(_ store: TestStore)
    throws
  {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: [
          AttributeDescription("subject", .objectID, isOptional: true), .derived("subjectCopy", .objectID, "subject"),
          .derived("topic", .objectID, "page.subject"),
        ],
        relationships: [.toOne("page", to: "Note", inverse: "notes"), .toMany("notes", to: "Note", inverse: "page")])
    ])
    let place = try store.park(model), context = try place.context()
    let page = context.make("Note"), note = context.make("Note")
    note.lead("page", to: page)
    func expect(_ subject: ManagedObject, _ location: SourceLocation = #_sourceLocation) throws {
      let id = StoreValue.objectID(subject.objectID)
      #expect(!subject.objectID.isTemporaryID && page["subject"] == id, sourceLocation: location)
      #expect(page["subjectCopy"] == id && note["topic"] == id, sourceLocation: location)
      try place.expectRight("after a save", location)
    }
    page["subject"] = .objectID(note.objectID)
    try context.save()
    try expect(note)
    let other = context.make("Note")
    page["subject"] = .objectID(other.objectID)
    try context.save()
    try expect(other)
  }

  /// The bug: the former file stayed beside the store if the save changed only the derived value of a row.
  @Test(arguments: [TestStore.json, .xml, .binary, .sqlite]) func `a large copy of another object's value has one file`(_ store: TestStore)
    throws
  {
    var picture = AttributeDescription.derived("picture", .binaryData, "owner.picture")
    picture.allowsExternalBinaryDataStorage = true
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Person", attributes: [AttributeDescription("picture", .binaryData, isOptional: true)],
        relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      EntityDescription("Dog", attributes: [picture], relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
    ])
    let place = try store.park(model)
    func large(_ byte: UInt8) -> StoreValue { .data(Data(repeating: byte, count: 300_000)) }
    func expectFiles(_ count: Int, _ location: SourceLocation = #_sourceLocation) throws {
      try place.close()
      let files = FileManager.default, names = try files.subpathsOfDirectory(atPath: place.folder.path)
      let found = names.map { place.folder.appendingPathComponent($0) }.filter { UUID(uuidString: $0.lastPathComponent) != nil }
      #expect(found.filter { files.contents(atPath: $0.path)?.count == 300_000 }.count == count, sourceLocation: location)
    }
    do {
      let context = try place.context(), owner = context.make("Person", ["picture": large(1)])
      context.make("Dog").lead("owner", to: owner)
      try context.save()
    }
    try expectFiles(1)
    let steps: [(value: StoreValue, count: Int)] = [(large(2), 1), (.data(Data([3])), 0), (large(4), 1), (.null, 0)]
    for (value, count) in steps {
      let context = try place.context()
      try context.all("Person")[0]["picture"] = value
      try context.save()
      #expect(try context.all("Dog").map { $0["picture"] } == [value] && place.context().all("Dog").map { $0["picture"] } == [value])
      try expectFiles(count)
    }
  }

  /// The bug: the save threw a conflict, because the deletion had removed the file of the copy.
  @Test(arguments: [TestStore.json, .xml, .binary, .sqlite]) func `an object with a large copy is inserted again`(_ store: TestStore)
    throws
  {
    var picture = AttributeDescription.derived("picture", .binaryData, "owner.picture")
    picture.allowsExternalBinaryDataStorage = true
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Person", attributes: [AttributeDescription("picture", .binaryData, isOptional: true)],
        relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string, isOptional: true), picture],
        relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
    ])
    let place = try store.park(model), large = StoreValue.data(Data(repeating: 1, count: 300_000))
    do {
      let context = try place.context()
      context.make("Dog").lead("owner", to: context.make("Person", ["picture": large]))
      try context.save()
    }
    // The next contexts read the name of the file, not the bytes that were saved.
    try place.close()
    let one = try place.context(), two = try place.context(), dog = try two.all("Dog")[0]
    two.mergePolicy = .overwrite
    dog["name"] = .string("Max")
    one.delete(try one.all("Dog")[0])
    try one.save()
    try two.save()
    #expect(dog["picture"] == large && dog["name"] == .string("Max"))
    #expect(try place.context().all("Dog").map { $0["picture"] } == [large])
  }

  @Test(arguments: TestStore.allCases) func `a failed save leaves every value unchanged`(_ store: TestStore) throws {
    let place = try store.park()
    let (context, faults) = try place.faulty()
    let dog = context.make("Dog", ["name": .string("Rex")])
    context.make("Walk", ["minutes": .int32(1)], dog: dog)
    try context.save()
    for call in [FaultInjectingStore.Call.rows, .relationships, .prepare, .commit] {
      let walk = context.make("Walk", ["minutes": .int32(10)], dog: dog)
      dog.many("tricks").insert(context.make("Trick"))
      walk["distance"] = .double(1)
      faults.fail(call, onCall: 1, with: StoreError(.diskFull, operation: "save", reason: "The test says so."))
      let error = #expect(throws: (any Error).self) { try context.save() }
      if error == nil { continue }
      #expect(dog["walkCount"] == .int64(1) && dog["minutes"] == .int32(1) && dog["trickCount"] == .int16(0))
      context.rollback()
      #expect(dog["walkCount"] == .int64(1) && dog["distance"] == .double(0))
    }
    context.make("Walk", ["minutes": .int32(10)], dog: dog)
    try context.save()
    #expect(dog["walkCount"] == .int64(2) && dog["minutes"] == .int32(11))
  }

  /// Declines the second request for dogs with a condition.
  private final class HesitantStore: ForwardingStore {
    let base: any IncrementalStore
    private let count = Mutex(0)

    init(_ base: any IncrementalStore) { self.base = base }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      if plan.predicate != nil && Park.model.entities[plan.entity].name == "Dog" {
        let number = count.withLock { count in
          count += 1
          return count
        }
        if number == 2 { throw StoreError(.unsupportedRequest, operation: "fetch", reason: "The test says so.") }
      }
      try base.fetch(plan, in: view, options: options, into: sink)
    }
  }

  /// The bug: the rows of the first request were still in the collector, so the second one wasn't sent in another form.
  @Test func `a store that declines one of several requests for owners loses no save`() throws {
    let (context, recorder) = try TestStore.sqlite.park().recording { HesitantStore($0) }
    let dogs = [context.make("Dog"), context.make("Dog")], toys = (0..<5000).map { _ in context.make("Toy") }
    dogs[0].many("toys").insert(toys[0])
    try context.save()
    recorder.clear()
    for toy in toys { dogs[1].many("toys").insert(toy) }
    try context.save()
    #expect(dogs.map { $0["toyCount"] } == [.int64(0), .int64(5000)])
    #expect(recorder.requests.count { if case .fetch = $0 { true } else { false } } > 2, "\(recorder.requests.count)")
  }

  @Test(arguments: StorePair.allCases) func `each of several stores has its own values`(_ pair: StorePair) throws {
    let pack = try StorePack(pair.kinds, model: Park.model)
    let context = try ManagedObjectContext(coordinator: pack.coordinator)
    let dogs = try pack.stores.map { store in
      let dog = context.make("Dog", ["name": .string("Rex")])
      try context.assign(dog, to: store)
      return dog
    }
    for (dog, store) in zip(dogs, pack.stores) {
      for _ in 0..<3 { try context.assign(context.make("Walk", ["minutes": .int32(7), "distance": .double(0.5)], dog: dog), to: store) }
    }
    try context.save()
    #expect(dogs.map { $0["minutes"] } == [.int32(21), .int32(21)])
    dogs[1]["name"] = .string("Ada")
    let walk = context.make("Walk", ["minutes": .int32(1)], dog: dogs[1])
    try context.assign(walk, to: pack.stores[1])
    let toy = context.make("Toy", ["price": .int32(2)])
    try context.assign(toy, to: pack.stores[1])
    dogs[1].many("toys").insert(toy)
    try context.save()
    #expect(dogs.map { $0["walkCount"] } == [.int64(3), .int64(4)] && dogs[1]["distance"] == .double(1.5))
    let fresh = try ManagedObjectContext(coordinator: pack.coordinator)
    #expect(try Scratch(fresh).differences().isEmpty)
  }
}
