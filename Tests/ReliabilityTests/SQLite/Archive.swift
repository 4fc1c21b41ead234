import Foundation
import Holdfast
import HoldfastFiles
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport

/// A model with every shape of row and link, for tests that damage files and compare what is left.
enum Archive {
  static let model = Harbour.made([
    EntityDescription(
      "Item", isAbstract: true,
      attributes: [
        AttributeDescription("title", .string), AttributeDescription("count", .integer32), AttributeDescription("isRare", .boolean),
        AttributeDescription("price", .decimal, isOptional: true), AttributeDescription("uid", .uuid, isOptional: true),
      ],
      relationships: [
        .toOne("shelf", to: "Shelf", inverse: "items"), .toMany("tags", to: "Tag", inverse: "items"),
        .toOne("sequel", to: "Item", inverse: nil), .toOne("twin", to: "Item", inverse: "twin"),
      ]),
    EntityDescription(
      "Book", superentity: "Item", attributes: [AttributeDescription("text", .string, isOptional: true)],
      relationships: [.toMany("pages", to: "Page", inverse: nil)]),
    EntityDescription(
      "Map", superentity: "Item",
      attributes: [
        AttributeDescription("scale", .double, isOptional: true), AttributeDescription("drawn", .date, isOptional: true),
        AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
      ]),
    EntityDescription(
      "Shelf", attributes: [AttributeDescription("number", .integer64), AttributeDescription("place", .string)],
      relationships: [.toMany("items", to: "Item", inverse: "shelf", isOrdered: true)], uniquenessConstraints: [["number"]]),
    EntityDescription(
      "Tag", attributes: [AttributeDescription("name", .string)],
      relationships: [.toMany("items", to: "Item", inverse: "tags"), .toMany("related", to: "Tag", inverse: "related")]),
    EntityDescription("Page", attributes: [AttributeDescription("number", .integer16), AttributeDescription("heading", .string)]),
  ])

  static func context(_ store: StoreDescription, model: ManagedObjectModel = model) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store))
  }

  static let external = ExternalDataOptions(threshold: 4000)

  static func description(_ path: String) -> StoreDescription { .sqlite(at: path, options: SQLiteStoreOptions(externalData: external)) }

  /// Makes and closes a store. A tenth of the items is deleted, so the file has free pages.
  ///
  /// No page has more than about 30 objects.
  static func makeFile(_ store: StoreDescription, items count: Int) throws {
    let context = try context(store)
    var random = SeededGenerator(seed: 7)
    func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
    func text(_ size: Int) -> String { TestBytes.letters(size, &random) }
    let shelves = try (0..<count / 50).map { number in
      let shelf = try context.insert(entityNamed: "Shelf")
      try shelf.setValue(.int64(Int64(number)), forKey: "number")
      try shelf.setValue(.string(text(120)), forKey: "place")
      return shelf
    }
    let tags = try (0..<count / 20).map { index in
      let tag = try context.insert(entityNamed: "Tag")
      try tag.setValue(.string("tag \(index) " + text(120)), forKey: "name")
      return tag
    }
    for tag in tags { try tag.toMany(forKey: "related").insert(tags[number(tags.count)]) }
    var items: [ManagedObject] = []
    for index in 0..<count {
      let isBook = index % 3 > 0, item = try context.insert(entityNamed: isBook ? "Book" : "Map")
      try item.setValue(.string("item \(index) " + text(20)), forKey: "title")
      try item.setValue(.int32(Int32(index)), forKey: "count")
      try item.setValue(.bool(index % 7 == 0), forKey: "isRare")
      if index % 4 == 0 { try item.setValue(.decimal(Decimal(index) / 4), forKey: "price") }
      if index % 5 == 0 { try item.setValue(.uuid(UUID()), forKey: "uid") }
      try item.setValue(shelves[number(shelves.count)], forKey: "shelf")
      for _ in 0..<number(4) { try item.toMany(forKey: "tags").insert(tags[number(tags.count)]) }
      if let other = items.last {
        if index % 3 == 0 { try item.setValue(items[number(items.count)], forKey: "sequel") }
        if index % 10 == 1 { try item.setValue(other, forKey: "twin") }
      }
      if isBook {
        // Some records continue on other pages.
        try item.setValue(.string(text(index % 40 == 1 ? 9000 : number(200))), forKey: "text")
        if index % 10 == 0 {
          let page = try context.insert(entityNamed: "Page")
          try page.setValue(.int16(Int16(index % 1000)), forKey: "number")
          try page.setValue(.string(text(120)), forKey: "heading")
          try item.toMany(forKey: "pages").insert(page)
        }
      } else {
        try item.setValue(.double(Double(index) / 3), forKey: "scale")
        try item.setValue(.date(Double(index) * 1000.5), forKey: "drawn")
        let size = index % 60 == 0 ? 5000 : index % 15 == 0 ? 3000 : 50
        try item.setValue(.data(Data(TestBytes.pattern(Int64(index), size))), forKey: "image")
      }
      items.append(item)
    }
    try context.save()
    for item in items where number(10) == 0 { context.delete(item) }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  // MARK: Contents

  /// All objects of a store, by entity and key: `Book/p1`.
  static func contents(_ store: StoreDescription, model: ManagedObjectModel = model) throws -> [String: ArchiveContent] {
    let context = try context(store, model: model)
    defer { try? context.persistentStoreCoordinator.close() }
    return try ArchiveContent.all(in: context)
  }
}
