// swift-format-ignore-file
// The examples of *Getting started*, word for word; `SnippetTests` compares them, `GettingStartedTests` runs them.
#if Macros
import Holdfast
import HoldfastSQLiteStore
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastXMLStore

@Entity final class Author: ManagedObject {
  @Attribute(.unique) var name: String
  @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: ToMany<Book>
}

@Entity final class Book: ManagedObject {
  var title: String
  @Attribute(.range(0...2100)) var year: Int?
  @Relationship(.required) var author: Author?
}

func fill(_ context: ManagedObjectContext) throws {
  let austen = Author(context: context, name: "Jane Austen")
  for (title, year) in [("Emma", 1815), ("Sense and Sensibility", 1811)] {
    let book = Book(context: context, title: title)
    book.year = year
    book.author = austen  // austen.books contains it at once
  }
  try context.save()  // all or nothing; durable when it returns
}

func titles(before year: Int, _ context: ManagedObjectContext) throws -> [String] {
  try context.fetch(Book.self, sortedBy: \.title) { $0.year < year }.map(\.title)
}

func add(_ title: String, _ year: Int, by name: String, to container: PersistentContainer) async throws -> Int {
  try await container.performBackgroundTask { context in
    guard let author = try context.fetchOne(Author.self, where: { $0.name == name }) else { return 0 }
    if try !context.exists(Book.self, where: { $0.title == title }) {
      let book = Book(context: context, title: title)
      (book.year, book.author) = (year, author)
      try context.save()
    }
    return author.books.count
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

// The article's last statements are top-level code, which a module of tests can't have.
@MainActor func runShelf() async throws {
  let container = try PersistentContainer(for: Author.self, Book.self, store: .sqlite(at: "shelf.sqlite"))
  if try !container.viewContext.exists(Book.self) { try fill(container.viewContext) }
  print(try titles(before: 1816, container.viewContext))
  print(try await add("Persuasion", 1817, by: "Jane Austen", to: container), "books")
}

/// A store of each type in the article's table.
func stores(_ folder: String) -> [StoreDescription] {
  [
    .memory(), .json(at: folder + "/shelf.json"), .xml(at: folder + "/shelf.xml"), .binary(at: folder + "/shelf.holdfast"),
    .sqlite(at: folder + "/shelf.sqlite"),
  ]
}

/// Why a book can't be saved, as a property and an error number; nil if it's saved.
func refusal(of title: String, _ context: ManagedObjectContext) throws -> String? {
  _ = Book(context: context, title: title)  // no author, which the model requires
  do {
    try context.save()
    return nil
  } catch let error as PersistenceError where error.code == .missingMandatoryValue {
    context.rollback()  // the store is unchanged; the context keeps its changes until you roll them back
    return "\(error.property ?? ""), \(error.coreDataCode)"  // "author, 1570"
  }
}
#endif
