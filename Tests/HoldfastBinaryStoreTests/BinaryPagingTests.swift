import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// What is read from a file, and when: only what an answer needs.
@Suite struct BinaryPagingTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Book",
          attributes: [
            AttributeDescription("number", .integer64), AttributeDescription("title", .string), AttributeDescription("isbn", .string),
          ],
          relationships: [.toOne("shelf", to: "Shelf", inverse: "books"), .toMany("similar", to: "Book", inverse: "similar")],
          uniquenessConstraints: [["number"], ["title", "isbn"]]),
        EntityDescription("Atlas", superentity: "Book", attributes: [AttributeDescription("maps", .integer32, isOptional: true)]),
        EntityDescription(
          "Shelf", attributes: [AttributeDescription("row", .integer16)],
          relationships: [.toMany("books", to: "Book", inverse: "shelf", isOrdered: true)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private static func store(_ disk: SimulatedFileSystem) -> StoreDescription {
    var options = BinaryStoreOptions()
    options.wholeFile.file.fileSystem = disk
    return .binary(at: "/library", options: options)
  }

  private static func context(_ disk: SimulatedFileSystem) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store(disk)))
  }

  /// A disk with a file of the given number of books. Every tenth book is an atlas.
  private static func disk(_ count: Int) throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    let context = try context(disk)
    let shelf = try context.insert(entityNamed: "Shelf")
    try shelf.setValue(.int16(1), forKey: "row")
    for number in 0..<count {
      let book = try context.insert(entityNamed: number % 10 == 9 ? "Atlas" : "Book")
      try book.setValue(.int64(Int64(number) * 7), forKey: "number")
      try book.setValue(.string("Volume \(number)"), forKey: "title")
      try book.setValue(.string("978-\(number)"), forKey: "isbn")
      if number < 3 { try shelf.ordered(forKey: "books").append(book) }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return disk
  }

  private static func book(_ number: Int, _ context: ManagedObjectContext) throws -> ManagedObject? {
    let request = FetchRequest<ManagedObject>(
      entityName: "Book", where: FetchPredicate(.comparison(.property("number"), .equalTo, .constant(.int64(Int64(number) * 7)), [])))
    return try context.fetch(request).first
  }

  @Test func theFirstObjectCostsAsManyReadingsHoweverManyThereAre() throws {
    var counts: [Int] = []
    for count in [100, 3_000, 30_000] {
      let disk = try Self.disk(count), before = disk.count(of: .read)
      let context = try Self.context(disk)
      let opened = disk.count(of: .read) - before
      // Header, trailer, directory and info.
      #expect(opened == 4)
      let book = try #require(try Self.book(count / 2, context))
      #expect(try book.value(forKey: "title") == .string("Volume \(count / 2)"))
      // An index and a page.
      counts.append(disk.count(of: .read) - before - opened)
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Book")) == count)
      #expect(disk.count(of: .read) - before - opened == counts.last)
      try context.persistentStoreCoordinator.close()
    }
    #expect(counts == [2, 2, 2])
  }

  @Test func anObjectIsFoundByItsIDAndByTheValuesOfAnyConstraint() throws {
    let disk = try Self.disk(3_000)
    let first = try Self.context(disk)
    let ids = try [0, 9, 1_000, 2_999].map { try #require(try Self.book($0, first)).objectID }
    #expect(try Self.book(3_000, first) == nil && Self.book(-1, first) == nil)
    try first.persistentStoreCoordinator.close()

    let context = try Self.context(disk), before = disk.count(of: .read)
    // The first page of all books, the first one of all atlases, and two further ones.
    for (id, number) in zip(ids, [0, 9, 1_000, 2_999]) {
      let book = try context.existingObject(with: id)
      #expect(try book.value(forKey: "title") == .string("Volume \(number)") && book.entity.name == (number % 10 == 9 ? "Atlas" : "Book"))
    }
    #expect((1...4).contains(disk.count(of: .read) - before), "a page for each at most")
    func find(_ title: String, _ isbn: String, _ entity: String) throws -> [ManagedObject] {
      try context.fetch(
        FetchRequest<ManagedObject>(
          entityName: entity,
          where: FetchPredicate(
            .and([
              .comparison(.property("title"), .equalTo, .constant(.string(title)), []),
              .comparison(.property("isbn"), .equalTo, .constant(.string(isbn)), []),
            ]))))
    }
    #expect(try find("Volume 1009", "978-1009", "Book").count == 1)
    #expect(try find("Volume 1009", "978-1009", "Atlas").count == 1 && find("Volume 1008", "978-1008", "Atlas").isEmpty)
    #expect(try find("Volume 1009", "978-1008", "Book").isEmpty)
    try context.persistentStoreCoordinator.close()
  }

  /// All values of a section are deleted, and one of them is inserted again.
  @Test(arguments: [(0, 0), (0, 3), (1, 1)]) func aSectionOfAnIndexIsLeftOutWhileItIsEmpty(subject: Int, place: Int) throws {
    let disk = try Self.disk(9_000), context = try Self.context(disk)
    func sections() -> [[UInt8]] {
      let bytes = disk.contents(of: "library") ?? []
      let entries = BinaryParts(bytes).entries.filter { $0.kind == 6 && $0.subject == subject }
      return entries.map { Array(bytes[$0.offset..<$0.offset + $0.byteCount]) }
    }
    // The first save has read everything.
    try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first).setValue(.int16(2), forKey: "row")
    try context.save()
    var expected = sections()
    try #require(expected.count == 4)
    // Each entry has four bytes of a digest, then four of the key.
    let section = expected.remove(at: place)
    let keys = Set(stride(from: 0, to: section.count, by: 8).map { ObjectKey(Int64(section.number(at: $0) >> 32)) })
    var numbers: Set<Int> = []
    for book in try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")) where keys.contains(book.objectID.key) {
      let value: StoreValue? = try book.value(forKey: "number").storeValue
      numbers.insert(Int(try #require(value?.integer)) / 7)
      context.delete(book)
    }
    try context.save()
    #expect(sections() == expected && numbers.count == keys.count)

    let number = try #require(numbers.min()), book = try context.insert(entityNamed: "Book")
    try book.setValue(.int64(Int64(number) * 7), forKey: "number")
    try book.setValue(.string("Volume \(number)"), forKey: "title")
    try book.setValue(.string("978-\(number)"), forKey: "isbn")
    try context.save()
    #expect(sections().map(\.count) == expected[..<place].map(\.count) + [8] + expected[place...].map(\.count))
    try context.persistentStoreCoordinator.close()

    let again = try Self.context(disk), kept = try #require((0..<9_000).first { !numbers.contains($0) })
    #expect(try Self.book(number, again) != nil && Self.book(kept, again) != nil)
    #expect(try Self.book(try #require(numbers.max()), again) == nil)
    try again.persistentStoreCoordinator.close()
    _ = try PersistentStoreCoordinator.verifyPersistentStore(Self.store(disk))
  }

  @Test func everyPageIsReadOnceWhateverIsAsked() throws {
    let disk = try Self.disk(3_000)
    let pages = BinaryParts(disk.contents(of: "library") ?? []).entries.filter { $0.kind == 3 }.count
    let context = try Self.context(disk), before = disk.count(of: .read)
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).count == 3_000)
    // The shelf's page wasn't needed.
    #expect(pages > 5 && disk.count(of: .read) - before == pages - 1)
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Atlas")).count == 300)
    #expect(disk.count(of: .read) - before == pages - 1)
    let shelf = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first)
    // The shelf's page, and the section of its list.
    #expect(try shelf.ordered(forKey: "books").count == 3 && disk.count(of: .read) - before == pages + 1)
    // The index of numbers.
    try #require(try Self.book(5, context)).setValue(.string("Changed"), forKey: "title")
    #expect(try shelf.ordered(forKey: "books").count == 3 && disk.count(of: .read) - before == pages + 2)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Self.context(disk)
    #expect(try #require(try Self.book(5, again)).value(forKey: "title") == .string("Changed"))
    try again.persistentStoreCoordinator.close()
  }

  @Test func aReplacedFileIsReadUnchangedUntilTheNextSave() throws {
    let disk = try Self.disk(3_000)
    let context = try Self.context(disk)
    #expect(try Self.book(7, context) != nil)
    // Another process saves.
    let elsewhere = SimulatedFileSystem()
    elsewhere.setContents(of: "library", disk.contents(of: "library") ?? [])
    let other = try Self.context(elsewhere)
    try #require(try Self.book(2_000, other)).setValue(.string("Theirs"), forKey: "title")
    try other.save()
    try other.persistentStoreCoordinator.close()
    disk.setContents(of: "library", elsewhere.contents(of: "library") ?? [])

    #expect(try #require(try Self.book(2_500, context)).value(forKey: "title") == .string("Volume 2500"))
    #expect(try #require(try Self.book(1_000, context)).value(forKey: "title") == .string("Volume 1000"))
    try #require(try Self.book(1_000, context)).setValue(.string("Mine"), forKey: "title")
    try context.save()
    try context.refreshAllObjects()
    #expect(try #require(try Self.book(2_000, context)).value(forKey: "title") == .string("Theirs"))
    try context.persistentStoreCoordinator.close()
  }
}
