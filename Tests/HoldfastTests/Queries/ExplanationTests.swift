import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// `explain` tells which work of a fetch each store does, and which the framework does.
@Suite struct ExplanationTests {
  private func request(limit: Int = 0) -> FetchRequest<Dog> {
    FetchRequest(sortedBy: [.ascending(\.age)], limit: limit) { $0.name == "Fido" && $0.age > 3 }
  }

  @Test(arguments: TestStore.allCases) func explainingSendsNoOtherRequest(_ store: TestStore) throws {
    let place = try store.makePlace(), (context, recorder) = try place.recording()
    let explanation = try context.explain(request())
    #expect(explanation.stores.count == 1 && !explanation.includesPendingChanges)
    let explains = explanation.stores[0].explanation != nil
    #expect(explains == (store == .sqlite) && recorder.requests.count == (explains ? 1 : 0), "\(recorder.requests)")
  }

  @Test func SQLiteAddsItsStatementAndTheIndexesThatItUses() throws {
    let context = try TestStore.sqlite.makeAtlas().context()
    let request = FetchRequest<Spot> { $0.home.city == "Ulm" }
    let text = try #require(try context.explain(request).stores.first?.explanation)
    let lines = text.split(separator: "\n")
    #expect(lines.first?.hasPrefix("SELECT ") == true && lines.contains { $0.contains("USING INDEX") }, "\(text)")
    #expect(!text.contains("Ulm"))
  }

  @Test func theFrameworkDoesWhatAStoreDoesNotDeclare() throws {
    let place = try TestStore.sqlite.makePlace()
    let (context, _) = try place.recording { ModestStore($0) }
    let part = try #require(try context.explain(request(limit: 5)).stores.first)
    #expect(part.plan.predicate == nil && part.plan.sorts.isEmpty && part.plan.limit == nil)
    #expect(part.predicate != nil && part.isSortedByFramework && part.isLimitedByFramework)
    #expect(part.explanation?.hasPrefix("SELECT ") == true)
    #expect(part.description.contains("framework: tests (name == \"Fido\") AND (age > 3), sorts, limits"), "\(part)")
  }

  @Test func aDeclinedPlanIsExplainedAsItIsSentThen() throws {
    let (context, _) = try TestStore.sqlite.makePlace().recording { DecliningStore($0) }
    let part = try #require(try context.explain(request(limit: 5)).stores.first)
    #expect(part.plan.sorts.isEmpty && part.plan.predicate != nil && part.isSortedByFramework && part.isLimitedByFramework)
  }

  @Test func unsavedChangesRaiseTheLimitThatTheStoreGets() throws {
    let context = try TestStore.sqlite.makePlace().context()
    let before = try context.explain(request(limit: 5))
    #expect(before.stores.first?.plan.limit == 5 && !before.includesPendingChanges)
    context.dog("Rex", age: 4)
    let explanation = try context.explain(request(limit: 5))
    #expect(explanation.stores.first?.plan.limit == 6 && explanation.includesPendingChanges)
    #expect(explanation.description.hasSuffix("context: includes unsaved changes, sorts and limits"))
  }

  @Test func eachOfSeveralStoresExplainsItsPart() throws {
    let sqlite = try TestStore.sqlite.makePlace()
    let coordinator = try PersistentStoreCoordinator(model: Kennel.model, stores: [sqlite.description, .memory()])
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    let parts = try context.explain(request(limit: 5)).stores
    #expect(parts.map { $0.explanation != nil } == [true, false])
    #expect(parts[0].store == sqlite.description.location?.description && parts[1].store.hasPrefix("memory store "))
    #expect(parts.allSatisfy { $0.plan.limit == 5 || $0.isLimitedByFramework })
    try coordinator.close()
  }

  /// Declares no query ability.
  private final class ModestStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }
    var capabilities: StoreCapabilities {
      var capabilities = StoreCapabilities()
      (capabilities.uniqueness, capabilities.versions) = (base.capabilities.uniqueness, base.capabilities.versions)
      return capabilities
    }
  }

  /// Declines to sort.
  private final class DecliningStore: ForwardingStore, AnswerInterceptor {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }
    var answers: StoreAnswers { base.answers.intercepted(by: self) }

    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer {
      if let explanation = request as? ExplanationRequest, !explanation.plan.sorts.isEmpty {
        throw StoreError(.unsupportedRequest, operation: Request.operation, reason: "The server doesn't sort.")
      }
      return try next(request, options)
    }
  }
}
