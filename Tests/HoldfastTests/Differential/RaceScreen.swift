import HoldfastStore

@testable import Holdfast

/// What a screen shows of a context in a race: all objects, each read again only when the context reports it.
final class RaceScreen {
  private struct Entry {
    /// Keeps the object in the context.
    let object: ManagedObject
    var values: [String: StoreValue] = [:]
    /// The destinations of each relationship with an inverse.
    var links: [[ManagedObject]] = []
  }

  private let context: ManagedObjectContext
  private let roots: [String]
  private var entries: [ObjectIdentifier: Entry] = [:]
  private var reported: Set<ManagedObjectID> = []
  /// The reported objects that the context had then. A save gives new ones other IDs.
  private var reportedObjects: Set<ManagedObject> = []
  private var observation: ContextObservation?

  init(_ context: ManagedObjectContext, _ model: ManagedObjectModel) {
    self.context = context
    roots = model.entities.filter { $0.superentityIndex == nil }.map(\.name)
    observation = context.onChange { [unowned self] context, changes in
      let ids = changes.inserted + changes.updated + changes.deleted + changes.refreshed + changes.invalidated
      reported.formUnion(ids)
      reportedObjects.formUnion(ids.compactMap { context.registeredObject(for: $0) })
    }
  }

  /// Reads the reported objects, and compares what the screen shows with what the context has.
  func check() throws {
    try context.processPendingChanges()
    let all = try roots.flatMap { try context.fetch(FetchRequest<ManagedObject>(entityName: $0)) }, present = Set(all)
    try context.processPendingChanges()
    for id in reported { read(id) }
    for object in reportedObjects { entries[ObjectIdentifier(object)] = Entry(object: object) }
    func isReported(_ object: ManagedObject) -> Bool { reported.contains(object.objectID) || reportedObjects.contains(object) }
    for object in entries.values.map(\.object) where isReported(object) {
      entries[ObjectIdentifier(object)] = present.contains(object) ? try entry(object, present) : nil
    }
    (reported, reportedObjects) = ([], [])
    for object in all {
      guard let shown = entries[ObjectIdentifier(object)] else { throw RaceFault("The context has not reported \(object).") }
      let now = try entry(object, present)
      // The context reports a deleted destination itself.
      if shown.values != now.values || shown.links.map({ $0.filter(present.contains) }) != now.links {
        throw RaceFault("The context has not reported a change of \(object): \(shown) became \(now).")
      }
    }
    for entry in entries.values where !present.contains(entry.object) {
      throw RaceFault("The context has not reported that \(entry.object) is gone.")
    }
  }

  /// Shows a reported object. Another object with its ID may have been shown before.
  private func read(_ id: ManagedObjectID) {
    let object = context.registeredObject(for: id) ?? (try? context.existingObject(with: id))
    entries = entries.filter { $0.value.object.objectID != id || $0.value.object === object }
    if let object { entries[ObjectIdentifier(object)] = Entry(object: object) }
  }

  private func entry(_ object: ManagedObject, _ present: Set<ManagedObject>) throws -> Entry {
    let links = try object.entity.relationships.filter(\.hasInverse).map { relationship in
      let targets = try RaceContents.targets(object, relationship).filter(present.contains)
      return relationship.isOrdered ? targets : targets.sorted { ObjectIdentifier($0) < ObjectIdentifier($1) }
    }
    return Entry(object: object, values: try RaceContents.values(of: object), links: links)
  }
}
