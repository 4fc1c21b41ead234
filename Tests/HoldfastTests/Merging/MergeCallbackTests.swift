import HoldfastMemoryStore
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// Policies and callbacks that use the context in the middle of a merge.
@Suite struct MergeCallbackTests {
  typealias Two = MergePolicyTests.Two

  /// Saves a context that is being merged, and keeps the code of each error; nil for a save that succeeds.
  private final class Saver: @unchecked Sendable {  // because each test uses it on one thread
    private weak var context: ManagedObjectContext?
    private(set) var codes: [PersistenceError.Code?] = []

    init(_ context: ManagedObjectContext) { self.context = context }

    func save() {
      do {
        try context?.save()
        codes.append(nil)
      } catch { codes.append((error as? PersistenceError)?.code) }
    }
  }

  /// Otherwise the merge would use rows that are older than those of the save.
  @Test(arguments: TestStore.allCases, [false, true])
  func aPolicyCannotSaveTheContextThatIsMerged(_ store: TestStore, _ isAutomatic: Bool) async throws {
    let two = try Two(store, .error), saver = Saver(two.ours)
    two.ours.mergePolicy = .custom { _ in
      saver.save()
      return .mergeByPropertyObjectTrump
    }
    two.ours.automaticallyMergesChanges = isAutomatic
    var saves = two.theirs.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    two.fido.name = "Ours"
    two.theirFido.name = "Theirs"
    two.theirFido.notes = "by them"
    try two.theirs.save()
    let changes = try #require(await saves.next(isolation: #isolation))
    if isAutomatic { try two.ours.processPendingChanges() } else { try two.ours.mergeChanges(from: changes) }
    #expect(saver.codes == [.saveInProgress])
    #expect(two.fido.name == "Ours" && two.fido.notes == "by them" && two.fido.isUpdated)
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == "Ours" && saved.notes == "by them" && saver.codes.count == 1)
  }

  enum Misuse: String, CaseIterable, Codable, Sendable { case rollback, reset, discardChanges, mergeChanges }

  /// Misuses a context that is being merged.
  private final class Misuser: @unchecked Sendable {  // because a test uses it on one thread
    private weak var context: ManagedObjectContext?

    init(_ context: ManagedObjectContext) { self.context = context }

    func make(_ misuse: Misuse) throws {
      switch misuse {
      case .rollback: context?.rollback()
      case .reset: context?.reset()
      case .discardChanges: try context?.discardChanges(of: [ManagedObjectID]())
      case .mergeChanges: try context?.mergeChanges(from: SavedChanges(storeIdentifier: "", contextName: ""))
      }
    }
  }

  @Test(.ownThreads, arguments: Misuse.allCases) func aPolicyThatDiscardsTheChangesOfAContextThatIsMergedTraps(_ misuse: Misuse) async {
    await #expect(processExitsWith: .failure) { [misuse = misuse as Misuse] in
      mustTrap {
        let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: .memory())
        let ours = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        let theirs = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        let fido = ours.dog("Fido"), misuser = Misuser(ours)
        try ours.save()
        ours.automaticallyMergesChanges = true
        ours.mergePolicy = .custom { _ in
          try misuser.make(misuse)
          return .rollback
        }
        try theirs.existingDog(fido.objectID).name = "Theirs"
        try theirs.save()
        fido.name = "Ours"
        try ours.processPendingChanges()
      }
    }
  }

  /// Saves the context each time it gets or loses its row. Counts all dogs before, unless it has no row.
  final class Meddler: AwakeningTests.Pet {
    private static let calls = Mutex<[String: [String]]>([:])

    /// The calls of the objects of a context with a name, with the errors.
    static func calls(of context: ManagedObjectContext) -> [String] { calls.withLock { $0[context.name] ?? [] } }

    static func forgetCalls(of context: ManagedObjectContext) { calls.withLock { $0[context.name] = nil } }

    private func meddle(_ call: String) {
      let context = managedObjectContext
      var outcome = "saved"
      do { try context.save() } catch { outcome = (error as? PersistenceError)?.code.rawValue ?? "\(error)" }
      Meddler.calls.withLock { $0[context.name, default: []].append("\(call): \(outcome)") }
    }

    private func expectTwoDogs() {
      #expect(throws: Never.self) {
        let count = try managedObjectContext.count(for: FetchRequest<Meddler>())
        #expect(count == 2)
      }
    }

    override func awakeFromFetch() {
      expectTwoDogs()
      meddle("awake")
    }
    override func willTurnIntoFault() {
      expectTwoDogs()
      meddle("will")
    }
    override func didTurnIntoFault() { meddle("did") }
  }

  private final class AwakeSaver: ManagedObject {
    override class var entityName: String { "Dog" }
    // The call throws if the object is awakened while the save resolves the conflict.
    override func awakeFromFetch() { try? managedObjectContext.save() }
  }

  /// The save reads a fault whose links have changed. The object is awakened when the save has found a conflict.
  ///
  /// The bug: the save continued with the changes that it had had before, and trapped.
  @Test(arguments: TestStore.allCases) func anObjectThatIsAwakenedByASaveInConflictMaySaveTheContext(_ store: TestStore) throws {
    let place = try store.makePlace(classes: [AwakeSaver.self]), theirs = try ManagedObjectContext(coordinator: place.coordinator())
    let dogs = try (0..<2).map { number in
      let dog = try theirs.insert(entityNamed: "Dog")
      try dog.setValue(.string("dog \(number)"), forKey: "name")
      return dog
    }
    try theirs.save()
    let ours = try place.context()
    ours.mergePolicy = .mergeByPropertyObjectTrump
    let read = try ours.existingObject(with: dogs[0].objectID), fault = try ours.object(with: dogs[1].objectID)
    try dogs[0].setValue(.string("theirs"), forKey: "name")
    try theirs.save()
    try read.setValue(.int16(9), forKey: "age")
    try fault.toMany(forKey: "friends").insert(read)
    #expect(fault.isFault)
    try ours.save()
    #expect(!fault.isFault && !ours.hasChanges)
    let later = try ManagedObjectContext(coordinator: place.coordinator()), saved = try later.existingObject(with: dogs[0].objectID)
    #expect(try saved.value(forKey: "name") == .single(.string("theirs")) && saved.value(forKey: "age") == .single(.int16(9)))
    #expect(try later.existingObject(with: dogs[1].objectID).toMany(forKey: "friends").map(\.objectID) == [saved.objectID])
  }

  /// An object that is awakened after the merge can save the context.
  @Test(arguments: TestStore.allCases) func anObjectThatBecomesAFaultCannotSaveTheContextThatIsMerged(_ store: TestStore) throws {
    let place = try store.makePlace(classes: [Meddler.self])
    let theirs = try ManagedObjectContext(coordinator: place.coordinator())
    for number in 0..<2 {
      let dog = try theirs.insert(entityNamed: "Dog")
      try dog.setValue(.string("dog \(number)"), forKey: "name")
      try dog.setValue(.int16(Int16(number)), forKey: "age")
    }
    try theirs.save()
    let ours = try place.context()
    ours.name = "\(store) meddles"
    ours.mergePolicy = .mergeByPropertyObjectTrump
    ours.automaticallyMergesChanges = true
    let dogs = try ours.fetch(FetchRequest<Meddler>(sortedBy: [FetchSortDescriptor(SortTerm("age"))]))
    for dog in try theirs.fetch(FetchRequest<ManagedObject>(entityName: "Dog")) { try dog.setValue(.string("theirs"), forKey: "name") }
    try theirs.save()
    dogs[0].age = 9
    Meddler.forgetCalls(of: ours)
    try ours.processPendingChanges()
    #expect(Meddler.calls(of: ours) == ["will: saveInProgress", "did: saveInProgress"])
    #expect(dogs[0].age == 9 && dogs[0].name == "theirs" && dogs[0].isUpdated)
    #expect(dogs[1].name == "theirs" && !ours.hasChanges)
    #expect(Meddler.calls(of: ours).last == "awake: saved")
    let ages = try place.context().fetch(FetchRequest<Meddler>(sortedBy: [FetchSortDescriptor(SortTerm("age"))])).map(\.age)
    #expect(ages == [1, 9])
  }
}
