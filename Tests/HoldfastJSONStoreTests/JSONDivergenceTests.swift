import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Two copies of a file diverge. Neither is accepted as a later version of the other; a version saved from one always is.
@Suite(.bothReaders) struct JSONDivergenceTests {
  private let file: JSONFile
  private let copy: JSONFile

  init() throws {
    file = try JSONFile()
    copy = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    let shelf = try context.insert(entityNamed: "Shelf")
    try shelf.setValue(.int16(4), forKey: "row")
    for number in 0..<4 {
      let sign = try context.insert(entityNamed: "Sign")
      try sign.setValue(.string("Sign \(number)"), forKey: "text")
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    try copy.write(try file.bytes())
  }

  /// Books by title, shelves by row, signs by text, authors by name.
  private static func objects(_ entity: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    let keys: [String: PropertyPath] = ["Book": "title", "Shelf": "row", "Sign": "text", "Author": "name"]
    return try context.fetch(
      FetchRequest<ManagedObject>(entityName: entity, sortedBy: [FetchSortDescriptor(SortTerm(keys[entity] ?? "title"))]))
  }

  enum Change: String, CaseIterable, Sendable {
    case similar01, similar02, similarPairs, similarOtherPairs, notSimilar01
    case signHere, signThere, otherSign
    case firstToSecond, firstToLast, author0, author1
    case newSign, newOtherSign, newShelf, rename, renameOnce, renameAgain, deleteSign

    func make(_ context: ManagedObjectContext) throws {
      let books = try objects("Book", context), shelves = try objects("Shelf", context), signs = try objects("Sign", context)
      func link(_ a: Int, _ b: Int) throws { try books[a].toMany(forKey: "similar").insert(books[b]) }
      switch self {
      case .similar01: try link(0, 2)
      case .similar02: try link(0, 3)
      case .similarPairs:
        try link(0, 2)
        try link(1, 3)
      case .similarOtherPairs:
        try link(0, 3)
        try link(1, 2)
      case .notSimilar01: try books[0].toMany(forKey: "similar").remove(books[1])
      case .signHere: try shelves[0].toMany(forKey: "signs").insert(signs[0])
      case .signThere: try shelves[1].toMany(forKey: "signs").insert(signs[0])
      case .otherSign: try shelves[0].toMany(forKey: "signs").insert(signs[1])
      case .firstToSecond: try shelves[0].ordered(forKey: "books").move(fromOffsets: [0], toOffset: 2)
      case .firstToLast: try shelves[0].ordered(forKey: "books").move(fromOffsets: [0], toOffset: 4)
      case .author0: try books[1].toMany(forKey: "authors").insert(try #require(try objects("Author", context).first))
      case .author1: try objects("Author", context)[0].ordered(forKey: "books").move(fromOffsets: [0], toOffset: 3)
      case .newSign: try context.insert(entityNamed: "Sign").setValue(.string("a"), forKey: "text")
      case .newOtherSign: try context.insert(entityNamed: "Sign").setValue(.string("b"), forKey: "text")
      case .newShelf: try context.insert(entityNamed: "Shelf").setValue(.int16(9), forKey: "row")
      case .rename: try books[3].setValue(.string("Volume 3, again"), forKey: "title")
      case .renameOnce: try books[3].setValue(.string("Volume 3, once"), forKey: "title")
      case .renameAgain: try books[3].setValue(.string("Volume 3, twice"), forKey: "title")
      case .deleteSign: context.delete(signs[3])
      }
    }
  }

  /// Makes changes in the copy, with a save for each.
  private func saveInCopy(_ changes: [Change]) throws {
    let context = try copy.context()
    for change in changes {
      try change.make(context)
      try context.save()
    }
    try context.persistentStoreCoordinator.close()
  }

  @Test(
    arguments: [
      // Only links.
      ([.similar01], [.similar02]), ([.similar01], [.similar02, .rename]), ([.similarPairs], [.similarOtherPairs]),
      ([.similarPairs], [.similarOtherPairs, .newShelf]), ([.notSimilar01], [.similar02]), ([.similar01, .similarPairs], [.similar02]),
      ([.author0], [.author1, .newShelf]),
      // Links without inverse.
      ([.signHere], [.signThere]), ([.signHere], [.otherSign]), ([.signHere], [.otherSign, .newShelf]),
      ([.signHere], [.signThere, .newShelf]),
      // Only the order.
      ([.firstToSecond], [.firstToLast]), ([.firstToSecond], [.firstToLast, .rename]), ([.rename, .firstToSecond], [.firstToLast]),
      // New or deleted objects.
      ([.newSign], [.newShelf]), ([.newSign], [.newShelf, .rename]), ([.newSign], [.newOtherSign]), ([.newSign], [.newOtherSign, .rename]),
      ([.newSign, .rename], [.newShelf]), ([.deleteSign], [.newShelf]), ([.rename], [.deleteSign, .newShelf]),
      // Rows and links that the copy changed more often, and deletions: the copy's contents could follow ours.
      ([.rename], [.renameOnce, .renameAgain]), ([.deleteSign], [.rename, .newShelf]), ([.deleteSign], [.deleteSign]),
      ([.deleteSign], [.deleteSign, .rename]),
    ] as [([Change], [Change])])
  func whatWentItsOwnWayIsNotOverwrittenUnseen(ours: [Change], theirs: [Change]) throws {
    let context = try file.context()
    for change in ours {
      try change.make(context)
      try context.save()
    }
    try saveInCopy(theirs)
    #expect(Foundation.rename(copy.path, file.path) == 0)
    let before = try file.bytes()
    try Self.objects("Author", context)[0].setValue(.string("Eva"), forKey: "name")
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self, "\(ours) and \(theirs)") { try context.save() }
      #expect(error.code == .storeReplaced && error.path == file.path && error.reason.contains("older copy"), "\(error)")
      #expect(context.hasChanges && !error.isRetryable)
    }
    let isAsBefore = try file.bytes() == before
    #expect(isAsBefore)
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
  }

  @Test(arguments: Change.allCases) func laterVersionsAndRestoredVersionsOfTheFileAreAccepted(_ change: Change) throws {
    let context = try file.context()
    let before = try file.bytes()
    try saveInCopy([change])
    #expect(Foundation.rename(copy.path, file.path) == 0)
    try context.persistentStoreCoordinator.setMetadata(["is": .string("later")])
    try copy.write(before)
    #expect(Foundation.rename(copy.path, file.path) == 0)
    try context.persistentStoreCoordinator.setMetadata(["is": .string("earlier")])
    try context.persistentStoreCoordinator.close()
    let body = { (bytes: [UInt8]) in String(decoding: bytes, as: UTF8.self).components(separatedBy: "\"entities\"")[1].dropLast(25) }
    #expect(try body(file.bytes()) == body(before))
  }

  /// An editor keeps the file's record of saves. Its version of an older file isn't a restored one.
  @Test func anEditedOlderVersionIsNotTakenForARestoredOne() throws {
    let context = try file.context(options: JSONFile.unverified)
    let older = try file.text()
    try Change.rename.make(context)
    try context.save()
    try file.write(older.replacing("\"Sign 1\"", with: "\"Sign of an editor\""))
    let edited = try file.bytes()
    try Change.newShelf.make(context)
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .storeReplaced && context.hasChanges, "\(error)")
    let isAsEdited = try file.bytes() == edited
    #expect(isAsEdited)
    try context.persistentStoreCoordinator.close()
  }

  /// An edited version of what was last saved is read and saved on.
  @Test func anEditOfTheLatestVersionIsKept() throws {
    let context = try file.context(options: JSONFile.unverified)
    try file.write(try file.text().replacing("\"Sign 1\"", with: "\"Sign of an editor\""))
    try Change.newShelf.make(context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try file.text().contains("Sign of an editor") && file.refusal() == nil)
  }

  /// Two processes take turns, each with several arbitrary saves. Neither ever gets the error for diverged copies.
  @Test(arguments: 0..<3) func versionsOfOneHistoryAreNeverRefused(_ round: Int) throws {
    var random = SeededGenerator("Versions of one history, \(round)")
    let context = try file.context()
    for turn in 0..<60 {
      try copy.write(try file.bytes())
      let other = try copy.context()
      for _ in 0..<Int.random(in: 0...3, using: &random) { try Self.changeAnything(other, &random) }
      try other.persistentStoreCoordinator.close()
      #expect(Foundation.rename(copy.path, file.path) == 0)
      do {
        for _ in 0..<Int.random(in: 1...3, using: &random) { try Self.changeAnything(context, &random) }
      } catch let error as PersistenceError where error.code == .conflict || error.code == .constraintConflict {
        context.reset()
      } catch {
        Issue.record("Turn \(turn): \(error)")
        return
      }
    }
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
  }

  private static func changeAnything(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let books = try objects("Book", context), shelves = try objects("Shelf", context), signs = try objects("Sign", context)
      let authors = try objects("Author", context)
      guard let book = books.randomElement(using: &random), let shelf = shelves.randomElement(using: &random),
        let sign = signs.randomElement(using: &random), let author = authors.randomElement(using: &random)
      else { return }
      let other = books.randomElement(using: &random) ?? book
      switch Int.random(in: 0..<14, using: &random) {
      case 0: try book.toMany(forKey: "similar").insert(other)
      case 1: try book.toMany(forKey: "similar").remove(other)
      case 2: try shelf.toMany(forKey: "signs").insert(sign)
      case 3: try shelf.toMany(forKey: "signs").remove(sign)
      case 4: try book.toMany(forKey: "authors").insert(author)
      case 5: try author.ordered(forKey: "books").append(book)
      case 6: try author.ordered(forKey: "books").remove(book)
      case 7:
        let list = try shelf.ordered(forKey: "books")
        if list.count > 1 { list.move(fromOffsets: [Int.random(in: 0..<list.count, using: &random)], toOffset: 0) }
      case 8: try book.setValue(.objectID(shelf.objectID), forKey: "shelf")
      case 9: if books.count > 3 { context.delete(book) }
      case 10: if signs.count > 3 { context.delete(sign) }
      case 11:
        let new = try context.insert(entityNamed: Bool.random(using: &random) ? "Book" : "Atlas")
        try new.setValue(.string("Volume \(Int.random(in: 0..<1000, using: &random))"), forKey: "title")
        try new.setValue(.double(Double(nan: UInt64.random(in: 0..<100, using: &random), signaling: false)), forKey: "weight")
        try new.toMany(forKey: "authors").insert(author)
      case 12:
        if shelves.count > 2, Bool.random(using: &random) {
          context.delete(shelf)
        } else {
          try context.insert(entityNamed: "Shelf").setValue(.int16(Int16.random(in: 0..<99, using: &random)), forKey: "row")
        }
      default: try context.insert(entityNamed: "Sign").setValue(.string("Sign \(Int.random(in: 4..<99, using: &random))"), forKey: "text")
      }
    }
    try context.save()
  }
}
