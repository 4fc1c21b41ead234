import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

struct MemoryHarness: StoreHarness {
  var capabilities: StoreCapabilities { MemoryStore().capabilities }

  func makePlace() -> StorePlace {
    let contents = MemoryStoreContents()
    return StorePlace(.memory(contents: contents), readOnly: .memory(contents: contents, isReadOnly: true))
  }
}

@Suite struct MemoryStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: MemoryHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: MemoryHarness(), timeLimit: nil) }

  /// The bug: the contents kept the rows that they had when the store was opened.
  @Test func deletedRowsAreReleasedWhileTheStoreIsOpen() throws {
    let note = EntityDescription("Note", attributes: [AttributeDescription("text", .string, isOptional: true)])
    let model = try ManagedObjectModel(entities: [note]), contents = MemoryStoreContents()
    func save(_ changes: SaveRequest.EntityChanges, _ store: MemoryStore) throws {
      _ = try store.prepare(SaveRequest(entities: [changes]), options: .none).commit()
    }
    let first = MemoryStore(contents: contents), identity = try first.open(model: model, host: .none).identity
    let builder = RowBatchBuilder(entity: model.entities[0], identity: identity)
    try builder.append(key: 1, version: 1, values: [.string("a")])
    var insertion = SaveRequest.EntityChanges(entity: 0), deletion = insertion
    insertion.inserted = [builder.seal()]
    try save(insertion, first)
    insertion.inserted = []
    try first.close()
    let second = MemoryStore(contents: contents), found = FoundBatch()
    _ = try second.open(model: model, host: .none)
    let view = try second.beginRead(.latest, options: .none)
    try second.fetch(FetchPlan(entity: 0, concreteEntities: [0]), in: view, options: .none, into: found)
    view.end()
    let count = found.batch?.count
    #expect(count == 1)
    deletion.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
    try save(deletion, second)
    #expect(found.batch == nil)
    try second.close()
    let third = MemoryStore(contents: contents, isReadOnly: true)
    _ = try third.open(model: model, host: .none)
    try third.close()
  }

  private final class FoundBatch: RowSink {
    private(set) weak var batch: RowBatch?

    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      self.batch = batch
      return .more
    }
  }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: MemoryHarness(), timeLimit: nil) == [])
  }
}
