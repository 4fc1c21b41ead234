import Foundation
import Holdfast

/// A dog. The store keeps the order of its walks.
final class Dog: ManagedObject {
  enum Slot { static let name: SlotIndex = 0, walks = 0 }
  override class var entityName: String { "Dog" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var walks: OrderedToMany<Walk> { ordered(Slot.walks) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Dog.name, slot: Slot.name), .toMany("walks", \Dog.walks, index: Slot.walks)]
  }
}

/// A walk of a dog.
final class Walk: ManagedObject {
  enum Slot { static let date: SlotIndex = 0, dog: SlotIndex = 1 }
  override class var entityName: String { "Walk" }
  var date: Date {
    get { self[Slot.date] }
    set { self[Slot.date] = newValue }
  }
  var dog: Dog? {
    get { toOne(Slot.dog) }
    set { setToOne(Slot.dog, newValue) }
  }
  override class var properties: [PropertyBinding] {
    [.attribute("date", \Walk.date, slot: Slot.date), .toOne("dog", \Walk.dog, slot: Slot.dog)]
  }
}

extension Diary {
  /// Dogs and walks. Each walk has one dog, and deleting a dog deletes its walks.
  static func makeModel() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade, isOrdered: true)],
        uniquenessConstraints: [["name"]]),
      EntityDescription(
        "Walk", attributes: [AttributeDescription("date", .date)],
        relationships: [.toOne("dog", to: "Dog", inverse: "walks", isOptional: false)]),
    ])
  }
}
