import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Stores that Apple's framework wrote, opened without a model, if `HOLDFAST_CORPUS` names a folder with them.
@Suite struct CoreDataCorpusTests {
  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  /// What plain SQLite counts in a store.
  struct Facts: Decodable, Sendable {
    struct Entity: Decodable, Sendable {
      var rows: Int?
    }
    var entities: [String: Entity]?
  }

  private static let facts: [String: Facts] = {
    guard let corpus, let data = try? Data(contentsOf: URL(fileURLWithPath: corpus + "/facts.json")) else { return [:] }
    return (try? JSONDecoder().decode([String: Facts].self, from: data)) ?? [:]
  }()

  private static let paths = facts.keys.filter { $0.hasPrefix("sqlite/") }.sorted()

  private func counts(_ coordinator: PersistentStoreCoordinator) throws -> [String: Int] {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    return Dictionary(
      uniqueKeysWithValues: try coordinator.model.entities.filter { !$0.isAbstract }.map { entity in
        var request = FetchRequest<ManagedObject>(entityName: entity.name)
        request.includesSubentities = false
        return (entity.name, try context.count(for: request))
      })
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS isn't set."))
  func storesOpenWithTheModelThatTheyContainAndHaveTheRowsOfPlainSQLite() throws {
    for path in Self.paths {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder)
      let store = StoreDescription.sqlite(at: file, isReadOnly: true), container: PersistentContainer
      if CorpusFolder.storesWithoutModel.contains(path) {
        let error = #expect(throws: MigrationError.self, "\(path)") { try PersistentContainer(existing: store) }
        #expect(error?.code == .missingSourceModel && error?.path == file, "\(path)")
        container =
          path == CorpusFolder.storesWithoutModel[0]
          ? try PersistentContainer(existing: store, modelsAt: CorpusFolder.file("sqlite/BookMigration/model"))
          : try PersistentContainer(model: try CorpusFolder.model(of: path, at: file), classes: [], store: store)
      } else {
        container = try PersistentContainer(existing: store)
      }
      let counts = try counts(container.persistentStoreCoordinator)
      for (name, entity) in Self.facts[path]?.entities ?? [:] {
        if let rows = entity.rows, let count = counts[name] { #expect(rows == count, "\(path) \(name)") }
      }
      try container.persistentStoreCoordinator.close()
    }
    #expect(Self.paths.count >= 33)
  }

  /// A trigger after another entity has come first: the numbers in names such as `Z1PAGES` and in `1 <= Z_ENT AND Z_ENT <= 2` are larger by 1.
  private static func renumbered(_ trigger: String) -> String {
    func next(_ number: Substring) -> String { String((Int(number) ?? 0) + 1) }
    return trigger.replacing(/Z([0-9]+)([A-Z])/) { "Z" + next($0.1) + $0.2 }
      .replacing(/([0-9]+) <= ((NEW\.)?Z_ENT)/) { next($0.1) + " <= " + $0.2 }
      .replacing(/Z_ENT <= ([0-9]+)/) { "Z_ENT <= " + next($0.1) }
  }

  /// Every entity gets an attribute, and a new entity changes numbers.
  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS isn't set."))
  func storesAreMigratedAndKeepTheirRows() throws {
    for path in Self.paths {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), old = try CorpusFolder.model(of: path, at: file)
      let original = try PersistentStoreCoordinator(model: old, store: .sqlite(at: file, isReadOnly: true)), before = try counts(original)
      try original.close()
      var entities = old.declarations
      for place in entities.indices where entities[place].superentity == nil {
        entities[place].attributes.append(AttributeDescription("holdfastNote", .string, isOptional: true, default: "new"))
      }
      entities.append(EntityDescription("AAAHoldfast"))
      let new = try ManagedObjectModel(entities: entities, composites: old.composites)
      // They maintain derived attributes.
      let find = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name", triggers = try SQL.rows(file, find)
      do {
        let coordinator = try PersistentStoreCoordinator(model: new, store: .sqlite(at: file).migrating(from: [old]))
        var after = try counts(coordinator)
        #expect(after.removeValue(forKey: "AAAHoldfast") == 0)
        #expect(after == before, "\(path)")
        let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
        _ = try context.insert(entityNamed: "AAAHoldfast")
        try context.save()
        try coordinator.close()
        #expect(try SQL.rows(file, find) == triggers.map { $0.map(Self.renumbered) }, "\(path)")
        // Core Data's copy of the former model is replaced by ours of the new one.
        let container = try PersistentContainer(existing: .sqlite(at: file, isReadOnly: true))
        #expect(container.persistentStoreCoordinator.model.versionDigest == new.versionDigest, "\(path)")
        try container.persistentStoreCoordinator.close()
      } catch { Issue.record("\(path): \(error)") }
    }
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS isn't set."))
  func storesAreCopiedToXMLAndBack() throws {
    for path in Self.paths {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      let source = StoreDescription.sqlite(at: file, isReadOnly: true), xml = StoreDescription.xml(at: folder.file("Copy.xml"))
      do {
        let digest = try PersistentStoreCoordinator.graphDigest(of: source, model: model)
        #expect(digest.objectCount == (Self.facts[path]?.entities ?? [:]).values.compactMap(\.rows).reduce(0, +), "\(path)")
        #expect(try PersistentStoreCoordinator.copyPersistentStore(source, to: xml, model: model).digest == digest, "\(path)")
        let copy = try PersistentStoreCoordinator.copyPersistentStore(xml, to: .sqlite(at: folder.file("Back.sqlite")))
        #expect(copy.digest == digest, "\(path)")
      } catch { Issue.record("\(path): \(error)") }
    }
  }

  // MARK: Models in files

  private func zoo(_ attributes: String...) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: attributes.map { AttributeDescription($0, .string, isOptional: true) })
    ])
  }

  /// Writes an XML store as of another program, which doesn't contain its model, and returns its path.
  private func writeStoreWithoutModel(_ model: ManagedObjectModel, to folder: TemporaryFolder) throws -> String {
    let path = folder.file("Zoo.xml"), coordinator = try PersistentStoreCoordinator(model: model, store: .xml(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    try context.insert(entityNamed: "Dog").setValue("Rex", forKey: "name")
    try context.save()
    try coordinator.close()
    let text = try folder.text("Zoo.xml").replacing(/<key>_HoldfastModel<\/key>\s*<data>[^<]*<\/data>/, with: "").replacing(
      /<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: ""
    ).replacing(/<!-- xxh64.*/, with: "")
    try folder.write(text, to: "Zoo.xml")
    return path
  }

  @Test func aStoreWithoutAModelIsOpenedWithTheVersionThatFits() throws {
    let folder = TemporaryFolder(), old = try zoo("name"), new = try zoo("colour", "name")
    let path = try writeStoreWithoutModel(old, to: folder)
    try ModelBundle.write(
      ["Zoo": try ModelDocument(old), "Zoo 2": try ModelDocument(new)], currentVersion: "Zoo 2", to: folder.file("Zoo.xcdatamodeld"))
    try ModelBundle.write(try ModelDocument(try zoo("other")), to: folder.file("Other.xcdatamodel"))
    let error = #expect(throws: MigrationError.self) { try PersistentContainer(existing: .xml(at: path)) }
    #expect(error?.code == .missingSourceModel && error?.path == path)
    let derived = try PersistentContainer(existing: .xml(at: path, options: XMLStoreOptions(derivesModel: true)))
    let objects = try ManagedObjectContext(coordinator: derived.persistentStoreCoordinator, classes: [])
    let dog = try #require(try objects.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).first)
    #expect(try dog.value(forKey: "name").storeValue == .string("Rex"))
    try derived.persistentStoreCoordinator.close()
    for models in [folder.path, folder.file("Zoo.xcdatamodeld")] {
      let container = try PersistentContainer(existing: .xml(at: path), modelsAt: models)
      #expect(container.persistentStoreCoordinator.model.versionDigest == old.versionDigest)
      try container.persistentStoreCoordinator.close()
    }
    #expect(throws: MigrationError.self) { try PersistentContainer(existing: .xml(at: path), modelsAt: folder.file("Other.xcdatamodel")) }
    #expect(throws: (any Error).self) { try PersistentContainer(existing: .xml(at: path), modelsAt: folder.file("missing.momd")) }
    let store = try StoreDescription.xml(at: path).migrating(fromVersionsAt: folder.file("Zoo.xcdatamodeld"))
    let migrated = try PersistentStoreCoordinator(model: new, store: store)
    #expect(try ManagedObjectContext(coordinator: migrated, classes: []).count(for: FetchRequest<ManagedObject>(entityName: "Dog")) == 1)
    try migrated.close()
  }

  @Test func aVersionThatCannotBeReadDoesNotHideTheOthers() throws {
    let folder = TemporaryFolder(), old = try zoo("name"), new = try zoo("colour", "name"), bundle = folder.file("Zoo.xcdatamodeld")
    let path = try writeStoreWithoutModel(old, to: folder)
    try ModelBundle.write(
      ["Zoo": try ModelDocument(old), "Zoo 2": try ModelDocument(new)], currentVersion: "Zoo 2", to: bundle)
    try folder.write("<model>", to: "Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents")
    for models in [folder.path, bundle] {
      let container = try PersistentContainer(existing: .xml(at: path), modelsAt: models)
      #expect(container.persistentStoreCoordinator.model.versionDigest == old.versionDigest)
      try container.persistentStoreCoordinator.close()
    }
    // A store of the version that can't be read stays as it is.
    let other = TemporaryFolder(), newer = try writeStoreWithoutModel(new, to: other), before = try other.snapshot()
    let error = #expect(throws: MigrationError.self) { try PersistentContainer(existing: .xml(at: newer), modelsAt: bundle) }
    #expect(error?.code == .missingSourceModel && error?.path == newer && error?.reason.contains(bundle) == true, "\(error as Any)")
    #expect(error?.problems.map(\.path) == ["Dog"], "\(error as Any)")
    #expect(try other.snapshot() == before)
    let store = try StoreDescription.xml(at: path).migrating(fromVersionsAt: bundle)
    let migrated = try PersistentStoreCoordinator(model: new, store: store)
    #expect(try ManagedObjectContext(coordinator: migrated, classes: []).count(for: FetchRequest<ManagedObject>(entityName: "Dog")) == 1)
    try migrated.close()
  }
}
