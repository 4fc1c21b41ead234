// swift-format-ignore-file
// The examples of *Getting started*, word for word; `SnippetTests` compares them, `GettingStartedTests` runs them.
import HoldfastJSONStore
import HoldfastMemoryStore
import Holdfast
import HoldfastBinaryStore
import HoldfastSQLiteStore
import HoldfastXMLStore

func shelfModel() throws -> ManagedObjectModel {
  try ManagedObjectModel(entities: [
    EntityDescription(
      "Author", attributes: [AttributeDescription("name", .string)],
      relationships: [.toMany("books", to: "Book", inverse: "author", deleteRule: .cascade)],
      uniquenessConstraints: [["name"]]),
    EntityDescription(
      "Book", attributes: [AttributeDescription("title", .string), AttributeDescription("year", .integer16, isOptional: true)],
      relationships: [.toOne("author", to: "Author", inverse: "books", isOptional: false)]),
  ])
}

final class Author: ManagedObject {
  enum Slot { static let name: SlotIndex = 0, books = 0 }
  override class var entityName: String { "Author" }
  var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
  var books: ToMany<Book> { toMany(Slot.books) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Author.name, slot: Slot.name), .toMany("books", \Author.books, index: Slot.books)]
  }
}

final class Book: ManagedObject {
  enum Slot { static let author: SlotIndex = 0, title: SlotIndex = 1, year: SlotIndex = 2 }
  override class var entityName: String { "Book" }
  var author: Author? { get { toOne(Slot.author) } set { setToOne(Slot.author, newValue) } }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  var year: Int? { get { self[Slot.year] } set { self[Slot.year] = newValue } }
  override class var properties: [PropertyBinding] {
    [
      .toOne("author", \Book.author, slot: Slot.author), .attribute("title", \Book.title, slot: Slot.title),
      .attribute("year", \Book.year, slot: Slot.year),
    ]
  }
}

struct Shelf {
  @MainActor static func main() async throws {
    let container = try PersistentContainer(
      model: shelfModel(), classes: [Author.self, Book.self], store: .sqlite(at: "shelf.sqlite"))
    if try container.viewContext.count(Book.self) == 0 { try fill(container.viewContext) }
    print(try titles(before: 1816, container.viewContext))
    print(try await add("Persuasion", 1817, by: "Jane Austen", to: container), "books")
  }
}

func fill(_ context: ManagedObjectContext) throws {
  let austen = context.insert(Author.self)
  austen.name = "Jane Austen"
  for (title, year) in [("Emma", 1815), ("Sense and Sensibility", 1811)] {
    let book = context.insert(Book.self)
    book.title = title
    book.year = year
    book.author = austen  // austen.books contains it at once
  }
  try context.save()  // all or nothing; durable when it returns
}

func titles(before year: Int, _ context: ManagedObjectContext) throws -> [String] {
  let request = FetchRequest<Book>(sortedBy: [.ascending(\.title)]) { $0.year < year }
  return try context.fetch(request).map(\.title)
}

func add(_ title: String, _ year: Int, by name: String, to container: PersistentContainer) async throws -> Int {
  try await container.performBackgroundTask { context in
    guard let author = try context.fetchOne(Author.self, where: { $0.name == name }) else { return 0 }
    if try context.count(Book.self, where: { $0.title == title }) == 0 {
      let book = context.insert(Book.self)
      book.title = title
      book.year = year
      book.author = author
      try context.save()
    }
    return author.books.count
  }
}

func stores(_ folder: String) -> [StoreDescription] {
  let memory: StoreDescription = .memory()
  let json: StoreDescription = .json(at: folder + "/shelf.json")
  let xml: StoreDescription = .xml(at: folder + "/shelf.xml")
  let binary: StoreDescription = .binary(at: folder + "/shelf.holdfast")
  let sqlite: StoreDescription = .sqlite(at: folder + "/shelf.sqlite")
  return [memory, json, xml, binary, sqlite]
}

/// Why a book can't be saved, as a property and an error number; nil if it's saved.
func refusal(of title: String, _ context: ManagedObjectContext) throws -> String? {
  let book = context.insert(Book.self)
  book.title = title  // no author, which the model requires
  do {
    try context.save()
    return nil
  } catch let error as PersistenceError where error.code == .missingMandatoryValue {
    context.rollback()  // the store is unchanged; the context keeps its changes until you roll them back
    return "\(error.property ?? ""), \(error.coreDataCode)"  // "author, 1570"
  }
}

/// The title before and after a refresh that shows the change of a background context.
@MainActor func seeChanges(_ container: PersistentContainer) async throws -> [String] {
  let context = container.viewContext
  guard let emma = try context.fetchOne(Book.self, where: { $0.title == "Emma" }) else { return [] }
  let id = emma.objectID  // an ID is Sendable, an object isn't
  try await container.performBackgroundTask { context in
    guard let same = try context.existingObject(with: id) as? Book else { return }
    same.title = "Emma. A Novel"
    try context.save()
  }
  let before = emma.title
  try context.refresh(emma, mergeChanges: true)
  return [before, emma.title]  // ["Emma", "Emma. A Novel"]
}
