import Foundation
import HoldfastStore
import Testing

@testable import HoldfastAtomicStore

/// Migrations that pass rows on as they are read, beside those from tables to tables.
@Suite struct StreamedMigrationTests {
  /// Each case has a store of its own: a store's identity knows the entities of one model at a time.
  private let storeUUID = SaveOrigin.newID().uuidString

  private func version(_ change: (inout [EntityDescription]) -> Void = { _ in }) throws -> ManagedObjectModel {
    var entities = [
      EntityDescription(
        "Dog",
        attributes: [
          .init("name", .string, isOptional: true), .init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
          .init("other", .objectID, isOptional: true),
        ],
        relationships: [
          .toMany("friends", to: "Dog", inverse: "friends"), .toMany("walks", to: "Walk", inverse: "dog", isOrdered: true),
          .toOne("toy", to: "Toy", inverse: "dog"), .toMany("tags", to: "Tag", inverse: "dogs", isOrdered: true),
          .toMany("seen", to: "Toy", inverse: nil),
        ]), EntityDescription("Puppy", superentity: "Dog", attributes: [.init("age", .integer16, isOptional: true)]),
      EntityDescription("Tag", relationships: [.toMany("dogs", to: "Dog", inverse: "tags")]),
      EntityDescription("Toy", relationships: [.toOne("dog", to: "Dog", inverse: "toy")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ]
    change(&entities)
    return try ManagedObjectModel(entities: entities)
  }

  /// Changes after which each row follows from one row, and others.
  private static let changes: [(name: String, isRowByRow: Bool, change: @Sendable (inout [EntityDescription]) -> Void)] = [
    ("nothing", true, { _ in }),
    ("attribute", true, { $0[0].attributes.append(.init("colour", .string, default: "red")) }),
    ("entity", true, { $0.append(EntityDescription("Ant")) }), ("no attribute", true, { $0[0].attributes.removeFirst() }),
    (
      "names", true,
      { entities in
        entities[0].name = "Hound"
        entities[0].renamingIdentifier = "Dog"
        entities[1].superentity = "Hound"
        entities[0].relationships[0] = .toMany("friends", to: "Hound", inverse: "friends")
        entities[2].relationships = [.toMany("dogs", to: "Hound", inverse: "tags")]
        entities[3].relationships = [.toOne("dog", to: "Hound", inverse: "toy")]
        entities[4].relationships = [.toOne("dog", to: "Hound", inverse: "walks")]
      }
    ), ("no relationship", true, { $0[0].relationships.removeLast() }),
    (
      "to-many", false,
      { entities in
        entities[0].relationships[2] = .toMany("toy", to: "Toy", inverse: "dog")
        entities[3].relationships = [.toMany("dog", to: "Dog", inverse: "toy")]
      }
    ), ("removed entity", false, { $0.remove(at: 1) }),
    ("order", false, { $0[2].relationships = [.toMany("dogs", to: "Dog", inverse: "tags", isOrdered: true)] }),
    // One end could contradict the other, which only the former tables show.
    ("to-many at one end", false, { $0[0].relationships[2] = .toMany("toy", to: "Toy", inverse: "dog") }),
    (
      "to-one", false,
      { entities in
        entities[0].relationships[3] = .toOne("tags", to: "Tag", inverse: "dogs")
      }
    ),
  ]

  @Test(arguments: changes.indices) func bothWaysHaveTheSameResult(place: Int) throws {
    let (name, isRowByRow, change) = Self.changes[place]
    let old = try version(), new = try version(change), mapping = try MappingModel.inferred(from: old, to: new)
    #expect(mapping.isRowByRow == isRowByRow, "\(name)")
    if !isRowByRow { return }
    for keySpace in [KeySpace.family, .store] {
      let former = try filled(TableLoader(model: old, path: nil, keySpace: keySpace)).finish()
      let loader = TableLoader(model: new, path: nil, keySpace: keySpace)
      let schema = try loader.beginTables(header(new))
      try TableMigration(mapping, former.generation, to: loader, schema, path: "").run()
      let expected = try TableMigration.finish(loader, path: "")
      let stream = StreamedMigration(mapping, to: TableLoader(model: new, path: nil, keySpace: keySpace)) { _ in header(new) }
      _ = try filled(TableLoader(model: old, path: nil, keySpace: keySpace, memory: nil, passingTo: stream))
      let found = try stream.finish()
      #expect(contents(found.generation) == contents(expected.generation), "\(name)")
      #expect(contents(found.generation).count > 10)
      #expect(stream.largestKeys == former.generation.tables.map(\.largestKey))
      #expect(stream.externalIDs.count == 1)
    }
  }

  // MARK: Graphs

  private static let photo = SaveOrigin.newID()

  private func header(_ model: ManagedObjectModel) -> StoreFileHeader {
    StoreFileHeader(
      storeUUID: storeUUID, generation: 1, versionHashes: model.entityVersionHashesByName,
      layoutHashes: model.entityLayoutHashesByName)
  }

  /// Two dogs and a puppy, with keys that are unique in the store.
  private func filled(_ loader: TableLoader) throws -> TableLoader {
    let model = loader.model, schema = try loader.beginTables(header(model))
    let dog = try #require(model.entity(named: "Dog")), identity = schema.identity
    func add(_ name: String, _ rows: [(key: Int64, values: [String: StoreValue])]) throws {
      let entity = try #require(model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: identity)
      for row in rows {
        try builder.append(key: ObjectKey(row.key), version: 3, values: entity.slots.map { row.values[$0.name] ?? .null })
      }
      try loader.take(builder.seal(), of: entity.index)
    }
    try add(
      "Dog",
      [
        (1, ["name": "Fido", "toy": 5, "photo": .externalData(Self.photo)]),
        (2, ["name": "Rex", "other": .objectID(identity.objectID(entity: dog, key: 1))]),
      ])
    try add("Puppy", [(3, ["name": "Pip", "age": 1, "toy": 6])])
    try add("Tag", [(7, [:]), (8, [:])])
    try add("Toy", [(5, ["dog": 1]), (6, ["dog": 3]), (9, [:])])
    try add("Walk", [(10, ["dog": 1]), (11, ["dog": 1]), (12, ["dog": 3])])
    func links(_ pairs: (Int64, Int64)...) -> [SaveRequest.Link] {
      pairs.map { SaveRequest.Link(source: ObjectKey($0.0), target: ObjectKey($0.1)) }
    }
    for relationship in dog.ownRelationships {
      switch relationship.name {
      case "friends": loader.take(links: links((1, 2), (2, 1), (3, 3)), of: relationship)
      case "walks": loader.take(order: links((1, 11), (1, 10), (3, 12)), keys: [1, 2, 1], of: relationship)
      case "seen": loader.take(links: links((1, 9), (3, 5)), of: relationship)
      case "tags":
        if relationship.storesLinks { loader.take(links: links((1, 7), (1, 8), (3, 7)), of: relationship) }
        loader.take(order: links((1, 8), (1, 7), (3, 7)), keys: [1, 2, 1], of: relationship)
      default: break
      }
    }
    for relationship in try #require(model.entity(named: "Tag")).ownRelationships where relationship.storesLinks {
      loader.take(links: links((7, 1), (8, 1), (7, 3)), of: relationship)
    }
    return loader
  }

  private func contents(_ generation: TableGeneration) -> [String] {
    var lines: [String] = []
    for entity in generation.schema.model.entities where !entity.isAbstract {
      generation.forEachBatch(of: entity.index) { batch, _ in
        for row in 0..<batch.count {
          var line = "\(entity.name) \(batch[row].key) v\(batch[row].version) \(batch[row].values) \(batch.idPrefix?.entityName ?? "-")"
          for relationship in entity.relationships where relationship.isToMany {
            line += " \(relationship.name) \(generation.links(of: relationship).orderedTargets(of: batch[row].key))"
          }
          lines.append(line)
        }
        return .more
      }
    }
    return lines
  }
}
