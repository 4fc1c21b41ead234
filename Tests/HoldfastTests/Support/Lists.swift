import Foundation
import HoldfastStore
import Testing

@testable import Holdfast

/// A place with ordered lists of items.
struct Lists {
  let place: TestStore.Place
  /// The ID of the list with items.
  let id: ManagedObjectID

  static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "List", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("items", to: "Item", inverse: "list", isOrdered: true)]),
      EntityDescription(
        "Item", attributes: [AttributeDescription("name", .string)], relationships: [.toOne("list", to: "List", inverse: "items")]),
    ])
  }

  /// - Parameters:
  ///   - names: The names of the items of the list "list".
  ///   - other: The name of a second list, which is empty.
  init(_ store: TestStore, _ names: [String], also other: String? = nil) throws {
    place = try store.makePlace(model: Lists.model(), classes: [])
    let setup = try place.context(), list = try setup.insert(entityNamed: "List")
    try list.setValue("list", forKey: "name")
    for name in names { try list.ordered(forKey: "items").append(Lists.newItem(name, setup)) }
    if let other { try setup.insert(entityNamed: "List").setValue(other, forKey: "name") }
    try setup.save()
    id = list.objectID
  }

  static func newItem(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let item = try context.insert(entityNamed: "Item")
    try item.setValue(name, forKey: "name")
    return item
  }

  /// The items of the list with items.
  func items(_ context: ManagedObjectContext) throws -> OrderedToMany<ManagedObject> {
    try context.existingObject(with: id).ordered(forKey: "items")
  }

  func list(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject { try object("List", name, context) }
  func item(_ name: String, _ context: ManagedObjectContext) throws -> ManagedObject { try object("Item", name, context) }

  private func object(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    try #require(
      try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).first { try $0.value(forKey: "name") == StoreValue.string(name) })
  }

  static func names(of items: some Sequence<ManagedObject>) throws -> [String] {
    try items.map { item in
      guard case .single(.string(let name)) = try item.value(forKey: "name") else { throw CocoaError(.coderValueNotFound) }
      return name
    }
  }

  func reopened() throws -> ManagedObjectContext {
    try place.close()
    return try place.context()
  }
}
