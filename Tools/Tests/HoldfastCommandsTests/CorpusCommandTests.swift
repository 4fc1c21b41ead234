import Foundation
import Holdfast
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// The commands of stores with files that Apple's framework wrote, if `HOLDFAST_CORPUS` names a folder with them.
@Suite(.enabled(if: Corpus.path != nil, "HOLDFAST_CORPUS is not set")) struct CorpusCommandTests {
  /// What plain SQLite counts in a store.
  struct Facts: Decodable, Sendable {
    struct Entity: Decodable, Sendable {
      var rows: Int?
    }
    var entities: [String: Entity]?

    var counts: [String: Int] { (entities ?? [:]).compactMapValues(\.rows) }
    var objectCount: Int { counts.values.reduce(0, +) }
  }

  private static let facts: [String: Facts] = {
    guard let path = Corpus.path, let data = try? Data(contentsOf: URL(fileURLWithPath: path + "/facts.json")) else { return [:] }
    return (try? JSONDecoder().decode([String: Facts].self, from: data)) ?? [:]
  }()

  /// Its model is in no file.
  private static let storeWithoutModel = "sqlite/MagicalRecord-Recipes/Samples/iOS/Resources/RecipeData/Recipes.sqlite"
  /// Its model is in a file beside it.
  private static let storeWithModelFile = "sqlite/BookMigration/stores/Model1.sqlite"

  private static let stores = facts.keys.filter { $0.hasPrefix("sqlite/") && $0 != storeWithoutModel }.sorted()

  /// The stores with which all commands are run: all, or one of each project.
  static let samples =
    ProcessInfo.processInfo.environment["HOLDFAST_TESTS"] == "full"
    ? stores
    : stores.reduce(into: [String]()) { samples, name in
      let project = name.split(separator: "/").prefix(2)
      if samples.last.map({ $0.split(separator: "/").prefix(2) != project }) ?? true { samples.append(name) }
    }

  private let fixture: Fixture

  init() throws { fixture = try Fixture() }

  /// Copies a SQLite store with its log as Store.sqlite, and returns the arguments that name its model.
  private func copy(_ name: String) throws -> [String] {
    let path = "\(Corpus.path ?? "")/\(name)"
    for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: path + ending) {
      // Not the permissions: the corpus is read-only.
      try Data(contentsOf: URL(fileURLWithPath: path + ending)).write(to: URL(fileURLWithPath: fixture.path("Store.sqlite" + ending)))
    }
    guard name == Self.storeWithModelFile else { return [] }
    return ["--model", "\(Corpus.path ?? "")/sqlite/BookMigration/model/Model.xcdatamodeld"]
  }

  private func run(_ arguments: [String]) throws -> CommandProcess { try CommandProcess(["store"] + arguments, in: fixture) }

  /// What `check` prints: the number of objects and their digest.
  private func contents(_ name: String, _ model: [String] = []) throws -> String {
    let check = try run(["check", name] + model)
    #expect(check.status == 0, "\(name): \(check)")
    return check.output
  }

  private func files() throws -> [String: Data] {
    try ["Store.sqlite", "Store.sqlite-wal"].reduce(into: [:]) { files, name in
      if FileManager.default.fileExists(atPath: fixture.path(name)) {
        files[name] = try Data(contentsOf: URL(fileURLWithPath: fixture.path(name)))
      }
    }
  }

  /// The number of objects of each entity in an exported file.
  private func exportedCounts(_ name: String) throws -> [String: Int] {
    let object = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: fixture.path(name))))
    return try #require(object as? [String: [Any]]).mapValues(\.count)
  }

  @Test func thereAreStoresOfSeveralProjects() {
    #expect(Self.stores.count >= 30 && Self.samples.count >= 6)
  }

  @Test(arguments: samples) func aStoreIsReadByEveryCommand(_ name: String) throws {
    let model = try copy(name), before = try files(), facts = try #require(Self.facts[name]), all = try contents("Store.sqlite", model)
    #expect(all.hasPrefix("\(facts.objectCount) objects, digest "), "\(all)")
    for output in ["Converted.json", "Converted.xml", "Converted.binary"] {
      let convert = try run(["convert", "Store.sqlite", output] + model)
      #expect(convert.status == 0 && convert.output == all, "\(convert)")
      #expect(try contents(output) == all)
    }
    let export = try run(["export", "Store.sqlite", "objects.json"] + model)
    #expect(export.status == 0 && export.output == "\(facts.objectCount) objects\n", "\(export)")
    #expect(try exportedCounts("objects.json").filter { $0.value > 0 } == facts.counts.filter { $0.value > 0 })
    let repair = try run(["repair", "Store.sqlite", "Repaired.sqlite"] + model)
    #expect(repair.status == 0, "\(repair)")
    #expect(try contents("Repaired.sqlite", model) == all)
    #expect(try files() == before)
    let copied = try run(["copy", "Store.sqlite", "Copy.sqlite"])
    #expect(copied.status == 0, "\(copied)")
    #expect(try contents("Copy.sqlite", model) == all && contents("Store.sqlite", model) == all)
  }

  @Test(arguments: samples) func aStoreIsCompactedWithABackup(_ name: String) throws {
    let model = try copy(name), all = try contents("Store.sqlite", model)
    let compact = try run(["compact", "Store.sqlite", "--yes"])
    #expect(compact.status == 0 && compact.output.hasSuffix(". The former store is Store-backup.sqlite.\n"), "\(compact)")
    #expect(try contents("Store.sqlite", model) == all && contents("Store-backup.sqlite", model) == all)
  }

  /// The models of these stores allow every object twice.
  @Test(arguments: [
    "CoreDataMigrationRevised/stores/CoreDataMigration_Example_3.sqlite", "duckduckgo/Tests/BookmarksTests/Resources/Bookmarks_V1.sqlite",
  ]) func objectsAreAddedToAStoreWithABackup(_ name: String) throws {
    _ = try copy("sqlite/" + name)
    let count = try #require(Self.facts["sqlite/" + name]).objectCount, all = try contents("Store.sqlite")
    #expect(try run(["export", "Store.sqlite", "objects.json"]).status == 0)
    let before = try files(), refused = try run(["import", "Store.sqlite", "objects.json"])
    #expect(refused.status == 1 && refused.errors.contains("--yes"), "\(refused)")
    #expect(try files() == before)
    let done = try run(["import", "Store.sqlite", "objects.json", "--yes"])
    #expect(done.status == 0 && done.output == "\(count) objects imported. The former store is Store-backup.sqlite.\n", "\(done)")
    #expect(try contents("Store.sqlite").hasPrefix("\(2 * count) objects, digest "))
    #expect(try contents("Store-backup.sqlite") == all)
  }

  @Test func objectsThatMustBeUniqueAreNotAddedTwice() throws {
    _ = try copy("sqlite/objcio-Moody/MigrationsTests/Moody 2.moody")
    let all = try contents("Store.sqlite")
    #expect(try run(["export", "Store.sqlite", "objects.json"]).status == 0)
    let refused = try run(["import", "Store.sqlite", "objects.json", "--yes"])
    #expect(refused.status == 1 && refused.errors.contains("The store is unchanged.") && refused.errors.contains("133021"), "\(refused)")
    #expect(try contents("Store.sqlite") == all && contents("Store-backup.sqlite") == all)
  }

  /// The other program doesn't know Holdfast's entry with the model, and keeps that of the former version.
  @Test func aStoreThatAnotherProgramMigratedAfterUsIsReadWithTheModelInItsCache() throws {
    let name = "sqlite/CoreDataMigrationRevised/stores/CoreDataMigration_Example_3.sqlite", path = fixture.path("Store.sqlite")
    _ = try copy(name)
    let all = try contents("Store.sqlite"), former = try ManagedObjectModel(entities: [EntityDescription("Former")])
    // A key of the same length as that of the entry, which only stores may write.
    let key = Data("!HoldfastModel".utf8)
    let metadata: [String: StoreValue] = ["!HoldfastModel": .data(Data(try former.canonicalJSON()))]
    try PersistentStoreCoordinator.setMetadata(metadata, for: .sqlite(at: path))
    try StoreFile(path: path).copy(to: fixture.path("Copy.sqlite"))
    var bytes = try Data(contentsOf: URL(fileURLWithPath: fixture.path("Copy.sqlite")))
    while let range = bytes.range(of: key) { bytes.replaceSubrange(range, with: Data("_HoldfastModel".utf8)) }
    try bytes.write(to: URL(fileURLWithPath: fixture.path("Copy.sqlite")))
    #expect(try PersistentStoreCoordinator.cachedModel(for: .sqlite(at: fixture.path("Copy.sqlite")))?.entities.map(\.name) == ["Former"])
    #expect(try StoreReport(path: fixture.path("Copy.sqlite")).model == "model cache")
    #expect(try contents("Copy.sqlite") == all)
    #expect(try run(["convert", "Copy.sqlite", "Converted.json"]).output == all)
  }

  /// To a model in which every entity has another attribute.
  @Test(arguments: samples) func aMigrationIsPreviewedWithTheRowsOfPlainSQLite(_ name: String) throws {
    let model = try copy(name), facts = try #require(Self.facts[name]), before = try files()
    let old = try StoreSource(path: fixture.path("Store.sqlite"), modelPath: model.last).model
    var entities = old.declarations
    for place in entities.indices where entities[place].superentity == nil {
      entities[place].attributes.append(AttributeDescription("holdfastNote", .string, isOptional: true))
    }
    let new = try ManagedObjectModel(entities: entities, composites: old.composites)
    try Data(try new.canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path("larger.json")))
    let preview = try run(["migrate", "Store.sqlite", "--to", "larger.json", "--dry-run"] + model)
    #expect(preview.status == 0 && preview.errors.isEmpty && !preview.output.contains("Lost"), "\(preview)")
    let lines = Set(preview.output.split(separator: "\n").map(String.init))
    for (entity, count) in facts.counts where count > 0 {
      #expect(lines.contains("\(entity): \(count) \(count == 1 ? "object" : "objects")"), "\(entity): \(count)\n\(preview.output)")
    }
    #expect(try files() == before)
    #expect(!FileManager.default.fileExists(atPath: fixture.path("Store-backup.sqlite")))
  }

  /// The files contain no model, so one is derived from their objects.
  @Test func anXMLStoreIsCheckedConvertedExportedCopiedAndMoved() throws {
    // Two of the stores were changed by hand: one has two objects with one number, and links of the other lead to objects of wrong entities.
    let paths = Corpus.paths("xml/things-rb", [".xml"]).filter { path in
      !["/Database.xml", "-bb2f5daa59.xml"].contains { path.hasSuffix($0) }
    }
    #expect(paths.count == 2)
    for (number, path) in paths.enumerated() {
      let name = "Store\(number).xml", data = try Data(contentsOf: URL(fileURLWithPath: path)), output = "Converted\(number)"
      try data.write(to: URL(fileURLWithPath: fixture.path(name)))
      let count = String(decoding: data, as: UTF8.self).components(separatedBy: "<object ").count - 1, all = try contents(name)
      #expect(all.hasPrefix("\(count) objects, digest "), "\(path): \(all)")
      for ending in ["sqlite", "json", "binary"] {
        let convert = try run(["convert", name, "\(output).\(ending)"])
        #expect(convert.status == 0 && convert.output == all, "\(path): \(convert)")
        #expect(try contents("\(output).\(ending)") == all, "\(path)")
      }
      #expect(try run(["export", name, "objects\(number).json"]).output == "\(count) objects\n", "\(path)")
      #expect(try exportedCounts("objects\(number).json").values.reduce(0, +) == count, "\(path)")
      #expect(try run(["copy", name, "copy\(number).xml"]).status == 0 && contents("copy\(number).xml") == all, "\(path)")
      #expect(try run(["move", "copy\(number).xml", "moved\(number).xml"]).status == 0 && contents("moved\(number).xml") == all, "\(path)")
      #expect(try run(["compact", name]).output.hasPrefix("Nothing needs to be done"), "\(path)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path(name))) == data)
    }
  }
}
