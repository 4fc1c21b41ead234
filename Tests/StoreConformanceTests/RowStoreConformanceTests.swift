import Foundation
import Holdfast
import HoldfastRowStore
import HoldfastStoreConformance
import LogStore
import Synchronization
import Testing

/// The example of a row store.
struct LogHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.log(at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.log")
    return StorePlace(
      .log(at: file.path), readOnly: .log(at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.\n".utf8).write(to: file) }, copy: { try place(in: copy(folder)) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}

@Suite struct RowStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: LogHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: LogHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: LogHarness(), timeLimit: nil) == [])
  }

  // MARK: Files

  private static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])]) } catch { fatalError("\(error)") }
  }()

  private func withFile(_ body: (URL) throws -> Void) throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try body(file)
  }

  /// The last line of a log may be incomplete, and is then removed.
  @Test(arguments: ["{\"a\":1}", "12345", "This is no log.", "0123456789abcdef0123456789abcdef", "0123456789abcdef ", "two\nlines"])
  func anotherFileIsNotOpenedAsALogAndStaysUnchanged(_ text: String) throws {
    try withFile { file in
      try Data(text.utf8).write(to: file)
      let description = StoreDescription.log(at: file.path)
      let opening = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: Self.model, store: description) }
      #expect(opening?.code == .notAStore || opening?.code == .damaged, "\(String(describing: opening))")
      #expect(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: description) }
      #expect(try Data(contentsOf: file) == Data(text.utf8))
    }
  }

  @Test func aLogWhoseCreationWasInterruptedIsCreatedAgain() throws {
    try withFile { file in
      let description = StoreDescription.log(at: file.path)
      try PersistentStoreCoordinator(model: Self.model, store: description).close()
      let created = try Data(contentsOf: file)
      for length in [0, 18, created.count / 2, created.count - 1] {
        try created.prefix(length).write(to: file)
        try PersistentStoreCoordinator(model: Self.model, store: description).close()
        #expect(try Data(contentsOf: file).count == created.count)
      }
    }
  }

  // MARK: Unknown outcomes

  /// A store whose next change of rows fails with an unknown outcome, and that refuses all changes afterwards, as the log store does when the
  /// disk fails.
  private final class FailingStore: RowStore {
    let capabilities = StoreCapabilities()
    let hasFailed = Atomic(false)

    func open() -> [String: String] { [:] }
    func close() {}
    func snapshot() {}
    func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) {}
    func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] { [] }
    func apply(_ changes: RowChanges) throws {
      if hasFailed.load(ordering: .relaxed) { throw StoreError(.notOpen, operation: "save", reason: "The store isn't open.") }
      if changes.savedRows.isEmpty { return }
      hasFailed.store(true, ordering: .relaxed)
      throw StoreError(.outcomeUnknown, operation: "save", reason: "The disk didn't confirm the save.")
    }
  }

  @Test func aStoreThatRefusesChangesAfterAnUnknownOutcomeCanBeClosed() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .rowStore("failing") { FailingStore() })
    let context = try ManagedObjectContext(coordinator: coordinator)
    _ = try context.insert(entityNamed: "Dog")
    #expect(try #require(throws: StoreError.self) { try context.save() }.code == .outcomeUnknown)
    try coordinator.close()
  }

  // MARK: Settings

  /// A store that keeps only its settings.
  private final class SettingsStore: RowStore {
    let capabilities = StoreCapabilities()
    let settings: Mutex<[String: String]>

    init(_ settings: [String: String] = [:]) { self.settings = Mutex(settings) }

    func open() -> [String: String] { settings.withLock { $0 } }
    func close() {}
    func snapshot() {}
    func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) {}
    func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] { [] }
    func apply(_ changes: RowChanges) { settings.withLock { $0.merge(changes.settings) { $1 } } }
  }

  /// The bug: IDs in a store with an empty UUID looked like those of unsaved objects.
  @Test func settingsWithAnInvalidUUIDAreDamaged() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])]), store = SettingsStore()
    let coordinator = try PersistentStoreCoordinator(model: model, store: .rowStore("settings") { store })
    let uuid = coordinator.storeIdentifier
    try coordinator.close()
    let settings = store.open()
    for other in ["", "A", uuid.lowercased(), uuid + "/..", uuid] {
      let edited = settings.mapValues { $0.replacingOccurrences(of: uuid, with: other) }
      let description = StoreDescription.rowStore("settings") { SettingsStore(edited) }
      if other == uuid {
        try PersistentStoreCoordinator(model: model, store: description).close()
      } else {
        let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: model, store: description).close() }
        #expect(error.code == .damaged, "\(error)")
      }
    }
  }

  // MARK: Row sources

  /// An owner with two ordered pets.
  private struct Pets: RowSource {
    func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) throws {
      let rows = [
        StoredRow(entity: "Owner", key: 1, version: 1, values: []),
        StoredRow(entity: "Pet", key: 1, version: 1, values: [.int64(1)]),
        StoredRow(entity: "Pet", key: 2, version: 4, values: [.int64(1)]),
      ]
      for row in rows where query.entities.contains(where: { $0.name == row.entity }) { try output.add(row) }
    }

    func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] {
      query.relationship == "Owner.pets"
        ? [1, 2].map { StoredLink(relationship: "Owner.pets", source: 1, target: $0, order: $0.rawValue) } : []
    }

    static let model = Result {
      try ManagedObjectModel(entities: [
        EntityDescription("Owner", relationships: [.toMany("pets", to: "Pet", inverse: "owner", isOrdered: true)]),
        EntityDescription("Pet", relationships: [.toOne("owner", to: "Owner", inverse: "pets")]),
      ])
    }

    /// The changes of a save that deletes an object.
    static func changes(deleting entity: String, version: RowVersion = 1) throws -> RowChanges {
      let model = try model.get(), identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model)
      var changes = SaveRequest.EntityChanges(entity: try #require(model.entity(named: entity)).index)
      changes.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [version])
      return try SaveRequest(entities: [changes]).rowChanges(in: (), of: Pets(), model: model, identity: identity)
    }
  }

  /// A cat with the key 1.
  private struct Cats: RowSource {
    func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) throws {
      let cat = StoredRow(entity: "Cat", key: 1, version: 1, values: [.string("Mia")])
      if query.entities.contains(where: { $0.name == cat.entity }) { try output.add(cat) }
    }

    func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] { [] }
  }

  /// The bug: slots of the named entity were read and written in the row of the other one, which doesn't have them. That trapped.
  @Test(arguments: [true, false]) func aRowOfAnotherEntityIsNeitherUpdatedNorDeletedForAnyRowSource(_ comparesVersions: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", attributes: [AttributeDescription("name", .string, isOptional: true)]),
      EntityDescription("Cat", superentity: "Animal"),
      EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("chip", .integer64, isOptional: true)]),
    ])
    let identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model), dog = try #require(model.entity(named: "Dog"))
    let builder = RowBatchBuilder(entity: dog, identity: identity)
    try builder.append(key: 1, version: 2, values: dog.slots.map { _ in .null })
    let rows = builder.seal()
    var update = SaveRequest.EntityChanges(entity: dog.index), deletion = update, derivation = update
    update.updated = [SaveRequest.UpdatedRows(rows: rows, expectedVersions: [1], changedSlots: [3], wordsPerRow: 1)]
    deletion.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
    derivation.derived = [SaveRequest.DerivedRows(rows: rows, setSlots: [3], addedSlots: [0], wordsPerRow: 1)]
    for (changes, isCompared) in [(update, comparesVersions), (deletion, comparesVersions), (derivation, false)] {
      func save() throws -> RowChanges {
        try SaveRequest(entities: [changes])
          .rowChanges(in: (), of: Cats(), model: model, identity: identity, comparesVersions: comparesVersions)
      }
      if isCompared {
        let error = try #require(throws: StoreError.self) { try save() }
        #expect(error.code == .conflict && error.conflicts.count == 1 && error.conflicts[0].persisted == nil)
      } else {
        #expect(try save().isEmpty)
      }
    }
  }

  @Test func referencesToDeletedObjectsAreSeveredForAnyRowSource() throws {
    let changes = try Pets.changes(deleting: "Owner")
    #expect(changes.deletedRows.map(\.entity) == ["Owner"] && changes.deletedLinks.count == 2)
    #expect(changes.savedRows.sorted { $0.key < $1.key }.map(\.values) == [[.null], [.null]])
    #expect(Set(changes.savedRows.map(\.version)) == [2, 5])
  }

  @Test func theOrderOfDeletedObjectsIsPrunedForAnyRowSource() throws {
    let changes = try Pets.changes(deleting: "Pet")
    #expect(changes.deletedLinks == [StoredLink(relationship: "Owner.pets", source: 1, target: 1)] && changes.savedRows.isEmpty)
    #expect(try #require(throws: StoreError.self) { try Pets.changes(deleting: "Pet", version: 3) }.conflicts.count == 1)
  }
}
