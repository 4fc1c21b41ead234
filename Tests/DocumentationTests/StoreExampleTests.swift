import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import TestSupport
import Testing

@Suite struct StoreExampleTests {
  @Test func aWrapperChangesOneRequestAndForwardsTheOthers() throws {
    let coordinator = try PersistentStoreCoordinator(
      model: SmallKennel.model(), store: StoreDescription(type: "slow") { SlowStore(MemoryStore()) })
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [SmallKennel.Dog.self])
    context.insert(SmallKennel.Dog.self).name = "Fido"
    try context.save()
    #expect(try context.fetch(SmallKennel.Dog.self).map(\.name) == ["Fido"])
  }

  @Test func aStoreAnswersTheRequestsInItsTable() throws {
    let store = FolderStore(), id = UUID()
    _ = try store.open(model: SmallKennel.model(), host: .none)
    #expect(try store.answers.perform(ExternalDataRequest(entity: 0, slot: 0, key: 1, id: id)) == Data(id.uuidString.utf8))
    #expect(try HistoryExample.transactions(of: store) == nil)
  }

  @Test func aWaitEndsAtItsDeadlineAndWhenItIsCancelled() {
    let late = #expect(throws: StoreError.self) {
      try WaitingExample.answer(SilentConnection(), RequestOptions(deadline: .now + .milliseconds(5)))
    }
    #expect(late?.code == .timedOut)
    let cancellation = RequestCancellation()
    startThread(after: 0.005) { cancellation.cancel() }
    let cancelled = #expect(throws: StoreError.self) {
      try WaitingExample.answer(SilentConnection(), RequestOptions(cancellation: cancellation))
    }
    #expect(cancelled?.code == .cancelled)
  }
}
