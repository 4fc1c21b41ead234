import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// A callback of the program traps or throws while the context saves.
@Suite struct TrappingCallbackTests {
  enum Place: String, CaseIterable, Codable, Sendable { case willSave, validation, validationOfInsertion, mergePolicy }

  private let folder = TemporaryFolder()
  private var path: String { folder.file("harbour") }

  @Test(.ownThreads, arguments: FileStore.all, Place.allCases)
  func RA6_aTrapInACallbackOfASaveLeavesTheStoreAsItWas(store: FileStore, place: Place) async throws {
    try Harbour.makeFile(store.description(at: path), saves: 3)
    let before = try TemporaryFolder.read(path)
    await #expect(processExitsWith: .failure) { [path = path as String, store = store as FileStore, place = place as Place] in
      mustTrap {
        try Interruption(place: place, traps: true).save(store.description(at: path))
      }
    }
    // Before the policy decides, another context has saved.
    if place != .mergePolicy { #expect(try TestBytes.areEqual(TemporaryFolder.read(path), before)) }
    let context = try Harbour.context(store.description(at: path))
    let found = try Voyage.check(context)
    #expect(found.saves == 3 && found.fault == nil)
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
    #expect(try store.fault(at: path) == nil)
  }

  /// The context keeps its changes, and saves them when the callback doesn't throw any more.
  @Test(arguments: FileStore.all, [Place.validation, .validationOfInsertion, .mergePolicy])
  func RA6_anErrorInACallbackOfASaveLeavesTheStoreAsItWas(store: FileStore, place: Place) throws {
    try Harbour.makeFile(store.description(at: path), saves: 3)
    let before = try TemporaryFolder.read(path)
    var interruption = Interruption(place: place, traps: false)
    let context = try interruption.context(store.description(at: path))
    let object = try interruption.change(context)
    let saved = place == .mergePolicy ? try TemporaryFolder.read(path) : before
    #expect(throws: (any Error).self) { try interruption.save(context) }
    #expect(try TestBytes.areEqual(TemporaryFolder.read(path), saved))
    #expect(context.hasChanges)
    interruption.place = nil
    try interruption.save(context)
    #expect(try object.value(forKey: "name") == .string("changed") && !context.hasChanges)
    try context.persistentStoreCoordinator.close()
    #expect(try store.fault(at: path) == nil)
  }
}

/// A save whose callbacks trap or throw at one place.
private struct Interruption {
  struct Failure: Error {}

  var place: TrappingCallbackTests.Place?
  let traps: Bool

  /// The current one, for the callbacks of objects.
  @TaskLocal static var current: Interruption?

  func reach(_ place: TrappingCallbackTests.Place) throws {
    if place != self.place { return }
    if traps { fatalError("The callback traps.") }
    throw Failure()
  }

  func context(_ store: StoreDescription) throws -> ManagedObjectContext {
    try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Harbour.model, store: store), classes: [InterruptedShip.self])
  }

  /// Inserts a ship, or changes one that another context has changed and saved.
  func change(_ context: ManagedObjectContext) throws -> ManagedObject {
    guard place == .mergePolicy else {
      let ship = context.insert(InterruptedShip.self)
      try ship.setValue(.string("changed"), forKey: "name")
      return ship
    }
    let ship = try #require(try context.fetch(FetchRequest<InterruptedShip>()).first)
    try ship.setValue(.string("changed"), forKey: "name")
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    try other.existingObject(with: ship.objectID).setValue(.double(1), forKey: "length")
    try other.save()
    return ship
  }

  func save(_ context: ManagedObjectContext) throws {
    context.mergePolicy = .custom { [self] _ in
      try reach(.mergePolicy)
      return .mergeByPropertyObjectTrump
    }
    try Self.$current.withValue(self) { try context.save() }
  }

  func save(_ store: StoreDescription) throws {
    let context = try context(store)
    _ = try change(context)
    try save(context)
  }
}

private final class InterruptedShip: ManagedObject {
  override class var entityName: String { "Ship" }
  override func willSave() { try? Interruption.current?.reach(.willSave) }
  override func validate(_ value: PropertyValue, forKey key: String) throws { try Interruption.current?.reach(.validation) }
  override func validateForInsert() throws { try Interruption.current?.reach(.validationOfInsertion) }
}
