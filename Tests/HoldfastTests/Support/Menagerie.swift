import Holdfast

/// A model with inheritance: animals, including birds and cats, and keepers, including head keepers.
enum Menagerie {
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Animal", isAbstract: true,
          attributes: [AttributeDescription("chip", .integer64, isOptional: true), AttributeDescription("name", .string)],
          relationships: [
            .toOne("keeper", to: "Keeper", inverse: "animals"), .toMany("friends", to: "Animal", inverse: "friendOf"),
            .toMany("friendOf", to: "Animal", inverse: "friends"),
            .toMany("visits", to: "Visit", inverse: "animal", deleteRule: .cascade),
          ],
          uniquenessConstraints: [["chip"]]),
        EntityDescription(
          "Bird", superentity: "Animal", attributes: [AttributeDescription("wingspan", .double, isOptional: true)],
          relationships: [.toMany("hunters", to: "Cat", inverse: "prey")]),
        EntityDescription("Parrot", superentity: "Bird", attributes: [AttributeDescription("words", .integer32, default: .int32(0))]),
        EntityDescription(
          "Cat", superentity: "Animal", attributes: [AttributeDescription("lives", .integer16, default: .int16(9))],
          relationships: [.toOne("prey", to: "Bird", inverse: "hunters")]),
        EntityDescription(
          "Keeper", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("animals", to: "Animal", inverse: "keeper")]),
        EntityDescription("HeadKeeper", superentity: "Keeper", attributes: [AttributeDescription("rank", .integer16, default: .int16(1))]),
        EntityDescription(
          "Visit", attributes: [AttributeDescription("day", .integer32)],
          relationships: [.toOne("animal", to: "Animal", inverse: "visits", isOptional: false)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  static let classes: [ManagedObject.Type] = [
    Animal.self, Bird.self, Parrot.self, Cat.self, Keeper.self, HeadKeeper.self, Visit.self,
  ]
}

class Animal: ManagedObject {
  enum Slot {
    static let chip: SlotIndex = 0, keeper: SlotIndex = 1, name: SlotIndex = 2, count = 3
    static let friendOf = 0, friends = 1, visits = 2, toManyCount = 3
  }
  override class var entityName: String { "Animal" }
  var chip: Int? {
    get { self[Slot.chip] }
    set { self[Slot.chip] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var keeper: Keeper? {
    get { toOne(Slot.keeper) }
    set { setToOne(Slot.keeper, newValue) }
  }
  var friends: ToMany<Animal> { toMany(Slot.friends) }
  var friendOf: ToMany<Animal> { toMany(Slot.friendOf) }
  var visits: ToMany<Visit> { toMany(Slot.visits) }
  override class var properties: [PropertyBinding] {
    [
      .attribute("chip", \Animal.chip, slot: Slot.chip), .attribute("name", \Animal.name, slot: Slot.name),
      .toOne("keeper", \Animal.keeper, slot: Slot.keeper), .toMany("friends", \Animal.friends, index: Slot.friends),
      .toMany("friendOf", \Animal.friendOf, index: Slot.friendOf), .toMany("visits", \Animal.visits, index: Slot.visits),
    ]
  }
}

class Bird: Animal {
  enum BirdSlot { static let wingspan = SlotIndex(Slot.count), count = Slot.count + 1, hunters = Slot.toManyCount + 0 }
  override class var entityName: String { "Bird" }
  var wingspan: Double? {
    get { self[BirdSlot.wingspan] }
    set { self[BirdSlot.wingspan] = newValue }
  }
  var hunters: ToMany<Cat> { toMany(BirdSlot.hunters) }
  override class var properties: [PropertyBinding] {
    super.properties + [
      .attribute("wingspan", \Bird.wingspan, slot: BirdSlot.wingspan), .toMany("hunters", \Bird.hunters, index: BirdSlot.hunters),
    ]
  }
}

final class Parrot: Bird {
  enum ParrotSlot { static let words = SlotIndex(BirdSlot.count) }
  override class var entityName: String { "Parrot" }
  var words: Int {
    get { self[ParrotSlot.words] }
    set { self[ParrotSlot.words] = newValue }
  }
  override class var properties: [PropertyBinding] {
    super.properties + [.attribute("words", \Parrot.words, slot: ParrotSlot.words)]
  }
}

final class Cat: Animal {
  enum CatSlot { static let lives = SlotIndex(Slot.count), prey = SlotIndex(Slot.count + 1) }
  override class var entityName: String { "Cat" }
  var lives: Int {
    get { self[CatSlot.lives] }
    set { self[CatSlot.lives] = newValue }
  }
  var prey: Bird? {
    get { toOne(CatSlot.prey) }
    set { setToOne(CatSlot.prey, newValue) }
  }
  override class var properties: [PropertyBinding] {
    super.properties + [.attribute("lives", \Cat.lives, slot: CatSlot.lives), .toOne("prey", \Cat.prey, slot: CatSlot.prey)]
  }
}

class Keeper: ManagedObject {
  enum Slot { static let name: SlotIndex = 0, animals = 0, count = 1 }
  override class var entityName: String { "Keeper" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var animals: ToMany<Animal> { toMany(Slot.animals) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Keeper.name, slot: Slot.name), .toMany("animals", \Keeper.animals, index: Slot.animals)]
  }
}

final class HeadKeeper: Keeper {
  enum HeadSlot { static let rank = SlotIndex(Slot.count) }
  override class var entityName: String { "HeadKeeper" }
  var rank: Int {
    get { self[HeadSlot.rank] }
    set { self[HeadSlot.rank] = newValue }
  }
  override class var properties: [PropertyBinding] {
    super.properties + [.attribute("rank", \HeadKeeper.rank, slot: HeadSlot.rank)]
  }
}

final class Visit: ManagedObject {
  enum Slot { static let animal: SlotIndex = 0, day: SlotIndex = 1 }
  override class var entityName: String { "Visit" }
  var day: Int {
    get { self[Slot.day] }
    set { self[Slot.day] = newValue }
  }
  var animal: Animal? {
    get { toOne(Slot.animal) }
    set { setToOne(Slot.animal, newValue) }
  }
  override class var properties: [PropertyBinding] {
    [.attribute("day", \Visit.day, slot: Slot.day), .toOne("animal", \Visit.animal, slot: Slot.animal)]
  }
}

extension ManagedObjectContext {
  @discardableResult func animal<Kind: Animal>(_ kind: Kind.Type, _ name: String, keeper: Keeper? = nil) -> Kind {
    let animal = insert(kind)
    animal.name = name
    animal.keeper = keeper
    return animal
  }
}
