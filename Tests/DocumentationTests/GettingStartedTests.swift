#if Macros
  import Foundation
  import Holdfast
  import HoldfastMemoryStore
  import Testing

  /// The behavior that *Getting started* describes, on every store that it names.
  @Suite struct GettingStartedTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-shelf-\(UUID().uuidString)")

    @MainActor private func onEachStore(_ body: (PersistentContainer) async throws -> Void) async throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      for store in stores(folder.path) {
        let container = try PersistentContainer(for: Author.self, Book.self, store: store)
        try fill(container.viewContext)
        try await body(container)
        try container.persistentStoreCoordinator.close()
      }
    }

    @Test @MainActor func theShelfIsFilledAndAsked() async throws {
      try await onEachStore { (container) async throws -> Void in
        #expect(try titles(before: 1816, container.viewContext) == ["Emma", "Sense and Sensibility"])
        #expect(try titles(before: 1815, container.viewContext) == ["Sense and Sensibility"])
        for _ in 0..<2 { #expect(try await add("Persuasion", 1817, by: "Jane Austen", to: container) == 3) }
        #expect(try await add("Middlemarch", 1871, by: "George Eliot", to: container) == 0)
      }
    }

    @Test @MainActor func aBookWithoutAuthorIsRefused() async throws {
      try await onEachStore { (container) async throws -> Void in
        #expect(try refusal(of: "Beowulf", container.viewContext) == "author, 1570")
        #expect(!container.viewContext.hasChanges)
      }
    }

    @Test @MainActor func whatOthersChangedIsSeenAfterARefresh() async throws {
      try await onEachStore { (container) async throws -> Void in
        let seen = try await seeChanges(container)
        #expect(seen == ["Emma", "Emma. A Novel"])
      }
    }

    @Test @MainActor func anAuthorTakesTheBooksAlong() async throws {
      try await onEachStore { (container) async throws -> Void in
        let context = container.viewContext
        let austen = try #require(try context.fetchOne(Author.self))
        context.delete(austen)
        try context.save()
        #expect(try context.count(Book.self) == 0)
      }
    }
  }
#endif
