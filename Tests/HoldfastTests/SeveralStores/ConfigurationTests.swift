import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Stores that contain some of a model's entities.
@Suite struct ConfigurationTests {
  /// Dogs and related entities in one store, people in another, licences in none; and a configuration of everything.
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(
        entities: Kennel.entities,
        configurations: [
          ConfigurationDescription("dogs", ["Dog", "Collar", "Vaccination"]), ConfigurationDescription("people", ["Person"]),
          ConfigurationDescription("nothing", []),
        ])
    } catch { fatalError("\(error)") }
  }()

  @Test func configurationsAreCheckedWithTheModel() throws {
    let error = try #require(throws: ModelError.self) {
      try ManagedObjectModel(
        entities: Kennel.entities,
        configurations: [
          ConfigurationDescription("a", ["Dog", "Cat", "Dog"]), ConfigurationDescription("a", []), ConfigurationDescription("", []),
        ])
    }
    #expect(error.problems.count == 4)
    #expect(error.problems.map(\.reason).filter { $0.contains("Cat") }.count == 1)
    #expect(Self.model.entities(inConfiguration: "dogs")?.map(\.name) == ["Collar", "Dog", "Vaccination"])
    #expect(Self.model.entities(inConfiguration: "cats") == nil)
  }

  @Test func configurationsAreCodedAndNotPartOfVersions() throws {
    let coded = try JSONCoding.copy(CodableModel(Self.model)).model
    #expect(coded == Self.model && coded.configurations == Self.model.configurations)
    #expect(coded != Kennel.model && coded.versionDigest == Kennel.model.versionDigest)
    let plain = try JSONCoding.copy(CodableModel(Kennel.model)).model
    #expect(plain == Kennel.model && plain.configurations.isEmpty)
  }

  @Test func anUnknownConfigurationIsATypedError() throws {
    let error = try #require(throws: StoreError.self) {
      try PersistentStoreCoordinator(model: Self.model, store: .memory().with(configuration: "cats"))
    }
    #expect(error.code == .unsupportedModel && error.reason.contains("cats") && error.reason.contains("people"))
  }

  @Test(arguments: StorePair.allCases) func objectsGoWhereTheirEntityIs(_ pair: StorePair) throws {
    let pack = try StorePack(pair.kinds, model: Self.model, configurations: ["dogs", "people"]), context = try pack.context()
    let dog = context.dog("d"), person = context.person("p"), collar = context.insert(Collar.self)
    dog.collar = collar
    try context.save()
    #expect([dog, collar].allSatisfy { pack.coordinator.persistentStore(for: $0.objectID) == pack.stores[0] })
    #expect(pack.coordinator.persistentStore(for: person.objectID) == pack.stores[1])
    #expect(pack.stores.map(\.configurationName) == ["dogs", "people"])
    // Only the store with the entity gets requests, as if it were the only store.
    pack.clearRecords()
    let other = try pack.context()
    #expect(try other.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)], limit: 3)).map(\.name) == ["p"])
    #expect(try other.fetch(FetchRequest<Person> { $0.name == "q" }).isEmpty)
    #expect(pack.recorders[0].requests.isEmpty && pack.recorders[1].plans.count == 2)
    #expect(try other.one(Dog.self) { $0.name == "d" }?.collar?.color == "red")
    // They can't be assigned to another store.
    let stray = context.person("stray")
    #expect(try #require(throws: PersistenceError.self) { try context.assign(stray, to: pack.stores[0]) }.code == .noStoreForEntity)
    dog.owner = person
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .externalRelationship)
  }

  @Test(arguments: TestStore.allCases) func anEntityThatNoStoreHasIsATypedError(_ store: TestStore) throws {
    let pack = try StorePack([store], model: Self.model, configurations: ["dogs"]), context = try pack.context()
    for body in [
      { _ = try context.fetch(FetchRequest<Person>()) }, { _ = try context.count(for: FetchRequest<Person>()) },
      { _ = try context.fetchObjectIDs(FetchRequest<Person>()) },
      { _ = try context.fetch(DictionaryFetchRequest<Person>(columns: ["n": .count()])) },
    ] {
      let error = try #require(throws: PersistenceError.self) { try body() }
      #expect(error.code == .noStoreForEntity && error.reason.contains("Person"))
    }
    context.dog("d")
    try context.save()
    let person = context.person("p")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .noStoreForEntity && error.objectID == person.objectID)
    #expect(pack.recorders[0].saves.count == 1)
  }

  @Test(arguments: TestStore.allCases) func aStoreMadeWithAConfigurationOpensWithoutAndTheOtherWayRound(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model)
    for (round, configuration) in ["dogs", nil, "dogs"].enumerated() {
      let coordinator = try PersistentStoreCoordinator(model: Self.model, store: place.description.with(configuration: configuration))
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      #expect(try context.count(for: FetchRequest<Dog>()) == round)
      context.dog("d")
      if configuration == nil {
        context.person("p")
        #expect(try context.count(for: FetchRequest<Person>()) == 1)
      }
      try context.save()
      try coordinator.close()
    }
  }

  @Test(arguments: StorePair.allCases) func aFamilyCanBeDivided(_ pair: StorePair) throws {
    let entities = [
      EntityDescription("Animal", attributes: [AttributeDescription("name", .string)]),
      EntityDescription("Cat", superentity: "Animal", attributes: [AttributeDescription("lives", .integer16, default: .int16(9))]),
      EntityDescription("Hen", superentity: "Animal", attributes: [AttributeDescription("eggs", .integer16, default: .int16(0))]),
    ]
    let model = try ManagedObjectModel(
      entities: entities,
      configurations: [ConfigurationDescription("house", ["Animal", "Cat"]), ConfigurationDescription("yard", ["Animal", "Hen"])])
    let pack = try StorePack(pair.kinds, model: model, configurations: ["house", "yard"])
    let context = try ManagedObjectContext(coordinator: pack.coordinator)
    for (entity, name) in [("Hen", "b"), ("Animal", "d"), ("Cat", "c"), ("Hen", "a"), ("Animal", "e")] {
      let object = try context.insert(entityNamed: entity)
      try object.setValue(.string(name), forKey: "name")
      if name == "e" { try context.assign(object, to: pack.stores[1]) }
    }
    try context.save()
    let other = try ManagedObjectContext(coordinator: pack.coordinator)
    var request = FetchRequest<ManagedObject>(entityName: "Animal")
    request.sortDescriptors = [FetchSortDescriptor(SortTerm("name"))]
    let all = try other.fetch(request)
    #expect(try all.map { try $0.value(forKey: "name").storeValue } == ["a", "b", "c", "d", "e"].map { .string($0) })
    #expect(all.map(\.entity.name) == ["Hen", "Hen", "Cat", "Animal", "Animal"])
    #expect(
      all.map { pack.coordinator.persistentStore(for: $0.objectID)?.configurationName } == ["yard", "yard", "house", "house", "yard"])
    request.includesSubentities = false
    #expect(try other.fetch(request).count == 2)
    #expect(try other.count(for: FetchRequest<ManagedObject>(entityName: "Hen")) == 2)
    // Each store only gets requests for its entities.
    #expect(pack.recorders[0].plans.allSatisfy { !$0.concreteEntities.contains(model.entity(named: "Hen")?.index ?? -1) })
  }
}
