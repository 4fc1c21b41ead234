import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

@testable import Holdfast

/// A context on a store that records its requests.
final class SaveStage {
  let context: ManagedObjectContext
  let capabilities: StoreCapabilities
  private let place: TestStore.Place
  private let recorder: RecordingStore
  private let sent: SentRequests
  /// Objects that were read stay in memory.
  private var kept: [Any] = []

  /// Saves what the scene needs, and opens the store again with a recorder.
  init(_ scene: SaveScene, _ store: TestStore) throws {
    let place = try store.makePlace(model: scene.model.make(), classes: scene.model.classes), sent = SentRequests()
    let setup = try place.context()
    try scene.setUp(setup)
    try setup.save()
    let (context, recorder) = try place.recording { SaveKeeper($0, sent) }
    capabilities = try #require(context.persistentStoreCoordinator.persistentStores.last).capabilities
    (self.context, self.recorder, self.place, self.sent) = (context, recorder, place, sent)
  }

  func clear() {
    recorder.clear()
    sent.all.withLock { $0 = [] }
  }

  // MARK: Objects

  /// Another context on the same store.
  func other() throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: place.classes)
  }

  @discardableResult func keep<Value>(_ value: Value) -> Value {
    kept.append(value)
    return value
  }

  func dog(_ name: String) throws -> Dog { keep(try #require(try context.one(Dog.self) { $0.name == name })) }

  func person(_ name: String) throws -> Person { keep(try #require(try context.one(Person.self) { $0.name == name })) }

  func collar(_ color: String) throws -> Collar { keep(try #require(try context.one(Collar.self) { $0.color == color })) }

  func object(_ entity: String, _ name: String) throws -> ManagedObject {
    let predicate = FetchPredicate<ManagedObject>(.comparison(.property("name"), .equalTo, .constant(.string(name)), []))
    return keep(try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: entity, where: predicate)).first))
  }

  // MARK: Requests

  private var model: ManagedObjectModel { context.persistentStoreCoordinator.model }

  /// The names of all requests, in order, with the entities and relationships that they read.
  var requests: [String] {
    recorder.requests.map { request in
      switch request {
      case .beginRead: "beginRead"
      case .fetch(let plan): "fetch of \(model.entities[plan.entity].name)"
      case .rows(let request): "rows of \(model.entities[request.entity].name)"
      case .relationships(let request): "relationships of \(name(request.entity, request.relationship))"
      case .reserveKeys: "reserveKeys"
      case .prepare: "prepare"
      default: "\(request)"
      }
    }
  }

  /// The contents of the prepared requests.
  var contents: [[String]] { sent.all.withLock { $0 }.map { lines($0) } }

  private func name(_ entity: EntityIndex, _ relationship: RelationshipIndex) -> String {
    "\(model.entities[entity].name).\(model.entities[entity].relationships[relationship].name)"
  }

  private func lines(_ request: SaveRequest) -> [String] {
    var all: [String] = []
    for changes in request.entities { all += lines(changes) }
    for links in request.links {
      all.append("\(name(links.entity, links.relationship)): \(links.added.count) added, \(links.removed.count) removed")
    }
    for orders in request.orders { all.append("\(name(orders.entity, orders.relationship)): order of \(orders.links.count)") }
    return all
  }

  private func lines(_ changes: SaveRequest.EntityChanges) -> [String] {
    let entity = model.entities[changes.entity]
    var parts: [String] = []
    func count(_ number: Int, _ what: String) { if number > 0 { parts.append("\(number) \(what)") } }
    count(changes.inserted.reduce(0) { $0 + $1.count }, "inserted")
    count(changes.deleted.keys.count, "deleted")
    count(changes.locked.keys.count, "locked")
    for updated in changes.updated { for row in 0..<updated.rows.count { parts.append(SaveStage.line(updated, row, entity)) } }
    for derived in changes.derived {
      for row in 0..<derived.rows.count { parts.append("derived \(SaveStage.names(derived.slots(row: row), entity))") }
    }
    return parts.map { "\(entity.name): \($0)" }
  }

  /// The changed slots of an updated row. Its version is the one after the expected version.
  private static func line(_ updated: SaveRequest.UpdatedRows, _ row: Int, _ entity: ManagedObjectModel.Entity) -> String {
    let (expected, version) = (updated.expectedVersions[row], updated.rows[row].version)
    if version != expected.next { return "updated from version \(expected) to version \(version)" }
    let slots = entity.slotIndexes.filter { updated.isChanged(row: row, slot: $0) }
    return slots.isEmpty ? "new version" : "updated \(names(slots, entity))"
  }

  private static func names(_ slots: [SlotIndex], _ entity: ManagedObjectModel.Entity) -> String {
    slots.map { entity.slots[$0].name }.joined(separator: ", ")
  }
}

private final class SentRequests: Sendable {
  /// The requests to prepare a save, also those that the store refused.
  let all = Mutex<[SaveRequest]>([])
}

/// Keeps the contents of requests. A RecordingStore only keeps a summary of them.
private final class SaveKeeper: ForwardingStore {
  let base: any IncrementalStore
  private let sent: SentRequests

  init(_ base: any IncrementalStore, _ sent: SentRequests) { (self.base, self.sent) = (base, sent) }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    sent.all.withLock { $0.append(request) }
    return try base.prepare(request, options: options)
  }
}
