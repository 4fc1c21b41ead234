import Holdfast

/// One dog's walks in a store.
struct Diary {
  private let context: ManagedObjectContext
  private let dog: Dog

  /// Opens a store and finds the dog, or inserts one, which is saved with its first walk.
  init(_ store: StoreDescription, dogNamed name: String = "Fido") throws {
    let coordinator = try PersistentStoreCoordinator(model: Diary.makeModel(), store: store)
    context = try ManagedObjectContext(coordinator: coordinator, classes: [Dog.self, Walk.self])
    dog = try Diary.findOrMakeDog(name, context)
  }

  private static func findOrMakeDog(_ name: String, _ context: ManagedObjectContext) throws -> Dog {
    let request = FetchRequest<Dog>(limit: 1) { $0.name == name }
    if let dog = try context.fetch(request).first { return dog }
    let dog = context.insert(Dog.self)
    dog.name = name
    return dog
  }

  /// Runs a closure that reads properties. Throws if a property couldn't be read. The next call reads it again.
  private func reading<Value>(_ body: () -> Value) throws -> Value {
    let value = body()
    // A property can't throw: it returns a placeholder, and the context has the error.
    guard let error = context.faultError else { return value }
    // Makes the next access read from the store again, and acknowledges the error.
    try context.refreshAllObjects()
    throw error
  }

  /// The times of all walks, newest last.
  func walkTimes() throws -> [WalkTime] {
    try reading { dog.walks.map { WalkTime(date: $0.date) } }
  }

  /// Adds a walk after all walks at the same time or earlier.
  func addWalk(at time: WalkTime) throws {
    let index = try reading { dog.walks.count { $0.date <= time.date } }
    let walk = context.insert(Walk.self)
    walk.date = time.date
    dog.walks.insert(walk, at: index)
    try context.save()
  }

  /// Deletes a walk by its number, starting at 1. This also removes it from the dog's walks.
  func deleteWalk(_ number: Int) throws {
    let walks = try reading { Array(dog.walks) }
    guard walks.indices.contains(number - 1) else { throw NoSuchWalk(number: number, dog: dog.name, count: walks.count) }
    context.delete(walks[number - 1])
    try context.save()
  }
}

/// The diary doesn't contain a walk.
struct NoSuchWalk: Error, CustomStringConvertible {
  let number: Int
  let dog: String
  let count: Int

  var description: String {
    switch count {
    case 0: "Walk \(number) doesn't exist: \(dog) has had no walk yet."
    case 1: "Walk \(number) doesn't exist: \(dog) has had one walk."
    default: "Walk \(number) doesn't exist: \(dog) has had \(count) walks. Give a number from 1 to \(count)."
    }
  }
}
