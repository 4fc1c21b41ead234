// swift-format-ignore-file
// The examples in comments of symbols, word for word; `SnippetTests` compares them, `CommentTests` runs them.
import FoundationEssentials
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastRowStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import HoldfastStoreRecording
import HoldfastStoreWrappers
import HoldfastSupport
import Logging
import Synchronization
import Testing

/// A class that declares its entity.
enum DeclaredZoo {
  final class Animal: ManagedObject {
    enum Slots {
      static var name: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
      static var tag: SlotIndex { name.advanced(by: slotCount(of: String.self)) }
    }
    var name: String { get { self[property: Slots.name] } set { self[property: Slots.name] = newValue } }
    var tag: Int? { get { self[property: Slots.tag] } set { self[property: Slots.tag] = newValue } }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Animal.self, [.property("name", \Animal.name, default: ""), .property("tag", \Animal.tag, .unique)])
    }
  }
}

/// An object that keeps an observation.
enum ObservingScreen {
  final class Screen {
    private var observation: ContextObservation?
    private(set) var newDogs = 0
    func show(_ context: ManagedObjectContext) {
      observation = context.onChange { [weak self] _, changes in self?.newDogs += changes.inserted.count }
    }
  }
}

/// The smallest class.
enum SmallKennel {
  final class Dog: ManagedObject {
    enum Slot { static let age: SlotIndex = 0, name: SlotIndex = 1 }
    override class var entityName: String { "Dog" }
    var age: Int { get { self[Slot.age] } set { self[Slot.age] = newValue } }
    var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
    override class var properties: [PropertyBinding] {
      [.attribute("age", \Dog.age, slot: Slot.age), .attribute("name", \Dog.name, slot: Slot.name)]
    }
  }

  static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [AttributeDescription("name", .string), AttributeDescription("age", .integer16, default: .int16(0))])
    ])
  }

  @MainActor static func container() throws -> (PersistentContainer, Dog) {
    let model = try model()
    let container = try PersistentContainer(model: model, classes: [Dog.self], store: .memory())
    let dog = container.viewContext.insert(Dog.self)
    dog.name = "Fido"
    try container.viewContext.save()
    return (container, dog)
  }

  /// What snapshots, insertions and reading show.
  static func son(_ context: ManagedObjectContext) throws -> [String] {
    let fido = context.insert(Dog.self) { $0.name = "Fido" }
    var snapshot = try ManagedObjectSnapshot(fido)
    snapshot.name += " II"
    let son = try context.insert(snapshot)
    let dogs = [fido, son]
    let names = try context.reading { dogs.map(\.name) }
    print(fido.dump(depth: 1))
    return names
  }

  static func location() -> StoreLocation {
    let server = StoreLocation(url: "https://reader:secret@example.org/notes?token=123")
    print(server)  // https://example.org/notes
    return server
  }

  static func recording() throws {
    let recorder = RecordingStore(MemoryStore())
    let description = StoreDescription(type: "recording") { recorder }
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model(), store: description), classes: [Dog.self])
    context.insert(Dog.self).name = "Fido"
    try context.save()
    let (store, id) = (recorder, try #require(context.fetchObjectIDs(FetchRequest<Dog>()).first))
    let dog = try #require(try context.object(with: id) as? Dog)
    store.clear()
    _ = dog.name  // fires the fault
    #expect(store.requests == [.beginRead(.latest), .rows(FaultRequest(entity: 0, keys: [1]))])
    store.withStoreBlocked { _ = dog.name }  // answered from memory; a request would throw
    #expect(dog.name == "Fido")
  }
}

/// Dogs with more to ask of.
enum LargeKennel {
  final class Dog: ManagedObject {
    enum Slot {
      static let age: SlotIndex = 0, breed: SlotIndex = 1, isRetired: SlotIndex = 2, name: SlotIndex = 3, owner: SlotIndex = 4
      static let friends = 0, walks = 1
    }
    override class var entityName: String { "Dog" }
    var age: Int { get { self[Slot.age] } set { self[Slot.age] = newValue } }
    var breed: String { get { self[Slot.breed] } set { self[Slot.breed] = newValue } }
    var isRetired: Bool { get { self[Slot.isRetired] } set { self[Slot.isRetired] = newValue } }
    var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
    var owner: Owner? { get { toOne(Slot.owner) } set { setToOne(Slot.owner, newValue) } }
    var friends: ToMany<Dog> { toMany(Slot.friends) }
    var walks: OrderedToMany<Walk> { ordered(Slot.walks) }
    override class var properties: [PropertyBinding] {
      [
        .attribute("age", \Dog.age, slot: Slot.age), .attribute("breed", \Dog.breed, slot: Slot.breed),
        .attribute("isRetired", \Dog.isRetired, slot: Slot.isRetired), .attribute("name", \Dog.name, slot: Slot.name),
        .toOne("owner", \Dog.owner, slot: Slot.owner), .toMany("friends", \Dog.friends, index: Slot.friends),
        .toMany("walks", \Dog.walks, index: Slot.walks),
      ]
    }
  }

  final class Owner: ManagedObject {
    override class var entityName: String { "Owner" }
    var name: String { get { self[0] } set { self[0] = newValue } }
    override class var properties: [PropertyBinding] { [.attribute("name", \Owner.name, slot: 0)] }
  }

  final class Walk: ManagedObject {
    override class var entityName: String { "Walk" }
    var date: Date { get { self[0] } set { self[0] = newValue } }
    override class var properties: [PropertyBinding] { [.attribute("date", \Walk.date, slot: 0)] }
  }

  @MainActor static func container() throws -> PersistentContainer {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        attributes: [
          AttributeDescription("age", .integer16), AttributeDescription("breed", .string), AttributeDescription("name", .string),
          AttributeDescription("isRetired", .boolean, default: .bool(false)),
        ],
        relationships: [
          .toOne("owner", to: "Owner", inverse: nil), .toMany("friends", to: "Dog", inverse: "friends"),
          .toMany("walks", to: "Walk", inverse: nil, isOrdered: true),
        ]),
      EntityDescription("Owner", attributes: [AttributeDescription("name", .string)]),
      EntityDescription("Walk", attributes: [AttributeDescription("date", .date)]),
    ])
    return try PersistentContainer(model: model, classes: [Dog.self, Owner.self, Walk.self], store: .memory())
  }

  static func takeWalks(_ dog: Dog, _ morning: Walk) {
    dog.walks.insert(morning, at: 0)
    dog.walks.move(from: 3, to: 1)
    dog.walks.sort { $0.date < $1.date }
  }

  static func byName(_ dog: Dog) throws -> (Bool, Int) {
    let isTwelve = try dog.value(forKey: "age") == .int16(12)
    let friends = try dog.value(forKey: "friends").objects ?? []
    return (isTwelve, friends.count)
  }

  static func requests(_ yesterday: Date) -> [FetchRequest<Dog>] {
    let request = FetchRequest<Dog> { $0.age > 3 && $0.name.beginsWith("A", .caseInsensitive) }
    let walked = FetchRequest<Dog> { $0.walks.any { $0.date > yesterday } }
    let ofAnna = FetchRequest<Dog> { $0.owner.name == "Anna" }
    return [request, walked, ofAnna]
  }

  static func firstTen(_ context: ManagedObjectContext) throws -> [String] {
    var request = FetchRequest<Dog>(sortedBy: [.ascending(\.name)]) { $0.age > 3 }
    request.fetchLimit = 10
    let dogs = try context.fetch(request)
    return dogs.map(\.name)
  }

  static func pinned(_ context: ManagedObjectContext) throws -> [Dog] {
    try context.setQueryGeneration(from: .current, timeLimit: .seconds(60))
    let dogs = try context.fetch(FetchRequest<Dog>())  // and everything that is reached from these dogs
    try context.setQueryGeneration(from: nil)
    return dogs
  }

  static func draft(_ context: ManagedObjectContext, _ edit: (ManagedObjectContext) throws -> Void) throws {
    let draft = ManagedObjectContext(parent: context)
    try edit(draft)
    try draft.save()  // the changes are now unsaved changes of `context`; without this, they are gone with `draft`
    try context.save()
  }

  static func explainFirstTen(_ context: ManagedObjectContext) throws {
    let request = FetchRequest<Dog>(limit: 10) { $0.age > 3 }
    print(try context.explain(request))
  }

  static func ages(_ context: ManagedObjectContext) throws -> [[String: StoreValue]] {
    let request = DictionaryFetchRequest<Dog>(columns: ["breed": .property("breed"), "age": .average("age")], groupedBy: ["breed"])
    return try context.fetch(request)
  }

  static func retire(_ background: BackgroundContext) async throws -> Int {
    let count = try await background.perform { context in
      let old = try context.fetch(Dog.self) { $0.age > 12 }
      for dog in old { dog.isRetired = true }
      try context.save()
      return old.count
    }
    return count
  }

  static func listen(_ container: PersistentContainer) async {
    for await changes in container.persistentStoreCoordinator.savedChanges() {
      print("\(changes.inserted.count) new, \(changes.updated.count) changed, \(changes.deleted.count) deleted")
    }
  }
}

enum ModelExamples {
  static func entities() -> [EntityDescription] {
    let animal = EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)])
    let dog = EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("breed", .string)])
    return [animal, dog]
  }

  static func configuration() -> ConfigurationDescription {
    let cloud = ConfigurationDescription("cloud", ["Person", "Address"])
    return cloud
  }

  static func attributes() -> [AttributeDescription] {
    let age = AttributeDescription("age", .integer16, default: .int16(0))
    let notes = AttributeDescription("notes", .string, isOptional: true)
    let colour = AttributeDescription.transformable("colour", by: "ColourTransformer", isOptional: true)
    let place = AttributeDescription.composite("place", "Place", isOptional: true)
    let count = AttributeDescription.derived("walkCount", .integer64, "walks.@count")
    return [age, notes, colour, place, count]
  }

  static func composite() -> CompositeDescription {
    let place = CompositeDescription("Place", [AttributeDescription("latitude", .double), AttributeDescription("longitude", .double)])
    return place
  }

  static func index() -> FetchIndexDescription {
    let newest = FetchIndexDescription("newest", elements: [FetchIndexElement("date", isAscending: false), FetchIndexElement("name")])
    return newest
  }

  static func rules() -> [AttributeDescription] {
    let rating = AttributeDescription("rating", .double, validation: .range(.double(0), .double(5)))
    let code = AttributeDescription("code", .string, validation: .length(3, 3))
    return [rating, code]
  }

  static func relationships() -> [RelationshipDescription] {
    let employer = RelationshipDescription.toOne("employer", to: "Company", inverse: "employees", isOptional: true)
    let employees = RelationshipDescription.toMany("employees", to: "Person", inverse: "employer", deleteRule: .deny)
    return [employer, employees]
  }

  static func names(_ path: String) throws -> [String] {
    let coordinator = try PersistentStoreCoordinator(store: .sqlite(at: path))
    let names = coordinator.model.entities.map(\.name)
    return names
  }

  static func model() throws -> ManagedObjectModel {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])
    ])
    return model
  }
}

enum ValueExamples {
  static func folds() -> Bool {
    let folding: TextFolding = [.caseInsensitive, .diacriticInsensitive]
    let isSame = folding.fold("Crème BRÛLÉE") == Array("creme brulee".utf8)  // true
    return isSame
  }

  static func deliver(
    _ records: [(id: ObjectKey, age: Int16, name: String)], of person: ManagedObjectModel.Entity, _ identity: StoreIdentity, to sink: any RowSink
  ) throws {
    let builder = RowBatchBuilder(entity: person, identity: identity)
    for record in records {
      try builder.append(key: record.id, version: 1, values: [.int16(record.age), .string(record.name)])
      if builder.isFull { _ = try sink.take(builder.seal(), .all) }
    }
    _ = try sink.take(builder.seal(), .all)
  }

  static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var digest = ContentDigest()
    digest.update(bytes)
    let number = digest.value
    return number
  }

  static func id(_ uuid: String, _ model: ManagedObjectModel, _ person: ManagedObjectModel.Entity) throws -> ManagedObjectID {
    let identity = try StoreIdentity.intern(storedUUID: uuid, model: model)
    let id = identity.objectID(entity: person, key: 7)
    return id
  }

  static func sha256(_ header: [UInt8], _ body: [UInt8]) -> [UInt8] {
    var hasher = SHA256()
    hasher.update(header)
    hasher.update(body)
    let digest = hasher.finalize()  // 32 bytes
    return digest
  }

  static func sha512(_ header: [UInt8], _ body: [UInt8]) -> [UInt8] {
    var hasher = SHA512()
    hasher.update(header)
    hasher.update(body)
    let digest = hasher.finalize()  // 64 bytes
    return digest
  }
}

enum StoreExamples {
  static func openSQLite(_ path: String, _ model: ManagedObjectModel) throws -> (SQLiteStore, StoreMetadata) {
    let store = SQLiteStore(path: path, options: SQLiteStoreOptions(busyTimeout: .seconds(1)))
    let metadata = try store.open(model: model, host: .none)
    return (store, metadata)
  }

  static func keptContents() -> StoreDescription {
    let contents = MemoryStoreContents()
    let description = StoreDescription.memory(contents: contents)  // every store it makes has the same rows
    return description
  }

  static func decode(_ reader: FileReader) throws -> String {
    var bytes: [UInt8] = []
    while let next = try reader.next() { bytes += next }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// What a file said before other contents took their place.
  static func replace(_ path: String, with bytes: UnsafeRawBufferPointer) throws -> String? {
    let file = try DurableFile(path: path)
    let contents = try file.read { reader in try decode(reader) }  // nil: there is no file yet
    let replacement = try file.beginReplacing()
    if replacement.foundChange != .none {  // another process saved meanwhile
      replacement.abort()
      return contents
    }
    try replacement.write(bytes)
    try replacement.commit()
    return contents
  }

  static func failing() -> FaultInjectingStore {
    let store = FaultInjectingStore(MemoryStore())
    store.fail(.commit, onCall: 2, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    return store
  }
}

struct MemoryHarness: StoreHarness {
  var capabilities: StoreCapabilities { MemoryStore().capabilities }
  func makePlace() -> StorePlace {
    let contents = MemoryStoreContents()
    return StorePlace(.memory(contents: contents), readOnly: .memory(contents: contents, isReadOnly: true))
  }
}

private typealias MyHarness = MemoryHarness

@Suite struct ConformanceExample {
  @Test(arguments: StoreConformance.cases(for: MyHarness().capabilities))
  func contract(_ rule: StoreConformanceCase) async throws { try await rule.run(on: MyHarness()) }

  @Test func everyAbilityIsDeclared() async {
    let undeclared = await StoreConformance.undeclaredAbilities(of: MyHarness())
    #expect(undeclared == [])
  }
}

enum ValidationExamples {
  final class Tie: ManagedObject {
    override func validate(_ value: PropertyValue, forKey key: String) throws {
      if key == "rating", value == .double(3.5) { throw PersistenceError.invalid("Nobody rates a tie 3.5.") }
    }
  }

  static func ask(_ tie: ManagedObject, _ rating: Double) -> String? {
    do {
      try tie.validateValue(.double(rating), forKey: "rating")
      return nil
    } catch {
      return (error as? PersistenceError)?.userMessage()  // "Rating may be at most 5."
    }
  }

  static let german = [
    "Property/rating": "Die Bewertung",
    "ErrorString/{property} may be at most {bound}.": "{property} darf höchstens {bound} sein.",
  ]
  static func show(_ error: PersistenceError) -> String { error.userMessage(german) }

  static func tie() throws -> Tie {
    let model = try ManagedObjectModel(entities: [EntityDescription("Tie", attributes: [ModelExamples.rules()[0]])])
    return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: [Tie.self]).insert(Tie.self)
  }
}

/// A store of rows and links.
struct DictionaryExample {
  final class DictionaryStore: RowStore {
    struct Contents: Sendable {
      var settings: [String: String] = [:]
      var rows: [String: [ObjectKey: StoredRow]] = [:]
      var links: Set<StoredLink> = []
    }
    private let contents = Mutex(Contents())

    var capabilities: StoreCapabilities { StoreCapabilities() }
    func open() -> [String: String] { contents.withLock { $0.settings } }
    func close() {}
    func snapshot() -> Contents { contents.withLock { $0 } }

    func rows(matching query: RowQuery, in snapshot: Contents, into output: RowOutput) throws {
      for entity in query.entities { for row in (snapshot.rows[entity.name] ?? [:]).values { try output.add(row) } }
    }

    func links(matching query: LinkQuery, in snapshot: Contents) -> [StoredLink] {
      snapshot.links.filter { $0.relationship == query.relationship }
    }

    func apply(_ changes: RowChanges) {
      contents.withLock { contents in
        contents.settings.merge(changes.settings) { $1 }
        for row in changes.deletedRows { contents.rows[row.entity]?[row.key] = nil }
        for row in changes.savedRows { contents.rows[row.entity, default: [:]][row.key] = row }
        contents.links.subtract(changes.deletedLinks)
        for link in changes.savedLinks { contents.links.update(with: link) }
      }
    }
  }

  let description = StoreDescription.rowStore("dictionary") { DictionaryStore() }
}

/// Stores around other stores, and building blocks of stores.
enum WrapperExamples {
  static func traced(_ description: StoreDescription) -> StoreDescription {
    let traced = description.wrapped { TracingStore($0, system: "sqlite", logger: Logger(label: "store")) }
    return traced
  }

  static func slow(_ description: StoreDescription) -> StoreDescription {
    let slow = description.wrapped { ThrottledStore($0, ThrottleLimits(concurrentRequests: 4, requestsPerSecond: 100)) }
    return slow
  }

  static func evaluating(_ description: StoreDescription, _ model: ManagedObjectModel) throws -> EvaluatingStore {
    let store = EvaluatingStore(description.makeStore())
    _ = try store.open(model: model)
    return store
  }

  static func overlay(_ path: String) -> StoreDescription {
    let sandbox = StoreDescription.overlay(over: .sqlite(at: path).readOnly())
    return sandbox
  }

  static func record(_ description: StoreDescription, _ recordingPath: String) throws -> StoreDescription {
    let recorder = try StoreRecorder(path: recordingPath)
    let recorded = description.recorded(by: recorder)
    return recorded
  }

  static func replay(_ recordingPath: String, _ copy: String) throws -> ReplayReport {
    let report = try StoreRecording(path: recordingPath).replay(on: .sqlite(at: copy))
    print(report)
    return report
  }

  static func recordRun(
    _ description: StoreDescription, _ model: ManagedObjectModel, _ recordingPath: String
  ) throws -> PersistentStoreCoordinator {
    let recorder = try StoreRecorder(path: recordingPath)
    let coordinator = try PersistentStoreCoordinator(model: model, store: description.recorded(by: recorder))
    return coordinator
  }

  struct DifferentAnswers: Error {
    let report: ReplayReport
  }

  static func compare(_ recordingPath: String, _ otherPath: String) throws {
    let report = try StoreRecording(path: recordingPath).replay(on: .json(at: otherPath))
    guard report.hasSameAnswers else { throw DifferentAnswers(report: report) }
  }

  static func anna(_ uuid: String, _ model: ManagedObjectModel, _ person: ManagedObjectModel.Entity) throws -> ManagedObjectID {
    let identity = try StoreIdentity.intern(storedUUID: uuid, model: model, usesReferences: true)
    let id = identity.objectID(entity: person, key: identity.references.key(for: "people/anna"))
    return id
  }

  static func exactSum() -> Double {
    var sum = ExactSum()
    for number in [1, 1e16, -1e16] { sum.add(number) }
    print(sum.value)  // 1.0
    return sum.value
  }

  static func count(_ rows: [String], _ sink: any RowSink) throws {
    _ = try sink.take(.count(rows.count), .all)
  }

  struct Client: Sendable {
    func get(_ address: String) async throws -> String { address }
  }

  static func wait(_ client: Client, _ address: String, _ options: RequestOptions) throws -> String {
    let body = try options.wait(for: "fetch rows") { try await client.get(address) }
    return body
  }
}
