import FoundationEssentials
import Holdfast

/// Classes that declare their entities.
enum Farm {
  enum Mood: Int16, CaseIterable, AttributeValue { case calm, wild }

  struct Point: CompositeAttributeValue {
    var x = 0.0
    var y = 0.0
    static let elements: CompositeElements<Point> = [.attribute("x", \.x), .attribute("y", \.y)]
    static var slotCount: Int { 2 }
  }

  struct Field: CompositeAttributeValue {
    var name: String?
    var corner: Point?
    static let elements: CompositeElements<Field> = [.attribute("name", \.name), .composite("corner", \.corner)]
  }

  class Animal: ManagedObject {
    enum Slots {
      static var name: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
      static var owner: SlotIndex { name.advanced(by: slotCount(of: String.self)) }
    }
    enum SlotCounts {
      static var slots: Int { Slots.owner.rawValue + slotCount(of: Farmer?.self) }
      static var toMany: Int { ManagedObject.SlotCounts.toMany }
    }
    var name: String {
      get { self[property: Slots.name] }
      set { self[property: Slots.name] = newValue }
    }
    var owner: Farmer? {
      get { self[property: Slots.owner] }
      set { self[property: Slots.owner] = newValue }
    }
    override class var declaration: EntityDeclaration? {
      var declaration = EntityDeclaration(
        Animal.self, [.property("name", \Animal.name, .length(1...40), default: "nobody"), .property("owner", \Animal.owner)])
      declaration.isAbstract = true
      declaration.renamingIdentifier = "Beast"
      return declaration
    }
  }

  final class Cow: Animal {
    enum Slots {
      static var field: SlotIndex { SlotIndex(Animal.SlotCounts.slots) }
      static var milk: SlotIndex { field.advanced(by: slotCount(of: Field?.self)) }
      static var mood: SlotIndex { milk.advanced(by: slotCount(of: Double.self)) }
      static var tag: SlotIndex { mood.advanced(by: slotCount(of: Mood.self)) }
      static var calves: ToManyIndex { ToManyIndex(Animal.SlotCounts.toMany) }
      static var mothers: ToManyIndex { ToManyIndex(Animal.SlotCounts.toMany + 1) }
    }
    var calves: OrderedToMany<Cow> { self[property: Slots.calves] }
    var mothers: ToMany<Cow> { self[property: Slots.mothers] }
    var field: Field? {
      get { self[property: Slots.field] }
      set { self[property: Slots.field] = newValue }
    }
    var milk: Double {
      get { self[property: Slots.milk] }
      set { self[property: Slots.milk] = newValue }
    }
    var mood: Mood {
      get { self[property: Slots.mood] }
      set { self[property: Slots.mood] = newValue }
    }
    var tag: Int? {
      get { self[property: Slots.tag] }
      set { self[property: Slots.tag] = newValue }
    }
    override class var declaration: EntityDeclaration? {
      var declaration = EntityDeclaration(
        Cow.self,
        [
          .property("tag", \Cow.tag, .unique, .type(.integer32)), .property("mood", \Cow.mood, default: .wild),
          .property("milk", \Cow.milk, .range(0...60), .renamed(from: "yield")), .property("field", \Cow.field),
          .property("mothers", \Cow.mothers, .count(0...2), inverse: \Cow.calves), .property("calves", \Cow.calves, deleteRule: .cascade),
        ])
      declaration.indexes = [FetchIndexDescription("byMilk", ["milk"])]
      return declaration
    }
  }

  final class Farmer: ManagedObject {
    enum Slots {
      static var herd: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
      static var home: SlotIndex { herd.advanced(by: slotCount(of: Int?.self)) }
      static var photo: SlotIndex { home.advanced(by: slotCount(of: Point.self)) }
      static var animals: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany) }
    }
    var animals: ToMany<Animal> { self[property: Slots.animals] }
    var herd: Int? {
      get { self[property: Slots.herd] }
      set { self[property: Slots.herd] = newValue }
    }
    var home: Point {
      get { self[property: Slots.home] }
      set { self[property: Slots.home] = newValue }
    }
    var photo: Data? {
      get { self[property: Slots.photo] }
      set { self[property: Slots.photo] = newValue }
    }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(
        Farmer.self,
        [
          .property("animals", \Farmer.animals, deleteRule: .deny, inverse: \Animal.owner), .property("photo", \Farmer.photo, .external),
          .property("home", \Farmer.home), .property("herd", \Farmer.herd, .derived("animals.@count")),
        ])
    }
  }

  /// What the classes declare, written as a model.
  static let model = Result {
    var herd = AttributeDescription.derived("herd", .integer64, "animals.@count")
    herd.isOptional = true
    return try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Animal", isAbstract: true,
          attributes: [AttributeDescription("name", .string, default: .string("nobody"), validation: .length(1, 40))],
          relationships: [.toOne("owner", to: "Farmer", inverse: "animals")], renamingIdentifier: "Beast"),
        EntityDescription(
          "Cow", superentity: "Animal",
          attributes: [
            AttributeDescription("tag", .integer32, isOptional: true), AttributeDescription("mood", .integer16, default: .int16(1)),
            AttributeDescription("milk", .double, validation: .range(.double(0), .double(60)), renamingIdentifier: "yield"),
            .composite("field", "Field", isOptional: true),
          ],
          relationships: [
            .toMany("mothers", to: "Cow", inverse: "calves", maxCount: 2),
            .toMany("calves", to: "Cow", inverse: "mothers", deleteRule: .cascade, isOrdered: true),
          ], uniquenessConstraints: [["tag"]], indexes: [FetchIndexDescription("byMilk", ["milk"])]),
        EntityDescription(
          "Farmer",
          attributes: [
            AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
            .composite("home", "Point", isOptional: true), herd,
          ], relationships: [.toMany("animals", to: "Animal", inverse: "owner", deleteRule: .deny)]),
      ],
      composites: [
        CompositeDescription(
          "Field", [.composite("corner", "Point", isOptional: true), AttributeDescription("name", .string, isOptional: true)]),
        CompositeDescription(
          "Point", [AttributeDescription("x", .double, isOptional: true), AttributeDescription("y", .double, isOptional: true)]),
      ])
  }
}
