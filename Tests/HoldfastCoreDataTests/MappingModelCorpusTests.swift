import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Mapping models that other people made in Xcode, with the stores that Core Data migrated by them, if `HOLDFAST_CORPUS` names a folder.
@Suite(.enabled(if: CorpusFolder.path != nil, "HOLDFAST_CORPUS isn't set.")) struct MappingModelCorpusTests {
  /// Objects as lines, without their keys: an object is named by what is unique in it.
  private func lines(_ path: String, _ model: ManagedObjectModel) throws -> [String] {
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, isReadOnly: true))
    defer { try? coordinator.close() }
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    func name(_ object: ManagedObject) throws -> String {
      let keys = [
        "remoteID", "remoteIdentifier", "numericISO3166Code", "title", "userId", "name", "numberPlate", "postID", "firstName", "lastName",
      ]
      let found = try keys.filter { object.entity.slot(named: $0) != nil }.map { "\(try object.value(forKey: $0))" }
      return "\(object.entity.name) \(found.joined(separator: " "))"
    }
    var lines: [String] = []
    for entity in model.entities where !entity.isAbstract {
      var request = FetchRequest<ManagedObject>(entityName: entity.name)
      request.includesSubentities = false
      for object in try context.fetch(request) {
        let values = try entity.attributes.map { "\($0.name)=\(try object.value(forKey: $0.name))" }
        let links = try entity.relationships.map { relationship in
          let value = try object.value(forKey: relationship.name)
          let ids: [ManagedObjectID] = if case .objectID(let id)? = value.storeValue { [id] } else { [] }
          let objects = try value.objects ?? ids.map { try context.object(with: $0) }
          return "\(relationship.name)=\(try objects.map(name).sorted())"
        }
        lines.append("\(try name(object)): \((values + links).sorted().joined(separator: " "))")
      }
    }
    return lines.sorted()
  }

  // MARK: Moody

  private static let moody = ["Moody", "Moody 2", "Moody 3", "Moody 4", "Moody 5", "Moody 6"]

  private func moody(_ version: String) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      contentsOf: CorpusFolder.file("models/objcio-core-data/Migrations/Migrations/Moody.xcdatamodeld"), version: version)
  }

  private func moodyPlan(to version: String) throws -> MigrationPlan {
    try MigrationPlan(
      versionsAt: CorpusFolder.file("models/objcio-core-data/Migrations/Migrations/Moody.xcdatamodeld"), to: version,
      mappingModelsAt: CorpusFolder.file("xml/xcmapping/objcio-core-data"),
      policies: ["Migrations.Country5ToCountry6Policy": Self.continents])
  }

  /// Finds or inserts the continent whose code a country had.
  private static let continents = MappingPolicy { stage in
    try stage.forEach { old, new in
      guard let code = old["isoContinent"].integer else { return }
      let request = FetchRequest<ManagedObject>(
        entityName: "Continent",
        where: FetchPredicate(.comparison(.property(PropertyPath("numericISO3166Code")), .equalTo, .constant(.int64(code)), [])))
      let found = try stage.context.fetch(request).first
      let continent = try found ?? stage.context.insert(entityNamed: "Continent")
      if found == nil { try continent.setValue(StoreValue.int64(code), forKey: "numericISO3166Code") }
      try new.setValue(continent, forKey: "continent")
    }
  }

  /// Core Data migrated the first store to the others, so they are what our migration has to reach from each of their predecessors.
  @Test(arguments: 0..<4) func storesOfMoodyBecomeWhatCoreDataMadeOfThem(start: Int) throws {
    for end in (start + 1)..<5 {
      let folder = TemporaryFolder(),
        path = try CorpusFolder.copy("sqlite/objcio-Moody/MigrationsTests/\(Self.moody[start]).moody", to: folder)
      try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: try moodyPlan(to: Self.moody[end]))
      let other = TemporaryFolder()
      let expected = try CorpusFolder.copy("sqlite/objcio-Moody/MigrationsTests/\(Self.moody[end]).moody", to: other)
      let model = try moody(Self.moody[end])
      let lines = try lines(path, model)
      #expect(lines == (try self.lines(expected, model)), "\(Self.moody[start]) to \(Self.moody[end])")
      #expect(lines.count == (end == 4 ? 7 : 9))
    }
  }

  @Test(arguments: 0..<5) func storesOfMoodyReachTheLastVersionWithTheBooksPolicy(start: Int) throws {
    let folder = TemporaryFolder(),
      path = try CorpusFolder.copy("sqlite/objcio-Moody/MigrationsTests/\(Self.moody[start]).moody", to: folder)
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: try moodyPlan(to: "Moody 6"))
    let lines = try lines(path, try moody("Moody 6"))
    #expect(lines.filter { $0.hasPrefix("Continent") }.count == 2)
    let countries = lines.filter { $0.hasPrefix("Country") }
    #expect(
      countries.count == 3 && countries.allSatisfy { $0.contains("continent=[\"Continent single(HoldfastStore.StoreValue.int16(1000") })
    #expect(lines.filter { $0.hasPrefix("Mood ") }.count == 4)
  }

  // MARK: Others

  /// Migrates a copy of a store by a plan, and returns its lines.
  private func migrated(_ store: String, _ plan: MigrationPlan) throws -> [String] {
    let folder = TemporaryFolder(), path = try CorpusFolder.copy(store, to: folder)
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
    return try lines(path, plan.model)
  }

  /// Finds an object by an attribute, or inserts it.
  private static func object(_ entity: String, _ key: String, _ value: StoreValue, _ context: ManagedObjectContext) throws -> ManagedObject
  {
    let request = FetchRequest<ManagedObject>(
      entityName: entity, where: FetchPredicate(.comparison(.property(PropertyPath(key)), .equalTo, .constant(value), [])))
    if let found = try context.fetch(request).first { return found }
    let object = try context.insert(entityNamed: entity)
    try object.setValue(value, forKey: key)
    return object
  }

  @Test func theSampleModelsStoreBecomesCoreDatasVersionTwo() throws {
    let bundle = CorpusFolder.file("models/CoreDataPlus/Tests/Resources/SampleModel/SampleModel.xcdatamodeld")
    let first = try ManagedObjectModel(contentsOf: bundle, version: "SampleModel")
    var plan = MigrationPlan(from: first)
    plan.add(try ManagedObjectModel(contentsOf: bundle, version: "SampleModel2"))
    let stores = "sqlite/CoreDataPlus/Tests/Resources/SampleModel/Fixtures/SampleModel_V"
    let lines = try migrated(stores + "1.sqlite", plan)
    #expect(lines.count == 145)
    let folder = TemporaryFolder()
    #expect(lines == (try self.lines(try CorpusFolder.copy(stores + "2.sqlite", to: folder), plan.model)))
  }

  @Test func carsGetMakersAndPreviousOwnersByExpressions() throws {
    let bundle = CorpusFolder.file("models/CoreDataPlus/Tests/Resources/SampleModel/SampleModel.xcdatamodeld")
    let plan = try MigrationPlan(
      versionsAt: bundle, to: "SampleModel3", mappingModelsAt: CorpusFolder.file("xml/xcmapping/CoreDataPlus"),
      policies: [
        "REPLACE_AT_RUNTIME.V2to3MakerPolicy": MappingPolicy { stage in
          try stage.forEach { old, new in
            try new.setValue(try Self.object("Maker", "name", old["maker"], stage.context), forKey: "createdBy")
          }
        }
      ])
    for version in ["1", "2"] {
      let lines = try migrated("sqlite/CoreDataPlus/Tests/Resources/SampleModel/Fixtures/SampleModel_V\(version).sqlite", plan)
      // As many makers as names, and each owner is a previous one, too.
      let makers = lines.filter { $0.hasPrefix("Maker") }, cars = lines.filter { $0.contains("Car ") && $0.contains("createdBy=[\"Maker") }
      #expect(makers.count == 10)
      #expect(cars.count == 125)
      #expect(lines.count == 155)
      for car in cars { #expect(try part("owner", of: car) == part("previousOwners", of: car)) }
      for person in lines.filter({ $0.hasPrefix("Person") }) { #expect(try part("cars", of: person) == part("previousCars", of: person)) }
      #expect(try cars.filter { try part("owner", of: $0) != "[]" }.count == 118)
    }
  }

  /// The destinations of a relationship in a line.
  private func part(_ name: String, of line: String) throws -> String {
    let start = try #require(line.range(of: " \(name)=")), rest = line[start.upperBound...]
    return String(rest[..<(rest.range(of: "] ")?.upperBound ?? rest.endIndex)]).trimmingCharacters(in: .whitespaces)
  }

  @Test func booksGetAuthorsAndThenFilesBySeveralMappingModels() throws {
    let bundle = CorpusFolder.file("sqlite/BookMigration/model/Model.xcdatamodeld")
    let policy = MappingPolicy { stage in
      try stage.forEach { old, new in
        if stage.context.persistentStoreCoordinator.model.entity(named: "File") == nil {
          let author = try Self.object("Author", "name", old["authorName"], stage.context)
          try new.setValue([author], forKey: "authors")
        } else {
          for user in try stage.objects(for: try old.objects("users"), mappedBy: "UserToUser") {
            let file = try stage.context.insert(entityNamed: "File")
            try file.setValue(old["fileURL"], forKey: "fileURL")
            try file.setValue(user, forKey: "user")
            try file.setValue(new, forKey: "book")
          }
        }
      }
    }
    let plan = try MigrationPlan(
      versionsAt: bundle, mappingModelsAt: CorpusFolder.file("xml/xcmapping/BookMigration"), policies: ["MHWBookToBookPolicy": policy])
    let lines = try migrated("sqlite/BookMigration/stores/Model1.sqlite", plan)
    #expect(lines.filter { $0.hasPrefix("User") }.count == 3)
    #expect(lines.filter { $0.hasPrefix("Author") }.count == 3)
    let files = lines.filter { $0.hasPrefix("File") }, books = lines.filter { $0.hasPrefix("Book") }
    #expect(files.count == 4 && files.allSatisfy { !$0.contains("fileURL=single(HoldfastStore.StoreValue.null)") })
    #expect(books.count == 4 && books.allSatisfy { !$0.contains("=[]") })
    #expect(books.contains { $0.contains("The Trial") && $0.contains("Franz Kafka") })
  }

  @Test func postsGetSectionsAfterAVersionWithoutAMappingModel() throws {
    let bundle = CorpusFolder.file("sqlite/CoreDataMigrationRevised/model/CoreDataMigration_Example.xcdatamodeld")
    let policy = MappingPolicy { stage in
      try stage.forEach { old, new in
        let section = try stage.context.insert(entityNamed: "Section")
        guard case .string(let content) = old["content"] else { return }
        try section.setValue(content, forKey: "body")
        try section.setValue("\(content.prefix(4))...", forKey: "title")
        try section.setValue(new, forKey: "post")
      }
    }
    let plan = try MigrationPlan(
      versionsAt: bundle, mappingModelsAt: CorpusFolder.file("xml/xcmapping/CoreDataMigrationRevised"),
      policies: ["CoreDataMigration_Example.Post2ToPost3MigrationPolicy": policy])
    let stores = "sqlite/CoreDataMigrationRevised/stores/CoreDataMigration_Example_"
    let results = try (1...2).map { try migrated("\(stores)\($0).sqlite", plan) }
    #expect(results[0].count == 20 && results[0] == results[1])
    // The last version allows one section of a post, and two posts of the third store have two.
    let error = #expect(throws: MigrationError.self) { try migrated(stores + "3.sqlite", plan) }
    #expect(error?.code == .constraintViolation)
    #expect(results[0].allSatisfy { $0.hasPrefix("Section") || $0.contains("softDeleted=single(HoldfastStore.StoreValue.bool(false))") })
    // The second store is the first one, migrated by Core Data.
    var second = MigrationPlan(from: try ManagedObjectModel(contentsOf: bundle, version: "CoreDataMigration_Example"))
    second.add(try ManagedObjectModel(contentsOf: bundle, version: "CoreDataMigration_Example 2"))
    let folder = TemporaryFolder()
    #expect(try migrated(stores + "1.sqlite", second) == lines(try CorpusFolder.copy(stores + "2.sqlite", to: folder), second.model))
  }

  @Test func twoEntitiesBecomeOne() throws {
    let bundle = CorpusFolder.file("models/LoopKit/LoopKit/Persistence/Model.xcdatamodeld")
    let first = try ManagedObjectModel(contentsOf: bundle, version: "Model")
    let folder = TemporaryFolder()
    let path = try CorpusFolder.copy("sqlite/LoopKit/LoopKitHostedTests/TestCoreData/Model.sqlite.v1.original", to: folder)
    let before = try PersistentStoreCoordinator(model: first, store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: before, classes: [])
    for number in 1...3 {
      let deleted = try context.insert(entityNamed: "DeletedCarbObject")
      try deleted.setValue("deleted \(number)", forKey: "externalID")
      try deleted.setValue(Date(timeIntervalSinceReferenceDate: Double(number)), forKey: "startDate")
    }
    try context.save()
    try before.close()
    let deletion = MappingPolicy { stage in
      try stage.forEach { old, new in
        try new.setValue(false, forKey: "createdByCurrentApp")
        try new.setValue(old["externalID"], forKey: "provenanceIdentifier")
        try new.setValue(StoreValue.int32(2), forKey: "operation")
      }
    }
    let plan = try MigrationPlan(
      versionsAt: bundle, mappingModelsAt: CorpusFolder.file("xml/xcmapping/LoopKit"),
      policies: [
        "LoopKit.CachedCarbObjectv3EntityMigrationPolicy": MappingPolicy(),
        "LoopKit.DeletedCarbObjectv3EntityMigrationPolicy": deletion,
      ])
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
    let lines = try lines(path, plan.model), carbs = lines.filter { $0.hasPrefix("CachedCarbObject") }
    #expect(lines.count == 10 && carbs.count == 4)
    for number in 1...3 { #expect(carbs.contains { $0.contains("\"deleted \(number)\"") && $0.contains("date(\(number).0)") }) }
    #expect(
      carbs.contains {
        $0.contains("DF3447CD-2967-4D91-B5D5-BD8158EB09EF") && $0.contains("grams=single(HoldfastStore.StoreValue.double(30.0))")
      })
  }

  @Test func aCreatureEvolvesAndReturnsByExpressions() throws {
    let bundle = CorpusFolder.file("models/CoreStore/Demo/Sources/Demos/Advanced/EvolutionDemo/Advanced.EvolutionDemo.V1.xcdatamodeld")
    let mappings = CorpusFolder.file("xml/xcmapping/CoreStore/Demo/Sources/Demos/Advanced/EvolutionDemo/Advanced.EvolutionDemo.")
    let first = try ManagedObjectModel(contentsOf: bundle, version: "Advanced.EvolutionDemo.V1")
    let second = try ManagedObjectModel(contentsOf: bundle, version: "Advanced.EvolutionDemo.V2")
    let folder = TemporaryFolder(), path = folder.file("Creatures.sqlite")
    let coordinator = try PersistentStoreCoordinator(model: first, store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let creature = try context.insert(entityNamed: "Creature")
    try creature.setValue(7, forKey: "dnaCode")
    try creature.setValue(StoreValue.int32(3), forKey: "numberOfFlagella")
    try context.save()
    try coordinator.close()
    let before = try lines(path, first)
    var plan = MigrationPlan(from: first)
    try plan.add(
      second, mappingModelsAt: [mappings + "V2.FromV1.xcmappingmodel"],
      policies: ["Advanced_EvolutionDemo_V2_FromV1MigrationPolicy": MappingPolicy()])
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
    let lines = try lines(path, second)
    #expect(lines.count == 1)
    for text in [
      "dnaCode=single(HoldfastStore.StoreValue.int64(7))", "hasHead=single(HoldfastStore.StoreValue.bool(true))",
      "Flippers=single(HoldfastStore.StoreValue.int32(3))",
    ] {
      #expect(lines[0].contains(text))
    }
    var back = MigrationPlan(from: second)
    try back.add(first, mappingModelsAt: [mappings + "V1.FromV2.xcmappingmodel"])
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: back)
    #expect(try self.lines(path, first) == before)
  }
}
