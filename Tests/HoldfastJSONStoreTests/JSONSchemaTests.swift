import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// The published schema describes the written files.
@Suite(.bothReaders) struct JSONSchemaTests {
  private let schema: [String: Any]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let file = root.appendingPathComponent("Sources/HoldfastJSONStore/HoldfastJSONStore.docc/holdfast-json.schema.json")
    schema = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
  }

  private func faults(_ text: String) throws -> [String] {
    SchemaCheck(schema).faults(try JSONSerialization.jsonObject(with: Data(text.utf8)), schema, "document")
  }

  private func written() throws -> String {
    let file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.setMetadata([
      "author": .string("Ann"), "none": .null, "large": .int64(.max), "data": .data(Data([1, 2])), "odd": .double(.infinity),
      "price": .decimal(Decimal(string: "0.1") ?? 0), "uid": .uuid(UUID()), "flag": .bool(true), "when": .date(0.5), "tiny": .float(0.1),
    ])
    try context.persistentStoreCoordinator.close()
    return try file.text()
  }

  @Test func whatIsWrittenFitsTheSchema() throws { #expect(try faults(written()) == []) }

  @Test func aHistoryFitsTheSchema() throws {
    let folder = TemporaryFolder(), path = folder.file("a.json")
    var options = JSONStoreOptions()
    options.wholeFile.historyTracking = .always
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("name", .string, isOptional: true)],
        userInfo: [EntityDescription.historyValuesKey: "YES"])
    ])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: path, options: options))
    let context = try ManagedObjectContext(coordinator: coordinator), dog = try context.insert(entityNamed: "Dog")
    context.transactionAuthor = "author"
    try context.save()
    try dog.setValue("Rex", forKey: "name")
    try context.save()
    context.delete(dog)
    try context.save()
    try coordinator.close()
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(try faults(text) == [])
    for (old, new) in [
      ("\"history\":[3", "\"history\":[-1"), ("\"keys\":\"1\"", "\"keys\":\"1-\""), ("\"kind\":\"deleted", "\"kind\":\"gone"),
    ] {
      #expect(try text.contains(old) && !faults(text.replacingOccurrences(of: old, with: new)).isEmpty, "\(new)")
    }
  }

  @Test(
    arguments: [
      ("\"format\":\"holdfast-json\"", "\"format\":\"holdfast\""), ("\"version\":1", "\"version\":3"),
      ("\"generation\":", "\"Generation\":"), ("\"generation\":4", "\"generation\":0"),
      ("\"generation\":4", "\"generation\":\"5000000000000000000\""),
      ("\"$key\":1,", ""), ("\"digest\":\"xxh64:", "\"digest\":\"xxh32:"), ("[\"string\",\"Ann\"]", "\"Ann\""),
      ("\"signs\":[1]", "\"signs\":[]"), ("\"signs\":[1]", "\"signs\":[\"x\"]"), ("\"row\":3", "\"row\":null"),
      ("\"uuid\":\"", "\"uuid\":\"x"),
    ])
  func whatIsNoStoreDoesNot(old: String, new: String) throws {
    let text = try written()
    let place = try #require(text.range(of: old))
    #expect(try !faults(text.replacingCharacters(in: place, with: new)).isEmpty)
  }

  @Test func everyOtherReaderOfJSONReadsTheSameNumbers() throws {
    let document = try #require(try JSONSerialization.jsonObject(with: Data(written().utf8)) as? [String: Any])
    let entities = try #require(document["entities"] as? [String: [[String: Any]]])
    let books = try #require(entities["Book"])
    #expect(books.map { $0["title"] as? String } == ["Volume 0", "Volume 1", "Volume 2"])
    #expect(books.map { $0["weight"] as? Double } == [0.1, 1.1, 2.1])
    #expect(books.map { $0["number"] as? String } == (0..<3).map { "\($0 + 1 << 60)" })
    #expect(
      books.map { $0["price"] as? String } == (0..<3).map { "12345678901234567.\($0)" }.map { $0.replacingOccurrences(of: ".0", with: "") })
    #expect(entities["Shelf"]?.first?["books"] as? [Int] == [3, 4, 2, 1])
  }
}
