import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastCoreData
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// A store with as many objects as a measurement needs: companies, and people with a name, a number and a company.
struct MigratedPeople: Codable, Sendable {
  /// How the model changes.
  enum Change: String, CaseIterable, Codable, Sendable {
    /// Each row follows from one row.
    case attribute
    /// A person has several companies, so the links move from rows to tables of their own.
    case toMany
  }

  let store: MigratedStore
  let path: String

  var description: StoreDescription {
    let whole = WholeFileOptions(file: DurableFileOptions(maximumByteCount: 1 << 30))
    return switch store {
    case .json: .json(at: path, options: JSONStoreOptions(wholeFile: whole))
    case .xml: .xml(at: path, options: XMLStoreOptions(wholeFile: whole))
    case .binary: .binary(at: path, options: BinaryStoreOptions(wholeFile: whole))
    case .sqlite, .coreData: .sqlite(at: path)
    }
  }

  // MARK: Models

  static func former() throws -> ManagedObjectModel { try model([], .toOne("company", to: "Company", inverse: "people")) }

  static func changed(_ change: Change) throws -> ManagedObjectModel {
    switch change {
    case .attribute:
      return try model([.init("note", .string, default: "none")], .toOne("company", to: "Company", inverse: "people"))
    case .toMany:
      return try model(
        [], RelationshipDescription.toMany("companies", to: "Company", inverse: "people").renamed(from: "company"),
        inverse: "companies")
    }
  }

  private static func model(
    _ attributes: [AttributeDescription], _ relationship: RelationshipDescription, inverse: String = "company"
  ) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Company", attributes: [.init("name", .string)], relationships: [.toMany("people", to: "Person", inverse: inverse)]),
        EntityDescription(
          "Person", attributes: [.init("name", .string), .init("number", .integer64)] + attributes, relationships: [relationship]),
      ])
  }

  // MARK: Filling and migrating

  /// Creates the store with a number of people. Passes rows to it directly, which takes less memory than a context.
  func fill(_ count: Int) throws {
    let model = try Self.former(), store = description.makeStore()
    let identity = try store.open(model: model, host: .none).identity
    defer { try? store.close() }
    // Test targets aren't optimised, so a row is an array, in which values are set by index.
    func inserted(_ entity: ManagedObjectModel.Entity, _ count: Int, _ set: (Int, inout [StoreValue]) -> Void) throws
      -> (changes: SaveRequest.EntityChanges, keys: [ObjectKey])
    {
      let builder = RowBatchBuilder(entity: entity, identity: identity)
      let keys = try store.reserveKeys(entity: entity.index, count: count).sorted()
      var changes = SaveRequest.EntityChanges(entity: entity.index), row = [StoreValue](repeating: .null, count: entity.slots.count)
      for (number, key) in keys.enumerated() {
        set(number, &row)
        try builder.append(key: key, version: 1, values: row)
        if builder.isFull { changes.inserted.append(builder.seal()) }
      }
      if builder.count > 0 { changes.inserted.append(builder.seal()) }
      return (changes, keys)
    }
    let company = try #require(model.entity(named: "Company")), person = try #require(model.entity(named: "Person"))
    func place(_ name: String) throws -> Int { try #require(person.slots.firstIndex { $0.name == name }) }
    let places = (name: try place("name"), number: try place("number"), company: try place("company"))
    let companies = try inserted(company, count / 1_000 + 1) { $1[0] = .string("Company \($0)") }
    let people = try inserted(person, count) { number, row in
      row[places.name] = .string("Person \(number)")
      row[places.number] = .int64(Int64(number))
      row[places.company] = .int64(companies.keys[number % companies.keys.count].rawValue)
    }
    _ = try store.prepare(SaveRequest(entities: [companies.changes, people.changes]), options: .none).commit()
  }

  func migrate(_ change: Change) throws {
    try PersistentStoreCoordinator.migratePersistentStore(description, to: Self.changed(change))
  }

  /// Replaces a store beside this one with a copy of it.
  func copy() throws {
    let copy = MigratedPeople(store: store, path: path + ".copy")
    try PersistentStoreCoordinator.replacePersistentStore(copy.description, withCopyOf: description)
  }

  func preview(_ change: Change) throws {
    let preview = try PersistentStoreCoordinator.previewMigration(of: description, to: Self.changed(change))
    demand(preview?.entities.map(\.name) == ["Company", "Person"], "\(preview as Any)")
  }

  /// A plan whose code sets a value of each person.
  private static func plan() throws -> MigrationPlan {
    var plan = MigrationPlan(from: try former())
    plan.add(try changed(.attribute), named: "notes") { stage in
      try stage.forEach("Person") { old, new in
        guard case .int64(let number) = old["number"] else { return }
        try new.setValue("number \(number)", forKey: "note")
      }
    }
    return plan
  }

  func migrateByPlan() throws { try PersistentStoreCoordinator.migratePersistentStore(description, with: Self.plan()) }

  func previewPlan() throws {
    let previews = try PersistentStoreCoordinator.previewMigration(of: description, with: Self.plan())
    demand(previews.map(\.stage) == ["notes"], "\(previews)")
  }

  /// Migrates by a plan whose code changes values and links, deletes each tenth person, and inserts a company for each hundredth one.
  func migrateByManyChanges() throws {
    var plan = MigrationPlan(from: try Self.former())
    plan.add(try Self.changed(.attribute), named: "changes", isResumable: true) { stage in
      let context = stage.context
      try stage.forEach("Person", savingEvery: 300) { old, new in
        guard case .int64(let number) = old["number"] else { return }
        try new.setValue("number \(number)", forKey: "note")
        if number % 10 == 3 { context.delete(new) }
        if number % 100 != 0 { return }
        let company = try context.insert(entityNamed: "Company")
        try company.setValue("new \(number)", forKey: "name")
        try new.setValue(company, forKey: "company")
      }
      try stage.forEach("Company", savingEvery: 2) { old, new in
        guard case .objects(let people) = try new.value(forKey: "people") else { return }
        for person in people.prefix(7) { try person.setValue("first of \(old["name"])", forKey: "note") }
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(description, with: plan)
  }

  /// Migrates by a mapping model that also inserts each person again, and links both with a company.
  func migrateByInsertingMappingModel() throws {
    typealias Property = MappingModelText.Property
    var text = MappingModelText()
    text.map("Company", to: "Company", attributes: [Property("name")])
    let attributes = [Property("name"), Property("number")],
      company = Property("company", path: "$source.company", mapping: "CompanyToCompany")
    text.map("Person", to: "Person", attributes: attributes, relationships: [company])
    text.map("Person", to: "Person", name: "again", attributes: attributes, relationships: [company])
    try migrate(by: text)
  }

  /// Migrates by a mapping model with an expression for a value of each person.
  func migrateByMappingModel() throws {
    typealias Property = MappingModelText.Property
    let note = TestExpression.function("uppercase:", [.path(.source, "name")]).archive
    var text = MappingModelText()
    text.map("Company", to: "Company", attributes: [Property("name")], relationships: [Property("people")])
    text.map(
      "Person", to: "Person", attributes: [Property("name"), Property("note", expression: note), Property("number")],
      relationships: [Property("company")])
    try migrate(by: text)
  }

  private func migrate(by text: MappingModelText) throws {
    var plan = MigrationPlan(from: try Self.former())
    let folder = TemporaryFolder(), new = try Self.changed(.attribute), path = try text.write(to: folder)
    try withExtendedLifetime(folder) { try plan.add(new, mappingModelsAt: [path]) }
    try PersistentStoreCoordinator.migratePersistentStore(description, with: plan)
  }
}
