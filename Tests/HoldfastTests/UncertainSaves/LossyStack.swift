import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// A context whose store can lose the outcome of commits, and records the requests.
struct LossyStack {
  let context: ManagedObjectContext
  let recorder: RecordingStore
  let store: OutcomeStore
  private let classes: [ManagedObject.Type]

  init(
    _ kind: TestStore, model: ManagedObjectModel = Kennel.model, classes: [ManagedObject.Type] = Kennel.classes,
    reportsOutcomes: Bool = true
  ) throws {
    final class Made: @unchecked Sendable { var store: OutcomeStore? }  // because only this initializer uses it, in one thread
    let made = Made()
    (context, recorder) = try kind.makePlace(model: model, classes: classes).recording { base in
      let store = OutcomeStore(base, reportsOutcomes: reportsOutcomes)
      made.store = store
      return store
    }
    store = try #require(made.store)
    self.classes = classes
  }

  /// Another context with the same coordinator.
  func another() throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: classes)
  }

  /// Saves, and loses the outcome. Clears the record of requests.
  func saveInVain(_ loss: OutcomeStore.Loss, _ location: SourceLocation = #_sourceLocation) {
    store.loseCommit(loss)
    expectUnknown(location)
    #expect(context.hasUncertainSave && context.hasChanges, sourceLocation: location)
    recorder.clear()
  }

  /// Saves, and expects an unknown outcome.
  @discardableResult func expectUnknown(_ location: SourceLocation = #_sourceLocation) -> StoreError? {
    let error = #expect(throws: StoreError.self, sourceLocation: location) { try context.save() }
    #expect(error?.code == .outcomeUnknown, sourceLocation: location)
    return error
  }
}

extension OutcomeStore.Loss {
  /// Whether the save takes effect, if not before, then when the outcome is requested.
  var isCommitted: Bool { self != .withoutCommitting }
}

extension RecordingStore {
  /// The numbers of requests for an outcome, for keys, and to prepare a save.
  var savingRequests: [Int] {
    [
      requests.count { if case .optional(let request) = $0 { request.request is SaveOutcomeRequest } else { false } },
      requests.count { if case .reserveKeys = $0 { true } else { false } }, saves.count,
    ]
  }
}
