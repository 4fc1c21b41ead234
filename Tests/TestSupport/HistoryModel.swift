package import Holdfast

/// Dogs, their owners and friends, for the tests of histories.
package enum HistoryModel {
  /// A model whose animals keep their names when they are deleted.
  ///
  /// - Parameter keepsValues: Whether the history keeps the values of dogs before and after changes.
  package static func model(keepsValues: Bool = false) throws -> ManagedObjectModel {
    var name = AttributeDescription("name", .string)
    name.preservesValueInHistoryOnDeletion = true
    var born = AttributeDescription("born", .date, isOptional: true)
    born.preservesValueInHistoryOnDeletion = true
    return try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [name]),
      EntityDescription(
        "Dog", superentity: "Animal", attributes: [AttributeDescription("age", .integer16, default: .int16(1)), born],
        relationships: [
          .toOne("owner", to: "Person", inverse: "dogs"), .toMany("friends", to: "Dog", inverse: "friendOf"),
          .toMany("friendOf", to: "Dog", inverse: "friends"),
        ], userInfo: keepsValues ? [EntityDescription.historyValuesKey: "YES"] : [:]),
      EntityDescription(
        "Person", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
    ])
  }

  /// A context with an author.
  package static func context(_ coordinator: PersistentStoreCoordinator, author: String? = nil) throws -> ManagedObjectContext {
    let context = try ManagedObjectContext(coordinator: coordinator)
    context.transactionAuthor = author
    return context
  }

  /// Inserts an object with a name.
  package static func insert(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let object = try context.insert(entityNamed: entity)
    try object.setValue(name, forKey: "name")
    return object
  }

  /// Saves a new dog in a context of its own.
  package static func save(_ name: String, _ coordinator: PersistentStoreCoordinator) throws {
    let context = try context(coordinator)
    _ = try insert("Dog", name, context)
    try context.save()
  }

  /// Saves dogs one by one. Returns the token after each save.
  package static func fill(_ coordinator: PersistentStoreCoordinator, _ count: Int) throws -> [PersistentHistoryToken] {
    let context = try context(coordinator)
    return try (0..<count).map { number in
      _ = try insert("Dog", "\(number)", context)
      try context.save()
      return try coordinator.currentPersistentHistoryToken()
    }
  }
}
