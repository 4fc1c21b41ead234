import Foundation
package import Holdfast

/// The dogs in a store. Each method creates a context, and releases it before it returns.
package struct DogRegister: Sendable {
  package let container: PersistentContainer
  private let timeout: Duration

  /// Opens a store, or creates it.
  ///
  /// - Parameter timeout: The maximum duration of a fetch or a save, including its wait for other saves. Defaults to 5 seconds.
  package init(_ store: StoreDescription, timeout: Duration = .seconds(5)) throws {
    container = try PersistentContainer(for: Dog.self, store: store)
    self.timeout = timeout
  }

  /// A page of the dogs whose names begin with a text, regardless of case.
  func page(named prefix: String, offset: Int, limit: Int) throws -> DogPage {
    try container.withContext { context in
      context.requestTimeout = timeout
      // If there is one more than fits on the page, there is a next page.
      let dogs = try context.fetch(
        Dog.self, sortedBy: [.ascending(\.name, folding: .caseInsensitive)], offset: offset, limit: limit + 1
      ) {
        $0.name.beginsWith(prefix, .caseInsensitive)
      }
      let total = try context.count(Dog.self) { $0.name.beginsWith(prefix, .caseInsensitive) }
      return DogPage(dogs: dogs.prefix(limit).map(DogMessage.init), total: total, next: dogs.count > limit ? offset + limit : nil)
    }
  }

  /// The dog with a tag; nil if there is none.
  func dog(_ tag: UUID) throws -> DogMessage? {
    try container.withContext { context in
      context.requestTimeout = timeout
      return try context.fetchOne(Dog.self) { $0.tag == tag }.map(DogMessage.init)
    }
  }

  // A save waits for other saves. On a queue of its own, it doesn't occupy one of the few threads that serve requests.

  /// Adds a dog.
  func add(_ new: NewDog) async throws -> DogMessage {
    try await container.performBackgroundTask { context in
      context.requestTimeout = timeout
      let dog = Dog(context: context, name: new.name)
      (dog.chip, dog.age) = (new.chip, new.age ?? 0)
      try context.save()
      return DogMessage(dog)
    }
  }

  /// Changes a dog; nil if there is none.
  ///
  /// - Throws: ``OutdatedRevision`` if the dog has another revision than the client has read.
  func update(_ tag: UUID, _ update: DogUpdate) async throws -> DogMessage? {
    do {
      return try await container.performBackgroundTask { context in
        context.requestTimeout = timeout
        guard let dog = try context.fetchOne(Dog.self, where: { $0.tag == tag }) else { return nil }
        if dog.revision != update.revision { throw OutdatedRevision(current: DogMessage(dog)) }
        if let name = update.name { dog.name = name }
        if let chip = update.chip { dog.chip = chip }
        if let age = update.age { dog.age = age }
        dog.revision += 1
        try context.save()
        return DogMessage(dog)
      }
    } catch let error as PersistenceError where error.code == .conflict {
      // Another request has saved the dog in between. This one has changed nothing.
      return try dog(tag).map { throw OutdatedRevision(current: $0) }
    }
  }
}

/// The client has read a dog before its last update.
struct OutdatedRevision: Error {
  let current: DogMessage
}
