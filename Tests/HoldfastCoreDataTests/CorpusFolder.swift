import Foundation
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport

/// The folder with files of other programs.
enum CorpusFolder {
  static let path = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  static func file(_ name: String) -> String { (path ?? "") + "/" + name }

  /// The SQLite stores.
  static let stores: [String] = {
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: file("facts.json"))) else { return [] }
    let facts = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
    return facts.keys.filter { $0.hasPrefix("sqlite/") }.sorted()
  }()

  /// Copies a SQLite file with its log.
  static func copy(_ name: String, to folder: TemporaryFolder) throws -> String {
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: file(name) + end) {
      try Data(contentsOf: URL(fileURLWithPath: file(name) + end)).write(to: URL(fileURLWithPath: folder.file("Store.sqlite" + end)))
    }
    return folder.file("Store.sqlite")
  }

  /// The stores that are older than the model cache, so that they open only with a model.
  static let storesWithoutModel = [
    "sqlite/BookMigration/stores/Model1.sqlite", "sqlite/MagicalRecord-Recipes/Samples/iOS/Resources/RecipeData/Recipes.sqlite",
  ]

  /// The model of a copy of a store: in the store, in a model file, or declared here.
  static func model(of name: String, at path: String) throws -> ManagedObjectModel {
    switch storesWithoutModel.firstIndex(of: name) {
    case 0?: try ManagedObjectModel.model(of: .sqlite(at: path), modelsAt: file("sqlite/BookMigration/model"))
    case 1?: try recipes()
    default: try ManagedObjectModel.model(of: .sqlite(at: path))
    }
  }

  /// The model of a sample of Apple's, which exists only in Xcode's form before version 4. It has the version hashes of the store.
  private static func recipes() throws -> ManagedObjectModel {
    func toOne(_ name: String, to destination: String, _ inverse: String, isOptional: Bool = true) -> RelationshipDescription {
      var relationship = RelationshipDescription.toOne(name, to: destination, inverse: inverse, isOptional: isOptional)
      relationship.minCount = 1
      return relationship
    }
    func text(_ name: String, isOptional: Bool = true) -> AttributeDescription { .init(name, .string, isOptional: isOptional) }
    func image(_ name: String) -> AttributeDescription { .transformable(name, by: nil, isOptional: true) }
    return try ManagedObjectModel(entities: [
      EntityDescription(
        "Image", attributes: [image("image")], relationships: [toOne("recipe", to: "Recipe", "image", isOptional: false)]),
      EntityDescription(
        "Ingredient", attributes: [text("amount"), .init("displayOrder", .integer16), text("name", isOptional: false)],
        relationships: [toOne("recipe", to: "Recipe", "ingredients")]),
      EntityDescription(
        "Recipe", attributes: [text("instructions"), text("name"), text("overview"), text("prepTime"), image("thumbnailImage")],
        relationships: [
          toOne("image", to: "Image", "recipe"), .toMany("ingredients", to: "Ingredient", inverse: "recipe"),
          toOne("type", to: "RecipeType", "recipes"),
        ]),
      EntityDescription("RecipeType", attributes: [text("name")], relationships: [.toMany("recipes", to: "Recipe", inverse: "type")]),
    ])
  }
}
