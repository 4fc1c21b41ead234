import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// The cost of saves and requests in models with many entities.
@Suite(.serialized, .ownThreads) struct EntityCostTests {
  /// The bug: for each many-to-many and each ordered relationship of the model, a save passed over all new and all updated objects.
  @Test func aSaveTakesNoLongerForEntitiesWithoutChanges() throws {
    func time(entities: Int) throws -> Duration {
      let model = try ManagedObjectModel(
        entities: (0..<entities).map { number in
          EntityDescription(
            "Node\(number)", attributes: [AttributeDescription("number", .integer64, isOptional: true)],
            relationships: [
              .toMany("next", to: "Node\(number)", inverse: "previous", isOrdered: true),
              .toMany("previous", to: "Node\(number)", inverse: "next"),
            ])
        })
      let context = try TestStore.memory.makePlace(model: model, classes: []).context()
      let nodes = try (0..<4_000).map { _ in try context.insert(entityNamed: "Node0") }
      try nodes[0].toMany(forKey: "next").insert(nodes[1])
      var time = try processorTime { try context.save() }
      for node in nodes { try node.setValue(.int64(1), forKey: "number") }
      time += try processorTime { try context.save() }
      #expect(try nodes[1].toMany(forKey: "previous").count == 1 && !context.hasChanges)
      return time
    }
    // Sixteen times as many entities. Most of the time is for the objects.
    try expectCost(below: 3, times: { try time(entities: 50) }) { try time(entities: 800) }
  }

  /// The bug: for each relationship whose inverse has a minimum number of destinations, a save passed over all deleted objects.
  @Test func aDeletionTakesNoLongerForEntitiesWithoutChanges() throws {
    func time(entities: Int) throws -> Duration {
      let model = try ManagedObjectModel(
        entities: (0..<entities).flatMap { number in
          let names = (0..<(number == 0 ? 1 : 10)).map { "\($0)" }
          return [
            EntityDescription(
              "Owner\(number)",
              relationships: names.map { .toMany("parts\($0)", to: "Part\(number)", inverse: "owner\($0)", minCount: 1) }),
            EntityDescription(
              "Part\(number)", relationships: names.map { .toOne("owner\($0)", to: "Owner\(number)", inverse: "parts\($0)") }),
          ]
        })
      let context = try TestStore.memory.makePlace(model: model, classes: []).context()
      let owner = try context.insert(entityNamed: "Owner0")
      let parts = try (0...4_000).map { _ in
        let part = try context.insert(entityNamed: "Part0")
        try part.setValue(.objectID(owner.objectID), forKey: "owner0")
        return part
      }
      try context.save()
      for part in parts.dropFirst() { context.delete(part) }
      let time = try processorTime { try context.save() }
      #expect(try owner.toMany(forKey: "parts0").count == 1 && !context.hasChanges)
      return time
    }
    try expectCost(below: 3, times: { try time(entities: 25) }) { try time(entities: 400) }
  }

  /// The bug: the entity of each batch of rows was searched among all entities, several times for each request.
  @Test func findingTheEntityOfRowsTakesNoLongerWithManyEntities() throws {
    func time(entities: Int) throws -> Duration {
      let model = try ManagedObjectModel(entities: (0..<entities).map { EntityDescription("Entity\($0)") })
      let place = try TestStore.memory.makePlace(model: model, classes: []), coordinator = try place.coordinator()
      let entity = model.entities[entities - 1]
      let builder = RowBatchBuilder(entity: entity, identity: coordinator.persistentStores[0].identity)
      try builder.append(key: 1, version: 1, values: [])
      let batch = builder.seal()
      var found = 0
      let time = processorTime { for _ in 0..<10_000 where coordinator.entityIndex(of: batch) == entity.index { found += 1 } }
      #expect(found == 10_000)
      return time
    }
    try expectCost(below: 8, times: { try time(entities: 10) }) { try time(entities: 4_000) }
  }
}
