import Foundation
import Holdfast
import HoldfastStore

extension StoreSource {
  /// Exports all objects to a JSON file, or to a folder with a CSV file for each entity; see ``ExchangeFormat``.
  ///
  /// The file or folder appears when it is complete. Until then it is in a folder `.holdfast-….export` beside it, which remains if the
  /// process is killed.
  ///
  /// - Parameters:
  ///   - destination: A path at which nothing is.
  ///   - format: The format. Defaults to the one that the path's extension names.
  /// - Returns: The number of objects.
  /// - Throws: ``CommandError`` if there is something at the path, or the store can't be read. Nothing is left at the path then.
  @discardableResult public func export(to destination: String, _ format: ExchangeFormat? = nil) throws(CommandError) -> Int {
    if StoreExport.isTaken(destination) {
      throw CommandError(path: destination, reason: "There is something at this path. Choose another one.")
    }
    if let configuration = file.description.configuration {
      let lost = Set(try file.metadata().entityVersionHashes.keys).subtracting(heldEntityNames).sorted()
      guard lost.isEmpty else {
        throw CommandError(
          path: path,
          reason: "The configuration \(configuration) lacks entities that the store has: \(lost.joined(separator: ", ")). "
            + "Pass a configuration with all of them, or convert the store, and export the copy.")
      }
    }
    do {
      let coordinator = try PersistentStoreCoordinator(model: model, store: file.description)
      defer { try? coordinator.close() }
      let format = format ?? ExchangeFormat(path: destination)
      return try StoreExport(coordinator, heldEntityNames, destination, format, isSQLite: file.isSQLite).run()
    } catch let error as CommandError { throw error } catch {
      throw CommandError(path: path, reason: "The store can't be exported to \(destination).", cause: error)
    }
  }
}

/// Writes objects in batches. Only the IDs of all objects of an entity, and those of the destinations of a batch, are in memory.
struct StoreExport {
  private static let batchCount = 1_000
  /// The maximum number of batches of an entity in a file other than SQLite, which tests all objects of the entity for each batch.
  static let searchCount = 16

  private let coordinator: PersistentStoreCoordinator
  private let context: ManagedObjectContext
  /// The state of the store from which all objects are read, because they refer to each other.
  private let generation: QueryGenerationToken?
  /// The names of the entities that the store can have objects of.
  private let heldEntityNames: Set<String>
  private let destination: String
  private let format: ExchangeFormat
  private let isSQLite: Bool

  private var model: ManagedObjectModel { coordinator.model }

  init(
    _ coordinator: PersistentStoreCoordinator, _ heldEntityNames: Set<String>, _ destination: String, _ format: ExchangeFormat,
    isSQLite: Bool
  ) throws {
    (self.coordinator, self.heldEntityNames) = (coordinator, heldEntityNames)
    (self.destination, self.format, self.isSQLite) = (destination, format, isSQLite)
    context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    try context.setQueryGeneration(from: .current)
    generation = context.queryGenerationToken
  }

  /// Whether something is at a path. A link without a target is something, too.
  static func isTaken(_ path: String) -> Bool {
    (try? FileManager.default.attributesOfItem(atPath: URL(fileURLWithPath: path).path)) != nil
  }

  /// Writes everything in a folder of its own beside the destination, and moves it there when it is complete. Otherwise, what an
  /// interrupted export leaves would look like an export of fewer objects.
  func run() throws -> Int {
    let url = URL(fileURLWithPath: destination)
    let folder = url.deletingLastPathComponent().appendingPathComponent(".holdfast-\(UUID().uuidString).export")
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: NSNumber(value: 0o700)])
    } catch { throw unwritable(error) }
    defer { try? FileManager.default.removeItem(at: folder) }
    let new = folder.appendingPathComponent(url.lastPathComponent)
    do {
      let count = try format == .json ? exportJSON(to: new.path) : exportCSV(to: new.path)
      try move(new, to: url)
      return count
    } catch let error as CommandError {
      let path = error.path.replacingOccurrences(of: new.path, with: destination)
      throw CommandError(path: path, reason: error.reason, cause: error.cause)
    }
  }

  /// Moves a complete file or folder, unless another process has created something at the destination meanwhile.
  private func move(_ new: URL, to url: URL) throws {
    // A link is created only if nothing is there. Folders, and files on some disks, can't have one.
    if format == .json, (try? FileManager.default.linkItem(at: new, to: url)) != nil { return }
    if Self.isTaken(destination) { throw unwritable(nil) }
    do { try FileManager.default.moveItem(at: new, to: url) } catch { throw unwritable(error) }
  }

  private func unwritable(_ cause: (any Error)?) -> CommandError {
    CommandError(
      path: destination,
      reason: "The \(format == .json ? "file" : "folder") can't be created. Check that nothing is at its path, and its folder exists and "
        + "can be written.", cause: cause)
  }

  private func exportJSON(to path: String) throws -> Int {
    let file = try Output(path)
    var count = 0
    try file.write("{")
    for (place, entity) in concreteEntities.enumerated() {
      try file.write("\(place == 0 ? "" : ",")\n  \(try Self.quoted(entity.name)): [")
      var isFirst = true
      count += try forEachObject(of: entity) { object, existing in
        let members = try fields(object, existing).compactMap { name, field in
          try json(field).map { "\(try Self.quoted(name)): \($0)" }
        }
        try file.write("\(isFirst ? "" : ",")\n    {\(members.joined(separator: ", "))}")
        isFirst = false
      }
      try file.write(isFirst ? "]" : "\n  ]")
    }
    try file.write("\n}\n")
    try file.close()
    return count
  }

  private func exportCSV(to folder: String) throws -> Int {
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: NSNumber(value: 0o700)])
    } catch { throw unwritable(error) }
    var count = 0
    for entity in concreteEntities {
      let file = try Output(folder + "/\(entity.name).csv")
      let names = model.exchangedAttributes(of: entity).map(\.name) + model.exchangedRelationships(of: entity).map(\.name)
      try file.write(CSVText.line([entity.exchangedIDName] + names))
      count += try forEachObject(of: entity) { object, existing in
        try file.write(
          CSVText.line(
            try fields(object, existing).map { _, field in
              switch field {
              case .none: nil
              case .value(let value): ExchangeText.text(value)
              case .reference(let reference): reference
              case .references(let references): references.isEmpty ? nil : references.joined(separator: " ")
              }
            }))
      }
      try file.close()
    }
    return count
  }

  // MARK: Objects

  private var concreteEntities: [ManagedObjectModel.Entity] {
    model.entities.filter { !$0.isAbstract && heldEntityNames.contains($0.name) }
  }

  /// Calls a closure with each object of an entity, without subentities, and with the objects to which it refers.
  private func forEachObject(
    of entity: ManagedObjectModel.Entity, _ body: (ManagedObject, _ existing: Set<ManagedObjectID>) throws -> Void
  ) throws -> Int {
    var request = FetchRequest<ManagedObject>(entityName: entity.name)
    request.includesSubentities = false
    let ids = try context.fetchObjectIDs(request)
    let batchCount = isSQLite ? Self.batchCount : max(Self.batchCount, (ids.count + Self.searchCount - 1) / Self.searchCount)
    for start in stride(from: 0, to: ids.count, by: batchCount) {
      let part = ids[start..<min(start + batchCount, ids.count)]
      let batch = FetchRequest<ManagedObject>(
        entityName: entity.name, where: FetchPredicate(.membership(.object, part.map { .objectID($0) })))
      let objects = Dictionary(try context.fetch(batch).map { ($0.objectID, $0) }, uniquingKeysWith: { first, _ in first })
      let existing = try existingDestinations(of: objects.values)
      for id in part { if let object = objects[id] { try body(object, existing) } }
      context.reset()
      try context.setQueryGeneration(from: generation)
    }
    return ids.count
  }

  /// The objects to which some objects refer, without missing ones: a deletion leaves references without an inverse, and IDs in attributes.
  private func existingDestinations(of objects: some Collection<ManagedObject>) throws -> Set<ManagedObjectID> {
    var ids: Set<ManagedObjectID> = [], existing: Set<ManagedObjectID> = []
    for object in objects {
      for attribute in model.exchangedAttributes(of: object.entity) where attribute.type == .objectID {
        if case .objectID(let id)? = try object.value(forKeyPath: attribute.name).storeValue { ids.insert(id) }
      }
      for relationship in model.exchangedRelationships(of: object.entity) {
        let value = try object.value(forKey: relationship.name)
        if case .objectID(let id)? = value.storeValue { ids.insert(id) }
        ids.formUnion(value.objects?.map(\.objectID) ?? [])
      }
    }
    let own = ids.filter { $0.storeIdentifier == coordinator.storeIdentifier && heldEntityNames.contains($0.entityName) }
    for (root, ids) in Dictionary(grouping: own, by: { model.entity(named: $0.entityName)?.rootIndex }) {
      guard let root else { continue }
      let batchCount = isSQLite ? Self.batchCount : max(Self.batchCount, ids.count)
      for start in stride(from: 0, to: ids.count, by: batchCount) {
        let part = ids[start..<min(start + batchCount, ids.count)]
        let request = FetchRequest<ManagedObject>(
          entityName: model.entities[root].name, where: FetchPredicate(.membership(.object, part.map { .objectID($0) })))
        existing.formUnion(try context.fetchObjectIDs(request))
      }
    }
    return existing
  }

  private enum Field {
    case none
    case value(StoreValue)
    case reference(String)
    case references([String])
  }

  private func fields(_ object: ManagedObject, _ existing: Set<ManagedObjectID>) throws -> [(name: String, field: Field)] {
    var fields: [(String, Field)] = [(object.entity.exchangedIDName, .reference(reference(object.objectID)))]
    for attribute in model.exchangedAttributes(of: object.entity) {
      let value = try object.value(forKeyPath: attribute.name).storeValue ?? .null
      switch value {
      case .null: fields.append((attribute.name, .none))
      case .objectID(let id): fields.append((attribute.name, .reference(reference(id, existing) ?? id.uriRepresentation)))
      default: fields.append((attribute.name, .value(value)))
      }
    }
    for relationship in model.exchangedRelationships(of: object.entity) {
      let value = try object.value(forKey: relationship.name)
      if let objects = value.objects {
        let ids = objects.map(\.objectID).filter(existing.contains)
        let sorted = relationship.isOrdered ? ids : ids.sorted { ($0.entityName, $0.key) < ($1.entityName, $1.key) }
        fields.append((relationship.name, .references(sorted.map(reference))))
      } else if case .objectID(let id)? = value.storeValue, existing.contains(id) {
        fields.append((relationship.name, .reference(reference(id))))
      } else {
        fields.append((relationship.name, .none))
      }
    }
    return fields
  }

  private func reference(_ id: ManagedObjectID) -> String { "\(id.entityName)/\(id.key)" }

  /// The reference to an existing object by its own ID: that in an attribute can name a superentity. Nil if the object doesn't exist.
  private func reference(_ id: ManagedObjectID, _ existing: Set<ManagedObjectID>) -> String? {
    existing.firstIndex(of: id).map { reference(existing[$0]) }
  }

  // MARK: JSON

  private func json(_ field: Field) throws -> String? {
    switch field {
    case .none: nil
    case .reference(let reference): try Self.quoted(reference)
    case .references(let references): references.isEmpty ? nil : "[\(try references.map(Self.quoted).joined(separator: ", "))]"
    case .value(let value):
      switch value {
      case .bool, .int16, .int32, .int64: ExchangeText.text(value)
      case .float(let number) where number.isFinite: ExchangeText.text(value)
      case .double(let number) where number.isFinite: ExchangeText.text(value)
      default: try ExchangeText.text(value).map(Self.quoted)
      }
    }
  }

  private static let encoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }()

  private static func quoted(_ text: String) throws -> String { String(decoding: try encoder.encode(text), as: UTF8.self) }
}

/// A new file. Nothing is at its path.
private final class Output {
  private let handle: FileHandle
  private var buffer = Data()

  init(_ path: String) throws {
    let url = URL(fileURLWithPath: path)
    do {
      try Data().write(to: url, options: .withoutOverwriting)
      // No other user can read the file of a store, either. Until this call, the folder of the export excludes them.
      try FileManager.default.setAttributes([.posixPermissions: NSNumber(value: 0o600)], ofItemAtPath: path)
      handle = try FileHandle(forWritingTo: url)
    } catch {
      throw CommandError(
        path: path, reason: "The file can't be created. Check that nothing is at its path, and its folder exists and can be written.",
        cause: error)
    }
  }

  func write(_ text: String) throws {
    buffer.append(contentsOf: text.utf8)
    if buffer.count > 1 << 20 { try flush() }
  }

  /// Writes the rest, and waits for the disk: the file may be the only copy soon.
  func close() throws {
    try flush()
    try handle.synchronize()
    try handle.close()
  }

  private func flush() throws {
    try handle.write(contentsOf: buffer)
    buffer.removeAll(keepingCapacity: true)
  }
}
