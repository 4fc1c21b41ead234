import Foundation
import Holdfast
import HoldfastMemoryStore
import TestSupport
import Testing

/// Histories of random programs, replayed into an empty store.
@Suite struct HistoryReplayTests {
  private static func model() throws -> ManagedObjectModel {
    let keeps = [EntityDescription.historyValuesKey: "YES"]
    return try ManagedObjectModel(entities: [
      EntityDescription(
        "Animal", isAbstract: true, attributes: [AttributeDescription("number", .integer64)],
        relationships: [.toMany("friends", to: "Animal", inverse: "fans"), .toMany("fans", to: "Animal", inverse: "friends")],
        userInfo: keeps),
      EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("age", .integer16, isOptional: true)]),
      EntityDescription(
        "Cat", superentity: "Animal", attributes: [AttributeDescription("weight", .double, isOptional: true)],
        relationships: [.toOne("owner", to: "Person", inverse: "cats")]),
      EntityDescription(
        "Person", attributes: [AttributeDescription("number", .integer64), AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("cats", to: "Cat", inverse: "owner", deleteRule: .cascade)], userInfo: keeps),
    ])
  }

  /// The objects of a store by number, with their values and links.
  private func state(_ context: ManagedObjectContext) throws -> [String: [String]] {
    func number(_ object: ManagedObject) throws -> String { "\(object.entity.name) \(try object.value(forKey: "number"))" }
    var state: [String: [String]] = [:]
    for name in ["Animal", "Person"] {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: name)) {
        var lines: [String] = []
        for attribute in object.entity.attributes { lines.append("\(attribute.name) \(try object.value(forKey: attribute.name))") }
        for relationship in object.entity.relationships {
          let targets: [ManagedObject]
          if relationship.isToMany {
            targets = Array(try object.toMany(forKey: relationship.name))
          } else if case .single(.objectID(let id)) = try object.value(forKey: relationship.name) {
            targets = [try context.existingObject(with: id)]
          } else {
            targets = []
          }
          lines.append("\(relationship.name) \(try targets.map(number).sorted())")
        }
        state[try number(object)] = lines
      }
    }
    return state
  }

  @Test(arguments: HistoryStore.allCases) func aReplayedHistoryGivesTheSameGraph(_ store: HistoryStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(10, full: 300) {
      let folder = TemporaryFolder(), coordinator = try store.coordinator(Self.model(), folder)
      let context = try ManagedObjectContext(coordinator: coordinator)
      for step in 0..<15 {
        for change in 0..<Int.random(in: 1..<6, using: &random) { try self.change(context, Int64(step * 10 + change), &random) }
        try context.save()
      }
      let copy = try PersistentStoreCoordinator(model: Self.model(), store: .memory()),
        replayed = try ManagedObjectContext(coordinator: copy)
      try replay(try coordinator.fetchHistory().transactions, into: replayed)
      let fresh = try ManagedObjectContext(coordinator: coordinator)
      #expect(try state(replayed) == state(fresh), "seed \(random.seed), round \(round) on \(store)")
    }
  }

  private func change(_ context: ManagedObjectContext, _ number: Int64, _ random: inout SeededGenerator) throws {
    let animals = try context.fetch(FetchRequest<ManagedObject>(entityName: "Animal")).sorted { "\($0.objectID)" < "\($1.objectID)" }
    let people = try context.fetch(FetchRequest<ManagedObject>(entityName: "Person")).sorted { "\($0.objectID)" < "\($1.objectID)" }
    switch Int.random(in: 0..<8, using: &random) {
    case 0, 1:
      let name = ["Dog", "Cat", "Person"].randomElement(using: &random) ?? "Dog"
      try context.insert(entityNamed: name).setValue(.int64(number), forKey: "number")
    case 2:
      guard let animal = animals.randomElement(using: &random) else { return }
      if animal.entity.name == "Dog" {
        try animal.setValue(.int16(.random(in: 0..<9, using: &random)), forKey: "age")
      } else {
        try animal.setValue(.double(.random(in: 0..<9, using: &random)), forKey: "weight")
      }
    case 3:
      guard let cat = animals.filter({ $0.entity.name == "Cat" }).randomElement(using: &random) else { return }
      try cat.setValue(people.randomElement(using: &random), forKey: "owner")
    case 4, 5:
      guard let one = animals.randomElement(using: &random), let other = animals.randomElement(using: &random) else { return }
      try one.toMany(forKey: "friends").insert(other)
    case 6:
      guard let one = animals.randomElement(using: &random), let friend = try one.toMany(forKey: "friends").first else { return }
      try one.toMany(forKey: "friends").remove(friend)
    default:
      if let object = (Bool.random(using: &random) ? animals : people).randomElement(using: &random) { context.delete(object) }
    }
  }

  private func replay(_ transactions: [PersistentHistoryTransaction], into context: ManagedObjectContext) throws {
    var objects: [ManagedObjectID: ManagedObject] = [:]
    for transaction in transactions {
      for change in transaction.changes where change.changeType == .insert {
        objects[change.changedObjectID] = try context.insert(entityNamed: change.changedObjectID.entityName)
      }
      for change in transaction.changes {
        guard let object = objects[change.changedObjectID] else { continue }
        for (name, value) in change.valuesAfter ?? [:] {
          if case .objectID(let id) = value {
            try object.setValue(objects[id], forKey: name)
          } else {
            try object.setValue(value, forKey: name)
          }
        }
        for (name, ids) in change.addedDestinations ?? [:] {
          for id in ids { if let target = objects[id] { try object.toMany(forKey: name).insert(target) } }
        }
        for (name, ids) in change.removedDestinations ?? [:] {
          for id in ids { if let target = objects[id] { try object.toMany(forKey: name).remove(target) } }
        }
      }
      for change in transaction.changes where change.changeType == .delete {
        if let object = objects.removeValue(forKey: change.changedObjectID) { context.delete(object) }
      }
      try context.save()
    }
  }
}
