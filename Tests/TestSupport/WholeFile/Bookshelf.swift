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
}
