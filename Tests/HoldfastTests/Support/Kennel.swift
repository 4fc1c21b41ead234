import FoundationEssentials
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStoreConformance

/// The model that the stack's tests share: dogs with owners, friends, a collar and vaccinations.
enum Kennel {
  static let entities: [EntityDescription] = [
    EntityDescription(
      "Dog",
      attributes: [
        AttributeDescription("age", .integer16, default: .int16(1)), AttributeDescription("chip", .integer64, isOptional: true),
        AttributeDescription("isGood", .boolean, default: .bool(true)), AttributeDescription("name", .string),
        AttributeDescription("weight", .double, isOptional: true), AttributeDescription("born", .date, isOptional: true),
        AttributeDescription("photo", .binaryData, isOptional: true), AttributeDescription("uid", .uuid, isOptional: true),
        AttributeDescription("price", .decimal, isOptional: true), AttributeDescription("notes", .string, isOptional: true),
      ],
      relationships: [
        .toOne("owner", to: "Person", inverse: "dogs"), .toMany("friends", to: "Dog", inverse: "friendOf"),
        .toMany("friendOf", to: "Dog", inverse: "friends"), .toOne("collar", to: "Collar", inverse: "dog", deleteRule: .cascade),
        .toMany("vaccinations", to: "Vaccination", inverse: "dog", deleteRule: .cascade),
      ], uniquenessConstraints: [["chip"]]),
    EntityDescription(
      "Person", attributes: [AttributeDescription("name", .string), AttributeDescription("city", .string, isOptional: true)],
      relationships: [
        .toMany("dogs", to: "Dog", inverse: "owner"), .toMany("licences", to: "Licence", inverse: "holder", deleteRule: .deny),
      ]),
    EntityDescription(
      "Collar", attributes: [AttributeDescription("color", .string, default: .string("red"))],
      relationships: [.toOne("dog", to: "Dog", inverse: "collar")]),
    EntityDescription(
      "Vaccination", attributes: [AttributeDescription("kind", .string)],
      relationships: [.toOne("dog", to: "Dog", inverse: "vaccinations", isOptional: false)]),
    EntityDescription(
      "Licence", attributes: [AttributeDescription("number", .integer32)],
      relationships: [.toOne("holder", to: "Person", inverse: "licences", isOptional: false)]),
  ]

  static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: entities) } catch { fatalError("\(error)") }
  }()

  static let classes: [ManagedObject.Type] = [Dog.self, Person.self, Collar.self, Vaccination.self, Licence.self]
}

final class Dog: ManagedObject {
  enum Slot {
    static let age: SlotIndex = 0, born: SlotIndex = 1, chip: SlotIndex = 2, collar: SlotIndex = 3, isGood: SlotIndex = 4
    static let name: SlotIndex = 5, notes: SlotIndex = 6, owner: SlotIndex = 7, photo: SlotIndex = 8, price: SlotIndex = 9
    static let uid: SlotIndex = 10, weight: SlotIndex = 11
    static let friendOf = 0, friends = 1, vaccinations = 2
  }
  override class var entityName: String { "Dog" }
  var age: Int {
    get { self[Slot.age] }
    set { self[Slot.age] = newValue }
  }
  var born: Date? {
    get { self[Slot.born] }
    set { self[Slot.born] = newValue }
  }
  var chip: Int64? {
    get { self[Slot.chip] }
    set { self[Slot.chip] = newValue }
  }
  var collar: Collar? {
    get { toOne(Slot.collar) }
    set { setToOne(Slot.collar, newValue) }
  }
  var isGood: Bool {
    get { self[Slot.isGood] }
    set { self[Slot.isGood] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var notes: String? {
    get { self[Slot.notes] }
    set { self[Slot.notes] = newValue }
  }
  var owner: Person? {
    get { toOne(Slot.owner) }
    set { setToOne(Slot.owner, newValue) }
  }
  var photo: Data? {
    get { self[Slot.photo] }
    set { self[Slot.photo] = newValue }
  }
  var price: Decimal? {
    get { self[Slot.price] }
    set { self[Slot.price] = newValue }
  }
  var uid: UUID? {
    get { self[Slot.uid] }
    set { self[Slot.uid] = newValue }
  }
  var weight: Double? {
    get { self[Slot.weight] }
    set { self[Slot.weight] = newValue }
  }
  var friends: ToMany<Dog> { toMany(Slot.friends) }
  var friendOf: ToMany<Dog> { toMany(Slot.friendOf) }
  var vaccinations: ToMany<Vaccination> { toMany(Slot.vaccinations) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("age", \Dog.age, slot: Slot.age), .attribute("born", \Dog.born, slot: Slot.born),
      .attribute("chip", \Dog.chip, slot: Slot.chip), .toOne("collar", \Dog.collar, slot: Slot.collar),
      .attribute("isGood", \Dog.isGood, slot: Slot.isGood), .attribute("name", \Dog.name, slot: Slot.name),
      .attribute("notes", \Dog.notes, slot: Slot.notes), .toOne("owner", \Dog.owner, slot: Slot.owner),
      .attribute("photo", \Dog.photo, slot: Slot.photo), .attribute("price", \Dog.price, slot: Slot.price),
      .attribute("uid", \Dog.uid, slot: Slot.uid), .attribute("weight", \Dog.weight, slot: Slot.weight),
      .toMany("friends", \Dog.friends, index: Slot.friends), .toMany("friendOf", \Dog.friendOf, index: Slot.friendOf),
      .toMany("vaccinations", \Dog.vaccinations, index: Slot.vaccinations),
    ]
  }
}

final class Person: ManagedObject {
  enum Slot {
    static let city: SlotIndex = 0, name: SlotIndex = 1
    static let dogs = 0, licences = 1
  }
  override class var entityName: String { "Person" }
  var city: String? {
    get { self[Slot.city] }
    set { self[Slot.city] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var dogs: ToMany<Dog> { toMany(Slot.dogs) }
  var licences: ToMany<Licence> { toMany(Slot.licences) }
  override class var properties: [PropertyBinding] {
    [
      .attribute("city", \Person.city, slot: Slot.city), .attribute("name", \Person.name, slot: Slot.name),
      .toMany("dogs", \Person.dogs, index: Slot.dogs), .toMany("licences", \Person.licences, index: Slot.licences),
    ]
  }
}

final class Collar: ManagedObject {
  enum Slot { static let color: SlotIndex = 0, dog: SlotIndex = 1 }
  override class var entityName: String { "Collar" }
  var color: String {
    get { self[Slot.color] }
    set { self[Slot.color] = newValue }
  }
  var dog: Dog? {
    get { toOne(Slot.dog) }
    set { setToOne(Slot.dog, newValue) }
  }
  override class var properties: [PropertyBinding] {
    [.attribute("color", \Collar.color, slot: Slot.color), .toOne("dog", \Collar.dog, slot: Slot.dog)]
  }
}

final class Vaccination: ManagedObject {
  enum Slot { static let dog: SlotIndex = 0, kind: SlotIndex = 1 }
  override class var entityName: String { "Vaccination" }
  var dog: Dog? {
    get { toOne(Slot.dog) }
    set { setToOne(Slot.dog, newValue) }
  }
  var kind: String {
    get { self[Slot.kind] }
    set { self[Slot.kind] = newValue }
  }
  override class var properties: [PropertyBinding] {
    [.toOne("dog", \Vaccination.dog, slot: Slot.dog), .attribute("kind", \Vaccination.kind, slot: Slot.kind)]
  }
}

final class Licence: ManagedObject {
  enum Slot { static let holder: SlotIndex = 0, number: SlotIndex = 1 }
  override class var entityName: String { "Licence" }
  var holder: Person? {
    get { toOne(Slot.holder) }
    set { setToOne(Slot.holder, newValue) }
  }
  var number: Int32 {
    get { self[Slot.number] }
    set { self[Slot.number] = newValue }
  }
  override class var properties: [PropertyBinding] {
    [.toOne("holder", \Licence.holder, slot: Slot.holder), .attribute("number", \Licence.number, slot: Slot.number)]
  }
}
