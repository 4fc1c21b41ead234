import Foundation
import Holdfast
import HoldfastCommands
import HoldfastStore
import Testing

/// The commands of stores on stores that Core Data wrote. What plain SQLite counts is the expectation.
@Suite(.enabled(if: Corpus.path != nil, "HOLDFAST_CORPUS is not set")) struct StoreCorpusTests {
  private struct Facts: Decodable {
    struct Entity: Decodable {
      var rows: Int?
    }
    var entities: [String: Entity]?
  }

  /// A store of the corpus, copied with its log.
  private struct CopiedStore {
    let name: String
    let fixture: Fixture
    let path: String
    /// The model to pass; nil if the store contains it.
    let modelPath: String?
    /// The number of objects by entity.
    let rows: [String: Int]

    var source: StoreSource { get throws { try StoreSource(path: path, modelPath: modelPath) } }
    var rowCount: Int { rows.values.reduce(0, +) }
  }

  /// The stores whose model is in the store or in a file that can be read, with names that end with a text.
  private func stores(named end: String = "") throws -> [CopiedStore] {
    let corpus = try #require(Corpus.path)
    let facts = try JSONDecoder().decode([String: Facts].self, from: Data(contentsOf: URL(fileURLWithPath: corpus + "/facts.json")))
    let names = facts.keys.filter { $0.hasPrefix("sqlite/") && !$0.hasSuffix("Recipes.sqlite") && $0.hasSuffix(end) }
    return try names.sorted().map { name in
      let fixture = try Fixture()
      for end in ["", "-wal"] where FileManager.default.fileExists(atPath: "\(corpus)/\(name)\(end)") {
        try Data(contentsOf: URL(fileURLWithPath: "\(corpus)/\(name)\(end)")).write(
          to: URL(fileURLWithPath: fixture.path("store.sqlite" + end)))
      }
      let hasModel = !name.hasPrefix("sqlite/BookMigration")
      return CopiedStore(
        name: name, fixture: fixture, path: fixture.path("store.sqlite"),
        modelPath: hasModel ? nil : corpus + "/sqlite/BookMigration/model/Model.xcdatamodeld",
        rows: (facts[name]?.entities ?? [:]).compactMapValues(\.rows))
    }
  }

  private func store(named end: String) throws -> CopiedStore { try #require(try stores(named: end).first) }

  @Test func everyStoreIsInspectedConvertedAndCompared() throws {
    let stores = try stores()
    for store in stores {
      let report = try StoreReport(path: store.path, modelPath: store.modelPath)
      for entity in report.entities {
        if let rows = store.rows[entity.name] { #expect(entity.rows == rows, "\(store.name) \(entity.name)") }
      }
      let source = try store.source, digest = try source.check(), path = store.fixture.path("converted.sqlite")
      #expect(digest.objectCount == store.rowCount, "\(store.name)")
      #expect(try source.convert(to: path) == digest && StoreSource(path: path).check() == digest, "\(store.name)")
      // Without IDs in common.
      if store.rowCount < 500 { #expect(try StoreDifference(source, path, by: .structure).difference.isEmpty, "\(store.name)") }
    }
    #expect(stores.count >= 32)
  }

  @Test func everyStoreIsCopiedComparedAndMoved() throws {
    for store in try stores() {
      let file = try StoreFile(path: store.path), digest = try store.source.check(), copy = store.fixture.path("copy.sqlite")
      try file.copy(to: copy)
      #expect(try StoreDifference(store.source, copy).difference.isEmpty, "\(store.name)")
      let moved = store.fixture.path("moved.sqlite")
      try file.move(to: moved)
      for path in [copy, moved] {
        #expect(try StoreSource(path: path, modelPath: store.modelPath).check() == digest, "\(store.name): \(path)")
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: store.fixture.folder.path).filter { $0.hasPrefix("store.") }
      #expect(left.isEmpty, "\(store.name): \(left)")
    }
  }

  /// Every entity gets an attribute, and a new entity changes numbers.
  @Test func everyStoreIsMigratedAndKeepsTheFormerOne() throws {
    for store in try stores() {
      let source = try store.source, digest = try source.check()
      // An entity that was renamed has its former name in the table that the facts were read from.
      let former = try StoreReport(path: store.path, modelPath: store.modelPath).entities
      #expect(former.reduce(0) { $0 + ($1.rows ?? 0) } == store.rowCount, "\(store.name)")
      var entities = source.model.declarations
      for place in entities.indices where entities[place].superentity == nil {
        entities[place].attributes.append(AttributeDescription("holdfastNote", .string, isOptional: true, default: "new"))
      }
      entities.append(EntityDescription("AAAHoldfast"))
      let new = try ManagedObjectModel(entities: entities, composites: source.model.composites),
        backup = store.fixture.path("backup.sqlite")
      let model = store.fixture.path("new.json")
      try Data(try new.canonicalJSON()).write(to: URL(fileURLWithPath: model))
      let migration = try StoreMigration(of: source, to: model, version: nil)
      #expect(!migration.losesData && migration.objectCount == store.rowCount, "\(store.name): \(migration.previews)")
      #expect(try source.check() == digest, "\(store.name)")
      try migration.run(backup: backup)
      #expect(try StoreSource(path: backup, modelPath: store.modelPath).check() == digest, "\(store.name)")
      let report = try StoreReport(path: store.path, modelPath: model)
      var expected = Dictionary(uniqueKeysWithValues: former.map { ($0.name, $0.rows) })
      expected["AAAHoldfast"] = 0
      #expect(Dictionary(uniqueKeysWithValues: report.entities.map { ($0.name, $0.rows) }) == expected, "\(store.name)")
    }
  }

  @Test(arguments: [
    "Moody 2.moody", "Moody 5.moody", "Bookmarks_V1.sqlite", "Bookmarks_V4.sqlite", "SampleModel_V1.sqlite",
    "CoreDataMigration_Example_3.sqlite", "SyncMetadata_V3.sqlite", "Model.sqlite.v1.original",
  ]) func objectsAreExportedAndImportedAgain(name: String) throws {
    let store = try store(named: name), source = try store.source
    for (format, exported, kind) in [(ExchangeFormat.json, "objects.json", "sqlite"), (.csv, "objects", "binary")] {
      let copy = store.fixture.path("imported.\(kind)"), file = store.fixture.path(exported)
      #expect(try source.export(to: file, format) == store.rowCount)
      // The store contains the model.
      #expect(try StoreSource.importObjects(into: copy, modelPath: store.path, from: file) == store.rowCount)
      let difference = try StoreDifference(source, copy, by: .structure).difference
      #expect(difference.isEmpty, "\(format): \(difference)")
    }
  }

  @Test func aStoreThatContainsNoModelNamesItsEntities() throws {
    let corpus = try #require(Corpus.path), fixture = try Fixture()
    let path = "\(corpus)/sqlite/MagicalRecord-Recipes/Samples/iOS/Resources/RecipeData/Recipes.sqlite"
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    try before.write(to: URL(fileURLWithPath: fixture.path("store.sqlite")))
    let error = #expect(throws: CommandError.self) { try StoreSource(path: fixture.path("store.sqlite")).check() }
    #expect(error?.reason.contains("Pass the model with --model: one with the entities Image, Ingredient, Recipe, RecipeType.") == true)
    #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path("store.sqlite"))) == before)
    // What needs no model.
    try StoreFile(path: fixture.path("store.sqlite")).copy(to: fixture.path("copy.sqlite"))
    #expect(try StoreReport(path: fixture.path("copy.sqlite")).entities.map(\.name) == ["Image", "Ingredient", "Recipe", "RecipeType"])
  }
}
