import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Logging
import Synchronization
import TestSupport
import Testing

private final class Owner: ManagedObject {
  override class var declaration: EntityDeclaration? {
    var declaration = EntityDeclaration(Owner.self)
    declaration.properties.append(.property("name", \Owner.name, default: ""))
    declaration.properties.append(.property("pets", \Owner.pets, inverse: \Pet.owner))
    return declaration
  }
  enum Slots { static var name: SlotIndex { 0 } }
  var name: String {
    get { self[property: Slots.name] }
    set { self[property: Slots.name] = newValue }
  }
  var pets: ToMany<Pet> {
    get { toMany(0) }
    set { toMany(0).replaceAll(with: newValue) }
  }
}

private final class Pet: ManagedObject {
  override class var declaration: EntityDeclaration? {
    var declaration = EntityDeclaration(Pet.self)
    declaration.properties.append(.property("name", \Pet.name, default: ""))
    declaration.properties.append(.property("owner", \Pet.owner))
    return declaration
  }
  enum Slots {
    static var name: SlotIndex { 0 }
    static var owner: SlotIndex { 1 }
  }
  var name: String {
    get { self[property: Slots.name] }
    set { self[property: Slots.name] = newValue }
  }
  var owner: Owner? {
    get { self[property: Slots.owner] }
    set { self[property: Slots.owner] = newValue }
  }
}

/// The same entities in classes that are awakened.
private final class AwakeOwner: ManagedObject {
  override class var entityName: String { "Owner" }
  var name: String { self[property: Owner.Slots.name] }
}

private final class AwakePet: ManagedObject {
  override class var entityName: String { "Pet" }
  var owner: AwakeOwner? { toOne(Pet.Slots.owner) }
  // Fires a fault of an entity with fewer slots.
  override func awakeFromFetch() { _ = owner?.name }
}

/// A line of a log.
private struct Line: Sendable {
  let level: Logger.Level
  let metadata: [String: String]
}

private final class Lines: Sendable {
  private let lines = Mutex<[Line]>([])
  var all: [Line] { lines.withLock { $0 } }
  func add(_ line: Line) { lines.withLock { $0.append(line) } }
}

/// Keeps what a logger logs.
private struct Keeping: LogHandler {
  let lines: Lines
  var logLevel = Logger.Level.trace
  var metadata: Logger.Metadata = [:]

  init(_ lines: Lines) { self.lines = lines }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { lines.add(Line(level: event.level, metadata: (event.metadata ?? [:]).mapValues { "\($0)" })) }

  func log(
    level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String, function: String, line: UInt
  ) { lines.add(Line(level: level, metadata: (metadata ?? [:]).mapValues { "\($0)" })) }
}

/// The counts and the log of a coordinator's requests.
@Suite struct RequestLogTests {
  private func container(_ kind: String, _ folder: TemporaryFolder) throws -> PersistentContainer {
    try PersistentContainer(for: Owner.self, store: kind == "memory" ? .memory() : .sqlite(at: folder.file("pets.sqlite")))
  }

  private func fill(_ coordinator: PersistentStoreCoordinator) throws {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Owner.self, Pet.self])
    for name in ["Ann", "Bob"] {
      let owner = context.insert(Owner.self) { $0.name = name }
      for number in 0..<3 { context.insert(Pet.self) { ($0.name, $0.owner) = ("\(name) \(number)", owner) } }
    }
    try context.save()
  }

  private func reading(_ coordinator: PersistentStoreCoordinator) throws -> ManagedObjectContext {
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Owner.self, Pet.self])
    context.name = "list"
    return context
  }

  @Test(arguments: ["memory", "sqlite"]) func everyRequestIsCounted(_ kind: String) throws {
    let folder = TemporaryFolder(), coordinator = try container(kind, folder).persistentStoreCoordinator
    #expect(coordinator.requestCounts == RequestCounts() && coordinator.requestCounts.total == 0)
    try fill(coordinator)
    #expect(coordinator.requestCounts.keyReservations == 1 && coordinator.requestCounts.saves == 1)
    let context = try reading(coordinator), before = coordinator.requestCounts
    let pets = try context.fetch(Pet.self, sortedBy: \.name)
    #expect(try context.count(Owner.self) == 2)
    #expect(pets.map { $0.owner?.name } == ["Ann", "Ann", "Ann", "Bob", "Bob", "Bob"])
    let used = coordinator.requestCounts - before
    #expect(used.fetches == 2 && used.saves == 0 && used.total == used.fetches + used.rows, "\(used)")
    #expect("\(used)".hasPrefix("fetches 2, rows \(used.rows), relationships 0"))
  }

  @Test func aTraceNamesWhatWasRead() throws {
    let folder = TemporaryFolder(), coordinator = try container("sqlite", folder).persistentStoreCoordinator
    try fill(coordinator)
    try coordinator.close()
    let again = try container("sqlite", folder).persistentStoreCoordinator
    let log = Traces(), observation = again.observeRequests { trace in log.add(trace) }
    let context = try reading(again), pets = try context.fetch(Pet.self, sortedBy: \.name)
    #expect(pets[0].owner?.name == "Ann")
    #expect(pets[0].owner?.pets.count == 3)
    context.insert(Owner.self) { $0.name = "Cid" }
    try context.save()
    let all = log.all
    #expect(all.map(\.operation) == [.fetch, .rows, .relationships, .reserveKeys, .prepare, .commit], "\(all)")
    #expect(all[0].entity == "Pet" && all[0].returnedCount == 6 && all[0].property == nil)
    #expect(all[1].entity == "Owner" && all[1].property == "name" && all[1].requestedCount == 2 && all[1].returnedCount == 2)
    #expect(all[2].relationship == "pets" && all.allSatisfy { $0.label == "list" && $0.storeType == "SQLite" && $0.duration > .zero })
    observation.cancel()
    _ = try context.count(Owner.self)
    #expect(log.all.count == all.count)
  }

  /// The bug: a fault that an awakening object fired was reported with the slot of the property that awakened it, and trapped.
  @Test func aFaultThatIsFiredByAwakeningHasItsOwnProperty() throws {
    let folder = TemporaryFolder(), store = StoreDescription.sqlite(at: folder.file("pets.sqlite")), log = RequestLogTests.Traces()
    try fill(try PersistentContainer(for: Owner.self, store: store).persistentStoreCoordinator)
    let model = try ManagedObjectModel.declared(by: [Owner.self])
    let coordinator = try PersistentStoreCoordinator(model: model, store: store)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [AwakeOwner.self, AwakePet.self])
    let observation = coordinator.observeRequests { log.add($0) }
    defer { observation.cancel() }
    let ids = try context.fetchObjectIDs(FetchRequest<AwakePet>())
    let pet = try #require(try context.object(with: ids[0]) as? AwakePet)
    #expect(pet.owner?.name.isEmpty == false)
    #expect(log.all.filter { $0.operation == .rows }.map(\.property) == ["owner", "name"])
  }

  @Test func requestsAreLoggedWithoutValuesAndSlowOnesAsWarnings() throws {
    let folder = TemporaryFolder(), coordinator = try container("sqlite", folder).persistentStoreCoordinator, lines = Lines()
    let logger = Logger(label: "test") { _ in Keeping(lines) }
    coordinator.logRequests(to: logger)
    try fill(coordinator)
    _ = try reading(coordinator).fetch(Pet.self) { $0.name == "Ann 1" }
    #expect(lines.all.map { $0.metadata["db.operation.name"] } == ["reserveKeys", "prepare", "commit", "fetch"])
    #expect(lines.all.allSatisfy { $0.level == .debug && $0.metadata["db.system.name"] == "sqlite" })
    #expect(lines.all.last?.metadata["db.collection.name"] == "Pet" && lines.all.last?.metadata["db.response.returned_rows"] == "1")
    #expect(lines.all.allSatisfy { $0.metadata["holdfast.duration"].flatMap(Double.init).map { $0 > 0 } ?? false })
    #expect(!lines.all.contains { "\($0)".contains("Ann") })
    try coordinator.close()
    #expect(throws: StoreError.self) { _ = try reading(coordinator).fetch(Pet.self) }
    let other = try container("memory", folder).persistentStoreCoordinator
    other.logRequests(to: logger, level: .trace, slow: .zero)
    _ = try reading(other).count(Owner.self)
    #expect(lines.all.last?.level == .warning)
  }

  @Test func theLoggedRequestOfAFaultNamesItsPropertyAndItsRows() throws {
    let folder = TemporaryFolder(), filled = try container("sqlite", folder).persistentStoreCoordinator, lines = Lines()
    try fill(filled)
    try filled.close()
    let coordinator = try container("sqlite", folder).persistentStoreCoordinator
    coordinator.logRequests(to: Logger(label: "test") { _ in Keeping(lines) })
    let context = try reading(coordinator), pets = try context.fetch(Pet.self, sortedBy: \.name)
    #expect(pets[0].owner?.name == "Ann")
    let metadata = try #require(lines.all.last?.metadata)
    #expect(metadata["db.operation.name"] == "rows" && metadata["holdfast.property"] == "name" && metadata["holdfast.label"] == "list")
    #expect(metadata["holdfast.requested_rows"] == "2" && metadata["db.response.returned_rows"] == "2", "\(metadata)")
  }

  @Test func anObserverThatIsReleasedReceivesNothing() throws {
    let coordinator = try container("memory", TemporaryFolder()).persistentStoreCoordinator, log = Traces()
    var observation: RequestObservation? = coordinator.observeRequests { log.add($0) }
    _ = try reading(coordinator).count(Owner.self)
    #expect(log.all.count == 1 && observation != nil)
    observation = nil
    _ = try reading(coordinator).count(Owner.self)
    #expect(log.all.count == 1)
  }

  @Test func observersOnManyThreadsReceiveEveryRequest() async throws {
    let coordinator = try container("memory", TemporaryFolder()).persistentStoreCoordinator, log = Traces()
    try fill(coordinator)
    let observation = coordinator.observeRequests { log.add($0) }, before = coordinator.requestCounts
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 {
            coordinator.observeRequests { _ in }.cancel()
            let context = try? ManagedObjectContext(coordinator: coordinator, classes: [Owner.self, Pet.self])
            _ = try? context?.count(Pet.self)
          }
        }
      }
    }
    observation.cancel()
    #expect(log.all.count == 400 && (coordinator.requestCounts - before).fetches == 400)
  }

  final class Traces: Sendable {
    private let traces = Mutex<[StoreTrace]>([])
    var all: [StoreTrace] { traces.withLock { $0 } }
    func add(_ trace: StoreTrace) { traces.withLock { $0.append(trace) } }
  }
}
