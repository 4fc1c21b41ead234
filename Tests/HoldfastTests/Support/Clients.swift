import HoldfastStore
import Synchronization

@testable import Holdfast

/// Two coordinators with one store, like two clients of a server. Neither learns what the other one saves, unless the store reports it.
final class Clients {
  private let place: TestStore.Place
  private let server: Server
  private let ours: Session
  let coordinator: PersistentStoreCoordinator
  private let others: PersistentStoreCoordinator

  /// - Parameter noticesOthers: Whether the store of ``coordinator`` finds out whether the other client has saved.
  init(_ store: TestStore, noticesOthers: Bool = false) throws {
    let place = try store.makePlace(), server = Server(place.description.makeStore())
    let ours = Session(server, noticesOthers: noticesOthers)
    (self.place, self.server, self.ours) = (place, server, ours)
    coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: StoreDescription(type: "client") { ours })
    others = try PersistentStoreCoordinator(
      model: Kennel.model, store: StoreDescription(type: "client") { Session(server, noticesOthers: false) })
  }

  /// Whether the store keeps all rows in memory, so that the coordinator doesn't cache them.
  var hasResidentRows: Bool { server.base.capabilities.residentRows }

  func context() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes) }

  /// A context of the other client.
  func otherContext() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: others, classes: Kennel.classes) }

  /// Reports changes to ``coordinator``, as its store would do.
  func report(_ change: StoreChange) { ours.host.objectsChanged(change) }

  /// Makes the store of ``coordinator`` notice that the other client has saved.
  func noteOtherSave() { server.haveOthersSaved.store(true, ordering: .releasing) }
}

/// A store that several clients use.
private final class Server: Sendable {
  let base: any IncrementalStore
  let haveOthersSaved = Atomic(false)
  private let metadata = Mutex<StoreMetadata?>(nil)

  init(_ base: any IncrementalStore) { self.base = base }

  func open(_ model: ManagedObjectModel) throws -> StoreMetadata {
    try metadata.withLock { metadata in
      let opened = try metadata ?? base.open(model: model, host: .none)
      metadata = opened
      return opened
    }
  }
}

/// The store of one client.
private final class Session: ForwardingStore {
  private let server: Server
  private let noticesOthers: Bool
  private let received = Mutex(StoreHost.none)

  init(_ server: Server, noticesOthers: Bool) { (self.server, self.noticesOthers) = (server, noticesOthers) }

  var base: any IncrementalStore { server.base }
  var host: StoreHost { received.withLock { $0 } }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    received.withLock { $0 = host }
    if noticesOthers {
      host.setCheckForOtherSaves { [server] in server.haveOthersSaved.exchange(false, ordering: .acquiringAndReleasing) }
    }
    return try server.open(model)
  }

  /// The other client may still use the server.
  func close() {}
}
