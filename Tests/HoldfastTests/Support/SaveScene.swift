import HoldfastStore

@testable import Holdfast

/// What is stored before a save, the change in a recorded context, and the expected steps of the save.
struct SaveScene {
  var model = SaveModel.kennel
  var setUp: (ManagedObjectContext) throws -> Void = { _ in }
  var change: (SaveStage) throws -> Void
  /// The steps that send requests.
  var steps: [SaveStep]
  /// A capability without which the shape doesn't exist.
  var needs: KeyPath<StoreCapabilities, Bool>?
}

/// A step of a save, with the requests that it sends to a store.
enum SaveStep {
  /// Keys of all new objects are reserved.
  case reservesKeys
  /// Rows of an entity are read.
  case readsRows(of: String)
  /// Destinations of a relationship are read.
  case readsLinks(of: String)
  /// The versions of changed, deleted and locked rows are compared. A store with versions does it in `prepare`. For other stores, the
  /// framework reads the rows, in one request for each entity.
  case compares([String])
  /// Duplicates of unique values are found. A store with uniqueness does it in `prepare`. For other stores, the framework fetches the
  /// entity.
  case findsDuplicates(of: String)
  /// The store refuses a request with these contents. Without the capability, the framework has found the conflict before.
  case isRefused(by: KeyPath<StoreCapabilities, Bool>, [String])
  /// The store saves a request with these contents.
  case saves([String])

  func requests(to store: StoreCapabilities) -> [String] {
    switch self {
    case .reservesKeys: ["reserveKeys"]
    case .readsRows(let entity): ["beginRead", "rows of \(entity)"]
    case .readsLinks(let relationship): ["beginRead", "relationships of \(relationship)"]
    case .compares(let entities): store.versions ? [] : entities.flatMap { ["beginRead", "rows of \($0)"] }
    case .findsDuplicates(let entity): store.uniqueness ? [] : ["beginRead", "fetch of \(entity)"]
    case .isRefused(let capability, _): store[keyPath: capability] ? ["prepare"] : []
    case .saves: ["prepare", "commit"]
    }
  }

  /// The contents of the request that the step prepares; nil if it prepares none.
  func contents(for store: StoreCapabilities) -> [String]? {
    switch self {
    case .isRefused(let capability, let contents): store[keyPath: capability] ? contents : nil
    case .saves(let contents): contents
    default: nil
    }
  }
}

enum SaveModel {
  case kennel, lists, cats, walks
  /// Relationships without inverse, and no derived attributes.
  case park

  func make() throws -> ManagedObjectModel {
    switch self {
    case .kennel: Kennel.model
    case .lists: try Lists.model()
    case .cats: try SaveModel.makeCats()
    case .walks: try SaveModel.makeWalks()
    case .park: Park.plain
    }
  }

  var classes: [ManagedObject.Type] { self == .kennel ? Kennel.classes : [] }

  private static func makeCats() throws -> ManagedObjectModel {
    var photo = AttributeDescription("photo", .binaryData, isOptional: true)
    photo.allowsExternalBinaryDataStorage = true
    return try ManagedObjectModel(entities: [EntityDescription("Cat", attributes: [AttributeDescription("name", .string), photo])])
  }

  private static func makeWalks() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        attributes: [
          AttributeDescription("name", .string), .derived("loudName", .string, "uppercase:(name)"),
          .derived("walkCount", .integer64, "walks.@count"),
        ], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription(
        "Walk", attributes: [AttributeDescription("minutes", .integer32, isOptional: true)],
        relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
  }
}
