// swift-format-ignore-file
// The examples of README.md and of articles, word for word; `SnippetTests` compares them, `ReadmeTests` runs them.
import HoldfastJSONStore
import HoldfastXMLStore
import Holdfast
import HoldfastMemoryStore

// The classes of `Sources/Examples/FirstGraph`, which the README shows whole.
enum FirstGraph {
  final class Dog: ManagedObject {
    var name: String { get { self[0] } set { self[0] = newValue } }
    var walks: ToMany<Walk> { toMany(0) }
    override class var properties: [PropertyBinding] {
      [.attribute("name", \Dog.name, slot: 0), .toMany("walks", \Dog.walks, index: 0)]
    }
  }
  final class Walk: ManagedObject {
    var dog: Dog? { get { toOne(0) } set { setToOne(0, newValue) } }
    var minutes: Int { get { self[1] } set { self[1] = newValue } }
    override class var properties: [PropertyBinding] {
      [.toOne("dog", \Walk.dog, slot: 0), .attribute("minutes", \Walk.minutes, slot: 1)]
    }
  }
  static let entities = [
    EntityDescription("Dog", attributes: [.init("name", .string)], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
    EntityDescription("Walk", attributes: [.init("minutes", .integer32)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
  ]
}
private typealias Walk = FirstGraph.Walk

func forgetLongWalks(_ container: PersistentContainer) async throws -> Int {
  try await container.performBackgroundTask { context in
    let long = try context.fetch(Walk.self) { $0.minutes > 60 }
    for walk in long { context.delete(walk) }
    try context.save()
    return long.count
  }
}

class Work: ManagedObject {
  enum Slot { static let title: SlotIndex = 0, count = 1 }
  override class var entityName: String { "Work" }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  override class var properties: [PropertyBinding] { [.attribute("title", \Work.title, slot: Slot.title)] }
}

final class Symphony: Work {
  enum SymphonySlot { static let number = SlotIndex(Slot.count), movements = 0 }
  override class var entityName: String { "Symphony" }
  var number: Int { get { self[SymphonySlot.number] } set { self[SymphonySlot.number] = newValue } }
  var movements: OrderedToMany<Movement> { ordered(SymphonySlot.movements) }
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

  // A fetch of Work returns each object as an instance of its class; Symphony inherits \.title.
  let works = try context.fetch(Work.self, sortedBy: \.title)
  let third = try context.fetch(Symphony.self) { $0.title == "Eroica" && $0.number == 3 }
  return works.map(\.title) + third.flatMap { $0.movements.map(\.tempo) }
}

final class Track: ManagedObject {
  enum Slot { static let seconds: SlotIndex = 0, title: SlotIndex = 1 }
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
  let observations = [
    context.onChange { _, changes in told.append("\(changes.inserted.count) new, \(changes.updated.count) changed") },
    context.onSave { _, changes in told.append("\(changes.inserted.count + changes.updated.count) saved") },
  ]
  defer { observations.forEach { $0.cancel() } }

  let track = context.insert(Track.self)
  track.title = "Erbarme dich"
  track.seconds = 403
  try context.processPendingChanges()  // 1 new, 0 changed
  track.title = "Erbarme dich, mein Gott"
  try context.save()  // 0 new, 1 changed; 1 saved
  try context.refresh(track, mergeChanges: false)
  return told + [track.title, track.length]  // reading the title fires the fault, which sets the length
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
  var options = JSONStoreOptions()
  options.wholeFile.allowsUnverified = true
  let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: path, options: options))
  // Inspect the changes, then save: any save writes a new digest, and setting the metadata is a save.
  try coordinator.setMetadata(coordinator.metadata)
  try coordinator.close()
}

func sealAgain(_ path: String, _ model: ManagedObjectModel) throws {
  var options = XMLStoreOptions()
  options.wholeFile.allowsUnverified = true
  let coordinator = try PersistentStoreCoordinator(model: model, store: .xml(at: path, options: options))
  try coordinator.setMetadata(coordinator.metadata)
  try coordinator.close()
}
