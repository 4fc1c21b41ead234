import HoldfastStore
import Testing

@testable import HoldfastAtomicStore

@Suite struct TableSaveTests {
  private func link(_ source: ObjectKey, _ target: ObjectKey) -> SaveRequest.Link { SaveRequest.Link(source: source, target: target) }

  private func links(_ index: AdjacencyIndex) -> [SaveRequest.Link] {
    var links: [SaveRequest.Link] = []
    index.forEach { links.append($0) }
    return links
  }

  @Test func linksThatArentSortedAreAddedAndRemovedAtBothEnds() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Ship", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("met", to: "Ship", inverse: "metBy"), .toMany("metBy", to: "Ship", inverse: "met")])
    ])
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "TABLE-SAVE-TESTS", model: model))
    let relationship = try #require(model.entities[0].relationships.first { $0.namesLinks })
    guard case .links(let forward, let backward) = schema.storage(of: relationship) else {
      Issue.record("The relationship has no indexes of links.")
      return
    }
    var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    changes.added = (1...10).map { link(ObjectKey($0), 20) }
    let first = try TableSave.next(SaveRequest(links: [changes]), after: TableGeneration(empty: schema))
    changes.added = [link(5, 22), link(12, 20), link(5, 21), link(3, 21)]
    changes.removed = [link(8, 20), link(2, 20), link(11, 20)]
    let second = try TableSave.next(SaveRequest(links: [changes]), after: first)
    let remaining: [ObjectKey] = [1, 3, 4, 5, 6, 7, 9, 10, 12]
    let expected = (remaining.map { link($0, 20) } + [link(3, 21), link(5, 21), link(5, 22)]).sorted()
    #expect(links(second.adjacencies[forward]) == expected)
    #expect(links(second.adjacencies[backward]) == expected.map { link($0.target, $0.source) }.sorted())
    #expect(second.adjacencies[forward].count == expected.count && second.adjacencies[backward].count == expected.count)
  }

  /// Derived values change without a new version of the row.
  @Test func aChangedDerivedValueIsAChangeOfItsObject() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("text", .string, isOptional: true), .derived("upper", .string, "uppercase:(text)")])
    ])
    let identity = StoreIdentity.intern(storeUUID: "TABLE-SAVE-TESTS-OF-DERIVED-VALUES", model: model)
    let note = try #require(model.entity(named: "Note")), upper = try #require(note.slot(named: "upper"))
    func rows(_ keys: [ObjectKey], upper value: String) throws -> RowBatch {
      let builder = RowBatchBuilder(entity: note, identity: identity)
      for key in keys {
        try builder.append(key: key, version: 1, values: note.slots.map { $0.name == "upper" ? .string(value) : .string("a") })
      }
      return builder.seal()
    }
    var insertion = SaveRequest.EntityChanges(entity: note.index)
    insertion.inserted = [try rows([1, 2], upper: "A")]
    let schema = TableSchema(model: model, identity: identity)
    let saved = try TableSave.next(SaveRequest(entities: [insertion]), after: TableGeneration(empty: schema))
    for (value, updated) in [("A", []), ("B", [identity.objectID(entity: note, key: 2)])] as [(String, [ManagedObjectID])] {
      var changes = SaveRequest.EntityChanges(entity: note.index)
      changes.derived = [
        SaveRequest.DerivedRows(rows: try rows([2], upper: value), setSlots: [upper.bit], addedSlots: [0], wordsPerRow: 1)
      ]
      let next = try TableSave.next(SaveRequest(entities: [changes]), after: saved)
      #expect(next.row(entity: note.index, key: 2)?.version == 1)
      #expect(next.change(since: saved, atMost: 1) == StoreChange(updated: updated))
      #expect((next.change(since: saved, atMost: 0) == nil) == !updated.isEmpty)
    }
  }

  /// The bug: slots of the named entity were read from the row of the other one, which doesn't have them.
  @Test func aRowOfAnotherEntityIsNeitherUpdatedNorDeleted() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", attributes: [AttributeDescription("name", .string, isOptional: true)]),
      EntityDescription("Cat", superentity: "Animal"),
      EntityDescription(
        "Dog", superentity: "Animal", attributes: [AttributeDescription("chip", .integer64, isOptional: true)],
        relationships: [.toOne("keeper", to: "Keeper", inverse: nil)], uniquenessConstraints: [["chip"]]),
      EntityDescription("Keeper", attributes: []),
    ])
    let identity = StoreIdentity.intern(storeUUID: "TABLE-SAVE-TESTS-OF-ENTITIES", model: model)
    let schema = TableSchema(model: model, identity: identity)
    let cat = try #require(model.entity(named: "Cat")), dog = try #require(model.entity(named: "Dog"))
    func row(_ entity: ManagedObjectModel.Entity, version: RowVersion) throws -> RowBatch {
      let builder = RowBatchBuilder(entity: entity, identity: identity)
      try builder.append(key: 1, version: version, values: entity.slots.map { _ in .null })
      return builder.seal()
    }
    var insertion = SaveRequest.EntityChanges(entity: cat.index)
    insertion.inserted = [try row(cat, version: 1)]
    let saved = try TableSave.next(SaveRequest(entities: [insertion]), after: TableGeneration(empty: schema))
    var update = SaveRequest.EntityChanges(entity: dog.index), deletion = update
    update.updated = [
      SaveRequest.UpdatedRows(rows: try row(dog, version: 2), expectedVersions: [1], changedSlots: [7], wordsPerRow: 1)
    ]
    deletion.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
    for changes in [update, deletion] {
      let error = try #require(throws: StoreError.self) { try TableSave.next(SaveRequest(entities: [changes]), after: saved) }
      #expect(error.code == .conflict && error.conflicts.count == 1 && error.conflicts[0].persisted == nil)
    }
  }
}
