// swift-format-ignore-file
// The examples of *Conflicts and merging*, of *Child contexts*, of *Persistent history* and of their comments, word for word; `SnippetTests` compares them, `ConflictTests` runs
// them.
import Holdfast
import HoldfastSQLiteStore

final class LibraryBook: ManagedObject {
  enum Slot { static let number: SlotIndex = 0, score: SlotIndex = 1, title: SlotIndex = 2 }
  var number: Int { get { self[Slot.number] } set { self[Slot.number] = newValue } }
  var score: Int { get { self[Slot.score] } set { self[Slot.score] = newValue } }
  var title: String { get { self[Slot.title] } set { self[Slot.title] = newValue } }
  override class var properties: [PropertyBinding] {
    [
      .attribute("number", \LibraryBook.number, slot: Slot.number), .attribute("score", \LibraryBook.score, slot: Slot.score),
      .attribute("title", \LibraryBook.title, slot: Slot.title),
    ]
  }

  static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "LibraryBook",
        attributes: [
          AttributeDescription("number", .integer64), AttributeDescription("score", .integer64, default: .int64(0)),
          AttributeDescription("title", .string),
        ], uniquenessConstraints: [["number"]])
    ])
  }
}

/// Imports books that other devices may have changed. A book with a known number updates the stored one.
func importBooks(_ list: [(number: Int, title: String)], into context: ManagedObjectContext) throws {
  context.mergePolicy = .mergeByPropertyObjectTrump
  for entry in list {
    let book = context.insert(LibraryBook.self)
    book.number = entry.number
    book.title = entry.title
  }
  try context.save()
}

/// Keeps the higher score, and lets the stored values win otherwise.
func keepHighScores(in context: ManagedObjectContext) {
  context.mergePolicy = .custom { conflict in
    guard case .int64(let ours)? = conflict.ours?["score"], case .int64(let theirs)? = conflict.theirs?["score"] else {
      return .mergeByPropertyStoreTrump
    }
    return .values(["score": .int64(max(ours, theirs))])
  }
}

/// The average score of the books, and those above it. Both are of one state, whatever others save meanwhile.
func bestBooks(in context: ManagedObjectContext) throws -> (average: Double, best: [LibraryBook]) {
  try context.setQueryGeneration(from: .current, timeLimit: .seconds(60))
  defer { try? context.setQueryGeneration(from: nil) }
  let scores = try context.fetch(FetchRequest<LibraryBook>()).map(\.score)
  let average = Double(scores.reduce(0, +)) / Double(max(1, scores.count)), limit = Int(average)
  return (average, try context.fetch(LibraryBook.self) { $0.score > limit })
}

/// Adds books to a context, all or none. Nothing is saved in the store.
func addBooks(_ list: [(number: Int, title: String)], to context: ManagedObjectContext) throws {
  let draft = ManagedObjectContext(parent: context)
  for entry in list {
    let book = draft.insert(LibraryBook.self)
    book.number = entry.number
    book.title = entry.title
  }
  try draft.save()
}

/// Saves. If objects are in conflict, lets the user decide whether their changes are kept.
func save(_ context: ManagedObjectContext, asking keepsChanges: ([ManagedObjectID]) -> Bool) throws {
  do {
    try context.save()
  } catch let error as PersistenceError where error.code == .conflict || error.code == .constraintConflict {
    try context.resolveConflicts(of: error, using: keepsChanges(error.objectIDs) ? .mergeByPropertyObjectTrump : .rollback)
    try context.save()
  }
}

@MainActor func showLatest(of container: PersistentContainer) {
  container.viewContext.automaticallyMergesChanges = true
}

/// Shows the books that another process has changed. The process has sent their IDs as text.
func showBooks(changed uris: [String], in context: ManagedObjectContext) throws {
  let coordinator = context.persistentStoreCoordinator, ids = uris.compactMap { coordinator.managedObjectID(forURIRepresentation: $0) }
  guard let store = coordinator.persistentStores.first else { return }
  try context.mergeChanges(from: SavedChanges(storeIdentifier: store.identifier, contextName: "", updated: ids))
}

/// The examples of comments.
enum MergingComments {
  static func keep(_ context: ManagedObjectContext) throws {
    do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
      try context.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)  // or .rollback, to discard these changes
      try context.save()
    }
  }

  static func discard(_ context: ManagedObjectContext) throws {
    do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
      try context.discardChanges(of: error.objectIDs)
      try context.save()  // everything else
    }
  }

  static func policy(_ context: ManagedObjectContext) -> MergePolicy {
    context.mergePolicy = .mergeByPropertyObjectTrump
    let policy = MergePolicy.custom { conflict in
      conflict.kind == .deletedInStore ? .rollback : .mergeByPropertyObjectTrump
    }
    return policy
  }
}

func openWithHistory(_ folder: String) throws -> PersistentContainer {
  var options = SQLiteStoreOptions()
  options.historyTracking = .always
  return try PersistentContainer(
    model: LibraryBook.model(), classes: [LibraryBook.self], store: .sqlite(at: folder + "/Library.sqlite", options: options))
}

/// Returns the IDs of the books to upload, and remembers how far it has read.
func booksToUpload(_ container: PersistentContainer, since token: inout PersistentHistoryToken?) throws -> Set<ManagedObjectID> {
  let history = try container.persistentStoreCoordinator.fetchHistory(after: token)
  token = history.token
  let own = history.transactions.filter { $0.author != "download" }
  return Set(own.flatMap(\.changes).filter { $0.changeType != .delete }.map(\.changedObjectID))
}

enum SnapshotComments {
  static func edit(_ book: LibraryBook) throws {
    var draft = try ManagedObjectSnapshot(book)  // sent to an editor, for example
    draft.title = "Emma. A Novel"
    try draft.apply(to: book, mergingBy: .mergeByPropertyObjectTrump)
  }
}

enum HistoryComments {
  static func run(_ coordinator: PersistentStoreCoordinator) throws -> Int {
    func newChanges(
      _ coordinator: PersistentStoreCoordinator, since token: inout PersistentHistoryToken?
    ) throws -> [PersistentHistoryChange] {
      let history = try coordinator.fetchHistory(after: token)
      token = history.token
      return history.changes
    }
    var token: PersistentHistoryToken?
    return try newChanges(coordinator, since: &token).count + newChanges(coordinator, since: &token).count
  }
}
