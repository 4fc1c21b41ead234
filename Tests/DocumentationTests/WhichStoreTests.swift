import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import Testing

@Suite struct WhichStoreTests {
  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-which-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  /// Every kind of relationship: to-one, to-many, ordered, without inverse, its own inverse, in a family of entities.
  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Work", isAbstract: true,
        attributes: [AttributeDescription("title", .string), AttributeDescription("note", .string, isOptional: true)],
        relationships: [.toMany("players", to: "Player", inverse: "works", isOrdered: true), .toOne("next", to: "Work", inverse: nil)]),
      EntityDescription("Song", superentity: "Work"),
      EntityDescription("Symphony", superentity: "Work", attributes: [AttributeDescription("number", .integer16)]),
      EntityDescription(
        "Player", attributes: [AttributeDescription("name", .string)],
        relationships: [
          .toMany("works", to: "Work", inverse: "players", isOrdered: true), .toMany("friends", to: "Player", inverse: "friends"),
        ]),
    ])
  }

  private static func fill(_ description: StoreDescription) throws {
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model(), store: description))
    func insert(_ entity: String, _ key: String, _ value: String) throws -> ManagedObject {
      let object = try context.insert(entityNamed: entity)
      try object.setValue(.string(value), forKey: key)
      return object
    }
    let works = try [insert("Song", "title", "Erlkönig"), insert("Symphony", "title", "Eroica"), insert("Song", "title", "Ganymed")]
    try works[1].setValue(.int16(3), forKey: "number")
    let players = try ["Ann", "Bob", "Cleo"].map { try insert("Player", "name", $0) }
    try works[1].setValue([players[2], players[0], players[1]], forKey: "players")
    try works[0].setValue([players[1], players[2]], forKey: "players")
    try players[2].setValue([works[0], works[1]], forKey: "works")
    try works[0].setValue(.objectID(works[1].objectID), forKey: "next")
    try players[0].setValue([players[2]], forKey: "friends")
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  /// The contents of a store as text.
  private static func contents(_ description: StoreDescription) throws -> [String] {
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model(), store: description))
    defer { try? context.persistentStoreCoordinator.close() }
    let works = try context.fetch(FetchRequest<ManagedObject>(entityName: "Work")).map { work in
      "\(work.entity.name) \(try work.value(forKey: "title")) \(try work.value(forKey: "note")) \(try work.value(forKeyPath: "players.name")) "
        + "\(try work.value(forKeyPath: "next.title"))"
    }
    let players = try context.fetch(FetchRequest<ManagedObject>(entityName: "Player")).map { player in
      "\(try player.value(forKey: "name")) \(try player.value(forKeyPath: "works.title")) \(try player.value(forKeyPath: "friends.name"))"
    }
    return (works + players).sorted()
  }

  @Test func aGraphMovesFromStoreToStoreAndBack() throws {
    try withFolder { folder in
      let first: StoreDescription = .sqlite(at: folder + "/a.sqlite"), second: StoreDescription = .json(at: folder + "/b.json")
      let third: StoreDescription = .sqlite(at: folder + "/c.sqlite")
      try Self.fill(first)
      let before = try Self.contents(first)
      #expect(before.count == 6 && before.contains { $0.contains("Erlkönig") && $0.contains("Bob") })
      try move(Self.model(), from: first, to: second)
      try move(Self.model(), from: second, to: third)
      #expect(try Self.contents(second) == before)
      #expect(try Self.contents(third) == before)
    }
  }

  @Test func relaxedStoresKeepWhatWasSaved() throws {
    try withFolder { folder in
      for store in relaxedStores(folder) {
        try Self.fill(store)
        #expect(try Self.contents(store).count == 6)
      }
    }
  }
}
