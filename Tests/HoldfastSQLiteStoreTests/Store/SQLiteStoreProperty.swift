import Foundation
import HoldfastSQLiteStore
import HoldfastStore

/// What must hold of any bytes that are given as a SQLite store. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a test
/// of those that it starts from.
enum SQLiteStoreProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-fuzz-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      let file = folder.appendingPathComponent("store.sqlite")
      try Data(bytes).write(to: file)
      for isReadOnly in [true, false] {
        let options = SQLiteStoreOptions(
          isReadOnly: isReadOnly, durability: .normal, journalMode: .delete, requestTimeoutSeconds: 1, largestFetchBytes: 32 << 20)
        if let violation = use(.sqlite(at: file.path, options: options), isReadOnly: isReadOnly) { return violation }
        if isReadOnly, try Data(contentsOf: file) != Data(bytes) { return "A store that was only read has changed." }
        if isReadOnly, try FileManager.default.contentsOfDirectory(atPath: folder.path).count > 1 { return "Reading left a file behind." }
      }
      return nil
    } catch { return "The test could not write its file: \(error)" }
  }

  private static func use(_ description: StoreDescription, isReadOnly: Bool) -> String? {
    do {
      _ = try? description.metadataAccess?.read()
      _ = try? description.metadataAccess?.readModel()
      let store = description.makeStore()
      defer { try? store.close() }
      let identity = try store.open(model: model).identity
      for entity in model.entities { try read(entity, of: store) }
      if !isReadOnly { try save(in: store, identity) }
      return nil
    } catch is StoreError {
      return nil
    } catch {
      return "What was thrown is not a StoreError: \(error)"
    }
  }

  private final class Keys: RowSink {
    var all: [Int64] = []
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      if case .all = rows { all += (0..<batch.count).map { batch.pointer($0).key } }
      return .more
    }
  }

  private static func read(_ entity: ManagedObjectModel.Entity, of store: any IncrementalStore) throws {
    let view = try store.beginRead(.latest), keys = Keys()
    defer { view.end() }
    try store.fetch(FetchPlan(entity: entity.index, concreteEntities: entity.concreteIndexes), in: view, into: keys)
    let some = Array(Set(keys.all.prefix(50))).sorted()
    if some.isEmpty { return }
    try store.rows(FaultRequest(entity: entity.index, keys: some), in: view, into: Keys())
    for relationship in entity.relationships where relationship.isToMany {
      _ = try store.relationships(
        RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: some), in: view)
    }
  }

  private static func save(in store: any IncrementalStore, _ identity: StoreIdentity) throws {
    guard let entity = model.entity(named: "Tag") else { return }
    let key = try store.allocateKeys(entity: entity.index, count: 1)
    let builder = RowBatchBuilder(entity: entity, identity: identity)
    try builder.append(key: key[0], version: 1, values: entity.slots.map { _ in .null })
    var request = SaveRequest(), changes = SaveRequest.EntityChanges(entity: entity.index)
    changes.inserted = [builder.seal()]
    request.entities = [changes]
    try store.prepare(request).commit()
  }

  /// Every type of value, a family, and relationships that are rows, join tables and orders.
  static let model: ManagedObjectModel = {
    do {
      let types = AttributeType.storedCases.filter { $0 != .transformable }
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Item", attributes: types.map { AttributeDescription("a\($0.rawValue)", $0, isOptional: true) },
          relationships: [.toOne("owner", to: "Item", inverse: "items"), .toMany("items", to: "Item", inverse: "owner", isOrdered: true)]),
        EntityDescription(
          "Special", superentity: "Item", relationships: [.toMany("tags", to: "Tag", inverse: "specials", isOrdered: true)]),
        EntityDescription("Tag", relationships: [.toMany("specials", to: "Special", inverse: "tags")]),
      ])
    } catch { fatalError("\(error)") }
  }()
}
