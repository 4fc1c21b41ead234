import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A derived value changes without its row's version. Such versions are one history, and the counts of both processes add up.
@Suite(.bothReaders) struct JSONDerivedTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Dog",
          attributes: [
            AttributeDescription("name", .string, isOptional: true), .derived("walkCount", .integer64, "walks.@count"),
            .derived("minutes", .integer64, "walks.minutes.@sum"),
          ], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
        EntityDescription(
          "Walk", attributes: [AttributeDescription("minutes", .integer32, isOptional: true), .derived("dogName", .string, "dog.name")],
          relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private let (file, copy): (JSONFile, JSONFile)

  init() throws {
    (file, copy) = (try JSONFile(), try JSONFile())
    let context = try Self.context(file)
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(.string("Rex"), forKey: "name")
    try context.save()
    try context.persistentStoreCoordinator.close()
    try copy.write(try file.bytes())
  }

  private static func context(_ file: JSONFile) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .json(at: file.path)))
  }

  private static func dog(_ context: ManagedObjectContext) throws -> ManagedObject {
    try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).first)
  }

  private static func walk(_ minutes: Int32, _ context: ManagedObjectContext) throws {
    let walk = try context.insert(entityNamed: "Walk")
    try walk.setValue(.int32(minutes), forKey: "minutes")
    try dog(context).toMany(forKey: "walks").insert(walk)
    try context.save()
  }

  /// Saves as another process would: in a copy, which replaces the file.
  private func saveElsewhere(_ body: (ManagedObjectContext) throws -> Void) throws {
    try copy.write(try file.bytes())
    let context = try Self.context(copy)
    try body(context)
    try context.persistentStoreCoordinator.close()
    #expect(Foundation.rename(copy.path, file.path) == 0)
  }

  @Test func `counts of two processes add up`() throws {
    let context = try Self.context(file)
    try Self.walk(1, context)
    try saveElsewhere { try Self.walk(10, $0) }
    try Self.walk(100, context)
    let dog = try Self.dog(context)
    try context.refresh(dog, mergeChanges: true)
    #expect(try dog.value(forKey: "walkCount") == .int64(3) && dog.value(forKey: "minutes") == .int64(111))
    try saveElsewhere { other in
      let dog = try Self.dog(other)
      try dog.setValue(.string("Max"), forKey: "name")
      try other.save()
    }
    try Self.walk(1000, context)
    try context.persistentStoreCoordinator.close()
    let again = try Self.context(file), found = try Self.dog(again)
    #expect(try found.value(forKey: "name") == .string("Max") && found.value(forKey: "walkCount") == .int64(4))
    #expect(try found.value(forKey: "minutes") == .int64(1111))
    try again.persistentStoreCoordinator.close()
  }

  @Test func `an object that changes itself keeps what another process has counted`() throws {
    let context = try Self.context(file), dog = try Self.dog(context)
    #expect(try dog.value(forKey: "walkCount") == .int64(0))
    try saveElsewhere { try Self.walk(10, $0) }
    try dog.setValue(.string("Max"), forKey: "name")
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Self.context(file), found = try Self.dog(again)
    #expect(try found.value(forKey: "name") == .string("Max") && found.value(forKey: "walkCount") == .int64(1))
    try again.persistentStoreCoordinator.close()
  }

  @Test func `a copy that has diverged is still detected`() throws {
    let context = try Self.context(file), other = try Self.context(copy)
    try Self.walk(1, context)
    try Self.dog(context).setValue(.string("Max"), forKey: "name")
    try context.save()
    try Self.dog(other).setValue(.string("Moritz"), forKey: "name")
    try other.save()
    try other.persistentStoreCoordinator.close()
    #expect(Foundation.rename(copy.path, file.path) == 0)
    try Self.dog(context).setValue(.string("Third"), forKey: "name")
    #expect(throws: (any Error).self) { try context.save() }
    try context.persistentStoreCoordinator.close()
  }
}
