#if Macros
  import Foundation
  import Holdfast
  import HoldfastJSONStore
  import HoldfastMemoryStore
  import HoldfastSQLiteStore
  import HoldfastStoreConformance
  import Testing

  /// Statements of *The semantics profile* and *Architecture* that no other test covers in one place.
  @Suite struct SemanticsTests {
    private func withContainers(_ body: (PersistentStoreCoordinator) throws -> Void) throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-semantics-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      for store in stores(folder.path) {
        let coordinator = try PersistentStoreCoordinator(model: .declared(by: [Author.self]), store: store)
        try body(coordinator)
        try coordinator.close()
      }
    }

    private func context(_ coordinator: PersistentStoreCoordinator) throws -> ManagedObjectContext {
      try ManagedObjectContext(coordinator: coordinator, classes: [Author.self, Book.self])
    }

    private func one(_ context: ManagedObjectContext, _ title: String) throws -> Book {
      try #require(try context.fetchOne(Book.self) { $0.title == title })
    }

    @Test func failuresComeInTheOrderThatTheArticleSays() throws {
      try withContainers { (coordinator) throws -> Void in
        let context = try context(coordinator)
        try fill(context)
        let old = try one(context, "Emma")
        old.year = 40_000
        let new = context.insert(Book.self)
        new.year = -40_000
        _ = context.insert(Author.self)
        // New objects first, in the order of their insertion, each by its property names. Changed objects follow.
        #expect(failures(of: context) == ["author 1570", "title 1570", "year 1620", "name 1570", "year 1610"])
        context.rollback()
        old.year = 40_000
        #expect(failures(of: context) == ["year 1610"])
        context.rollback()
        #expect(failures(of: context) == [])
      }
    }

    @Test func uniquenessIsCheckedAfterValidation() throws {
      try withContainers { (coordinator) throws -> Void in
        let context = try context(coordinator)
        try fill(context)
        context.insert(Author.self).name = "Jane Austen"
        let book = context.insert(Book.self)
        book.title = "Beowulf"
        #expect(failures(of: context) == ["author 1570"])
        context.delete(book)
        #expect(failures(of: context) == [" 133021"])
      }
    }

    // MARK: Requests to stores

    private func recording() throws -> (RecordingStore, ManagedObjectContext) {
      let store = RecordingStore(MinimalStore.description().makeStore())
      let coordinator = try PersistentStoreCoordinator(
        model: .declared(by: [Author.self]), store: StoreDescription(type: "recording") { store })
      return (store, try context(coordinator))
    }

    @Test func theStepsOfASaveComeInTheirOrder() throws {
      let (store, context) = try recording()
      try fill(context)
      let calls = store.requests.map { request in
        switch request {
        case .reserveKeys: "keys"
        case .prepare: "prepare"
        case .commit: "commit"
        case .beginRead: "view"
        case .fetch: "fetch"
        case .rows: "rows"
        default: "other"
        }
      }
      #expect(calls.suffix(2) == ["prepare", "commit"])
      #expect(calls.count { $0 == "keys" } == 1, "The keys of two entities weren't requested together: \(calls)")
      store.clear()
      try context.save()
      #expect(store.requests.isEmpty, "A save without changes sent a request.")
    }

    @Test func theWeakestStoreIsAskedForAllRows() throws {
      let (store, context) = try recording()
      try fill(context)
      store.clear()
      let request = FetchRequest<Book>(sortedBy: [.ascending(\.title)], limit: 1) { $0.year < 1812 }
      #expect(try context.fetch(request).map(\.title) == ["Sense and Sensibility"])
      let plans = store.requests.compactMap { if case .fetch(let plan) = $0 { plan } else { nil } }
      #expect(plans.count == 1 && plans[0].predicate == nil && plans[0].sorts.isEmpty && plans[0].limit == nil)
    }

    @Test func aRowThatWasReadIsNotAskedForAgain() throws {
      let (store, context) = try recording()
      try fill(context)
      let id = try one(context, "Emma").objectID
      store.clear()
      let other = try self.context(context.persistentStoreCoordinator)
      let emma = try #require(try other.object(with: id) as? Book)
      #expect(emma.isFault && emma.title == "Emma" && store.requests.isEmpty)
    }
  }
#endif
