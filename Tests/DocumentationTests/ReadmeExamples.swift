// swift-format-ignore-file
// The examples of README.md and of articles, word for word; `SnippetTests` compares them, `ReadmeTests` runs them.
import HoldfastJSONStore
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

class Work: ManagedObject {
  enum Slot { static let title = 0, count = 1 }
  override class var entityName: String { "Work" }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  override class var properties: [PropertyBinding] { [.attribute("title", \Work.title, slot: Slot.title)] }
}

final class Symphony: Work {
  enum SymphonySlot { static let number = Slot.count + 0, movements = 0 }
  override class var entityName: String { "Symphony" }
  var number: Int { get { self[SymphonySlot.number] } set { self[SymphonySlot.number] = newValue } }
  var movements: OrderedRelationship<Movement> { ordered(SymphonySlot.movements) }
  override class var properties: [PropertyBinding] {
    super.properties + [
      .attribute("number", \Symphony.number, slot: SymphonySlot.number),
      .toMany("movements", \Symphony.movements, index: SymphonySlot.movements),
    ]
  }
}

final class Movement: ManagedObject {
  override class var entityName: String { "Movement" }
  var symphony: Symphony? { get { toOne(0) } set { setToOne(0, newValue) } }
  var tempo: String { get { self[1] } set { self[1] = newValue } }
  override class var properties: [PropertyBinding] {
    [.toOne("symphony", \Movement.symphony, slot: 0), .attribute("tempo", \Movement.tempo, slot: 1)]
  }
}

@MainActor func concert() throws -> [String] {
  let model = try ManagedObjectModel(entities: [
    EntityDescription("Work", isAbstract: true, attributes: [AttributeDescription("title", .string)]),
    EntityDescription(
      "Symphony", superentity: "Work", attributes: [AttributeDescription("number", .integer16)],
      relationships: [.toMany("movements", to: "Movement", inverse: "symphony", deleteRule: .cascade, isOrdered: true)]),
    EntityDescription(
      "Movement", attributes: [AttributeDescription("tempo", .string)],
      relationships: [.toOne("symphony", to: "Symphony", inverse: "movements")]),
  ])
  let container = try PersistentContainer(model: model, classes: [Work.self, Symphony.self, Movement.self], store: .memory())
  let context = container.viewContext
  let eroica = context.insert(Symphony.self)
  eroica.title = "Eroica"
  eroica.number = 3
  for tempo in ["Scherzo", "Allegro con brio", "Marcia funebre", "Finale"] {
    let movement = context.insert(Movement.self)
    movement.tempo = tempo
    eroica.movements.append(movement)
  }
  eroica.movements.move(from: 0, to: 2)
  try context.save()

  // Works of every kind come as what they are; \.title is a property that Symphony inherits.
  let works = try context.fetch(FetchRequest<Work>(sortedBy: [FetchSortDescriptor(\Work.title)]))
  let third = try context.fetch(FetchRequest<Symphony>(where: \.title == "Eroica" && \.number == 3))
  return works.map(\.title) + third.flatMap { $0.movements.map(\.tempo) }
}

final class Track: ManagedObject {
  enum Slot { static let seconds = 0, title = 1 }
  override class var entityName: String { "Track" }
  var seconds: Int { get { self[Slot.seconds] } set { self[Slot.seconds] = newValue } }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  private(set) var length = ""
  override func awakeFromFetch() { length = "\(seconds / 60)′ \(seconds % 60)″" }
  override func didTurnIntoFault() { length = "" }
  override class var properties: [PropertyBinding] {
    [.attribute("seconds", \Track.seconds, slot: Slot.seconds), .attribute("title", \Track.title, slot: Slot.title)]
  }
}

@MainActor func listening() throws -> [String] {
  let model = try ManagedObjectModel(entities: [
    EntityDescription("Track", attributes: [AttributeDescription("seconds", .integer32), AttributeDescription("title", .string)])
  ])
  let container = try PersistentContainer(model: model, classes: [Track.self], store: .memory())
  let context = container.viewContext
  var told: [String] = []
  context.objectsDidChange { _, changes in told.append("\(changes.inserted.count) new, \(changes.updated.count) changed") }
  context.contextDidSave { _, changes in told.append("\(changes.inserted.count + changes.updated.count) saved") }

  let track = context.insert(Track.self)
  track.title = "Erbarme dich"
  track.seconds = 403
  try context.processPendingChanges()  // 1 new, 0 changed
  track.title = "Erbarme dich, mein Gott"
  try context.save()  // 0 new, 1 changed; 1 saved
  try context.refresh(track, mergeChanges: false)
  return told + [track.title, track.length]  // reading the title gives the object its row, so it has its length
}

@MainActor func library() throws -> [String] {
  let model = try ManagedObjectModel(
    entities: [
      EntityDescription("Book", attributes: [AttributeDescription("title", .string)]),
      EntityDescription("Note", attributes: [AttributeDescription("text", .string)]),
    ],
    configurations: [ConfigurationDescription("shared", ["Book"]), ConfigurationDescription("own", ["Book", "Note"])])
  let container = try PersistentContainer(
    model: model, stores: [.memory().with(configuration: "shared"), .memory().with(configuration: "own")])
  let (coordinator, context) = (container.persistentStoreCoordinator, container.viewContext)

  let emma = try context.insert(entityNamed: "Book")
  try emma.setValue(.string("Emma"), forKey: "title")
  let diary = try context.insert(entityNamed: "Book")
  try diary.setValue(.string("Diary"), forKey: "title")
  try context.assign(diary, to: coordinator.persistentStores[1])
  let note = try context.insert(entityNamed: "Note")  // goes to the only store that has notes
  try note.setValue(.string("Read Emma again"), forKey: "text")
  try context.save()

  var books = FetchRequest<ManagedObject>(entityName: "Book")
  books.sortDescriptors = [FetchSortDescriptor(SortTerm("title"))]
  return try context.fetch(books).map { book in  // of both stores, in one order
    let store = coordinator.persistentStore(for: book.objectID)
    return "\(book.entity.name) in \(store?.configurationName ?? "")"
  }  // ["Book in own", "Book in shared"]
}

func mend(_ path: String, _ model: ManagedObjectModel) throws {
  var options = JSONStore.Options()
  options.wholeFile.allowsUnverified = true
  let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: path, options: options))
  // Look at what was changed, then let a save give the file its new digest; writing the metadata is one.
  try coordinator.setMetadata(coordinator.metadata)
  try coordinator.close()
}
