import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Collects what a store returns.
final class CollectingSink: RowSink {
  var rows: [RowView] = []
  var batches: [RowBatch] = []
  /// The number of rows after which the sink stops.
  var enough = Int.max
  var onTake: ((RowBatch) throws -> Void)?

  func take(_ batch: RowBatch, _ selection: RowSelection) throws -> SinkDemand {
    try onTake?(batch)
    batches.append(batch)
    switch selection {
    case .all: rows += (0..<batch.count).map { batch[$0] }
    case .one(let index): rows.append(batch[index])
    case .rows(let indexes): rows += indexes.map { batch[Int($0)] }
    }
    return rows.count >= enough ? .enough : .more
  }
}

/// An open store with shorthands for common test operations.
final class StoreUnderTest {
  let store: SQLiteStore
  let model: ManagedObjectModel
  let metadata: StoreMetadata

  /// Must outlive the store, which has its file open.
  private let folder: TemporaryFolder

  convenience init(
    _ folder: TemporaryFolder, _ model: ManagedObjectModel, name: String = "store.sqlite",
    options: SQLiteStoreOptions = SQLiteStoreOptions()
  ) throws {
    try self.init(folder, model, path: folder.file(name), options: options)
  }

  init(_ folder: TemporaryFolder, _ model: ManagedObjectModel, path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws {
    self.folder = folder
    self.model = model
    store = SQLiteStore(path: path, options: options)
    metadata = try store.open(model: model)
  }

  deinit { try? store.close() }

  func entity(_ name: String) throws -> ManagedObjectModel.Entity { try #require(model.entity(named: name)) }

  func id(_ name: String, _ key: ObjectKey) throws -> ManagedObjectID { metadata.identity.objectID(entity: try entity(name), key: key) }

  /// Values of a row by name. Slots without a value are null.
  func values(_ name: String, _ named: [String: StoreValue]) throws -> [StoreValue] {
    try entity(name).slots.map { named[$0.name] ?? .null }
  }

  func batch(_ name: String, _ rows: [(key: ObjectKey, version: RowVersion, values: [String: StoreValue])]) throws -> RowBatch {
    let builder = RowBatchBuilder(entity: try entity(name), identity: metadata.identity)
    for row in rows { try builder.append(key: row.key, version: row.version, values: try values(name, row.values)) }
    return builder.seal()
  }

  @discardableResult
  func insert(_ name: String, _ rows: [[String: StoreValue]], links: [SaveRequest.LinkChanges] = []) throws -> [ObjectKey] {
    let keys = try store.reserveKeys(entity: try entity(name).index, count: rows.count)
    var changes = SaveRequest.EntityChanges(entity: try entity(name).index)
    changes.inserted = [try batch(name, zip(keys, rows).map { ($0, 1, $1) })]
    try save(SaveRequest(entities: rows.isEmpty ? [] : [changes], links: links))
    return keys
  }

  func save(_ request: SaveRequest) throws { try store.prepare(request).commit() }

  /// Rows of an update: key, expected version, all values, and the names of the changed ones.
  func updates(
    _ name: String, _ rows: [(key: ObjectKey, expected: RowVersion, values: [String: StoreValue], changed: [String])]
  ) throws -> SaveRequest.UpdatedRows {
    let entity = try entity(name), words = max(1, (entity.slots.count + 63) / 64)
    var mask: [UInt64] = []
    for row in rows {
      var bits = Array(repeating: UInt64(0), count: words)
      for changed in row.changed {
        let slot = try #require(entity.slot(named: changed))
        bits[slot.word] |= slot.bit
      }
      mask += bits
    }
    let rowsAfter = try batch(name, rows.map { ($0.key, $0.expected.next, $0.values) })
    return SaveRequest.UpdatedRows(rows: rowsAfter, expectedVersions: rows.map(\.expected), changedSlots: mask, wordsPerRow: words)
  }

  func update(_ name: String, _ rows: [(key: ObjectKey, expected: RowVersion, values: [String: StoreValue], changed: [String])]) throws {
    var changes = SaveRequest.EntityChanges(entity: try entity(name).index)
    changes.updated = [try updates(name, rows)]
    try save(SaveRequest(entities: [changes]))
  }

  func deletion(_ name: String, _ keys: [ObjectKey], versions: [RowVersion]? = nil) throws -> SaveRequest {
    var changes = SaveRequest.EntityChanges(entity: try entity(name).index)
    changes.deleted = SaveRequest.KeyedRows(keys: keys, expectedVersions: versions ?? keys.map { _ in 1 })
    return SaveRequest(entities: [changes])
  }

  func plan(_ name: String, _ predicate: QueryExpression? = nil) throws -> FetchPlan {
    let index = try entity(name).index
    return FetchPlan(entity: index, concreteEntities: [index], predicate: predicate)
  }

  func fetch(_ plan: FetchPlan, in view: (any ReadView)? = nil) throws -> [RowView] {
    let sink = CollectingSink()
    let used = try view ?? store.beginRead(.latest)
    try store.fetch(plan, in: used, into: sink)
    return sink.rows
  }

  func all(_ name: String, in view: (any ReadView)? = nil) throws -> [RowView] { try fetch(try plan(name), in: view) }

  func row(_ name: String, _ key: ObjectKey) throws -> RowView? {
    let sink = CollectingSink()
    try store.rows(FaultRequest(entity: try entity(name).index, keys: [key]), in: try store.beginRead(.latest), into: sink)
    return sink.rows.first
  }

  func value(_ name: String, _ key: ObjectKey, _ property: String) throws -> StoreValue? {
    let slot = try #require(try entity(name).slot(named: property))
    return try row(name, key)?[slot]
  }

  func targets(_ name: String, _ relationship: String, _ sources: [ObjectKey]) throws -> [[ObjectKey]] {
    let entity = try entity(name)
    let found = try #require(entity.relationship(named: relationship))
    let answer = try store.relationships(
      RelationshipRequest(entity: entity.index, relationship: found.index, sources: sources), in: try store.beginRead(.latest))
    return sources.indices.map { Array(answer.targets[Int(answer.offsets[$0])..<Int(answer.offsets[$0 + 1])]).sorted() }
  }
}

/// Runs `body` and returns the store error that it throws.
func thrown(_ body: () throws -> Void) throws -> StoreError {
  do { try body() } catch { return try #require(error as? StoreError) }
  struct NothingThrown: Error {}
  throw NothingThrown()
}

/// Models for several tests.
enum TestModels {
  static let people: [EntityDescription] = [
    EntityDescription(
      "Company",
      attributes: [AttributeDescription("name", .string), AttributeDescription("founded", .date, isOptional: true)],
      relationships: [.toMany("employees", to: "Person", inverse: "employer")]),
    EntityDescription(
      "Person",
      attributes: [
        AttributeDescription("id", .integer64), AttributeDescription("name", .string, isOptional: true),
        AttributeDescription("email", .string, isOptional: true), AttributeDescription("age", .integer16, isOptional: true),
        AttributeDescription("height", .double, isOptional: true), AttributeDescription("isActive", .boolean, isOptional: true),
        AttributeDescription("birthday", .date, isOptional: true), AttributeDescription("uid", .uuid, isOptional: true),
        AttributeDescription("notes", .string, isOptional: true), AttributeDescription("avatar", .binaryData, isOptional: true),
      ],
      relationships: [
        .toOne("employer", to: "Company", inverse: "employees"),
        .toMany("friends", to: "Person", inverse: "friendOf"),
        .toMany("friendOf", to: "Person", inverse: "friends"),
      ],
      uniquenessConstraints: [["id"]], indexes: [FetchIndexDescription("byName", ["name"])]),
  ]

  static func peopleModel() throws -> ManagedObjectModel { try ManagedObjectModel(entities: people, versionIdentifiers: ["1"]) }
}
