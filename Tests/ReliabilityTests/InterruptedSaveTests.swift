import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// A handler, a callback or a transformer of the program traps, throws or misuses the context while it saves. ``TrappingCallbackTests`` has
/// `willSave()`, the validation of values and insertions, and merge policies.
@Suite struct InterruptedSaveTests {
  /// The code of the program that is interrupted.
  enum Moment: String, CaseIterable, Codable, Sendable {
    case onWillSave, onChange, encoding, decoding, validationOfUpdate, validationOfDeletion, didSave, onSave

    var isAfterCommit: Bool { self == .didSave || self == .onSave }
  }

  /// A call that a callback of a save may not make.
  enum Call: String, CaseIterable, Codable, Sendable { case rollback, reset, discardChanges, mergeChanges }

  private let folder = TemporaryFolder()
  private var path: String { folder.file("fleet") }

  /// After the process ended, the store has the entire save or nothing of it, and can be saved.
  private func expectSound(_ store: FileStore, isSaved: Bool) throws {
    let context = try Fleet.context(store.description(at: path))
    #expect(try Fleet.state(context) == (isSaved ? Fleet.after : Fleet.before))
    _ = try Fleet.insert("again", 9, context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try store.fault(at: path) == nil)
  }

  @Test(.ownThreads, arguments: FileStore.all, Moment.allCases)
  func RA6_aTrapLeavesTheStoreWithTheEntireSaveOrNothingOfIt(store: FileStore, moment: Moment) async throws {
    try Fleet.makeFile(store.description(at: path))
    let before = try TemporaryFolder.read(path)
    await #expect(processExitsWith: .failure) { [path = path as String, store = store as FileStore, moment = moment as Moment] in
      mustTrap {
        let context = try Fleet.context(store.description(at: path)), observations = Fleet.observe(context)
        _ = try Fleet.change(context)
        try Fleet.save(context, Interruption(moment: moment, end: .trap))
        withExtendedLifetime(observations) {}
      }
    }
    if !moment.isAfterCommit { #expect(try TestBytes.areEqual(TemporaryFolder.read(path), before)) }
    try expectSound(store, isSaved: moment.isAfterCommit)
  }

  /// The context keeps its changes, and saves them when nothing throws any more.
  @Test(arguments: FileStore.all, [Moment.encoding, .decoding, .validationOfUpdate, .validationOfDeletion])
  func RA6_anErrorLeavesTheStoreAndTheChangesAsTheyWere(store: FileStore, moment: Moment) throws {
    try Fleet.makeFile(store.description(at: path))
    let before = try TemporaryFolder.read(path)
    let context = try Fleet.context(store.description(at: path)), fleet = try Fleet.change(context)
    let error = try #require(throws: PersistenceError.self) { try Fleet.save(context, Interruption(moment: moment, end: .error)) }
    let isTransformation = moment == .encoding || moment == .decoding
    let code = isTransformation ? PersistenceError.Code.transformationFailed : .validation
    #expect(error.code == code && error.cause is Interruption.Failure, "\(error)")
    #expect(error.objectID == (moment == .validationOfDeletion ? fleet.deleted : fleet.changed).objectID)
    #expect(try TestBytes.areEqual(TemporaryFolder.read(path), before))
    #expect(fleet.changed.isUpdated && fleet.deleted.isDeleted && fleet.new.isInserted)
    // A value that couldn't be encoded must be set again.
    if moment == .encoding { fleet.changed[transformable: Freighter.Slot.cargo] = Cargo(tons: 7) }
    try context.save()
    #expect(try !context.hasChanges && Fleet.state(context) == Fleet.after)
    try context.persistentStoreCoordinator.close()
    try expectSound(store, isSaved: true)
  }

  @Test(.ownThreads, arguments: [Moment.validationOfUpdate, .didSave], Call.allCases)
  func RA6_aCallbackThatDiscardsTheChangesOfItsSaveTraps(moment: Moment, call: Call) async throws {
    let store = FileStore.json
    try Fleet.makeFile(store.description(at: path))
    await #expect(processExitsWith: .failure) { [path = path as String, moment = moment as Moment, call = call as Call] in
      mustTrap {
        let context = try Fleet.context(FileStore.json.description(at: path))
        _ = try Fleet.change(context)
        try Fleet.save(context, Interruption(moment: moment, end: .call(call)))
      }
    }
    try expectSound(store, isSaved: moment.isAfterCommit)
  }
}

/// What interrupts the program's code at one moment of a save.
private struct Interruption: Sendable {
  enum End: Sendable {
    case trap, error
    case call(InterruptedSaveTests.Call)
  }

  struct Failure: Error {}

  let moment: InterruptedSaveTests.Moment
  let end: End

  /// The current one, for the program's code.
  @TaskLocal static var current: Interruption?

  static func reach(_ moment: InterruptedSaveTests.Moment, in context: ManagedObjectContext? = nil) throws {
    guard let current, current.moment == moment else { return }
    switch current.end {
    case .trap: fatalError("The program's code traps.")
    case .error: throw Failure()
    case .call(.rollback): context?.rollback()
    case .call(.reset): context?.reset()
    case .call(.discardChanges): try context?.discardChanges(of: [ManagedObjectID]())
    case .call(.mergeChanges): try context?.mergeChanges(from: SavedChanges(storeIdentifier: "", contextName: ""))
    }
  }
}

private struct Cargo: Sendable, Hashable {
  let tons: UInt8
}

private struct CargoTransformer: AttributeTransformer {
  struct Damage: Error {}

  func data(from cargo: Cargo) throws -> Data {
    try Interruption.reach(.encoding)
    return Data([cargo.tons])
  }

  func value(from data: Data) throws -> Cargo {
    try Interruption.reach(.decoding)
    guard data.count == 1, let tons = data.first else { throw Damage() }
    return Cargo(tons: tons)
  }
}

private final class Freighter: ManagedObject {
  enum Slot { static let cargo: SlotIndex = 0, name: SlotIndex = 1 }
  override class var entityName: String { "Freighter" }

  override func willSave() {
    // Encodes the value within the save.
    if isUpdated, Interruption.current?.moment == .encoding { self[transformable: Slot.cargo] = Cargo(tons: 7) }
  }

  override func validateForUpdate() throws {
    _ = try transformableValue(Slot.cargo, as: Cargo.self)
    try Interruption.reach(.validationOfUpdate, in: managedObjectContext)
  }

  override func validateForDelete() throws { try Interruption.reach(.validationOfDeletion, in: managedObjectContext) }
  override func didSave() { try? Interruption.reach(.didSave, in: managedObjectContext) }
}

/// A store of freighters, and a save that changes one, deletes one and inserts one.
private enum Fleet {
  static let before = ["first 1", "second 2"], after = ["changed 7", "third 3"]

  static func context(_ store: StoreDescription) throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Freighter", attributes: [.transformable("cargo", by: "Cargo", isOptional: true), AttributeDescription("name", .string)])
    ])
    let coordinator = try PersistentStoreCoordinator(model: model, transformers: ["Cargo": CargoTransformer()], store: store)
    return try ManagedObjectContext(coordinator: coordinator, classes: [Freighter.self])
  }

  static func makeFile(_ store: StoreDescription) throws {
    let context = try context(store)
    _ = try (insert("first", 1, context), insert("second", 2, context))
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  static func insert(_ name: String, _ tons: UInt8, _ context: ManagedObjectContext) throws -> Freighter {
    let freighter = context.insert(Freighter.self)
    try freighter.setValue(name, forKey: "name")
    try freighter.setTransformableValue(Cargo(tons: tons), Freighter.Slot.cargo)
    return freighter
  }

  private static func name(_ freighter: Freighter) throws -> String {
    guard case .string(let name)? = try freighter.value(forKey: "name").storeValue else { return "" }
    return name
  }

  /// The names and cargoes, sorted.
  static func state(_ context: ManagedObjectContext) throws -> [String] {
    try context.fetch(FetchRequest<Freighter>()).map { freighter in
      let cargo = try freighter.transformableValue(Freighter.Slot.cargo, as: Cargo.self)
      return try "\(name(freighter)) \(cargo?.tons ?? 0)"
    }.sorted()
  }

  static func change(_ context: ManagedObjectContext) throws -> (changed: Freighter, deleted: Freighter, new: Freighter) {
    let all = try context.fetch(FetchRequest<Freighter>())
    let changed = try #require(try all.first { try name($0) == "first" })
    let deleted = try #require(try all.first { try name($0) == "second" })
    try changed.setValue("changed", forKey: "name")
    try changed.setTransformableValue(Cargo(tons: 7), Freighter.Slot.cargo)
    context.delete(deleted)
    return (changed, deleted, try insert("third", 3, context))
  }

  /// Adds handlers of all kinds. Keep the registrations.
  static func observe(_ context: ManagedObjectContext) -> [ContextObservation] {
    [
      context.onWillSave { context in try? Interruption.reach(.onWillSave, in: context) },
      context.onSave { context, _ in try? Interruption.reach(.onSave, in: context) },
      context.onChange { context, _ in try? Interruption.reach(.onChange, in: context) },
    ]
  }

  static func save(_ context: ManagedObjectContext, _ interruption: Interruption) throws {
    try Interruption.$current.withValue(interruption) { try context.save() }
  }
}
