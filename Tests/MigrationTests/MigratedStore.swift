import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastPropertyList
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import SQLiteTestSupport
import TestSupport
import Testing

/// The stores that keep a model for its next version.
enum MigratedStore: String, CaseIterable, Codable, Sendable {
  case json
  case xml
  case binary
  case sqlite
  /// A SQLite file as of another program: without Holdfast's marks and model.
  case coreData

  func description(at path: String, isReadOnly: Bool = false) -> StoreDescription {
    switch self {
    case .json: .json(at: path, isReadOnly: isReadOnly)
    case .xml: .xml(at: path, isReadOnly: isReadOnly)
    case .binary: .binary(at: path, isReadOnly: isReadOnly)
    case .sqlite, .coreData: .sqlite(at: path, isReadOnly: isReadOnly, options: SQLiteStoreOptions(storesExactDecimals: true))
    }
  }

  /// A store in a folder of its own.
  final class Place: Sendable {
    let store: MigratedStore
    let folder = TemporaryFolder()
    /// Whether a SQLite file has a log.
    private let hasLog: Bool

    init(_ store: MigratedStore, hasLog: Bool = true) { (self.store, self.hasLog) = (store, hasLog) }

    var path: String { folder.file("Store") }

    /// A place with copies of the files, which no store may have open.
    func copied() throws -> Place {
      let copy = Place(store, hasLog: hasLog)
      // A folder is copied with its contents.
      for name in folder.names { try FileManager.default.copyItem(atPath: folder.file(name), toPath: copy.folder.file(name)) }
      return copy
    }

    var description: StoreDescription {
      hasLog
        ? store.description(at: path)
        : .sqlite(at: path, options: SQLiteStoreOptions(journalMode: .delete, storesExactDecimals: true))
    }

    /// Opens the store with a model, changes and saves objects, and closes it. Removes what the model has no place for.
    func change(_ model: ManagedObjectModel, from former: [ManagedObjectModel] = [], _ body: (ManagedObjectContext) throws -> Void) throws {
      let coordinator = try PersistentStoreCoordinator(model: model, store: description.migrating(removingData: true, from: former))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      try body(context)
      try context.save()
    }

    /// Fills a new store, and makes it one of another program if it is ``MigratedStore/coreData``.
    func fill(_ model: ManagedObjectModel, _ body: (ManagedObjectContext) throws -> Void) throws {
      try change(model, body)
      if store == .coreData { try forgetModel() }
    }

    /// Opens the store, which may migrate it, and returns its contents.
    func contents(_ model: ManagedObjectModel, from former: [ManagedObjectModel] = []) throws -> [String] {
      var lines: [String] = []
      try change(model, from: former) { lines = try Contents(of: $0).lines }
      return lines
    }

    /// Removes what only this framework's files have.
    private func forgetModel() throws {
      try changeMetadata { list in (list["_HoldfastLayout"], list["_HoldfastModel"]) = (nil, nil) }
    }

    /// Changes the property list in the metadata of a SQLite file.
    func changeMetadata(_ change: (inout [String: PropertyList]) -> Void) throws {
      let text = try #require(try SQL.rows(path, "SELECT hex(Z_PLIST) FROM Z_METADATA").first?.first)
      let bytes = stride(from: 0, to: text.utf8.count, by: 2).map { place in
        UInt8(text.dropFirst(place).prefix(2), radix: 16) ?? 0
      }
      var list = try #require(try PropertyList(binary: bytes).dictionary)
      change(&list)
      let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
      _ = try SQL.rows(path, "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'")
      _ = try SQL.rows(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    }
  }
}

/// All objects of a context's store as text, which doesn't depend on the store: objects are named by their attribute `tag`.
struct Contents {
  private(set) var lines: [String] = []

  /// - Parameter unsettled: The names of ordered relationships whose order isn't known, so that they are sorted.
  init(of context: ManagedObjectContext, sorting unsettled: Set<String> = []) throws {
    for entity in context.persistentStoreCoordinator.model.entities where !entity.isAbstract {
      let objects = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)).filter { $0.entity.name == entity.name }
      lines += try objects.map { try Contents.line($0, unsettled) }
    }
    lines.sort()
  }

  static func tag(_ object: ManagedObject) throws -> String {
    guard case .string(let tag)? = try object.value(forKey: "tag").storeValue else { return "?" }
    return tag
  }

  private static func line(_ object: ManagedObject, _ unsettled: Set<String>) throws -> String {
    var parts = ["\(object.entity.name) \(try tag(object)):"]
    for attribute in object.entity.attributes.sorted(by: { $0.name < $1.name }) where attribute.name != "tag" {
      parts.append("\(attribute.name)=\(try value(object, attribute.name))")
    }
    for relationship in object.entity.relationships.sorted(by: { $0.name < $1.name }) {
      switch try object.value(forKey: relationship.name) {
      case .objects(let objects):
        let tags = try objects.map { try tag($0) }
        parts.append(
          "\(relationship.name)=[\((relationship.isOrdered && !unsettled.contains(relationship.name) ? tags : tags.sorted()).joined(separator: " "))]"
        )
      case .single(.objectID(let id)): parts.append("\(relationship.name)=\(try tag(object.managedObjectContext.object(with: id)))")
      case .single(.null): parts.append("\(relationship.name)=nil")
      default: Issue.record("\(relationship.name) has neither an object nor objects.")
      }
    }
    return parts.joined(separator: " ")
  }

  private static func value(_ object: ManagedObject, _ path: String) throws -> String {
    text(try object.value(forKeyPath: path).storeValue)
  }

  static func text(_ value: StoreValue?) -> String {
    switch value {
    case .null?, nil: "nil"
    case .string(let text)?: text
    case .bool(let value)?: "\(value)"
    case .int16(let value)?: "\(value)"
    case .int32(let value)?: "\(value)"
    case .int64(let value)?: "\(value)"
    case .float(let value)?: "\(Double(value))"
    case .double(let value)?: "\(value)"
    case .date(let value)?: "@\(value)"
    case .decimal(let value)?: "\(value)"
    case .data(let value)?: value.count < 20 ? value.map { String($0, radix: 16) }.joined() : "\(value.count) bytes \(value.first ?? 0)"
    case .uuid(let value)?: value.uuidString
    case let value?: "\(value)"
    }
  }
}

extension ManagedObjectContext {
  /// Inserts an object with a tag and values.
  @discardableResult func add(_ entity: String, _ tag: String, _ values: [String: StoreValue] = [:]) throws -> ManagedObject {
    let object = try insert(entityNamed: entity)
    try object.setValue(StoreValue.string(tag), forKey: "tag")
    for (key, value) in values { try object.setValue(value, forKeyPath: key) }
    return object
  }

  /// The object with a tag.
  func tagged(_ entity: String, _ tag: String) throws -> ManagedObject {
    let objects = try fetch(FetchRequest<ManagedObject>(entityName: entity))
    return try #require(try objects.first { try Contents.tag($0) == tag })
  }
}

/// Models with the attribute `tag` in every entity without a superentity.
func model(_ entities: EntityDescription..., composites: [CompositeDescription] = []) throws -> ManagedObjectModel {
  try model(entities, composites: composites)
}

func model(_ entities: [EntityDescription], composites: [CompositeDescription] = []) throws -> ManagedObjectModel {
  let tag = AttributeDescription("tag", .string, isOptional: true)
  return try ManagedObjectModel(
    entities: entities.map { entity in
      var entity = entity
      if entity.superentity == nil { entity.attributes.append(tag) }
      return entity
    }, composites: composites)
}

extension RelationshipDescription {
  func renamed(from name: String) -> RelationshipDescription {
    var copy = self
    copy.renamingIdentifier = name
    return copy
  }
}

extension EntityDescription {
  func renamed(from name: String) -> EntityDescription {
    var copy = self
    copy.renamingIdentifier = name
    return copy
  }
}

extension AttributeDescription {
  func renamed(from name: String) -> AttributeDescription {
    var copy = self
    copy.renamingIdentifier = name
    return copy
  }
}
