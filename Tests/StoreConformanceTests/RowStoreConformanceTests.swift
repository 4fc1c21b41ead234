import Foundation
import Holdfast
import HoldfastRowStore
import HoldfastStoreConformance
import LogStore
import Synchronization
import Testing

/// The example of a row store.
struct LogHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreDescription.log(at: "unused").makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store.log")
    return StorePlace(
      .log(at: file.path), readOnly: .log(at: file.path, isReadOnly: true),
      damage: { try Data("This is no store.\n".utf8).write(to: file) }, copy: { try place(in: copy(folder)) },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}

@Suite struct RowStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: LogHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: LogHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: LogHarness(), timeLimit: nil) == [])
  }

  // MARK: Unknown outcomes

  /// A store whose next change of rows fails with an unknown outcome, and that refuses all changes afterwards, as the log store does when the
  /// disk fails.
  private final class FailingStore: RowStore {
    let capabilities = StoreCapabilities()
    let hasFailed = Atomic(false)

    func open() -> [String: String] { [:] }
    func close() {}
    func snapshot() {}
    func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) {}
    func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] { [] }
    func apply(_ changes: RowChanges) throws {
      if hasFailed.load(ordering: .relaxed) { throw StoreError(.notOpen, operation: "save", reason: "The store isn't open.") }
      if changes.savedRows.isEmpty { return }
      hasFailed.store(true, ordering: .relaxed)
      throw StoreError(.outcomeUnknown, operation: "save", reason: "The disk didn't confirm the save.")
    }
  }

  @Test func aStoreThatRefusesChangesAfterAnUnknownOutcomeCanBeClosed() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .rowStore("failing") { FailingStore() })
    let context = try ManagedObjectContext(coordinator: coordinator)
    _ = try context.insert(entityNamed: "Dog")
    #expect(try #require(throws: StoreError.self) { try context.save() }.code == .outcomeUnknown)
    try coordinator.close()
  }
}
