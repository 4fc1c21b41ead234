import Holdfast
import HoldfastMemoryStore
import TestSupport
import Testing

/// The examples of *Conflicts and merging* do what the article says.
@Suite struct ConflictTests {
  private let container: PersistentContainer

  init() throws { container = try PersistentContainer(model: LibraryBook.model(), classes: [LibraryBook.self], store: .memory()) }

  /// A context and its only book, which another context has changed since.
  private func changedElsewhere(_ change: (LibraryBook) -> Void) throws -> (ManagedObjectContext, LibraryBook) {
    try importBooks([(1, "Emma")], into: container.newContext())
    let context = container.newContext()
    let book = try #require(try context.fetch(FetchRequest<LibraryBook>()).first)
    #expect(book.title == "Emma")
    try container.withContext { other in
      change(try #require(try other.fetch(FetchRequest<LibraryBook>()).first))
      try other.save()
    }
    return (context, book)
  }

  @Test func anImportUpdatesKnownBooks() throws {
    try importBooks([(1, "Emma"), (2, "Persuation")], into: container.newContext())
    try importBooks([(2, "Persuasion"), (3, "Sanditon")], into: container.newContext())
    let titles = try container.withContext { try $0.fetch(FetchRequest<LibraryBook>(sortedBy: [.ascending(\.number)])).map(\.title) }
    #expect(titles == ["Emma", "Persuasion", "Sanditon"])
  }

  @Test func theHigherScoreIsKept() throws {
    let (context, book) = try changedElsewhere { $0.score = 7 }
    keepHighScores(in: context)
    book.score = 5
    book.title = "Emma. A Novel"
    try context.save()
    #expect(book.score == 7 && book.title == "Emma. A Novel")
  }

  @Test(arguments: [true, false]) func theUserDecides(_ keepsChanges: Bool) throws {
    let (context, book) = try changedElsewhere { $0.title = "Theirs" }
    book.title = "Ours"
    var asked: [ManagedObjectID] = []
    try save(context) { ids in
      asked = ids
      return keepsChanges
    }
    #expect(asked == [book.objectID] && book.title == (keepsChanges ? "Ours" : "Theirs"))
  }

  @Test func theExamplesOfCommentsDoWhatTheySay() throws {
    let (first, kept) = try changedElsewhere { $0.score = 1 }
    kept.title = "Kept"
    try MergingComments.keep(first)
    #expect(kept.title == "Kept" && kept.score == 1)
    let (second, discarded) = try changedElsewhere { $0.score = 2 }
    discarded.title = "Discarded"
    try MergingComments.discard(second)
    #expect(discarded.title == "Emma" && discarded.score == 2)
    _ = MergingComments.policy(second)
  }

  @Test func theBestBooksAreOfOneState() throws {
    _ = try changedElsewhere { $0.score = 4 }
    try importBooks([(2, "Persuasion")], into: container.newContext())
    let context = container.newContext(), (average, best) = try bestBooks(in: context)
    #expect(average == 2 && best.map(\.title) == ["Emma"] && context.queryGenerationToken == nil)
  }

  @Test func booksOfADraftAreAddedTogether() throws {
    let context = container.newContext()
    try addBooks([(1, "Emma"), (2, "Persuasion")], to: context)
    #expect(try context.fetch(FetchRequest<LibraryBook>()).count == 2 && context.hasChanges)
    #expect(try container.withContext { try $0.count(for: FetchRequest<LibraryBook>()) } == 0)
    try context.save()
    #expect(try container.withContext { try $0.count(for: FetchRequest<LibraryBook>()) } == 2)
  }

  @MainActor @Test func theViewContextFollows() throws {
    showLatest(of: container)
    let context = container.viewContext
    try importBooks([(1, "Emma")], into: container.newContext())
    let book = try #require(try context.fetch(FetchRequest<LibraryBook>()).first)
    try importBooks([(1, "Emma. A Novel")], into: container.newContext())
    try context.processPendingChanges()
    #expect(book.title == "Emma. A Novel")
  }

  @Test func booksWhoseIDsWereReceivedAreShown() throws {
    let (context, book) = try changedElsewhere { $0.title = "Emma. A Novel" }
    try showBooks(changed: ["x-coredata://nowhere/LibraryBook/p1"], in: context)
    #expect(book.title == "Emma")
    try showBooks(changed: [book.objectID.uriRepresentation], in: context)
    #expect(book.title == "Emma. A Novel" && !context.hasChanges)
  }

  @Test func anEditedSnapshotIsApplied() throws {
    let (context, book) = try changedElsewhere { $0.score = 1 }
    try SnapshotComments.edit(book)
    #expect(book.title == "Emma. A Novel" && context.hasChanges)
  }

  @Test func theHistoryReturnsWhatToUpload() throws {
    let folder = TemporaryFolder(), container = try openWithHistory(folder.path)
    var token: PersistentHistoryToken?
    try importBooks([(1, "Emma"), (2, "Sanditon")], into: container.newContext())
    #expect(try booksToUpload(container, since: &token).count == 2)
    let download = container.newContext()
    download.transactionAuthor = "download"
    try importBooks([(3, "Persuasion")], into: download)
    try importBooks([(1, "Emma. A Novel")], into: container.newContext())
    #expect(try booksToUpload(container, since: &token).count == 1)
    #expect(try booksToUpload(container, since: &token).isEmpty)
    #expect(try HistoryComments.run(container.persistentStoreCoordinator) == 4)
  }
}
