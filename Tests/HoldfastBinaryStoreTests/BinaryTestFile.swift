import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastStore

/// A binary store's file in a folder of its own, which goes with it.
final class BinaryTestFile {
  let folder: URL
  let path: String

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-binary-\(UUID().uuidString)").resolvingSymlinksInPath()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    path = folder.appendingPathComponent("store.holdfast").path
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
  func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }

  /// A context on the file with a coordinator of its own.
  func context(_ model: ManagedObjectModel = Library.model, options: BinaryStore.Options = BinaryStore.Options(), isReadOnly: Bool = false)
    throws
    -> ManagedObjectContext
  {
    try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .binary(at: path, isReadOnly: isReadOnly, options: options)))
  }

  /// Opens the file, reads all of it, and closes it again.
  func open(_ model: ManagedObjectModel = Library.model, options: BinaryStore.Options = BinaryStore.Options()) throws {
    let store = BinaryStore.make(at: path, options: options)
    defer { try? store.close() }
    _ = try store.open(model: model)
    try store.verify()
  }

  static let unverified: BinaryStore.Options = {
    var options = BinaryStore.Options()
    options.wholeFile.allowsUnverified = true
    return options
  }()

  /// How many bytes rows take in memory, without text.
  static func rowByteCount(_ model: ManagedObjectModel, _ counts: [String: Int]) throws -> Int {
    counts.reduce(0) { $0 + $1.value * (model.entity(named: $1.key)?.layout.fixedByteCount ?? 0) }
  }

  /// The error with which opening fails; nil when it does not.
  func refusal(options: BinaryStore.Options = BinaryStore.Options()) -> StoreError? {
    do {
      try open(options: options)
      return nil
    } catch let error as StoreError {
      return error
    } catch {
      return StoreError(.general, operation: "open", reason: "No store error: \(error)")
    }
  }
}

/// Books with everything that an attribute or a relationship can be.
enum Library {
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Book",
          attributes: [
            AttributeDescription("pages", .integer16, isOptional: true), AttributeDescription("sold", .integer32, isOptional: true),
            AttributeDescription("number", .integer64, isOptional: true), AttributeDescription("price", .decimal, isOptional: true),
            AttributeDescription("weight", .double, isOptional: true), AttributeDescription("height", .float, isOptional: true),
            AttributeDescription("title", .string, isOptional: true), AttributeDescription("isLent", .boolean, isOptional: true),
            AttributeDescription("printed", .date, isOptional: true), AttributeDescription("cover", .binaryData, isOptional: true),
            AttributeDescription("uid", .uuid, isOptional: true), AttributeDescription("page", .uri, isOptional: true),
            AttributeDescription("scan", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
          ],
          relationships: [
            .toOne("shelf", to: "Shelf", inverse: "books"), .toMany("authors", to: "Author", inverse: "books"),
            .toMany("similar", to: "Book", inverse: "similar"),
          ], uniquenessConstraints: [["number"]]),
        EntityDescription("Atlas", superentity: "Book", attributes: [AttributeDescription("maps", .integer32, isOptional: true)]),
        EntityDescription(
          "Author", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("books", to: "Book", inverse: "authors", isOrdered: true)]),
        EntityDescription(
          "Shelf", attributes: [AttributeDescription("row", .integer16)],
          relationships: [.toMany("books", to: "Book", inverse: "shelf", isOrdered: true), .toMany("signs", to: "Sign", inverse: nil)]),
        EntityDescription("Sign", attributes: [AttributeDescription("text", .string)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  /// A small graph that uses every kind of value and link.
  static func fill(_ context: ManagedObjectContext) throws {
    let shelf = try context.insert(entityNamed: "Shelf"), sign = try context.insert(entityNamed: "Sign")
    try shelf.setValue(.int16(3), forKey: "row")
    try sign.setValue(.string("quiet \"please\"\n\u{1F4DA}"), forKey: "text")
    try shelf.toMany(forKey: "signs").insert(sign)
    var books: [ManagedObject] = []
    for number in 0..<4 {
      let book = try context.insert(entityNamed: number == 3 ? "Atlas" : "Book")
      try book.setValue(.int64(Int64(number) + 1 << 60), forKey: "number")
      try book.setValue(.string("Volume \(number)"), forKey: "title")
      try book.setValue(.decimal(Decimal(string: "12345678901234567.\(number)") ?? 0), forKey: "price")
      try book.setValue(.double(0.1 + Double(number)), forKey: "weight")
      try book.setValue(.float(0.1), forKey: "height")
      try book.setValue(.bool(number % 2 == 0), forKey: "isLent")
      try book.setValue(.date(-1e9 - 0.25), forKey: "printed")
      try book.setValue(.data(Data((0...UInt8(number)).map { $0 })), forKey: "cover")
      try book.setValue(.uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number)))), forKey: "uid")
      try book.setValue(.data(Data(repeating: UInt8(number), count: number == 1 ? 200_000 : 3)), forKey: "scan")
      try book.setValue(.uri("https://example.org/\(number)"), forKey: "page")
      books.append(book)
    }
    let author = try context.insert(entityNamed: "Author")
    try author.setValue(.string("Ada"), forKey: "name")
    for book in [books[2], books[0], books[3]] { try author.ordered(forKey: "books").append(book) }
    for book in books.reversed() { try shelf.ordered(forKey: "books").append(book) }
    try books[0].toMany(forKey: "similar").insert(books[1])
    try context.save()
    // A book between two others has an order key of its own.
    try shelf.ordered(forKey: "books").move(fromOffsets: [0], toOffset: 2)
    try context.save()
  }
}

/// Random numbers from a seed that tests print; `HOLDFAST_SEED` repeats a run.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ purpose: String) {
    state = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    print("\(purpose): HOLDFAST_SEED=\(state)")
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
