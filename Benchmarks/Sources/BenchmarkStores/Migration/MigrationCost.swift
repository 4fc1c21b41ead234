internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

/// Measures migrations and conversions of a store with companies and people: one in each process, so that it shows the memory.
public struct MigrationCost: Sendable {
  /// What is measured.
  public enum Step: String, CaseIterable, Sendable {
    /// A new attribute with a default value.
    case migration
    /// A new attribute without one.
    case optionalAttribute
    /// A relationship that becomes to-many.
    case linkMigration
    /// A plan whose code sets a value of each person.
    case plan
    /// The same as `migration` in SQL: a new table with its index.
    case copyInSQL
    /// The same in SQL, in the existing table.
    case updateInSQL
    /// The same as `optionalAttribute` in SQL.
    case columnInSQL
    /// A copy in a store of another type, or of the same.
    case conversion

    /// Whether the step is for SQLite only.
    public var isSQL: Bool { [.copyInSQL, .updateInSQL, .columnInSQL].contains(self) }
  }

  /// The time and the memory of a step.
  public struct Cost: Sendable {
    /// The wall time in seconds.
    public let seconds: Double
    /// The peak memory of the process in megabytes; 0 if the system doesn't report it.
    public let peakMegabytes: Double
    /// The number of people afterwards that have the new value, or their company after a conversion or a migration of links.
    public let peopleCount: Int
  }

  /// The stores, by name.
  public static let stores = ["json", "xml", "binary", "sqlite"]

  private let store: String
  private let path: String

  /// - Parameters:
  ///   - store: The name of the store.
  ///   - path: The path of its file.
  public init(_ store: String, at path: String) { (self.store, self.path) = (store, path) }

  private var description: StoreDescription { Self.describe(store, path) }

  private static func describe(_ store: String, _ path: String) -> StoreDescription {
    switch store {
    case "json": StoreKind.json.describe(path)
    case "xml": StoreKind.xml.describe(path)
    case "binary": StoreKind.binary.describe(path)
    case "sqlite": StoreKind.sqlite.describe(path)
    default: preconditionFailure("The benchmark has no store \(store).")
    }
  }

  // MARK: Models

  private static func model(
    _ attributes: [AttributeDescription] = [], _ relationship: RelationshipDescription = .toOne("company", to: "Company", inverse: "people")
  ) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Company", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("people", to: "Person", inverse: relationship.name)]),
        EntityDescription(
          "Person", attributes: [AttributeDescription("name", .string), AttributeDescription("number", .integer64)] + attributes,
          relationships: [relationship]),
      ])
  }

  private static func model(after step: Step) throws -> ManagedObjectModel {
    switch step {
    case .migration, .copyInSQL, .updateInSQL, .plan: return try model([AttributeDescription("note", .string, default: "none")])
    case .optionalAttribute, .columnInSQL: return try model([AttributeDescription("note", .string, isOptional: true)])
    case .linkMigration:
      var companies = RelationshipDescription.toMany("companies", to: "Company", inverse: "people")
      companies.renamingIdentifier = "company"
      return try model([], companies)
    case .conversion: return try model()
    }
  }

  // MARK: Filling

  /// Creates the store. Passes rows to it, without a context.
  public func fill(_ count: Int) throws {
    let model = try Self.model(), store = description.makeStore()
    let identity = try store.open(model: model, host: .none).identity
    let companies = try inserted("Company", count / 1_000 + 1, model, store, identity) { ["name": .string("Company \($0)")] }
    let people = try inserted("Person", count, model, store, identity) { number in
      let company = companies.keys[number % companies.keys.count]
      return ["name": .string("Person \(number)"), "number": .int64(Int64(number)), "company": .key(company)]
    }
    _ = try store.prepare(SaveRequest(entities: [companies.changes, people.changes]), options: .none).commit()
    try store.close()
  }

  private func inserted(
    _ name: String, _ count: Int, _ model: ManagedObjectModel, _ store: any IncrementalStore, _ identity: StoreIdentity,
    _ values: (Int) -> [String: StoreValue]
  ) throws -> (changes: SaveRequest.EntityChanges, keys: [ObjectKey]) {
    guard let entity = model.entity(named: name) else { preconditionFailure("The model has no entity \(name).") }
    let keys = try store.reserveKeys(entity: entity.index, count: count).sorted()
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    var changes = SaveRequest.EntityChanges(entity: entity.index)
    for (number, key) in keys.enumerated() {
      let row = values(number)
      try builder.append(key: key, version: 1, values: entity.slots.map { row[$0.name] ?? .null })
      if builder.isFull { changes.inserted.append(builder.seal()) }
    }
    if builder.count > 0 { changes.inserted.append(builder.seal()) }
    return (changes, keys)
  }

  // MARK: Measuring

  /// Runs and measures a step in this process.
  ///
  /// - Parameter destination: The store and the path of a conversion.
  public func measure(_ step: Step, to destination: (store: String, path: String)? = nil) throws -> Cost {
    let mark = Mark.begin()
    try run(step, destination)
    let figure = mark.figure(step.rawValue, check: 0)
    let result = destination.map { Self.describe($0.store, $0.path) } ?? description
    return Cost(
      seconds: figure.seconds, peakMegabytes: Double(figure.peakKilobytes) * 1.024e-3,
      peopleCount: step.isSQL ? try peopleCountInSQL(step) : try Self.peopleCount(result, step))
  }

  private func run(_ step: Step, _ destination: (store: String, path: String)?) throws {
    switch step {
    case .migration, .optionalAttribute, .linkMigration:
      try PersistentStoreCoordinator.migratePersistentStore(description, to: Self.model(after: step))
    case .plan:
      var plan = MigrationPlan(from: try Self.model())
      plan.add(try Self.model(after: step), named: "notes") { stage in
        try stage.forEach("Person") { old, new in
          guard case .int64(let number) = old["number"] else { return }
          try new.setValue("number \(number)", forKey: "note")
        }
      }
      try PersistentStoreCoordinator.migratePersistentStore(description, with: plan)
    case .copyInSQL: try BareSQL.run(Self.settings + Self.copy, at: path)
    case .updateInSQL: try BareSQL.run(Self.settings + Self.update, at: path)
    case .columnInSQL: try BareSQL.run("ALTER TABLE ZPERSON ADD COLUMN ZNOTE VARCHAR", at: path)
    case .conversion:
      guard let destination else { preconditionFailure("A conversion needs a destination.") }
      try PersistentStoreCoordinator.copyPersistentStore(description, to: Self.describe(destination.store, destination.path))
    }
  }

  /// The settings of a migration.
  private static let settings =
    "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA; PRAGMA cache_size=-16384; PRAGMA temp_store=FILE; BEGIN EXCLUSIVE; "
  private static let columns = "Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZCOMPANY, ZNAME"
  private static let copy =
    "CREATE TABLE Z_NEW (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNUMBER INTEGER, ZCOMPANY INTEGER, ZNAME VARCHAR, "
    + "ZNOTE VARCHAR); INSERT INTO Z_NEW (\(columns), ZNOTE) SELECT \(columns), 'none' FROM ZPERSON; DROP TABLE ZPERSON; "
    + "ALTER TABLE Z_NEW RENAME TO ZPERSON; CREATE INDEX ZPERSON_ZCOMPANY_INDEX ON ZPERSON (ZCOMPANY); COMMIT"
  private static let update = "ALTER TABLE ZPERSON ADD COLUMN ZNOTE VARCHAR; UPDATE ZPERSON SET ZNOTE = 'none'; COMMIT"

  private func peopleCountInSQL(_ step: Step) throws -> Int {
    let condition = step == .columnInSQL ? "ZNOTE IS NULL" : "ZNOTE = 'none'"
    return Int(try BareSQL.run("SELECT COUNT(*) FROM ZPERSON WHERE \(condition)", at: path))
  }

  /// The number of people in a store after a step, whose note or link to their company is as it should be.
  private static func peopleCount(_ description: StoreDescription, _ step: Step) throws -> Int {
    let coordinator = try PersistentStoreCoordinator(model: model(after: step), store: description.migrating(automatically: false))
    defer { try? coordinator.close() }
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let note = QueryExpression.property(PropertyPath("note"))
    let isRight: QueryExpression =
      switch step {
      case .conversion: .comparison(.property(PropertyPath("company")), .notEqualTo, .constant(.null), [])
      case .linkMigration: .comparison(.count(PropertyPath("companies")), .equalTo, .constant(.int64(1)), [])
      case .optionalAttribute: .comparison(note, .equalTo, .constant(.null), [])
      case .plan: .comparison(note, .notEqualTo, .constant(.string("none")), [])
      default: .comparison(note, .equalTo, .constant(.string("none")), [])
      }
    return try context.count(for: FetchRequest<ManagedObject>(entityName: "Person", where: FetchPredicate(isRight)))
  }
}
