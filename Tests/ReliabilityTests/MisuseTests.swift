import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Misuse by the programmer traps with a message. Tests each precondition of the public interface once.
@Suite(.ownThreads) struct MisuseTests {
  // MARK: Objects of other contexts and entities

  @Test func aToOneRelationshipTakesNoObjectOfAnotherContext() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (first, second) = try Misuse.contexts()
      first.insert(Ship.self).berth = second.insert(Berth.self)
    }
    Misuse.expect("A relationship was set to an object of another context; pass its objectID instead.", child)
  }

  @Test func aToOneRelationshipTakesNoObjectOfAnotherEntity() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      context.insert(Ship.self).setToOne(Ship.Slot.berth, context.insert(Route.self))
    }
    Misuse.expect("A relationship to Berth was set to a Route.", child)
  }

  @Test func aToManyRelationshipTakesNoObjectOfAnotherContext() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (first, second) = try Misuse.contexts()
      first.insert(Ship.self).routes.insert(second.insert(Route.self))
    }
    Misuse.expect("A relationship got an object of another context; pass its objectID instead.", child)
  }

  @Test func aToManyRelationshipTakesNoObjectOfAnotherEntity() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      try context.insert(Ship.self).toMany(forKey: "routes").insert(context.insert(Berth.self))
    }
    Misuse.expect("A relationship to Route got a Berth.", child)
  }

  @Test func aContextDeletesNoObjectOfAnother() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (first, second) = try Misuse.contexts()
      first.delete(second.insert(Ship.self))
    }
    Misuse.expect("An object was deleted in a context that it does not belong to.", child)
  }

  // MARK: Saves

  /// The thread would wait for itself.
  @Test func anObserverOfRequestsDoesNotChangeTheStoreThatIsBeingSaved() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let model = try ManagedObjectModel(entities: [EntityDescription("Journal")])
      let coordinator = try PersistentStoreCoordinator(model: model, store: .memory())
      let context = try ManagedObjectContext(coordinator: coordinator)
      _ = try context.insert(entityNamed: "Journal")
      let observation = coordinator.observeRequests { _ in try? coordinator.setMetadata(["isObserved": .bool(true)]) }
      try context.save()
      observation.cancel()
    }
    Misuse.expect("A store was saved or changed by code that its own save or change calls", child)
  }

  // MARK: Classes

  @Test func aClassThatWasNotBoundIsNotInserted() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: .memory())
      _ = try ManagedObjectContext(coordinator: coordinator, classes: [Journal.self]).insert(Ship.self)
    }
    Misuse.expect("Ship isn't bound to the model; pass it to the container.", child)
  }

  @Test func aClassThatWasNotBoundIsNotFetched() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: .memory())
      _ = try ManagedObjectContext(coordinator: coordinator, classes: [Journal.self]).fetch(FetchRequest<Ship>())
    }
    Misuse.expect("Objects of Ship appear as ManagedObject, not as Ship; pass the class to the container.", child)
  }

  @Test func aClassWithoutEntityIsNotInserted() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      _ = context.insert(Whale.self)
    }
    Misuse.expect("The model has no entity Whale, the entity of class Whale.", child)
  }

  // MARK: Requests

  @Test func aNegativeLimitTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      _ = try context.fetch(FetchRequest<Ship>(limit: -1))
    }
    Misuse.expect("A limit or offset is negative.", child)
  }

  @Test func aNegativeOffsetTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      _ = try context.count(for: FetchRequest<Ship>(offset: -1))
    }
    Misuse.expect("A limit or offset is negative.", child)
  }

  @Test func aNegativeLimitOfAHistoryTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      _ = try context.persistentStoreCoordinator.fetchHistory(limit: -1)
    }
    Misuse.expect("The limit of a history request is negative.", child)
  }

  // MARK: Deleted and reset objects

  @Test func anObjectIsNotChangedAfterItsContextWasReset() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      let ship = context.insert(Ship.self)
      ship.name = "Ship"
      try context.save()
      context.reset()
      ship.name = "Ghost"
    }
    Misuse.expect("A removed object was changed: it was deleted and saved, or its context was reset or rolled back.", child)
  }

  @Test func anObjectIsNotChangedAfterItsInsertionWasRolledBack() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      let ship = context.insert(Ship.self)
      context.rollback()
      ship.tons = 1
    }
    Misuse.expect("A removed object was changed: it was deleted and saved, or its context was reset or rolled back.", child)
  }

  @Test func aRelationshipIsNotSetToAnObjectThatWasReset() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (context, _) = try Misuse.contexts()
      let berth = context.insert(Berth.self)
      context.reset()
      context.insert(Ship.self).berth = berth
    }
    Misuse.expect("A removed object was changed: it was deleted and saved, or its context was reset or rolled back.", child)
  }

  @Test func readingAnObjectAfterResetIsAllowed() throws {
    let (context, _) = try Misuse.contexts()
    let ship = context.insert(Ship.self)
    ship.name = "Ship"
    ship.berth = context.insert(Berth.self)
    context.reset()
    #expect(ship.name == "" && ship.berth == nil && Array(ship.routes).isEmpty && !ship.hasChanges)
    context.delete(ship)
    #expect(!context.hasChanges)
  }

  // MARK: Isolation

  @Test func aBackgroundContextIsNotUsedOutsideItsPerform() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let container = try PersistentContainer(model: Harbour.model, classes: Harbour.classes, store: .memory())
      let background = container.newBackgroundContext()
      // The compiler doesn't let a context escape, so its address is passed as a number.
      let address = await background.perform { UInt(bitPattern: Unmanaged.passRetained($0).toOpaque()) }
      guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
      _ = Unmanaged<ManagedObjectContext>.fromOpaque(pointer).takeUnretainedValue().insert(Ship.self)
    }
    Misuse.expect("A background context was used outside its perform.", child)
  }

  /// On Linux, the runtime doesn't print a message for this trap.
  @Test func theViewContextIsNotUsedOffTheMainActor() async {
    await #expect(processExitsWith: .failure) {
      let container = try PersistentContainer(model: Harbour.model, classes: Harbour.classes, store: .memory())
      let address = await MainActor.run { UInt(bitPattern: Unmanaged.passRetained(container.viewContext).toOpaque()) }
      await Task.detached {
        guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
        try? Unmanaged<ManagedObjectContext>.fromOpaque(pointer).takeUnretainedValue().save()
      }.value
    }
  }

  @Test func aChildContextIsNotUsedOutsideTheIsolationOfItsParent() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let container = try PersistentContainer(model: Harbour.model, classes: Harbour.classes, store: .memory())
      let background = container.newBackgroundContext()
      let address = await background.perform { UInt(bitPattern: Unmanaged.passRetained(ManagedObjectContext(parent: $0)).toOpaque()) }
      guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
      _ = Unmanaged<ManagedObjectContext>.fromOpaque(pointer).takeUnretainedValue().insert(Ship.self)
    }
    Misuse.expect("A background context was used outside its perform.", child)
  }

  // MARK: The boundary

  @Test func readingASlotThatARowDoesNotHaveTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = Misuse.batch()[0][3] }
    Misuse.expect("Slot 3 is out of range: the row has 1 slots.", child)
  }

  @Test func readingARowThatABatchDoesNotHaveTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = Misuse.batch()[1] }
    Misuse.expect("Row 1 is out of range: the batch has 1 rows.", child)
  }

  @Test func offsetsThatDoNotSpanTheTargetsTrap() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = RelationshipAnswer(offsets: [0, 1], targets: [1, 2])
    }
    Misuse.expect("The offsets of an answer don't match its targets.", child)
  }

  @Test func negativeOptionsTrap() async throws {
    let folder = TemporaryFolder()
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [path = folder.file() as String] in
      _ = try Harbour.context(.sqlite(at: path, options: SQLiteStoreOptions(maximumReaders: 0)))
    }
    Misuse.expect("A SQLite store's options contain a negative number, or 0 where at least 1 is needed.", child)
  }
}

/// A class that has no entity in the model.
private final class Whale: ManagedObject {
  override class var entityName: String { "Whale" }
}

enum Misuse {
  /// Two contexts on one store.
  static func contexts() throws -> (ManagedObjectContext, ManagedObjectContext) {
    let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: .memory())
    return (
      try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes),
      try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
    )
  }

  /// A batch of one row with one slot.
  static func batch() -> RowBatch {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.integer64)]), idPrefix: nil)
    builder.beginRow(key: 1, version: 1)
    builder.append(integer: 7)
    builder.endRow()
    return builder.seal()
  }

  /// Checks the message that a process printed before it trapped. Optimised builds print none.
  static func expect(_ sentence: String, _ child: ExitTest.Result?, sourceLocation: SourceLocation = #_sourceLocation) {
    #if DEBUG
      let said = String(decoding: child?.standardErrorContent ?? [], as: UTF8.self)
      #expect(said.contains(sentence), sourceLocation: sourceLocation)
    #endif
  }
}
