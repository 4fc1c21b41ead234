import Holdfast
import HoldfastCoreData
import HoldfastJSONStore
import HoldfastPropertyList
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// SQLite files that Core Data created for a configuration of a model. They have nothing of the model's other entities.
@Suite struct ConfigurationFileTests {
  private static let cloud = [
    EntityDescription(
      "Animal",
      relationships: [.toOne("owner", to: "Owner", inverse: "pets"), .toMany("labels", to: "Label", inverse: "animals")]),
    // `Cat`, which the file lacks, has an attribute of the same name, and would come first in the table of `Animal`.
    EntityDescription("Hen", superentity: "Animal", attributes: [AttributeDescription("size", .integer16, isOptional: true)]),
    EntityDescription("Label", relationships: [.toMany("animals", to: "Animal", inverse: "labels")]),
    EntityDescription("Owner", relationships: [.toMany("pets", to: "Animal", inverse: "owner", isOrdered: true)]),
  ]
  private static let local: [EntityDescription] = {
    var note = AttributeDescription("note", .string, isOptional: true)
    note.preservesValueInHistoryOnDeletion = true
    return [
      // Entities have other numbers in the file, because this one would be the first.
      EntityDescription(
        "Account", attributes: [note], relationships: [.toMany("favourites", to: "Animal", inverse: nil)],
        indexes: [FetchIndexDescription("byNote", ["note"])]),
      EntityDescription("Cat", superentity: "Animal", attributes: [AttributeDescription("size", .integer16, isOptional: true)]),
    ]
  }()

  /// The model. The files have a part of it.
  private static func whole(_ more: [EntityDescription] = []) throws -> ManagedObjectModel {
    var entities = try model(cloud + local + more).declarations
    for index in entities.indices where entities[index].name == "Animal" {
      entities[index].indexes = [FetchIndexDescription("byTag", ["tag"])]
    }
    return try ManagedObjectModel(
      entities: entities,
      configurations: [
        ConfigurationDescription("cloud", cloud.map(\.name)), ConfigurationDescription("few", ["Animal", "Hen", "Owner"]),
        ConfigurationDescription("local", local.map(\.name)), ConfigurationDescription("all", (cloud + local).map(\.name)),
      ])
  }

  /// A file with the entities of the configuration `cloud`, and more.
  private static func place(_ more: [EntityDescription] = []) throws -> MigratedStore.Place {
    let place = MigratedStore.Place(.coreData)
    try place.fill(try model(cloud + more)) { context throws in
      let animal = try context.add("Animal", "a"), hen = try context.add("Hen", "h", ["size": .int16(3)])
      try context.add("Owner", "o").setValue([hen, animal], forKey: "pets")
      try hen.setValue([try context.add("Label", "l")], forKey: "labels")
    }
    return place
  }

  /// The names and numbers of everything in a file.
  private static func layout(_ place: MigratedStore.Place) throws -> [[String]] {
    try SQL.rows(place.path, "SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name")
      + SQL.rows(place.path, "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      + [PersistentStoreCoordinator.metadata(for: place.description).entityVersionHashes.keys.sorted()]
  }

  private static func tags(_ context: ManagedObjectContext, _ entity: String) throws -> [String] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).map { try Contents.tag($0) }.sorted()
  }

  /// Opens stores with the entire model, and closes them.
  private static func opening(_ stores: StoreDescription..., body: (ManagedObjectContext) throws -> Void) throws {
    let coordinator = try PersistentStoreCoordinator(model: try whole(), stores: stores)
    defer { try? coordinator.close() }
    try body(try ManagedObjectContext(coordinator: coordinator, classes: []))
  }

  @Test func aFileOfAConfigurationIsReadAndChangedAndGetsNothingOfOtherEntities() throws {
    let place = try Self.place(), before = try Self.layout(place), store = place.description.with(configuration: "cloud")
    try Self.opening(store) { context throws in
      #expect(try Self.tags(context, "Animal") == ["a", "h"])
      #expect(try Self.tags(context, "Hen") == ["h"])
      let owner = try context.tagged("Owner", "o"), hen = try context.tagged("Hen", "h")
      let pets = try #require(try owner.value(forKey: "pets").objects)
      #expect(try pets.map { try Contents.tag($0) } == ["h", "a"])
      #expect(try hen.value(forKey: "size").storeValue == .int16(3))
      try hen.setValue(StoreValue.int16(4), forKey: "size")
      let other = try context.add("Hen", "i", ["size": .int16(5)])
      try other.setValue(owner, forKey: "owner")
      try other.setValue([try context.tagged("Label", "l"), try context.add("Label", "m")], forKey: "labels")
      context.delete(try context.tagged("Animal", "a"))
      try context.save()
    }
    let expected = [
      "Hen h: size=4 labels=[l] owner=o", "Hen i: size=5 labels=[l m] owner=o", "Label l: animals=[h i]", "Label m: animals=[i]",
      "Owner o: pets=[h i]",
    ]
    #expect(try Self.layout(place) == before)
    try Self.opening(store) { context throws in
      #expect(try Self.tags(context, "Animal") == ["h", "i"])
      #expect(try #require(throws: PersistenceError.self) { try Self.tags(context, "Account") }.code == .noStoreForEntity)
    }
    // It is still a file of the model without the other entities.
    #expect(try place.contents(try model(Self.cloud)) == expected)
  }

  @Test func aReadOnlyFileOfAConfigurationIsRead() throws {
    let place = try Self.place(), before = try Self.layout(place)
    try Self.opening(place.description.readOnly().with(configuration: "few")) { context throws in
      #expect(try Self.tags(context, "Animal") == ["a", "h"])
      let owner = try context.tagged("Owner", "o")
      #expect(try context.tagged("Animal", "a").value(forKey: "owner").storeValue == .objectID(owner.objectID))
    }
    #expect(try Self.layout(place) == before)
  }

  @Test func objectsOfTheOtherEntitiesAreInAnotherStore() throws {
    let place = try Self.place(), before = try Self.layout(place)
    let stores = [
      place.description.with(configuration: "cloud"), .sqlite(at: place.folder.file("local.sqlite")).with(configuration: "local"),
    ]
    try Self.opening(stores[0], stores[1]) { context throws in
      // With a listener, a save looks for the accounts that have a deleted animal.
      let changes = context.persistentStoreCoordinator.savedChanges()
      let cat = try context.add("Cat", "c", ["size": .int16(9)])
      try context.add("Account", "u").setValue([cat], forKey: "favourites")
      try context.save()
      context.delete(try context.tagged("Hen", "h"))
      try context.save()
      withExtendedLifetime(changes) {}
    }
    try Self.opening(stores[1], stores[0]) { context throws in
      #expect(try Self.tags(context, "Animal") == ["a", "c"])
      #expect(try Self.tags(context, "Account") == ["u"])
      #expect(try Self.tags(context, "Hen").isEmpty)
    }
    #expect(try Self.layout(place) == before)
  }

  @Test(arguments: [nil, "local", "all"]) func anotherConfigurationIsRefused(_ configuration: String?) throws {
    let place = try Self.place(), before = try Self.layout(place)
    let error = try #require(throws: StoreError.self) {
      try Self.opening(place.description.with(configuration: configuration)) { _ in }
    }
    #expect(error.code == .incompatibleModel && error.reason.contains("Account, Cat.") && error.reason.contains("cloud, few."))
    #expect(try Self.layout(place) == before)
  }

  @Test func entitiesThatNeitherTheFileNorItsConfigurationHasDoNotDiffer() throws {
    let place = try Self.place(), before = try Self.layout(place), model = try Self.whole()
    let metadata = try PersistentStoreCoordinator.metadata(for: place.description)
    for name in ["cloud", "few"] { #expect(metadata.differingEntities(from: model, configuration: name).isEmpty, "\(name)") }
    // "all" has them, and the model has no "others".
    for name in [nil, "all", "others"] { #expect(metadata.differingEntities(from: model, configuration: name) == ["Account", "Cat"]) }
    #expect(metadata.differingEntities(from: model, configuration: "local") == ["Account", "Cat"])
    #expect(try Self.layout(place) == before)
  }

  @Test func aFileWithSomethingOfAnEntityDoesNotLackIt() throws {
    let island = EntityDescription("Island"), model = try Self.whole([island]), place = try Self.place([island])
    let store = place.description.with(configuration: "cloud")
    func code() throws -> StoreError.Code {
      try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: model, store: store).close() }.code
    }
    try place.changeMetadata { Self.remove("Island", from: &$0) }
    #expect(try code() == .incompatibleModel)
    try SQL.run(place.path, "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Island'")
    #expect(try code() == .incompatibleModel)
    try SQL.run(place.path, "DROP TABLE ZISLAND")
    try PersistentStoreCoordinator(model: model, store: store).close()
  }

  @Test func aFileThatLacksTheDestinationOfARelationshipIsRefused() throws {
    let place = try Self.place()
    try place.changeMetadata { Self.remove("Label", from: &$0) }
    try SQL.run(place.path, "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Label'; DROP TABLE ZLABEL")
    let error = try #require(throws: StoreError.self) { try Self.opening(place.description.with(configuration: "few")) { _ in } }
    #expect(error.code == .incompatibleModel && error.reason.contains("Label (not in the store)"))
  }

  private static func remove(_ entity: String, from list: inout [String: PropertyList]) {
    var hashes = list["NSStoreModelVersionHashes"]?.dictionary ?? [:]
    hashes[entity] = nil
    list["NSStoreModelVersionHashes"] = .dictionary(hashes)
  }

  @Test func theStoreRefusesChangesOfEntitiesThatItLacks() throws {
    let place = try Self.place(), model = try Self.whole(), store = SQLiteStore(path: place.path)
    _ = try store.open(model: model, host: StoreHost(configuration: "cloud") { _ in })
    defer { try? store.close() }
    for name in ["Account", "Cat"] {
      let entity = try #require(model.entity(named: name)).index
      var changes = SaveRequest.EntityChanges(entity: entity)
      changes.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
      let request = SaveRequest(entities: [changes])
      for body in [
        { _ = try store.reserveKeys([KeyDemand(entity: entity, count: 1)], options: .none) },
        { _ = try store.prepare(request, options: .none) },
      ] {
        let error = try #require(throws: StoreError.self) { try body() }
        #expect(error.code == .unsupportedRequest && error.reason.contains(name))
      }
    }
    #expect(try SQL.rows(place.path, "SELECT COUNT(*) FROM ZANIMAL") == [["2"]])
  }

  @Test func theStoreHasNoObjectsOfEntitiesThatItLacks() throws {
    let place = try Self.place(), model = try Self.whole(), store = SQLiteStore(path: place.path)
    _ = try store.open(model: model, host: StoreHost(configuration: "cloud") { _ in })
    defer { try? store.close() }
    let account = try #require(model.entity(named: "Account")), animal = try #require(model.entity(named: "Animal"))
    let favourites = try #require(account.relationship(named: "favourites"))
    let view = try store.beginRead(.latest, options: .none)
    defer { view.end() }
    // The wrapper of an overlay asks for links, also without sources.
    for sources in [[], [1, 2]] as [[ObjectKey]] {
      let request = RelationshipRequest(entity: account.index, relationship: favourites.index, sources: sources)
      let answer = try store.relationships(request, in: view, options: .none)
      #expect(answer.targets.isEmpty && answer.offsets.count == sources.count + 1)
      try answer.check(request, path: nil, isOrdered: false)
    }
    func explanation(_ entity: ManagedObjectModel.Entity) throws -> String {
      try store.answers.perform(ExplanationRequest(FetchPlan(entity: entity.index, concreteEntities: entity.concreteIndexes)))
    }
    #expect(try explanation(account).hasPrefix("No statement"))
    // The statement is the one that a fetch runs. It doesn't contain the number of `Cat`, which has none in the file.
    let text = try explanation(animal)
    #expect(text.hasPrefix("SELECT ") && !text.contains("\(Int64.max)"), "\(text)")
  }

  @Test func aHistoryHasNoPlaceForOtherEntities() throws {
    let place = try Self.place()
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let store = StoreDescription.sqlite(at: place.path, options: options).with(configuration: "cloud")
    try Self.opening(store) { context throws in
      context.delete(try context.tagged("Hen", "h"))
      try context.save()
      let history = try context.persistentStoreCoordinator.fetchHistory()
      #expect(history.transactions.count == 1)
      #expect(history.transactions.first?.changes.contains { $0.changeType == .delete } == true)
    }
    #expect(try SQL.rows(place.path, "SELECT name FROM pragma_table_info('ACHANGE') WHERE name LIKE 'ZTOMBSTONE%'").isEmpty)
    #expect(
      try SQL.rows(place.path, "SELECT Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY Z_ENT")
        == [["Animal"], ["Hen"], ["Label"], ["Owner"]])
  }

  /// The history has rows with these names in `Z_PRIMARYKEY`.
  @Test func aHistoryIsNotAnythingOfAnEntityWithTheNameOfItsTables() throws {
    let place = try Self.place(), model = try Self.whole([EntityDescription("CHANGE"), EntityDescription("TRANSACTION")])
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    let store = StoreDescription.sqlite(at: place.path, options: options).with(configuration: "cloud")
    // The first opening creates the history.
    for _ in 0..<2 { try PersistentStoreCoordinator(model: model, store: store).close() }
  }

  @Test func indexesAreAddedForTheFilesEntitiesOnly() throws {
    let place = try Self.place(), options = SQLiteStoreOptions(indexAddition: .allStores)
    try Self.opening(.sqlite(at: place.path, options: options).with(configuration: "cloud")) { _ in }
    #expect(try SQL.rows(place.path, "SELECT name FROM sqlite_master WHERE name LIKE 'Z\\_%\\_by%' ESCAPE '\\'") == [["Z_Animal_byTag"]])
  }

  @Test func aFileOfAConfigurationIsVerifiedAndCopied() throws {
    let place = try Self.place(), store = place.description.with(configuration: "cloud"), model = try Self.whole()
    let copy = StoreDescription.json(at: place.folder.file("copy.json"))
    let digest = try PersistentStoreCoordinator.verifyPersistentStore(store, model: model)
    try PersistentStoreCoordinator.copyPersistentStore(store, to: copy, model: model)
    #expect(try PersistentStoreCoordinator.verifyPersistentStore(copy) == digest)
    try Self.opening(copy) { context throws in
      #expect(try Self.tags(context, "Animal") == ["a", "h"])
      #expect(try Self.tags(context, "Account").isEmpty)
    }
  }

  @Test func aFileOfAFormerModelIsMigratedUnlessItHasAllEntitiesOfTheConfiguration() throws {
    let place = try Self.place(), before = try Self.layout(place), former = [try model(Self.cloud)]
    try Self.opening(place.description.migrating(from: former).with(configuration: "cloud")) { _ in }
    #expect(try Self.layout(place) == before)
    try Self.opening(place.description.migrating(from: former)) { context throws in
      #expect(try Self.tags(context, "Animal") == ["a", "h"])
      try context.add("Account", "u")
      try context.save()
    }
    #expect(try SQL.rows(place.path, "SELECT COUNT(*) FROM Z_PRIMARYKEY WHERE Z_NAME IN ('Account', 'Cat')") == [["2"]])
  }

  @Test func aFileThatWasMigratedWithModelsOfItsEntitiesIsStillOneOfAConfiguration() throws {
    let place = MigratedStore.Place(.coreData), current = try model(Self.cloud)
    let former = try model(
      Self.cloud.map { entity in
        var entity = entity
        entity.attributes = []
        return entity
      })
    try place.fill(former) { try $0.add("Hen", "h") }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [former]), to: current)
    let before = try Self.layout(place)
    try Self.opening(place.description.with(configuration: "cloud")) { context throws in
      try context.tagged("Hen", "h").setValue(StoreValue.int16(3), forKey: "size")
      try context.save()
    }
    #expect(try Self.layout(place) == before)
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description)?.versionDigest == current.versionDigest)
    try Self.opening(place.description.with(configuration: "cloud")) { context throws in
      #expect(try context.tagged("Hen", "h").value(forKey: "size").storeValue == .int16(3))
    }
  }

  @Test func anExistingFileIsOpenedWithAModelThatHasItsConfiguration() throws {
    let place = MigratedStore.Place(.coreData)
    try place.fill(try model(EntityDescription("A"))) { try $0.add("A", "a") }
    let tag = "<attribute name=\"tag\" optional=\"YES\" attributeType=\"String\"/>"
    try place.folder.write(
      "<model><entity name=\"A\">\(tag)</entity><entity name=\"B\">\(tag)</entity>"
        + "<configuration name=\"own\"><memberEntity name=\"A\"/></configuration></model>", to: "Zoo.xcdatamodel/contents")
    let models = place.folder.file("Zoo.xcdatamodel")
    let error = try #require(throws: MigrationError.self) { try PersistentContainer(existing: place.description, modelsAt: models) }
    #expect(error.code == .missingSourceModel)
    let container = try PersistentContainer(existing: place.description.with(configuration: "own"), modelsAt: models)
    let context = try ManagedObjectContext(coordinator: container.persistentStoreCoordinator, classes: [])
    #expect(try Self.tags(context, "A") == ["a"])
    try container.persistentStoreCoordinator.close()
  }
}
