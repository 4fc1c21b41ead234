import Testing

@testable import Holdfast

/// A container and its contexts.
@Suite struct ContainerTests {
  /// A server never uses it, and needs nothing from the main actor.
  @MainActor @Test func theViewContextIsCreatedWhenItIsFirstUsed() async throws {
    let place = try TestStore.memory.makePlace()
    let container = try PersistentContainer(model: place.model, classes: place.classes, store: place.description)
    #expect(container.createdViewContext == nil)
    try container.withContext { context in
      context.dog("Fido")
      try context.save()
    }
    let count = try await container.performBackgroundTask { context in try context.count(for: FetchRequest<Dog>()) }
    #expect(count == 1 && container.newContext().registeredObjects.isEmpty)
    #expect(container.createdViewContext == nil)

    let context = container.viewContext
    #expect(container.createdViewContext === context && container.viewContext === context)
    #expect(try context.fetch(Dog.self).map(\.name) == ["Fido"])
  }

  @Test(arguments: TestStore.allCases) func aContextForAClosureDiscardsWhatTheClosureDoesNotSave(_ store: TestStore) async throws {
    struct Failure: Error {}
    let place = try store.makePlace()
    let container = try PersistentContainer(model: place.model, classes: place.classes, store: place.description)
    container.withContext { _ = $0.dog("Rex") }
    await container.performBackgroundTask { _ = $0.dog("Rex") }
    #expect(throws: Failure.self) {
      try container.withContext { context in
        context.dog("Rex")
        throw Failure()
      }
    }
    #expect(try container.withContext { try $0.count(Dog.self) } == 0)
    try container.persistentStoreCoordinator.close()
  }
}
