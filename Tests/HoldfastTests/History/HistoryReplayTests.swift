import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import TestSupport
import Testing

/// Histories of random programs, replayed into an empty store.
@Suite struct HistoryReplayTests {
  private static func model() throws -> ManagedObjectModel {
    let keeps = [EntityDescription.historyValuesKey: "YES"]
    return try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Animal", isAbstract: true, attributes: [AttributeDescription("number", .integer64)],
          relationships: [
            .toMany("friends", to: "Animal", inverse: "fans", isOrdered: true), .toMany("fans", to: "Animal", inverse: "friends"),
            .toMany("route", to: "Place", inverse: nil, isOrdered: true), .toMany("siblings", to: "Animal", inverse: "siblings"),
          ],
          userInfo: keeps),
        EntityDescription(
          "Dog", superentity: "Animal",
          attributes: [
            AttributeDescription("age", .integer16, isOptional: true),
            AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
          ], relationships: [.toOne("collar", to: "Collar", inverse: "dog", deleteRule: .cascade)]),
        EntityDescription(
          "Cat", superentity: "Animal", attributes: [AttributeDescription("weight", .double, isOptional: true)],
          relationships: [.toOne("owner", to: "Person", inverse: "cats")]),
        EntityDescription(
          "Collar", attributes: [AttributeDescription("number", .integer64)], relationships: [.toOne("dog", to: "Dog", inverse: "collar")],
          userInfo: keeps),
        EntityDescription(
          "Person",
          attributes: [
            AttributeDescription("number", .integer64), AttributeDescription("name", .string, isOptional: true),
            .derived("catCount", .integer64, "cats.@count"),
          ], relationships: [.toMany("cats", to: "Cat", inverse: "owner", deleteRule: .cascade, isOrdered: true)], userInfo: keeps),
        EntityDescription(
          "Place", attributes: [AttributeDescription("number", .integer64), .composite("spot", "Spot", isOptional: true)], userInfo: keeps),
      ],
      composites: [
        CompositeDescription(
          "Spot", [AttributeDescription("x", .double, isOptional: true), AttributeDescription("y", .double, isOptional: true)])
      ])
  }

  /// The maximum size of a photo that isn't stored in an external file.
  private static let threshold = 100

  /// The objects of a store by number, with their values and links.
  private func state(_ context: ManagedObjectContext) throws -> [String: [String]] {
    func number(_ object: ManagedObject) throws -> String { "\(object.entity.name) \(try object.value(forKey: "number"))" }
    var state: [String: [String]] = [:]
    for name in ["Animal", "Collar", "Person", "Place"] {
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

  /// The copy is in a store of another kind, which may be in memory. Values in external files are read from the store itself.
  @Test(arguments: HistoryStore.allCases) func aReplayedHistoryGivesTheSameGraph(_ store: HistoryStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(12, full: 300) {
      let folder = TemporaryFolder(), description = store.description(store.path(folder), threshold: Self.threshold)
      let coordinator = try PersistentStoreCoordinator(model: Self.model(), store: description)
      var context = try ManagedObjectContext(coordinator: coordinator)
      for step in 0..<15 {
        // One that has read no relationship.
        if Bool.random(using: &random) { context = try ManagedObjectContext(coordinator: coordinator) }
        for change in 0..<Int.random(in: 1..<6, using: &random) { try self.change(context, Int64(step * 10 + change), &random) }
        try context.save()
      }
      let other = HistoryStore.allCases[(HistoryStore.allCases.firstIndex(of: store) ?? 0) ^ 3], copied = TemporaryFolder()
      let target: StoreDescription =
        round % 3 == 2 ? .memory(contents: MemoryStoreContents()) : other.description(other.path(copied), .never, threshold: Self.threshold)
      let copy = try PersistentStoreCoordinator(model: Self.model(), store: target)
      let fresh = try ManagedObjectContext(coordinator: coordinator), what = "seed \(random.seed), round \(round) on \(store)"
      var replay = Replay(context: try ManagedObjectContext(coordinator: copy), what: what)
      for transaction in try coordinator.fetchHistory().transactions { try replay.apply(transaction) }
      try replay.readExternalValues(from: fresh)
      #expect(try state(replay.context) == state(fresh), "\(what)")
      try coordinator.close()
      try copy.close()
      let digest = try PersistentStoreCoordinator.graphDigest(of: description, model: Self.model())
      #expect(try PersistentStoreCoordinator.graphDigest(of: target, model: Self.model()) == digest, "\(what)")
    }
  }

  @Test(arguments: HistoryStore.allCases) func valuesInExternalFilesAreNotKept(_ store: HistoryStore) throws {
    let folder = TemporaryFolder()
    let coordinator = try PersistentStoreCoordinator(
      model: Self.model(), store: store.description(store.path(folder), threshold: Self.threshold))
    let context = try ManagedObjectContext(coordinator: coordinator), dog = try context.insert(entityNamed: "Dog")
    let small = StoreValue.data(Data(repeating: 1, count: 10)), large = StoreValue.data(Data(repeating: 2, count: 500))
    try dog.setValue(.int64(1), forKey: "number")
    for photo in [large, small, large] {
      try dog.setValue(photo, forKey: "photo")
      try context.save()
    }
    context.delete(dog)
    try context.save()
    let changes = try coordinator.fetchHistory().changes
    #expect(changes.map(\.changeType) == [.insert, .update, .update, .delete])
    #expect(changes.map(\.updatedProperties) == [nil, ["photo"], ["photo"], nil])
    #expect(changes.map { $0.valuesBefore?["photo"] } == [nil, nil, small, nil])
    #expect(changes.map { $0.valuesAfter?["photo"] } == [nil, small, nil, nil])
    #expect(changes.map { $0.valuesBefore?["number"] } == [nil, nil, nil, .int64(1)])
    try coordinator.close()
  }

  private func change(_ context: ManagedObjectContext, _ number: Int64, _ random: inout SeededGenerator) throws {
    func all(_ entity: String) throws -> [ManagedObject] {
      try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { "\($0.objectID)" < "\($1.objectID)" }
    }
    let animals = try all("Animal"), places = try all("Place"), people = try all("Person")
    switch Int.random(in: 0..<15, using: &random) {
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
    case 10:
      guard let dog = animals.filter({ $0.entity.name == "Dog" }).randomElement(using: &random) else { return }
      let count = [0, 20, 200].randomElement(using: &random) ?? 0, byte = UInt8.random(in: 0...255, using: &random)
      try dog.setValue(count == 0 ? StoreValue.null : StoreValue.data(Data(repeating: byte, count: count)), forKey: "photo")
    case 11, 12:
      guard let dog = animals.filter({ $0.entity.name == "Dog" }).randomElement(using: &random) else { return }
      // An unused collar, one of another dog, or a new one.
      let collars = try all("Collar"), isNew = collars.isEmpty || Bool.random(using: &random)
      let collar = try isNew ? context.insert(entityNamed: "Collar") : collars.randomElement(using: &random)
      if isNew { try collar?.setValue(.int64(number), forKey: "number") }
      try dog.setValue(collar, forKey: "collar")
    case 13:
      guard let place = places.randomElement(using: &random) else { return }
      let x = Bool.random(using: &random) ? StoreValue.null : .double(.random(in: 0..<9, using: &random))
      try place.setValue(x, forKey: Bool.random(using: &random) ? "spot.x" : "spot.y")
    default:
      let objects = try [animals, people, all("Collar")].randomElement(using: &random) ?? animals
      if let object = objects.randomElement(using: &random) { context.delete(object) }
    }
  }
}

/// A graph that is rebuilt from a history.
private struct Replay {
  let context: ManagedObjectContext
  /// The seed and the round, for failures.
  let what: String
  /// The objects of the copy, by the IDs in the history.
  private var objects: [ManagedObjectID: ManagedObject] = [:]
  /// The dogs whose photo isn't in the history.
  private var withoutPhoto: Set<ManagedObjectID> = []

  init(context: ManagedObjectContext, what: String) { (self.context, self.what) = (context, what) }

  mutating func apply(_ transaction: PersistentHistoryTransaction) throws {
    for change in transaction.changes { try expectValuesBefore(change) }
    // The keys of new objects are in the same order.
    let inserted = transaction.changes.filter { $0.changeType == .insert }
    for change in inserted.sorted(by: { $0.changedObjectID.key < $1.changedObjectID.key }) {
      objects[change.changedObjectID] = try context.insert(entityNamed: change.changedObjectID.entityName)
    }
    for change in transaction.changes { try setValues(change) }
    for change in transaction.changes {
      guard let object = objects[change.changedObjectID] else { continue }
      for (name, placed) in change.placedDestinations ?? [:] { try place(placed, in: object.ordered(forKey: name)) }
    }
    for change in transaction.changes where change.changeType == .delete {
      if let object = objects.removeValue(forKey: change.changedObjectID) { context.delete(object) }
    }
    try context.save()
  }

  /// Compares the values before a change with those of the copy.
  private func expectValuesBefore(_ change: PersistentHistoryChange) throws {
    if change.changeType == .insert {
      #expect(change.valuesBefore == nil, "\(what)")
      return
    }
    let object = try #require(objects[change.changedObjectID], "\(what)"), values = try #require(change.valuesBefore, "\(what)")
    for (name, value) in values {
      var expected = value
      if case .objectID(let id) = value { expected = try .objectID(#require(objects[id], "\(what)").objectID) }
      #expect(try object.value(forKey: name).storeValue == expected, "\(change.changedObjectID).\(name), \(what)")
    }
  }

  private mutating func setValues(_ change: PersistentHistoryChange) throws {
    guard let object = objects[change.changedObjectID] else { return }
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
    guard object.entity.name == "Dog" else { return }
    if change.valuesAfter?["photo"] != nil {
      withoutPhoto.remove(change.changedObjectID)
    } else if change.changeType == .insert || change.updatedProperties?.contains("photo") == true {
      withoutPhoto.insert(change.changedObjectID)
    }
  }

  /// Sets the values that the history doesn't have, because they are in external files.
  func readExternalValues(from source: ManagedObjectContext) throws {
    for id in withoutPhoto {
      guard let object = objects[id] else { continue }
      try object.setValue(source.existingObject(with: id).value(forKey: "photo"), forKey: "photo")
    }
    try context.save()
  }

  private func place(_ placed: [HistoryTransaction.PlacedLink], in list: OrderedToMany<ManagedObject>) throws {
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
