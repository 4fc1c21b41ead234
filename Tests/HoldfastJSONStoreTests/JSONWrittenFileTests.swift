import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Written files can be opened again, even at the limits. A save that would write an unreadable file is refused.
@Suite(.bothReaders) struct JSONWrittenFileTests {
  private static let pair: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("Key", relationships: [.toOne("lock", to: "Lock", inverse: "key", deleteRule: .noAction)]),
        EntityDescription("Lock", relationships: [.toOne("key", to: "Key", inverse: "lock", deleteRule: .noAction)]),
        EntityDescription(
          "Ship", attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [
            .toMany("fleet", to: "Ship", inverse: "fleet", deleteRule: .noAction),
            .toMany("boats", to: "Boat", inverse: "ship", deleteRule: .noAction, isOrdered: true),
          ]),
        EntityDescription("Boat", relationships: [.toOne("ship", to: "Ship", inverse: "boats", deleteRule: .noAction)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private let file: JSONFile
  init() throws { file = try JSONFile() }

  /// Edits the text of a file and updates its digest.
  private func edit(_ old: String, _ new: String) throws {
    let text = try file.text()
    let place = try #require(text.range(of: old), "\(old) is not in\n\(text)")
    try file.write(JSONFile.sealed(text.replacingCharacters(in: place, with: new)))
  }

  private func make(_ model: ManagedObjectModel = pair, _ body: (ManagedObjectContext) throws -> Void) throws {
    let context = try file.context(model)
    try body(context)
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  @Test func theLastKeyIsKeptAndNoFurtherOneIsHandedOut() throws {
    try make { _ = try $0.insert(entityNamed: "Boat") }
    try edit("\"Boat\":2", "\"Boat\":4611686018427387904")
    // One key is left.
    try make { _ = try $0.insert(entityNamed: "Boat") }
    #expect(try file.text().contains("\"Boat\":\"4611686018427387905\""))
    let context = try file.context(Self.pair)
    let boats = try context.fetch(FetchRequest<ManagedObject>(entityName: "Boat"))
    #expect(boats.map(\.objectID.key) == [1, ObjectKey(1 << 62)])
    let boat = try context.insert(entityNamed: "Boat")
    let refusal = try #require(throws: StoreError.self) { try context.save() }
    #expect(refusal.code == .unstorableValue && refusal.reason.contains("no keys left") && boat.isInserted, "\(refusal)")
    context.rollback()
    _ = try context.insert(entityNamed: "Ship")
    try context.save()
    try context.persistentStoreCoordinator.close()
    try file.open(Self.pair)
  }

  @Test func aVersionAtTheEndIsFollowedByTheFirst() throws {
    try make { context in
      let (ship, boat) = (try context.insert(entityNamed: "Ship"), try context.insert(entityNamed: "Boat"))
      try ship.ordered(forKey: "boats").append(boat)
    }
    try edit("{\"$key\":1,\"boats\"", "{\"$key\":1,\"$version\":\"9223372036854775807\",\"boats\"")
    for name in ["a", "b"] {
      try make { context in
        try context.fetch(FetchRequest<ManagedObject>(entityName: "Ship"))[0].setValue(.string(name), forKey: "name")
      }
    }
    #expect(try file.text().contains("{\"$key\":1,\"$version\":2,\"name\":\"b\",\"boats\":[1]}"))
  }

  @Test func metadataThatCouldNotBeReadAreRefused() throws {
    let context = try file.context(Self.pair)
    let coordinator = context.persistentStoreCoordinator
    let boat = try context.insert(entityNamed: "Boat")
    try coordinator.setMetadata(["a": .int64(1)])
    let many = Dictionary(uniqueKeysWithValues: (0...65_536).map { ("k\($0)", StoreValue.null) })
    for metadata in [["b": .objectID(boat.objectID)], [String(repeating: "n", count: 65_537): .null], many] as [[String: StoreValue]] {
      let refusal = try #require(throws: StoreError.self) { try coordinator.setMetadata(metadata) }
      #expect(refusal.code == .unstorableValue && refusal.path == file.path, "\(refusal)")
      #expect(coordinator.metadata == ["a": .int64(1)])
    }
    try context.save()
    try coordinator.setMetadata(["b": .objectID(boat.objectID)])
    try coordinator.close()
    let again = try file.context(Self.pair)
    #expect(again.persistentStoreCoordinator.metadata == ["b": .objectID(boat.objectID)])
    try again.persistentStoreCoordinator.close()
  }

  @Test func whatADeletionThatDoesNothingLeavesBehindOpensAgain() throws {
    try make { context in
      let ships = try (0..<3).map { _ in try context.insert(entityNamed: "Ship") }
      try ships[0].toMany(forKey: "fleet").insert(ships[1])
      let (key, lock, boat) = (
        try context.insert(entityNamed: "Key"), try context.insert(entityNamed: "Lock"), try context.insert(entityNamed: "Boat")
      )
      try key.setValue(.objectID(lock.objectID), forKey: "lock")
      try ships[2].ordered(forKey: "boats").append(boat)
    }
    try make { context in
      for (name, key) in [("Ship", 2), ("Ship", 3), ("Lock", 1)] as [(String, ObjectKey)] {
        let all = try context.fetch(FetchRequest<ManagedObject>(entityName: name))
        context.delete(try #require(all.first { $0.objectID.key == key }))
      }
    }
    try file.open(Self.pair)
  }

  @Test(arguments: [
    ("\"lock\":1", "\"lock\":2"), ("{\"$key\":2}", "{\"$key\":2,\"lock\":1}"), ("\"boats\":[1,2]", "\"boats\":[1]"),
    ("\"boats\":[1,2]", "\"boats\":[1,2,2]"), (",\"boats\":[1,2]", ""), ("\"fleet\":[2]", "\"fleet\":[1]"),
  ])
  func endsThatDoNotAgreeAreRefused(old: String, new: String) throws {
    try make { context in
      let ships = try (0..<2).map { _ in try context.insert(entityNamed: "Ship") }
      try ships[0].toMany(forKey: "fleet").insert(ships[1])
      for _ in 0..<2 { try ships[0].ordered(forKey: "boats").append(context.insert(entityNamed: "Boat")) }
      let (key, lock) = (try context.insert(entityNamed: "Key"), try context.insert(entityNamed: "Lock"))
      try key.setValue(.objectID(lock.objectID), forKey: "lock")
      for name in ["Key", "Lock"] { _ = try context.insert(entityNamed: name) }
    }
    try file.open(Self.pair)
    try edit(old, new)
    let refusal = try #require(throws: StoreError.self) { try file.open(Self.pair) }
    #expect(refusal.code == .damaged, "\(refusal)")
  }
}
