import Holdfast

/// The walks of one dog in a store.
struct Diary {
  private let context: ManagedObjectContext
  private let dog: Dog

  /// Opens a store and finds the dog in it, or makes one, which the first saved walk saves too.
  init(_ store: StoreDescription, dogNamed name: String = "Fido") throws {
    let coordinator = try PersistentStoreCoordinator(model: Diary.makeModel(), store: store)
    context = try ManagedObjectContext(coordinator: coordinator, classes: [Dog.self, Walk.self])
    dog = try Diary.findOrMakeDog(name, context)
  }

  private static func findOrMakeDog(_ name: String, _ context: ManagedObjectContext) throws -> Dog {
    let request = FetchRequest<Dog>(where: \.name == name, limit: 1)
    if let dog = try context.fetch(request).first { return dog }
    let dog = context.insert(Dog.self)
    dog.name = name
    return dog
  }

  /// The walks in their order.
  private func walks() throws -> [Walk] {
    let walks = Array(dog.walks)
    // Reading a property cannot throw; what went wrong meanwhile the context tells.
    if let error = context.faultError { throw error }
    return walks
  }

  /// The times of all walks, the newest last.
  func walkTimes() throws -> [WalkTime] { try walks().map { WalkTime(date: $0.date) } }

  /// Records a walk where its time belongs: behind those that were before it or at the same time.
  func addWalk(at time: WalkTime) throws {
    let place = try walks().count { $0.date <= time.date }
    let walk = context.insert(Walk.self)
    walk.date = time.date
    dog.walks.insert(walk, at: place)
    try context.save()
  }

  /// Deletes a walk, counted from 1. It leaves the dog's walks by itself.
  func deleteWalk(_ number: Int) throws {
    let walks = try walks()
    guard walks.indices.contains(number - 1) else { throw NoSuchWalk(number: number, dog: dog.name, count: walks.count) }
    context.delete(walks[number - 1])
    try context.save()
  }
}

/// A walk was asked for that is not in the diary.
struct NoSuchWalk: Error, CustomStringConvertible {
  let number: Int
  let dog: String
  let count: Int

  var description: String {
    switch count {
    case 0: "There is no walk \(number): \(dog) has had no walk yet."
    case 1: "There is no walk \(number): \(dog) has had one walk."
    default: "There is no walk \(number): \(dog) has had \(count) walks. Give a number from 1 to \(count)."
    }
  }
}
