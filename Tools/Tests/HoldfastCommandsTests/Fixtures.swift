import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore

/// A temporary folder with a model and stores of it, deleted when the test ends.
final class Fixture: Sendable {
  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-tools-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  /// The file-based stores, with the names that their reports use.
  enum Kind: String, CaseIterable, Sendable {
    case sqlite = "SQLite"
    case json = "JSON"
    case xml = "XML"
    case binary = "Binary"

    func description(at path: String) -> StoreDescription {
      switch self {
      case .sqlite: .sqlite(at: path)
      case .json: .json(at: path)
      case .xml: .xml(at: path)
      case .binary: .binary(at: path)
      }
    }
  }

  /// Two versions; the second is current.
  func writeModel(_ name: String = "Zoo.xcdatamodeld") throws -> String {
    let documents = ["Zoo": try ModelDocument(Fixture.model(rating: 4)), "Zoo 2": try ModelDocument(Fixture.model(rating: 5))]
    try ModelBundle.write(documents, currentVersion: "Zoo 2", to: path(name))
    return path(name)
  }

  static func model(rating: Double = 5) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      entities: [
        EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string, default: .string("a<b>&c"))]),
        EntityDescription(
          "Dog", superentity: "Animal",
          attributes: [
            AttributeDescription(
              "rating", .double, isOptional: rating == 5, default: .double(0), validation: .range(.double(0), .double(rating))),
            .composite("home", "Place", isOptional: true), .derived("walkCount", .integer64, "walks.@count"),
          ], relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade)],
          uniquenessConstraints: [["name"]],
          indexes: [FetchIndexDescription("byRating", elements: [FetchIndexElement("rating", isAscending: false)])]),
        EntityDescription(
          "Walk", attributes: [AttributeDescription("minutes", .integer32, isOptional: true)],
          relationships: [.toOne("dog", to: "Dog", inverse: "walks"), .toOne("next", to: "Walk", inverse: nil)]),
      ],
      composites: [CompositeDescription("Place", [AttributeDescription("latitude", .double), AttributeDescription("longitude", .double)])])
  }

  /// A store with two dogs and three walks.
  func writeStore(_ description: StoreDescription) throws {
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: description)
    let context = try ManagedObjectContext(coordinator: coordinator)
    for name in ["Fido", "Rex"] { try context.insert(entityNamed: "Dog").setValue(.string(name), forKey: "name") }
    for minutes in 1...3 { try context.insert(entityNamed: "Walk").setValue(.int32(Int32(minutes)), forKey: "minutes") }
    try context.save()
    try coordinator.setMetadata(["author": .string("Ann")])
    try coordinator.close()
  }
}

/// Core Data's own files, if the environment names a folder with them.
enum Corpus {
  static let path = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  /// Paths below a folder of the corpus with the given suffix, sorted.
  static func paths(_ folder: String, _ endings: [String]) -> [String] {
    guard let path, let all = FileManager.default.enumerator(atPath: "\(path)/\(folder)") else { return [] }
    return all.compactMap { $0 as? String }.filter { name in endings.contains { name.hasSuffix($0) } }.sorted().map {
      "\(path)/\(folder)/\($0)"
    }
  }
}
