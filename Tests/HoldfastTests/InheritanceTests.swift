import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

extension Animal {
  fileprivate var label: String { "\(name) \(chip ?? 0)" }
  fileprivate var constant: String { "an animal" }
}

/// Objects of entities with inheritance, on every store.
@Suite struct InheritanceTests {
  private func menagerie(_ store: TestStore) throws -> TestStore.Place {
    try store.makePlace(model: Menagerie.model, classes: Menagerie.classes)
  }

  /// A parrot, a bird, two cats and two keepers, saved.
  private func filled(_ store: TestStore) throws -> TestStore.Place {
    let place = try menagerie(store)
    let context = try place.context()
    let ann = context.insert(Keeper.self), head = context.insert(HeadKeeper.self)
    ann.name = "Ann"
    head.name = "Hedy"
    head.rank = 3
    let polly = context.animal(Parrot.self, "Polly", keeper: head)
    polly.words = 200
    polly.wingspan = 0.5
    polly.chip = 1
    let robin = context.animal(Bird.self, "Robin", keeper: ann)
    let tom = context.animal(Cat.self, "Tom", keeper: head), felix = context.animal(Cat.self, "Felix")
    tom.chip = 2
    tom.prey = polly
    felix.prey = robin
    felix.lives = 3
    polly.friends.insert(tom)
    polly.friends.insert(robin)
    let visit = context.insert(Visit.self)
    visit.day = 7
    visit.animal = felix
    try context.save()
    return place
  }

  @Test(arguments: TestStore.withChild) func aFetchOfASuperEntityGivesObjectsOfEachSubentityAsTheirOwnClass(_ store: TestStore) throws {
    let context = try filled(store).context()
    let animals = try context.fetch(FetchRequest<Animal>(sortedBy: [.ascending(\.name)]))
    #expect(animals.map(\.name) == ["Felix", "Polly", "Robin", "Tom"])
    #expect(animals.map { String(describing: type(of: $0)) } == ["Cat", "Parrot", "Bird", "Cat"])
    #expect((animals[1] as? Parrot)?.words == 200 && (animals[1] as? Bird)?.wingspan == 0.5 && (animals[0] as? Cat)?.lives == 3)
    #expect(animals.map(\.objectID.entityName) == ["Cat", "Parrot", "Bird", "Cat"])
    #expect(try context.fetch(FetchRequest<Bird>()).count == 2)
    #expect(try context.count(for: FetchRequest<Animal>()) == 4 && context.count(for: FetchRequest<Parrot>()) == 1)
    #expect(Set(try context.fetchObjectIDs(FetchRequest<Animal>()).map(\.entityName)) == ["Cat", "Parrot", "Bird"])
    #expect(try context.fetch(FetchRequest<Animal> { $0.chip == 2 }).map(\.name) == ["Tom"])
    #expect(try context.fetch(FetchRequest<Bird> { $0.chip == 2 }).isEmpty)
  }

  @Test(arguments: TestStore.withChild) func subentitiesCanBeLeftOut(_ store: TestStore) throws {
    let context = try filled(store).context()
    var birds = FetchRequest<Bird>()
    birds.includesSubentities = false
    #expect(try context.fetch(birds).map(\.name) == ["Robin"])
    #expect(try context.count(for: birds) == 1 && context.fetchObjectIDs(birds).count == 1)
    var animals = FetchRequest<Animal>()
    animals.includesSubentities = false
    #expect(try context.fetch(animals).isEmpty && context.count(for: animals) == 0)
    context.animal(Bird.self, "Wren")
    context.animal(Parrot.self, "Kea")
    #expect(Set(try context.fetch(birds).map(\.name)) == ["Robin", "Wren"])
    var counts = DictionaryFetchRequest<Bird>(columns: ["n": .count()])
    #expect(try context.fetch(counts) == [["n": .int64(2)]])
    counts.includesSubentities = false
    #expect(try context.fetch(counts) == [["n": .int64(1)]])
  }

  @Test(arguments: TestStore.withChild) func relationshipsLeadToObjectsOfTheirOwnClasses(_ store: TestStore) throws {
    let place = try filled(store)
    let context = try place.context()
    let head = try #require(try context.fetch(FetchRequest<HeadKeeper>()).first)
    #expect(Set(head.animals.map { "\(type(of: $0)) \($0.name)" }) == ["Parrot Polly", "Cat Tom"])
    let tom = try #require(try context.one(Cat.self) { $0.lives == 9 })
    #expect(tom.keeper is HeadKeeper && tom.keeper?.name == "Hedy" && tom.prey is Parrot)
    #expect(tom.toOneID(Animal.Slot.keeper)?.entityName == "HeadKeeper")
    #expect(tom.friendOf.map(\.name) == ["Polly"])
    let visit = try #require(try place.context().fetch(FetchRequest<Visit>()).first)
    #expect(visit.animal is Cat && visit.animal?.name == "Felix" && (visit.animal as? Cat)?.prey?.name == "Robin")
    #expect(visit.toOneID(Visit.Slot.animal)?.entityName == "Cat")
    #expect(visit.animal?.visits.map(\.day) == [7])
  }

  @Test(arguments: TestStore.withChild) func linksBetweenEntitiesOfAFamilyAreKeptInStep(_ store: TestStore) throws {
    let place = try filled(store)
    let context = try place.context()
    let ann = try #require(try context.one(Keeper.self) { $0.name == "Ann" }),
      polly = try #require(try context.fetch(FetchRequest<Parrot>()).first)
    let felix = try #require(try context.one(Cat.self) { $0.lives == 3 })
    ann.animals.insert(polly)
    ann.animals.insert(felix)
    felix.friends.insert(polly)
    felix.prey = polly
    #expect(polly.keeper === ann && ann.animals.count == 3 && polly.friendOf.count == 1 && polly.hunters.count == 2)
    try context.save()
    let other = try place.context()
    let same = try #require(try other.one(Keeper.self) { $0.name == "Ann" })
    #expect(Set(same.animals.map(\.name)) == ["Polly", "Felix", "Robin"])
    #expect(try other.fetch(FetchRequest<HeadKeeper>()).first?.animals.map(\.name) == ["Tom"])
    #expect(try other.fetch(FetchRequest<Parrot>()).first.map { Set($0.hunters.map(\.name)) } == ["Felix", "Tom"])
  }

  @Test(arguments: TestStore.withChild) func changesThatAreNotSavedCountInFetchesOfSuperEntities(_ store: TestStore) throws {
    let context = try filled(store).context()
    let kea = context.animal(Parrot.self, "Kea")
    kea.words = 5
    let byName = FetchRequest<Animal>(sortedBy: [.ascending(\.name)]) { $0.name < "Q" }
    #expect(try context.fetch(byName).map(\.name) == ["Felix", "Kea", "Polly"])
    try context.one(Cat.self) { $0.lives == 3 }?.name = "Zorro"
    #expect(try context.fetch(byName).map(\.name) == ["Kea", "Polly"])
    context.delete(kea)
    #expect(try context.fetch(byName).map(\.name) == ["Polly"])
    var window = FetchRequest<Animal>(sortedBy: [.ascending(\.name)])
    window.fetchOffset = 1
    window.fetchLimit = 2
    #expect(try context.fetch(window).map(\.name) == ["Robin", "Tom"])
    #expect(try context.fetch(FetchRequest<Keeper> { $0.animals.any { $0.name == "Zorro" } }).isEmpty)
    try context.one(Cat.self) { $0.name == "Zorro" }?.keeper = try context.one(Keeper.self) { $0.name == "Ann" }
    #expect(try context.fetch(FetchRequest<Keeper> { $0.animals.any { $0.name == "Zorro" } }).map(\.name) == ["Ann"])
  }

  @Test(arguments: TestStore.withChild) func deleteRulesOfASuperEntityHoldForSubentities(_ store: TestStore) throws {
    let place = try filled(store)
    let context = try place.context()
    let felix = try #require(try context.one(Cat.self) { $0.lives == 3 }),
      polly = try #require(try context.fetch(FetchRequest<Parrot>()).first)
    let head = try #require(try context.fetch(FetchRequest<HeadKeeper>()).first)
    context.delete(felix)
    context.delete(polly)
    #expect(head.animals.map(\.name) == ["Tom"])
    try context.save()
    let other = try place.context()
    #expect(try other.fetch(FetchRequest<Visit>()).isEmpty)
    #expect(try other.one(Cat.self) { $0.name == "Tom" }?.prey == nil)
    try other.fetch(FetchRequest<HeadKeeper>()).forEach { other.delete($0) }
    try other.save()
    #expect(try place.context().fetch(FetchRequest<Animal>()).allSatisfy { $0.keeper?.name != "Hedy" })
  }

  @Test(arguments: TestStore.allCases) func aConstraintOfASuperEntityHoldsAmongAllItsSubentities(_ store: TestStore) throws {
    let place = try filled(store)
    let context = try place.context()
    context.animal(Cat.self, "Same chip").chip = 1
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs.map(\.entityName) == ["Cat"])
    context.rollback()
    context.animal(Cat.self, "A").chip = 50
    context.animal(Bird.self, "B").chip = 50
    #expect(throws: PersistenceError.self) { try context.save() }
    context.rollback()
    context.animal(Bird.self, "B").chip = 50
    try context.save()
  }

  @Test(arguments: TestStore.withChild) func aDictionaryResultNamesTheEntityThatEachObjectIsOf(_ store: TestStore) throws {
    let context = try filled(store).context()
    let request = DictionaryFetchRequest<Animal>(columns: ["keeper": .property("keeper"), "n": .count()], groupedBy: ["keeper"])
    let found = try context.fetch(request)
    let names = found.map { row -> String in if case .objectID(let id)? = row["keeper"] { id.entityName } else { "none" } }
    #expect(Set(names) == ["none", "Keeper", "HeadKeeper"] && found.count == 3)
  }

  @Test(arguments: TestStore.withChild) func anIDThatNamesASuperEntityFindsTheObjectAsWhatItIs(_ store: TestStore) throws {
    let place = try filled(store)
    let id = try #require(try place.context().fetch(FetchRequest<Parrot>()).first?.objectID)
    let uri = id.uriRepresentation
    let context = try place.context()
    let asAnimal = try #require(ManagedObjectID(uriRepresentation: uri.replacing("/Parrot/", with: "/Animal/")))
    #expect(asAnimal == id && asAnimal.hashValue == id.hashValue)
    #expect(try context.existingObject(with: asAnimal) is Parrot)
    let asCat = try #require(ManagedObjectID(uriRepresentation: uri.replacing("/Parrot/", with: "/Cat/")))
    #expect(throws: PersistenceError.self) { try place.context().existingObject(with: asCat) }
    // No request is sent here, so the object has the entity of the ID until a row is read.
    let other = try place.context()
    let stale = try other.object(with: asCat)
    #expect(stale is Cat)
    #expect(try other.fetch(FetchRequest<Parrot>()).first?.name == "Polly")
    #expect(stale.isInaccessible || stale.isFault)
  }

  /// The bug: a fetch of the object's own entity returned it, and then so did every fetch.
  @Test(arguments: TestStore.withChild)
  func `an object that is deleted by an ID that names a superentity isn't fetched`(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", attributes: [AttributeDescription("name", .string, isOptional: true)]),
      EntityDescription("Cat", superentity: "Animal"),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let felix = try setup.insert(entityNamed: "Cat"), tom = try setup.insert(entityNamed: "Cat")
    try setup.save()
    let context = try place.context(), uri = felix.objectID.uriRepresentation.replacing("/Cat/", with: "/Animal/")
    context.delete(try context.object(with: try #require(ManagedObjectID(uriRepresentation: uri))))
    for limit in [nil, 1, 2] as [Int?] {
      let request = FetchRequest<ManagedObject>(entityName: "Cat", limit: limit)
      #expect(try context.count(for: request) == 1)
      #expect(try context.fetch(request).map(\.objectID) == [tom.objectID])
    }
    #expect(try context.fetchObjectIDs(FetchRequest<ManagedObject>(entityName: "Animal")) == [tom.objectID])
    context.rollback()
    #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Cat")) == 2)
  }

  /// The list of a changed fault was read beyond its end, because Animal has fewer relationships than Bird.
  @Test(arguments: TestStore.allCases) func queriesFollowListsOfObjectsThatTheContextHasAsFaultsOfSuperentities(_ store: TestStore) throws {
    let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context()
    let polly = setup.animal(Bird.self, "Polly"), tom = setup.animal(Cat.self, "Tom")
    tom.prey = polly
    try setup.save()
    let context = try place.context(), uri = polly.objectID.uriRepresentation.replacing("/Bird/", with: "/Animal/")
    let id = try #require(ManagedObjectID(uriRepresentation: uri)), fault = try #require(try context.object(with: id) as? Animal)
    context.animal(Cat.self, "Felix").friends.append(fault)
    #expect(fault.isFault && fault.hasChanges && !(fault is Bird))
    #expect(try context.fetch(FetchRequest<Cat> { $0.prey.hunters.count == 1 }).map(\.name) == ["Tom"])
    #expect(try context.fetch(FetchRequest<Cat> { $0.prey.hunters.count == 2 }).map(\.name) == [])
  }

  /// The lists of a changed fault were read beyond their end, where the context has another object's row.
  @Test(arguments: TestStore.allCases) func changesAreMergedBesideFaultsOfSuperentities(_ store: TestStore) throws {
    let place = try menagerie(store), setup = try place.context()
    let polly = setup.animal(Bird.self, "Polly")
    setup.animal(Bird.self, "Robin")
    setup.animal(Cat.self, "Tom").prey = polly
    try setup.save()
    let (ours, theirs) = try place.twoContexts()
    ours.automaticallyMergesChanges = true
    let tom = try #require(try ours.one(Cat.self) { $0.name == "Tom" })
    let uri = polly.objectID.uriRepresentation.replacing("/Bird/", with: "/Animal/")
    let id = try #require(ManagedObjectID(uriRepresentation: uri)), fault = try #require(try ours.object(with: id) as? Animal)
    let felix = ours.animal(Cat.self, "Felix")
    felix.friends.append(fault)
    tom.lives = 3
    #expect(fault.isFault && fault.hasChanges && !(fault is Bird))
    let theirTom = try #require(try theirs.one(Cat.self) { $0.name == "Tom" })
    theirTom.prey = try theirs.one(Bird.self) { $0.name == "Robin" }
    try theirs.save()
    try ours.processPendingChanges()
    #expect(tom.prey?.name == "Robin" && tom.lives == 3 && tom.prey?.hunters.map(\.name) == ["Tom"])
    #expect(felix.friends.count == 1 && felix.name == "Felix")
  }

  /// Fetches with pending changes left the objects out.
  @Test(arguments: TestStore.allCases) func fetchesReturnObjectsThatTheContextHasAsChangedFaultsOfSuperentities(_ store: TestStore) throws {
    let place = try menagerie(store), setup = try place.context(), polly = setup.animal(Bird.self, "Polly")
    try setup.save()
    let uri = polly.objectID.uriRepresentation.replacing("/Bird/", with: "/Animal/")
    func names<Kind: Animal>(_ request: FetchRequest<Kind>) throws -> [String] {
      let context = try place.context()
      let id = try #require(ManagedObjectID(uriRepresentation: uri)), fault = try #require(try context.object(with: id) as? Animal)
      context.animal(Cat.self, "Felix").friends.append(fault)
      context.animal(Bird.self, "Robin")
      #expect(fault.isFault && fault.hasChanges && !(fault is Bird))
      return try context.fetch(request).map { $0.name }
    }
    var birds = FetchRequest<Bird>(sortedBy: [.ascending(\.name)])
    #expect(try names(birds) == ["Polly", "Robin"])
    birds.fetchLimit = 1
    #expect(try names(birds) == ["Polly"])
    #expect(try names(FetchRequest<Animal>(sortedBy: [.ascending(\.name)])) == ["Felix", "Polly", "Robin"])
  }

  @Test(arguments: TestStore.withChild) func anObjectIsFoundByItsIDAlsoIfTheContextHasAFaultOfAnotherEntity(_ store: TestStore) throws {
    let place = try filled(store), id = try #require(try place.context().fetch(FetchRequest<Parrot>()).first?.objectID)
    for name in ["Animal", "Bird", "Cat"] {
      let context = try place.context(), uri = id.uriRepresentation.replacing("/Parrot/", with: "/\(name)/")
      let fault = try context.object(with: try #require(ManagedObjectID(uriRepresentation: uri)))
      #expect(fault.isFault && fault.entity.name == name)
      #expect(try context.existingObject(with: id) is Parrot)
      withExtendedLifetime(fault) {}
    }
  }

  /// The bug: the row was requested twice.
  @Test(arguments: TestStore.allCases) func aDeletedObjectOfAnEntityWithSubentitiesIsSoughtWithOneRequest(_ store: TestStore) throws {
    let place = try filled(store), setup = try place.context()
    let robin = try #require(try setup.one(Bird.self) { $0.name == "Robin" }), id = robin.objectID
    setup.delete(robin)
    try setup.save()
    for hasFault in [false, true] {
      let context = try place.context(), fault = try hasFault ? context.object(with: id) : nil
      let coordinator = context.persistentStoreCoordinator, before = coordinator.requestCounts
      #expect(try #require(throws: PersistenceError.self) { try context.existingObject(with: id) }.code == .missingObject)
      #expect((coordinator.requestCounts - before).total == 1)
      withExtendedLifetime(fault) {}
    }
  }

  @Test(arguments: TestStore.withChild) func anUnreadObjectThatIsBeingDeletedIsNotFoundByItsID(_ store: TestStore) throws {
    let place = try filled(store), context = try place.context()
    for name in ["Ann", "Hedy"] {
      let id = try #require(try place.context().one(Keeper.self) { $0.name == name }?.objectID), keeper = try context.object(with: id)
      #expect(keeper.isFault)
      context.delete(keeper)
      #expect(throws: PersistenceError.self) { try context.existingObject(with: id) }
    }
  }

  // MARK: Classes

  @Test func objectsOfAnEntityWithoutAClassAppearAsThoseOfTheEntityAbove() throws {
    let place = try TestStore.memory.makePlace(
      model: Menagerie.model, classes: [Animal.self, Cat.self, Keeper.self, Visit.self, Bird.self])
    let context = try place.context()
    let bird = try context.insert(entityNamed: "Parrot")
    #expect(type(of: bird) == Bird.self && bird.entity.name == "Parrot")
    #expect(type(of: try context.insert(entityNamed: "HeadKeeper")) == Keeper.self)
  }

  final class Stranger: ManagedObject {
    override class var entityName: String { "Cat" }
  }

  final class Shifted: Animal {
    override class var entityName: String { "Cat" }
    var lives: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    override class var properties: [PropertyBinding] { super.properties + [.attribute("lives", \Shifted.lives, slot: 0)] }
  }

  @Test func classesThatDoNotFollowTheModelsInheritanceAreRefused() throws {
    let coordinator = try PersistentStoreCoordinator(model: Menagerie.model, store: .memory())
    let error = try #require(throws: PersistenceError.self) {
      _ = try ManagedObjectContext(coordinator: coordinator, classes: [Animal.self, Keeper.self, Visit.self, Stranger.self])
    }
    #expect(error.code == .classMismatch && error.reason.contains("Stranger: The class must be a subclass of Animal"))
    let shifted = try #require(throws: PersistenceError.self) {
      _ = try ManagedObjectContext(coordinator: coordinator, classes: [Animal.self, Keeper.self, Visit.self, Shifted.self])
    }
    #expect(shifted.reason.contains("Its slot is 3, not 0"))
  }

  @Test func anAbstractEntityHasNoObjects() throws {
    let context = try menagerie(.memory).context()
    let error = try #require(throws: PersistenceError.self) { try context.insert(entityNamed: "Animal") }
    #expect(error.code == .abstractEntity && error.reason.contains("insert an object of one of its subentities"))
  }

  @Test(.ownThreads) func insertingAnObjectOfAnAbstractClassTraps() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let coordinator = try PersistentStoreCoordinator(model: Menagerie.model, store: .memory())
        _ = try ManagedObjectContext(coordinator: coordinator, classes: Menagerie.classes).insert(Animal.self)
      }
    }
  }

  @Test(.ownThreads) func leadingARelationshipToAnObjectOfAnotherEntityTraps() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let coordinator = try PersistentStoreCoordinator(model: Menagerie.model, store: .memory())
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Menagerie.classes)
        let cat = context.insert(Cat.self)
        cat.setToOne(Cat.CatSlot.prey, context.insert(Cat.self))
      }
    }
  }

  @Test(arguments: TestStore.withChild) func predicatesAndSortsOfASuperClassServeSubclasses(_ store: TestStore) throws {
    let context = try filled(store).context()
    #expect(try context.fetch(FetchRequest<Parrot> { $0.name == "Polly" }).count == 1)
    let isNamed = FetchPredicate<Animal> { $0.name > "A" }
    let byName = FetchSortDescriptor<Animal>.descending(\.name)
    let request = FetchRequest<Cat>(sortedBy: [FetchSortDescriptor<Cat>(inherited: byName)]) {
      FetchPredicate<Cat>(inherited: isNamed)
      $0.lives < 20
    }
    #expect(try context.fetch(request).map(\.name) == ["Tom", "Felix"])
  }

  @Test(arguments: TestStore.withChild) func keyPathsOfInheritedPropertiesAreFoundInTheTablesOfTheirClasses(_ store: TestStore) throws {
    let context = try filled(store).context()
    #expect(try context.fetch(FetchRequest<Cat> { $0.name == "Tom" && $0.chip == 2 }).count == 1)
    #expect(try context.fetch(FetchRequest<Cat> { $0.keeper.name == "Hedy" }).map(\.name) == ["Tom"])
    #expect(try context.fetch(FetchRequest<Parrot> { $0.friends.count == 2 && $0.wingspan > 0.1 }).map(\.name) == ["Polly"])
    #expect(try context.fetch(FetchRequest<Parrot> { $0.hunters.any { $0.name == "Tom" } }).count == 1)
    #expect(try context.fetch(FetchRequest<HeadKeeper>(sortedBy: [.ascending(\.name)])).map(\.name) == ["Hedy"])
  }

  @Test(arguments: TestStore.withChild) func aKeyPathThatReadsSeveralPropertiesIsNoneOfThem(_ store: TestStore) throws {
    let context = try filled(store).context()
    #expect(throws: QueryError.self) { try context.fetch(FetchRequest<Cat> { $0.label == "Tom" }) }
    #expect(throws: QueryError.self) { try context.fetch(FetchRequest<Cat> { $0.constant == "Tom" }) }
  }

  // MARK: Faults

  private func reads(_ store: RecordingStore) -> [RecordedRequest] {
    store.requests.filter {
      switch $0 {
      case .fetch, .rows, .relationships: true
      default: false
      }
    }
  }

  private func crowd(_ store: TestStore, _ count: Int) throws -> TestStore.Place {
    let place = try menagerie(store)
    let context = try place.context()
    let keepers = (0..<10).map { number -> Keeper in
      let keeper = number % 2 == 0 ? context.insert(Keeper.self) : context.insert(HeadKeeper.self)
      keeper.name = "keeper \(number)"
      return keeper
    }
    for number in 0..<count {
      let kind: Animal.Type = number % 3 == 0 ? Cat.self : number % 3 == 1 ? Bird.self : Parrot.self
      let animal = context.animal(kind, "animal \(number)", keeper: keepers[number % 10])
      let visit = context.insert(Visit.self)
      visit.animal = animal
      visit.day = number
    }
    try context.save()
    return place
  }

  @Test(arguments: TestStore.withChild) func walkingToAThousandObjectsOfSeveralEntitiesTakesAHandfulOfRequests(_ store: TestStore) throws {
    let place = try crowd(store, 1000)
    // A store with resident rows gets single requests for a few objects before one for all others.
    let most = store.hasResidentRows ? 400 : 8
    func walk(_ what: String, _ body: (ManagedObjectContext) throws -> Int) throws {
      let (context, recorder) = try place.recording()
      let length = try body(context)
      #expect(length > 9000 && reads(recorder).count <= most, "\(what): \(reads(recorder).count) requests")
    }
    try walk("to one") { context in
      try context.fetch(FetchRequest<Visit>()).reduce(0) { length, visit in
        length + (visit.animal?.name.utf8.count ?? 0) + (visit.animal?.keeper?.name.utf8.count ?? 0)
      }
    }
    // The objects of each entity are siblings, even if the entities alternate.
    try walk("from each") { context in
      try context.fetch(FetchRequest<Animal>(sortedBy: [.ascending(\.name)])).reduce(0) { length, animal in
        animal.visits.reduce(length) { $0 + $1.day }
      }
    }
    try walk("to many") { context in
      try context.fetch(FetchRequest<Keeper>()).reduce(0) { length, keeper in
        keeper.animals.reduce(length) { $0 + $1.name.utf8.count }
      }
    }
  }

  @Test(arguments: TestStore.allCases) func anObjectDeletedByAnotherContextIsInaccessibleWhateverItsEntity(_ store: TestStore) throws {
    let place = try filled(store)
    let context = try place.context()
    let visits = try context.fetch(FetchRequest<Visit>())
    #expect(visits.count == 1)
    // Without delete rules, the store only removes this row.
    let coordinator = try place.coordinator()
    let felix = try #require(try place.context().one(Cat.self) { $0.lives == 3 })
    var changes = SaveRequest.EntityChanges(entity: felix.entity.index)
    changes.deleted = SaveRequest.KeyedRows(keys: [felix.objectID.key], expectedVersions: [felix.readRow.version])
    try #require(coordinator.persistentStores.last).base.prepare(SaveRequest(entities: [changes])).commit()
    coordinator.rowCache.removeAll()
    let animal = visits[0].animal
    #expect(animal == nil || animal?.name == "" && animal?.isInaccessible == true)
  }

  @Test(arguments: TestStore.allCases) func aKeyOfAnotherKindOfObjectIsDamageAndNoTrap(_ store: TestStore) throws {
    let place = try filled(store)
    let coordinator = try place.coordinator()
    let tom = try #require(try place.context().one(Cat.self) { $0.name == "Tom" }),
      felix = try #require(try place.context().one(Cat.self) { $0.name == "Felix" })
    let cat = tom.entity
    let builder = RowBatchBuilder(layout: cat.layout, idPrefix: try #require(coordinator.persistentStores.last).prefixes[cat.index])
    builder.append(tom.readRow, key: tom.objectKey, version: tom.readRow.version.next)
    builder.replaceInLastRow(Cat.CatSlot.prey, integer: felix.objectKey.rawValue)
    var changes = SaveRequest.EntityChanges(entity: cat.index)
    changes.updated = [
      SaveRequest.UpdatedRows(
        rows: builder.seal(), expectedVersions: [tom.readRow.version], changedSlots: [Cat.CatSlot.prey.bit], wordsPerRow: 1)
    ]
    try #require(coordinator.persistentStores.last).store.prepare(SaveRequest(entities: [changes])).commit()
    coordinator.rowCache.removeAll()
    // Whether the other cat is registered or not.
    for registersOther in [false, true] {
      let context = try place.context()
      let hunter = try #require(try context.one(Cat.self) { $0.chip == 2 })
      let other = registersOther ? try context.one(Cat.self) { $0.lives == 3 } : nil
      withExtendedLifetime(other) {
        let prey = hunter.prey
        #expect(prey == nil || prey?.name == "" && prey?.isInaccessible == true)
        #expect(context.faultError != nil)
      }
    }
  }
}
