import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Histories of random programs, replayed into an empty store.
@Suite struct HistoryReplayTests {
  private static func model() throws -> ManagedObjectModel {
    let keeps = [EntityDescription.historyValuesKey: "YES"]
    return try ManagedObjectModel(entities: [
      EntityDescription(
        "Animal", isAbstract: true, attributes: [AttributeDescription("number", .integer64)],
        relationships: [
          .toMany("friends", to: "Animal", inverse: "fans", isOrdered: true), .toMany("fans", to: "Animal", inverse: "friends"),
          .toMany("route", to: "Place", inverse: nil, isOrdered: true), .toMany("siblings", to: "Animal", inverse: "siblings"),
        ],
        userInfo: keeps),
      EntityDescription("Dog", superentity: "Animal", attributes: [AttributeDescription("age", .integer16, isOptional: true)]),
      EntityDescription(
        "Cat", superentity: "Animal", attributes: [AttributeDescription("weight", .double, isOptional: true)],
        relationships: [.toOne("owner", to: "Person", inverse: "cats")]),
      EntityDescription(
        "Person", attributes: [AttributeDescription("number", .integer64), AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("cats", to: "Cat", inverse: "owner", deleteRule: .cascade, isOrdered: true)], userInfo: keeps),
      EntityDescription("Place", attributes: [AttributeDescription("number", .integer64)], userInfo: keeps),
    ])
  }

  /// The objects of a store by number, with their values and links.
  private func state(_ context: ManagedObjectContext) throws -> [String: [String]] {
    func number(_ object: ManagedObject) throws -> String { "\(object.entity.name) \(try object.value(forKey: "number"))" }
    var state: [String: [String]] = [:]
    for name in ["Animal", "Person", "Place"] {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: name)) {
        var lines: [String] = []
        for attribute in object.entity.attributes { lines.append("\(attribute.name) \(try object.value(forKey: attribute.name))") }
        for relationship in object.entity.relationships {
          let targets: [ManagedObject]
          if relationship.isOrdered {
            lines.append("\(relationship.name) in order \(try object.ordered(forKey: relationship.name).map(number))")
            continue
          } else if relationship.isToMany {
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
      var context = try ManagedObjectContext(coordinator: coordinator)
      for step in 0..<15 {
        // One that has read no relationship.
        if Bool.random(using: &random) { context = try ManagedObjectContext(coordinator: coordinator) }
        for change in 0..<Int.random(in: 1..<6, using: &random) { try self.change(context, Int64(step * 10 + change), &random) }
        try context.save()
      }
      // The copy is in another kind of store.
      let other = HistoryStore.allCases[(HistoryStore.allCases.firstIndex(of: store) ?? 0) ^ 3], copied = TemporaryFolder()
      let copy = try other.coordinator(Self.model(), copied, .never), replayed = try ManagedObjectContext(coordinator: copy)
      try replay(try coordinator.fetchHistory().transactions, into: replayed)
      let fresh = try ManagedObjectContext(coordinator: coordinator), what = "seed \(random.seed), round \(round) on \(store)"
      #expect(try state(replayed) == state(fresh), "\(what)")
      try coordinator.close()
      try copy.close()
      let digest = try PersistentStoreCoordinator.graphDigest(of: store.description(store.path(folder)), model: Self.model())
      #expect(
        try PersistentStoreCoordinator.graphDigest(of: other.description(other.path(copied), .never), model: Self.model()) == digest,
        "\(what)")
    }
  }

  private func change(_ context: ManagedObjectContext, _ number: Int64, _ random: inout SeededGenerator) throws {
    let animals = try context.fetch(FetchRequest<ManagedObject>(entityName: "Animal")).sorted { "\($0.objectID)" < "\($1.objectID)" }
    let places = try context.fetch(FetchRequest<ManagedObject>(entityName: "Place")).sorted { "\($0.objectID)" < "\($1.objectID)" }
    let people = try context.fetch(FetchRequest<ManagedObject>(entityName: "Person")).sorted { "\($0.objectID)" < "\($1.objectID)" }
    switch Int.random(in: 0..<11, using: &random) {
    case 0, 1:
      let name = ["Dog", "Cat", "Person", "Place"].randomElement(using: &random) ?? "Dog"
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
      try one.toMany(forKey: Bool.random(using: &random) ? "friends" : "siblings").insert(other)
    case 6:
      guard let one = animals.randomElement(using: &random), let name = ["friends", "siblings"].randomElement(using: &random),
        let friend = try one.toMany(forKey: name).first
      else { return }
      try one.toMany(forKey: name).remove(friend)
    case 7:
      guard let animal = animals.randomElement(using: &random), let place = places.randomElement(using: &random) else { return }
      let route = try animal.ordered(forKey: "route")
      if let position = route.firstIndex(of: place) { route.remove(at: position) } else { route.insert(place, at: 0) }
    case 8, 9:
      let owner = (Bool.random(using: &random) ? animals : people).randomElement(using: &random)
      let names = owner?.entity.name == "Person" ? ["cats"] : ["friends", "route"]
      guard let owner, let name = names.randomElement(using: &random) else { return }
      let list = try owner.ordered(forKey: name)
      if list.isEmpty { return }
      list.move(from: .random(in: 0..<list.count, using: &random), to: .random(in: 0..<list.count, using: &random))
    default:
      if let object = (Bool.random(using: &random) ? animals : people).randomElement(using: &random) { context.delete(object) }
    }
  }

  private func replay(_ transactions: [PersistentHistoryTransaction], into context: ManagedObjectContext) throws {
    var objects: [ManagedObjectID: ManagedObject] = [:]
    for transaction in transactions {
      // The keys of new objects are in the same order.
      let inserted = transaction.changes.filter { $0.changeType == .insert }
      for change in inserted.sorted(by: { $0.changedObjectID.key < $1.changedObjectID.key }) {
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
      for change in transaction.changes {
        guard let object = objects[change.changedObjectID] else { continue }
        for (name, placed) in change.placedDestinations ?? [:] { try place(placed, in: object.ordered(forKey: name), objects) }
      }
      for change in transaction.changes where change.changeType == .delete {
        if let object = objects.removeValue(forKey: change.changedObjectID) { context.delete(object) }
      }
      try context.save()
    }
  }

  private func place(
    _ placed: [HistoryTransaction.PlacedLink], in list: OrderedToMany<ManagedObject>, _ objects: [ManagedObjectID: ManagedObject]
  ) throws {
    let others = placed.compactMap { objects[$0.destination] }
    var order = list.filter { !others.contains($0) }
    for link in placed {
      guard let object = objects[link.destination] else { continue }
      let position = link.predecessor.flatMap { objects[$0] }.flatMap { order.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
      order.insert(object, at: position)
    }
    for (position, object) in order.enumerated() {
      guard let old = list.firstIndex(of: object) else { throw Missing() }
      if old != position { list.move(from: old, to: position) }
    }
  }

  private struct Missing: Error {}
}
