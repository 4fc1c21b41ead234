import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Fetched properties by name: the objects that their predicates describe, with the object as `$FETCH_SOURCE`. On every store.
@Suite struct FetchedPropertyTests {
  private final class Reader: ManagedObject {
    var name: String {
      get { self[0] }
      set { self[0] = newValue }
    }
    var subject: String? {
      get { self[1] }
      set { self[1] = newValue }
    }
    var loans: ToMany<Book> { toMany(0) }
    var suggestions: [Book] { get throws { try fetchedObjects(forProperty: "suggestions", as: Book.self) } }
    override class var properties: [PropertyBinding] {
      [
        .attribute("name", \Reader.name, slot: 0), .attribute("subject", \Reader.subject, slot: 1),
        .toMany("loans", \Reader.loans, index: 0),
      ]
    }
  }

  private final class Book: ManagedObject {
    var pages: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    var reader: Reader? {
      get { toOne(1) }
      set { setToOne(1, newValue) }
    }
    var subject: String? {
      get { self[2] }
      set { self[2] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [
        .attribute("pages", \Book.pages, slot: 0), .toOne("reader", \Book.reader, slot: 1), .attribute("subject", \Book.subject, slot: 2),
      ]
    }
  }

  private static func fetched(_ name: String, _ predicate: String?, of entity: String = "Book") -> FetchedPropertyDescription {
    FetchedPropertyDescription(name, FetchRequestDescription("fetch", entity: entity, predicateFormat: predicate))
  }

  private static func model() throws -> ManagedObjectModel {
    var some = fetched("some", "subject == $FETCH_SOURCE.subject"), saved = some
    (some.fetchRequest.fetchLimit, saved.name, saved.fetchRequest.includesPendingChanges) = (1, "saved", false)
    return try ManagedObjectModel(entities: [
      EntityDescription(
        "Reader", attributes: [AttributeDescription("name", .string), AttributeDescription("subject", .string, isOptional: true)],
        relationships: [.toMany("loans", to: "Book", inverse: "reader")],
        fetchedProperties: [
          fetched("suggestions", "subject == $FETCH_SOURCE.subject AND NOT SELF IN $FETCH_SOURCE.loans"),
          fetched("same", "$FETCH_SOURCE.loans CONTAINS SELF"), fetched("lent", "reader == $FETCH_SOURCE"), fetched("all", nil),
          fetched("equals", "SELF != $FETCH_SOURCE AND loans.@count == $FETCH_SOURCE.loans.@count", of: "Reader"),
          fetched("subjects", "subject IN $FETCH_SOURCE.loans.subject"), fetched("strange", "subject MATCHES '.*'"),
          fetched("itself", "reader == $FETCHED_PROPERTY"), fetched("accented", "subject LIKE '*\u{301}'"),
          fetched("ending", "subject ENDSWITH '\u{301}'"), some, saved,
        ]),
      EntityDescription(
        "Book", attributes: [AttributeDescription("pages", .integer32), AttributeDescription("subject", .string, isOptional: true)],
        relationships: [.toOne("reader", to: "Reader", inverse: "loans")]),
    ])
  }

  private static let classes: [ManagedObject.Type] = [Reader.self, Book.self]

  private struct Library {
    let ann: Reader
    let bob: Reader
    /// About birds, birds, trees, and nothing. Ann has the first one, Bob the third one.
    let books: [Book]
  }

  private func library(_ context: ManagedObjectContext) -> Library {
    func reader(_ name: String, _ subject: String?) -> Reader { context.insert(Reader.self) { ($0.name, $0.subject) = (name, subject) } }
    let ann = reader("Ann", "birds"), bob = reader("Bob", nil)
    let books = ["birds", "birds", "trees", nil].map { subject in context.insert(Book.self) { ($0.subject, $0.pages) = (subject, 9) } }
    (books[0].reader, books[2].reader) = (ann, bob)
    return Library(ann: ann, bob: bob, books: books)
  }

  @Test(arguments: TestStore.withChild) func theObjectsAreThoseThatThePredicateDescribesNow(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model(), classes: Self.classes), context = try place.context()
    let library = library(context), (ann, bob, books) = (library.ann, library.bob, library.books)
    for isSaved in [false, true] {
      if isSaved { try context.save() }
      #expect(try ann.suggestions == [books[1]] && bob.suggestions == [books[3]], "\(isSaved)")
      #expect(try Set(ann.fetchedObjects(forProperty: "all")) == Set(books))
      for name in ["same", "lent"] { #expect(try ann.fetchedObjects(forProperty: name) == [books[0]], "\(name) \(isSaved)") }
      #expect(try ann.fetchedObjects(forProperty: "equals") == [bob] && bob.fetchedObjects(forProperty: "equals") == [ann])
      #expect(try Set(ann.fetchedObjects(forProperty: "subjects")) == Set(books[0...1]))
    }
    // Each call fetches again, with the changes.
    books[1].reader = ann
    ann.subject = "trees"
    #expect(try ann.suggestions == [books[2]] && ann.fetchedObjects(forProperty: "equals").isEmpty)
    #expect(try Set(ann.fetchedObjects(forProperty: "lent")) == Set(books[0...1]))
    context.delete(books[2])
    #expect(try ann.suggestions.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func theSettingsOfTheRequestApply(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model(), classes: Self.classes), context = try place.context()
    let library = library(context), ann = library.ann
    try context.save()
    library.books[3].subject = "birds"
    #expect(try ann.fetchedObjects(forProperty: "some").count == 1)
    #expect(try Set(ann.fetchedObjects(forProperty: "saved")) == Set(library.books[0...1]))
  }

  /// The bug: `*` with a combining mark behind it was one character, and not a wildcard. A quotation mark before one wasn't found.
  @Test(arguments: TestStore.allCases) func aCombiningMarkIsNoPartOfTheSignBeforeIt(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model(), classes: Self.classes), context = try place.context()
    let library = library(context)
    library.books[2].subject = "cafe\u{301}"
    for isSaved in [false, true] {
      if isSaved { try context.save() }
      for name in ["accented", "ending"] { #expect(try library.ann.fetchedObjects(forProperty: name) == [library.books[2]], "\(name)") }
    }
  }

  @Test func whatCannotBeFetchedThrowsWithTheReason() throws {
    let place = try TestStore.memory.makePlace(model: Self.model(), classes: Self.classes), context = try place.context()
    let library = library(context), ann = library.ann
    try context.save()
    func error(_ name: String) -> PersistenceError? {
      let error = #expect(throws: PersistenceError.self, "\(name)") { try ann.fetchedObjects(forProperty: name) }
      #expect(error?.property == name && error?.objectID == ann.objectID)
      return error
    }
    #expect(error("subject")?.code == .unknownProperty && error("nothing")?.code == .unknownProperty)
    #expect(error("strange")?.code == .invalidRequest && error("strange")?.reason.contains("MATCHES") == true)
    #expect(error("itself")?.reason.contains("The variable $FETCHED_PROPERTY has no value in a fetched property.") == true)
    context.reset()
    #expect(error("all")?.code == .missingObject)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatCannotBeReadThrowsInsteadOfUsingPlaceholders(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model(), classes: Self.classes), first = try place.context()
    let library = library(first)
    try first.save()
    let (annID, bobID) = (library.ann.objectID, library.bob.objectID)
    let (context, failing) = try place.faulty()
    let ann = try #require(try context.object(with: annID) as? Reader), bob = try #require(try context.object(with: bobID) as? Reader)
    let busy = StoreError(.locked, operation: "read", reason: "The test says so.", isRetryable: true)
    failing.fail(.rows, with: busy)
    failing.fail(.beginRead, with: busy)
    #expect(throws: StoreError.self) { try ann.suggestions }
    failing.clear()
    #expect(try ann.suggestions.count == 1 && context.faultError == nil)

    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Self.classes)
    other.delete(try other.object(with: bobID))
    try other.save()
    #expect(try #require(throws: PersistenceError.self) { try bob.suggestions }.code == .missingObject)
    #expect(context.faultError == nil)
  }
}
