import Foundation
import Holdfast
import HoldfastStore

extension StoreSource {
  /// Adds the objects of an exported file or folder to a store, all of them or none.
  ///
  /// The objects get new IDs. References are to other objects of the same file. Needs memory for all objects.
  ///
  /// - Parameters:
  ///   - path: The path of the store. If nothing is there, it is created with the type of its extension.
  ///   - modelPath: The path of the model. Defaults to the model in the store.
  ///   - configuration: The configuration of the model that Core Data created the file for. Defaults to none.
  ///   - source: The exported file or folder.
  ///   - backup: Where a store that exists is copied before. Defaults to no copy.
  ///   - onlyCreates: Whether nothing is at the path, so that a store which appears there meanwhile isn't changed. Defaults to false.
  /// - Returns: The number of objects.
  /// - Throws: ``CommandError`` with the place in the file if something doesn't fit the model, or the store can't be written. The store is
  ///   unchanged, or not created.
  @discardableResult public static func importObjects(
    into path: String, modelPath: String? = nil, configuration: String? = nil, from source: String, backup: String? = nil,
    onlyCreates: Bool = false
  ) throws(CommandError) -> Int {
    let kind = FileKind(path)
    if kind == .other { throw FileKind.noFile(path) }
    if kind == nil {
      guard let modelPath else {
        throw CommandError(path: path, reason: "There is no store at this path. To create one, pass its model with --model.")
      }
      if configuration != nil {
        throw CommandError(path: path, reason: "There is no store at this path. A new one has all entities, so omit --configuration.")
      }
      let model = try Self.model(path: modelPath, version: nil)
      _ = try described(path)
      return try create(try ExchangeFile(path: source), model, at: path)
    }
    if onlyCreates {
      throw CommandError(path: path, reason: "Another process has created it in the meantime. Look at it before you repeat the import.")
    }
    let store = try StoreSource(path: path, modelPath: modelPath, configuration: configuration)
    try store.requireModel()
    let file = try ExchangeFile(path: source)
    return try StoreFile(path: path).keeping(backup) { () throws(CommandError) in
      try save(file, store.model, store.description, at: path, isNew: false)
    }
  }

  /// Creates a store in a folder of its own beside the path, and copies it to the path when it has all objects. So a store that another
  /// process creates there meanwhile is neither changed nor removed.
  private static func create(_ file: ExchangeFile, _ model: ManagedObjectModel, at path: String) throws(CommandError) -> Int {
    let url = URL(fileURLWithPath: path)
    let folder = url.deletingLastPathComponent().appendingPathComponent(".holdfast-\(UUID().uuidString).import")
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: NSNumber(value: 0o700)])
    } catch {
      throw CommandError(path: path, reason: "The store can't be created. Check that its folder exists and can be written.", cause: error)
    }
    defer { try? FileManager.default.removeItem(at: folder) }
    let new = folder.appendingPathComponent(url.lastPathComponent).path
    do throws(CommandError) {
      let count = try save(file, model, try described(new), at: path, isNew: true)
      try StoreFile(path: new).copy(to: path)
      return count
    } catch {
      // The name of the folder is unique, and the error's path may have been resolved.
      var cause = error.cause
      if var found = cause as? StoreError, found.path?.contains(folder.lastPathComponent) == true {
        found.path = path
        cause = found
      }
      throw CommandError(path: error.path == new ? path : error.path, reason: error.reason, cause: cause)
    }
  }

  private static func save(
    _ file: ExchangeFile, _ model: ManagedObjectModel, _ description: StoreDescription, at path: String, isNew: Bool
  ) throws(CommandError) -> Int {
    do {
      let coordinator = try PersistentStoreCoordinator(model: model, store: description.migrating(automatically: false))
      do {
        let count = try StoreImport(coordinator, file, entityNames(of: model, in: description.configuration)).run()
        // The objects are saved, also if this fails.
        try? coordinator.close()
        return count
      } catch {
        try? coordinator.close()
        throw error
      }
    } catch let error as CommandError { throw error } catch {
      throw CommandError(path: path, reason: "The objects can't be saved.\(isNew ? "" : outcome(error))", cause: error)
    }
  }

  /// What a failed save of the import means for the store.
  private static func outcome(_ error: any Error) -> String {
    switch (error as? StoreError)?.code {
    case .durabilityUnknown?: " The store has them, but the disk didn't confirm it. Check the disk, and don't import them again."
    case .outcomeUnknown?: " The store may have them. Look before you import them again."
    default: " The store is unchanged."
    }
  }
}

private struct StoreImport {
  private let context: ManagedObjectContext
  private let model: ManagedObjectModel
  private let file: ExchangeFile
  /// The names of the entities that the store can have objects of.
  private let heldEntityNames: Set<String>

  /// An object with what it refers to.
  private struct Imported {
    var object: ManagedObject
    var record: ExchangeFile.Record
  }

  init(_ coordinator: PersistentStoreCoordinator, _ file: ExchangeFile, _ heldEntityNames: Set<String>) throws {
    (model, self.file, self.heldEntityNames) = (coordinator.model, file, heldEntityNames)
    context = try ManagedObjectContext(coordinator: coordinator, classes: [])
  }

  func run() throws -> Int {
    var imported: [Imported] = [], objects: [String: ManagedObject] = [:]
    for record in file.records {
      guard let entity = model.entity(named: record.entityName), !entity.isAbstract else {
        throw record.failure("The model has no entity \(record.entityName) that can have objects.")
      }
      if !heldEntityNames.contains(entity.name) {
        throw record.failure("The store's configuration has no entity \(entity.name). Import its objects into another store.")
      }
      let object = try context.insert(entityNamed: entity.name)
      try checkNames(record, entity)
      try setAttributes(of: object, record)
      imported.append(Imported(object: object, record: record))
      guard let id = try text(entity.exchangedIDName, record) else { continue }
      guard objects.updateValue(object, forKey: id) == nil else { throw record.failure("Another object has the id \(id), too.") }
    }
    // An attribute with an object's ID needs the permanent one.
    if model.entities.contains(where: { $0.attributes.contains { $0.type == .objectID } }) {
      try context.obtainPermanentIDs(for: imported.map(\.object))
    }
    for one in imported { try setReferences(of: one.object, one.record, objects) }
    for one in imported { try checkLinks(of: one.object, one.record, objects) }
    try context.save()
    return imported.count
  }

  private func checkNames(_ record: ExchangeFile.Record, _ entity: ManagedObjectModel.Entity) throws {
    for name in record.fields.keys.sorted() where name != entity.exchangedIDName {
      let isKnown = entity.attributes.contains { $0.name == name && $0.derivation == nil } || entity.relationship(named: name) != nil
      if !isKnown { throw record.failure("\(entity.name) has no attribute or relationship \(name) that can be set.") }
    }
  }

  private func setAttributes(of object: ManagedObject, _ record: ExchangeFile.Record) throws {
    for attribute in model.exchangedAttributes(of: object.entity) where attribute.type != .objectID {
      switch record.fields[attribute.name] {
      case nil:
        // A required attribute keeps its default value.
        if attribute.isOptional { try object.setValue(StoreValue.null, forKeyPath: attribute.name) }
      case .text(let text):
        guard let value = ExchangeText.value(text, attribute.type) else {
          throw record.failure("The value of \(attribute.name) isn't of type \(attribute.type.rawValue).")
        }
        try object.setValue(value, forKeyPath: attribute.name)
      case .list: throw record.failure("The value of \(attribute.name) is a list.")
      }
    }
  }

  /// The text of a field; nil if the record doesn't have it.
  private func text(_ name: String, _ record: ExchangeFile.Record) throws -> String? {
    switch record.fields[name] {
    case nil: return nil
    case .text(let text): return text
    case .list: throw record.failure("The value of \(name) is a list.")
    }
  }

  private func setReferences(of object: ManagedObject, _ record: ExchangeFile.Record, _ objects: [String: ManagedObject]) throws {
    func target(_ reference: String, _ name: String) throws -> ManagedObject {
      guard let target = objects[reference] else {
        throw record.failure("\(name) refers to \(reference), and no object of the file has this id.")
      }
      return target
    }
    for attribute in object.entity.attributes where attribute.type == .objectID {
      guard let reference = try text(attribute.name, record) else { continue }
      if let id = objects[reference]?.objectID ?? ManagedObjectID(uriRepresentation: reference) {
        try object.setValue(StoreValue.objectID(id), forKeyPath: attribute.name)
      } else {
        _ = try target(reference, attribute.name)
      }
    }
    for relationship in object.entity.relationships {
      guard let references = try references(relationship, record) else { continue }
      let targets = try references.map { try target($0, relationship.name) }
      if targets.contains(where: { !$0.entity.isKind(of: model.destination(of: relationship)) }) {
        throw record.failure("\(relationship.name) refers to an object that isn't a \(model.destination(of: relationship).name).")
      }
      if relationship.isToMany {
        try object.setValue(targets, forKey: relationship.name)
      } else {
        try object.setValue(targets.first, forKey: relationship.name)
      }
    }
  }

  /// The IDs of the destinations; nil if the record doesn't have the relationship.
  private func references(_ relationship: ManagedObjectModel.Relationship, _ record: ExchangeFile.Record) throws -> [String]? {
    guard let field = record.fields[relationship.name] else { return nil }
    let references: [String] =
      switch field {
      case .text(let text): relationship.isToMany ? text.split(separator: " ").map(String.init) : [text]
      case .list(let list): list
      }
    if relationship.isToMany || references.count < 2 { return references }
    throw record.failure("\(relationship.name) is to-one, and has \(references.count) destinations.")
  }

  /// Checks that the other ends of links don't say something else.
  private func checkLinks(of object: ManagedObject, _ record: ExchangeFile.Record, _ objects: [String: ManagedObject]) throws {
    for relationship in object.entity.relationships {
      guard let targets = try references(relationship, record)?.compactMap({ objects[$0]?.objectID }) else { continue }
      let value = try object.value(forKey: relationship.name), found: [ManagedObjectID]
      if case .objectID(let id)? = value.storeValue { found = [id] } else { found = value.objects?.map(\.objectID) ?? [] }
      if relationship.isOrdered ? found == targets : Set(found) == Set(targets) { continue }
      throw record.failure("\(relationship.name) contradicts what its destinations, or other objects, say of the same links.")
    }
  }
}
