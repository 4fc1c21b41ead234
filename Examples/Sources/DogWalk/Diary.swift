import Holdfast

/// One dog's walks in a store.
struct Diary {
  private let context: ManagedObjectContext
  private let dog: Dog

  /// Opens a store and finds the dog, or inserts one, which is saved with its first walk.
  init(_ store: StoreDescription, dogNamed name: String = "Fido") throws {
    context = try PersistentContainer(for: Dog.self, Walk.self, store: store).newContext()
    dog = try Diary.findOrMakeDog(name, context)
  }

  private static func findOrMakeDog(_ name: String, _ context: ManagedObjectContext) throws -> Dog {
    try context.fetchOne(Dog.self) { $0.name == name } ?? context.insert(Dog.self) { $0.name = name }
  }

  /// The times of all walks, newest last.
  func walkTimes() throws -> [WalkTime] {
    try context.reading { dog.walks.map { WalkTime(date: $0.date) } }
  }

  /// Adds a walk after all walks at the same time or earlier.
  func addWalk(at time: WalkTime) throws {
    let index = try context.reading { dog.walks.count { $0.date <= time.date } }
    dog.walks.insert(Walk(context: context, date: time.date), at: index)
    try context.save()
  }

  /// Deletes a walk by its number, starting at 1. This also removes it from the dog's walks.
  func deleteWalk(_ number: Int) throws {
    let walks = try context.reading { Array(dog.walks) }
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
