// swift-format-ignore-file
// The examples of README.md, word for word; `ReadmeTests` compares them.
import Holdfast
import HoldfastMemoryStore

final class Dog: ManagedObject {
  enum Slot { static let age = 0, name = 1, owner = 2 }
  override class var entityName: String { "Dog" }
  var age: Int { get { self[Slot.age] } set { self[Slot.age] = newValue } }
  var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
  var owner: Person? { get { toOne(Slot.owner) } set { setToOne(Slot.owner, newValue) } }
  override class var properties: [PropertyBinding] {
    [
      .attribute("age", \Dog.age, slot: Slot.age), .attribute("name", \Dog.name, slot: Slot.name),
      .toOne("owner", \Dog.owner, slot: Slot.owner),
    ]
  }
}

final class Person: ManagedObject {
  enum Slot { static let name = 0, dogs = 0 }
  override class var entityName: String { "Person" }
  var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
  var dogs: ToManyRelationship<Dog> { toMany(Slot.dogs) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Person.name, slot: Slot.name), .toMany("dogs", \Person.dogs, index: Slot.dogs)]
  }
}

@MainActor func firstGraph() throws -> [String] {
  let model = try ManagedObjectModel(entities: [
    EntityDescription(
      "Dog", attributes: [AttributeDescription("age", .integer16), AttributeDescription("name", .string)],
      relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
    EntityDescription(
      "Person", attributes: [AttributeDescription("name", .string)],
      relationships: [.toMany("dogs", to: "Dog", inverse: "owner", deleteRule: .cascade)]),
  ])
  let container = try PersistentContainer(model: model, classes: [Dog.self, Person.self], store: .memory())
  let context = container.viewContext

  let ann = context.insert(Person.self)
  ann.name = "Ann"
  for (name, age) in [("Fido", 12), ("Rex", 3), ("Argos", 20)] {
    let dog = context.insert(Dog.self)
    dog.name = name
    dog.age = age
    dog.owner = ann  // ann.dogs has it too, at once
  }
  try context.save()

  let old = FetchRequest<Dog>(
    where: \.age > 10 && (\Dog.owner).then(\.name) == "Ann", sortedBy: [FetchSortDescriptor(\Dog.name)])
  return try context.fetch(old).map(\.name)  // ["Argos", "Fido"]
}

func retire(_ container: PersistentContainer) async throws -> Int {
  try await container.performBackgroundTask { context in
    let old = try context.fetch(FetchRequest<Dog>(where: \.age > 12))
    for dog in old { context.delete(dog) }
    try context.save()
    return old.count
  }
}
