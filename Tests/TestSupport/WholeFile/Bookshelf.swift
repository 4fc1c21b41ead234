import Foundation
package import Holdfast
package import HoldfastStore

/// Books, authors and shelves, with every kind of attribute and relationship.
package enum Bookshelf {
  /// Makes the model, with more attributes of a book.
  package static func model(adding attributes: [AttributeDescription] = []) -> ManagedObjectModel {
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
          ] + attributes,
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
  }

  /// Saves a small graph that has every kind of value and link.
  ///
  /// - Parameters:
  ///   - text: the text of a sign.
  ///   - customize: sets more values of a book, or others; called with each book and its number from 0.
  /// - Returns: the books.
  @discardableResult
  package static func fill(
    _ context: ManagedObjectContext, text: String = "quiet \"please\"\n\u{1F4DA}",
    customize: (ManagedObject, Int) throws -> Void = { _, _ in }
  ) throws -> [ManagedObject] {
    let shelf = try context.insert(entityNamed: "Shelf"), sign = try context.insert(entityNamed: "Sign")
    try shelf.setValue(.int16(3), forKey: "row")
    try sign.setValue(.string(text), forKey: "text")
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
      try book.setValue(.uri("https://example.org/\(number)"), forKey: "page")
      try customize(book, number)
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
    return books
  }

  /// Saves books with random values of every kind, and an order with keys of its own.
  ///
  /// - Parameter texts: the parts of texts.
  package static func fill(_ context: ManagedObjectContext, count: Int, _ texts: [String], _ random: inout SeededGenerator) throws {
    var books: [ManagedObject] = []
    func text() -> String { (0..<Int.random(in: 0..<4, using: &random)).map { _ in texts.randomElement(using: &random)! }.joined() }
    for number in 0..<count {
      let book = try context.insert(entityNamed: number % 5 == 0 ? "Atlas" : "Book")
      let bits = random.next()
      let values: [(String, StoreValue)] = [
        ("pages", .int16(Int16(truncatingIfNeeded: bits))), ("sold", .int32(Int32(truncatingIfNeeded: bits))),
        ("number", .int64(Bool.random(using: &random) ? Int64(number) : Int64(bitPattern: bits) / Int64(number + 1))),
        ("price", .decimal(Decimal(Int64(bitPattern: bits)) / Decimal(1000))), ("weight", .double(Double(bits % 100_000) / 1000)),
        ("height", .float(Float(bits % 100_000) / 7)), ("title", .string(text())), ("isLent", .bool(bits % 2 == 0)),
        ("printed", .date(Bool.random(using: &random) ? Double(Int64(bitPattern: bits) >> 30) : Double(bits) / 1e6)),
        ("cover", .data(Data(text().utf8))), ("uid", .uuid(UUID())), ("page", .uri("https://example.org/\(number)")),
      ]
      for (key, value) in values where Int.random(in: 0..<8, using: &random) > 0 { try book.setValue(value, forKey: key) }
      let real = Double(bitPattern: random.next())
      if number % 7 == 0, real.isFinite { try book.setValue(.double(real), forKey: "weight") }
      if number % 11 == 0 {
        try book.setValue(.double([.infinity, .nan, -0.0, .leastNonzeroMagnitude].randomElement(using: &random)!), forKey: "weight")
      }
      for other in books.suffix(3) where Bool.random(using: &random) { try book.toMany(forKey: "similar").insert(other) }
      books.append(book)
    }
    let shelf = try context.insert(entityNamed: "Shelf")
    try shelf.setValue(.int16(1), forKey: "row")
    for book in books { try shelf.ordered(forKey: "books").append(book) }
    try context.save()
    try shelf.ordered(forKey: "books").move(fromOffsets: [0], toOffset: 3)
    try context.save()
  }
}
