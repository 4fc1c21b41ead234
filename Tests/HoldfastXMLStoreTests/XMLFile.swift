import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import HoldfastXMLStore
import Testing

/// An XML store's file in a folder of its own, which goes with it.
final class XMLFile {
  let folder: URL
  let path: String

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-xml-\(UUID().uuidString)").resolvingSymlinksInPath()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    path = folder.appendingPathComponent("store.xml").path
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
  func text() throws -> String { String(decoding: try bytes(), as: UTF8.self) }
  func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
  func write(_ text: String) throws { try write(Array(text.utf8)) }

  /// A context on the file with a coordinator of its own.
  func context(_ model: ManagedObjectModel = Library.model, options: XMLStore.Options = XMLStore.Options(), isReadOnly: Bool = false)
    throws -> ManagedObjectContext
  {
    try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .xml(at: path, isReadOnly: isReadOnly, options: options)))
  }

  /// Opens the file and closes it again.
  func open(_ model: ManagedObjectModel = Library.model, options: XMLStore.Options = XMLStore.Options()) throws {
    let store = XMLStore.make(at: path, options: options)
    _ = try store.open(model: model)
    try store.close()
  }

  static let unverified: XMLStore.Options = {
    var options = XMLStore.Options()
    options.wholeFile.allowsUnverified = true
    return options
  }()

  /// The error with which opening fails; nil when it does not.
  func refusal(_ model: ManagedObjectModel = Library.model, options: XMLStore.Options = XMLStore.Options()) -> StoreError? {
    do {
      try open(model, options: options)
      return nil
    } catch let error as StoreError {
      return error
    } catch {
      return StoreError(.general, operation: "open", reason: "No store error: \(error)")
    }
  }

  /// Gives a file that was changed by hand the digest that belongs to it.
  static func sealed(_ text: String) -> [UInt8] {
    var body = text
    if let end = body.range(of: "<!-- xxh64:", options: .backwards) { body = String(body[..<end.lowerBound]) }
    let digest = Array(body.utf8).withUnsafeBytes { ContentDigest.value(of: $0) }
    let digits = String(digest, radix: 16)
    return Array((body + "<!-- xxh64:" + String(repeating: "0", count: 16 - digits.count) + digits + " -->\n").utf8)
  }

  /// Lets the file say something else, with the digest that belongs to it.
  func edit(_ old: String, _ new: String) throws {
    let text = try text()
    let place = try #require(text.range(of: old), "\(old) is not in\n\(text)")
    try write(XMLFile.sealed(text.replacingCharacters(in: place, with: new)))
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
            AttributeDescription("seeAlso", .objectID, isOptional: true),
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
    try sign.setValue(.string("quiet <\"please\"> & \\u\n\t\r\u{1F4DA}\u{FFFE}\u{1}"), forKey: "text")
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
      try book.setValue(.date(318_303_001.848 + Double(number)), forKey: "printed")
      try book.setValue(.data(Data((0...UInt8(60 * number)).map { $0 })), forKey: "cover")
      try book.setValue(.uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number)))), forKey: "uid")
      try book.setValue(.uri("https://example.org/?a=\(number)&b"), forKey: "page")
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
    try books[1].setValue(.objectID(books[0].objectID), forKey: "seeAlso")
    try context.save()
  }

  /// All that a context's store holds, as text that does not depend on keys' order in the file.
  static func contents(_ context: ManagedObjectContext) throws -> [String] {
    var lines: [String] = []
    for entity in context.persistentStoreCoordinator.model.entities where !entity.isAbstract {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) where object.entity.name == entity.name {
        let attributes = try entity.attributes.map { "\($0.name)=\(try object.value(forKey: $0.name))" }
        let toOne = try entity.relationships.filter { !$0.isToMany }.map { "\($0.name)=\(try object.value(forKey: $0.name))" }
        let toMany = try entity.toManyRelationships.map { relationship in
          relationship.isOrdered
            ? "\(relationship.name)=\(try object.ordered(forKey: relationship.name).map(\.objectID.key))"
            : "\(relationship.name)=\(try object.toMany(forKey: relationship.name).map(\.objectID.key).sorted())"
        }
        lines.append("\(entity.name) \(object.objectID.key): \((attributes + toOne + toMany).joined(separator: ", "))")
      }
    }
    return lines.sorted()
  }
}
