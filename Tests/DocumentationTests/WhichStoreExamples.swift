// swift-format-ignore-file
// The examples of *Which store?*, word for word; `SnippetTests` compares them, `WhichStoreTests` runs them.
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore

/// Stores in a folder that do not wait for the disk at every save.
func relaxedStores(_ folder: String) -> [StoreDescription] {
  var options = JSONStoreOptions()
  options.wholeFile.file.durability = .normal
  let json: StoreDescription = .json(at: folder + "/relaxed.json", options: options)
  let sqlite: StoreDescription = .sqlite(at: folder + "/relaxed.sqlite", options: SQLiteStoreOptions(durability: .normal))
  return [json, sqlite]
}

/// Copies every object of one context's stores into another context, which has the same model and no objects yet.
func copyAll(from source: ManagedObjectContext, to target: ManagedObjectContext) throws {
  let entities = source.persistentStoreCoordinator.model.entities
  var copies: [ManagedObjectID: ManagedObject] = [:]
  var originals: [ManagedObject] = []
  for entity in entities where !entity.isAbstract {
    var request = FetchRequest<ManagedObject>(entityName: entity.name)
    request.includesSubentities = false
    for original in try source.fetch(request) {
      let copy = try target.insert(entityNamed: entity.name)
      for attribute in entity.attributes { try copy.setValue(original.value(forKey: attribute.name), forKey: attribute.name) }
      copies[original.objectID] = copy
      originals.append(original)
    }
  }
  for original in originals {
    guard let copy = copies[original.objectID] else { continue }
    for relationship in original.entity.relationships {
      switch try original.value(forKey: relationship.name) {
      case .objects(let objects): try copy.setValue(objects.compactMap { copies[$0.objectID] }, forKey: relationship.name)
      case .single(.objectID(let id)): try copy.setValue(copies[id].map { .objectID($0.objectID) } ?? .null, forKey: relationship.name)
      default: break
      }
    }
  }
  try target.save()
}

/// Copies a graph from one store to another, for example from SQLite to JSON.
func move(_ model: ManagedObjectModel, from old: StoreDescription, to new: StoreDescription) throws {
  let source = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: old))
  let target = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: new))
  try copyAll(from: source, to: target)
  try source.persistentStoreCoordinator.close()
  try target.persistentStoreCoordinator.close()
}
