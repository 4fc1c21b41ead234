// swift-format-ignore-file
// The examples of *Migrate a store*, word for word; `SnippetTests` compares them, `MigrationExampleTests` runs them.
import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastJSONStore
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastTesting
import HoldfastXMLStore
import TestSupport
import Testing

enum MigrationExamples {
  static func preview(_ path: String, _ model: ManagedObjectModel) throws {
    let store = StoreDescription.sqlite(at: path).migrating(automatically: false)
    if let preview = try PersistentStoreCoordinator.previewMigration(of: store, to: model) {
      print(preview)
      if preview.losses.isEmpty { try PersistentStoreCoordinator.migratePersistentStore(store, to: model) }
    }
  }

  static func cancel(_ path: String, _ model: ManagedObjectModel) {
    let task = Task {
      try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), to: model) { share in print("\(Int(100 * share)) %") }
    }
    task.cancel()
  }

  static func printPreview(_ path: String, _ model: ManagedObjectModel) throws {
    if let preview = try PersistentStoreCoordinator.previewMigration(of: .sqlite(at: path), to: model) {
      print(preview)
    }
  }

  static func repair() throws {
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: "dogs.sqlite"), to: .sqlite(at: "repaired.sqlite"))
    print(report)
  }

  static func split(_ path: String, _ first: ManagedObjectModel, _ second: ManagedObjectModel, _ third: ManagedObjectModel) throws {
    var plan = MigrationPlan(from: first)
    plan.add(second)
    plan.add(third, named: "split names") { stage in
      try stage.forEach("Person") { old, new in
        guard case .string(let name) = old["name"] else { return }
        let parts = name.split(separator: " ", maxSplits: 1)
        try new.setValue(String(parts[0]), forKey: "givenName")
        try new.setValue(parts.count > 1 ? String(parts[1]) : "", forKey: "familyName")
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
  }

  static func resumable(_ plan: inout MigrationPlan, _ third: ManagedObjectModel) {
    plan.add(third, named: "split names", isResumable: true) { stage in
      try stage.forEach("Person", savingEvery: 10_000) { old, new in
        try new.setValue(old["name"], forKey: "givenName")
      }
    }
  }

  static func mappingModels(_ path: String) throws {
    let plan = try MigrationPlan(versionsAt: "Moody.xcdatamodeld", mappingModelsAt: "Migrations")
    try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
  }

  static func mappingModel(_ zoo1: ManagedObjectModel, _ zoo2: ManagedObjectModel) throws -> MigrationPlan {
    var plan = MigrationPlan(from: zoo1)
    try plan.add(zoo2, mappingModelsAt: ["Zoo 1 to Zoo 2.xcmappingmodel"])
    return plan
  }

  static func policy() throws -> MigrationPlan {
    let policy = MappingPolicy { stage in
      try stage.forEach { old, new in
        guard case .string(let text) = old["age"], let age = Int(text) else { return }
        try new.setValue(age, forKey: "age")
      }
    }
    return try MigrationPlan(versionsAt: "Zoo.xcdatamodeld", mappingModelsAt: "Migrations", policies: ["Zoo.AgePolicy": policy])
  }

  static func file() throws {
    let file = try MappingModelFile(contentsOf: "Zoo 2 to Zoo 3.xcmappingmodel")
    for mapping in file.entityMappings { print(mapping.name, mapping.policyClassName ?? "-") }
  }

  static func foreign(_ path: String, _ first: ManagedObjectModel, _ second: ManagedObjectModel) -> StoreDescription {
    let store = StoreDescription.sqlite(at: path).migrating(from: [first, second])
    return store
  }

  static func removing(_ path: String) -> StoreDescription {
    let store = StoreDescription.sqlite(at: path).migrating(removingData: true)
    return store
  }

  static func copy() throws {
    let copy = try PersistentStoreCoordinator.copyPersistentStore(.json(at: "dogs.json"), to: .sqlite(at: "dogs.sqlite"))
    print("\(copy.digest.objectCount) objects")
  }

  static func compare() throws {
    let difference = try PersistentStoreCoordinator.difference(
      between: .json(at: "dogs.json"), and: .sqlite(at: "dogs.sqlite"), matching: .structure)
    print(difference.isEmpty ? "The stores are equal." : "\(difference)")
  }

  static func compareWithBackup(_ backup: String, _ path: String) throws {
    let difference = try PersistentStoreCoordinator.difference(between: .sqlite(at: backup), and: .sqlite(at: path))
    if !difference.isEmpty { print(difference) }
  }
}

/// The examples of *Migrate a store* behave as the article says.
@Suite struct MigrationExampleTests {
  private func model(_ attributes: String...) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [EntityDescription("Person", attributes: attributes.map { AttributeDescription($0, .string) })])
  }

  private func change(_ path: String, _ model: ManagedObjectModel, _ body: (ManagedObjectContext) throws -> Void) throws {
    let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    try body(context)
    try context.save()
    try coordinator.close()
  }

  @Test func namesAreSplit() throws {
    let folder = TemporaryFolder(), path = folder.file("people.sqlite"), first = try model("name")
    let second = try ManagedObjectModel(entities: [
      EntityDescription("Person", attributes: [.init("name", .string), .init("note", .string, isOptional: true)])
    ])
    let third = try model("familyName", "givenName")
    try change(path, first) { context in
      for name in ["Ann Lee", "Bo", "Cy de Ruiter"] { try context.insert(entityNamed: "Person").setValue(name, forKey: "name") }
    }
    _ = MigrationExamples.foreign(path, first, second)
    try MigrationExamples.printPreview(path, second)
    try MigrationExamples.split(path, first, second, third)
    var names: [String] = []
    try change(path, third) { context in
      for person in try context.fetch(FetchRequest<ManagedObject>(entityName: "Person")) {
        let values = try ["givenName", "familyName"].map { try person.value(forKey: $0).storeValue }
        names.append(values.map { if case .string(let text)? = $0 { text } else { "nil" } }.joined(separator: "|"))
      }
    }
    #expect(names.sorted() == ["Ann|Lee", "Bo|", "Cy|de Ruiter"])
  }

  @Test func aStoreIsMigratedIfNothingIsLost() throws {
    let folder = TemporaryFolder(), path = folder.file("people.sqlite"), first = try model("name", "note"), smaller = try model("name")
    let larger = try ManagedObjectModel(entities: [
      EntityDescription("Person", attributes: [.init("more", .string, default: ""), .init("name", .string), .init("note", .string)])
    ])
    try change(path, first) { context in
      let person = try context.insert(entityNamed: "Person")
      for key in ["name", "note"] { try person.setValue("x", forKey: key) }
    }
    try MigrationExamples.preview(path, smaller)
    #expect(try PersistentStoreCoordinator.metadata(for: .sqlite(at: path)).isCompatible(with: first))
    try MigrationExamples.preview(path, larger)
    #expect(try PersistentStoreCoordinator.metadata(for: .sqlite(at: path)).isCompatible(with: larger))
  }

  @Test func shippedModelsAreTested() throws {
    let folder = TemporaryFolder(), first = try model("name")
    try recordModel(first, as: "1.0", in: folder.path)
    #expect(throws: (any Error).self) { try recordModel(first, as: "1.0", in: folder.path) }
    let second = try ManagedObjectModel(entities: [
      EntityDescription("Person", attributes: [.init("name", .string), .init("note", .string, isOptional: true)])
    ])
    try expectMigrations(fromModelsIn: folder.path, to: second)
    #expect(folder.names == ["1.0.json"])
  }
}

enum CoreDataExamples {
  @MainActor static func photos() throws -> [ManagedObject] {
    let container = try PersistentContainer(existing: .sqlite(at: "Photos.sqlite", isReadOnly: true))
    let albums = try container.viewContext.fetch(FetchRequest<ManagedObject>(entityName: "Album"))
    return albums
  }

  static func zoo() throws -> PersistentContainer {
    let container = try PersistentContainer(existing: .xml(at: "Zoo.xml"), modelsAt: "Models")
    return container
  }

  static func cloud() throws -> PersistentContainer {
    let container = try PersistentContainer(existing: .sqlite(at: "Cloud.sqlite").with(configuration: "cloud"))
    return container
  }

  static func lost() throws -> PersistentContainer {
    let options = XMLStoreOptions(derivesModel: true)
    let container = try PersistentContainer(existing: .xml(at: "Zoo.xml", options: options))
    return container
  }

  static func things() throws -> ManagedObjectModel? {
    let store = StoreDescription.xml(at: "Things.xml", options: XMLStoreOptions(derivesModel: true))
    let model = try PersistentStoreCoordinator.cachedModel(for: store)
    return model
  }

  static func former(_ path: String) throws -> StoreDescription {
    let store = try StoreDescription.sqlite(at: path).migrating(fromVersionsAt: "Zoo.momd")
    return store
  }
}

#if Macros
@Suite(.disabled("An example with a folder that doesn't exist here.")) struct MigratedKennel {
  @Entity(renamingIdentifier: "Hound") final class Dog: ManagedObject {
    @Attribute(.renamed(from: "title")) var name = ""
  }

  @Test func everyShippedVersionCanBeMigrated() throws {
    let current = try ManagedObjectModel.declared(by: [Dog.self, Walk.self])
    try expectMigrations(fromModelsIn: "Tests/Models", to: current)
  }

  @Entity final class Walk: ManagedObject {
    var minutes = 0
  }

  static func open(_ path: String) throws -> PersistentContainer {
    let container = try PersistentContainer(for: Dog.self, store: .sqlite(at: path))
    return container
  }
}
#endif
