import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import TestSupport
import Testing

/// Written files: the bytes that the format's article shows, and every value again.
@Suite struct BinaryWrittenFileTests {
  private func values(_ context: ManagedObjectContext) throws -> [ManagedObjectID: [String: StoreValue]] {
    var found: [ManagedObjectID: [String: StoreValue]] = [:]
    for object in try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")) {
      for slot in object.entity.slots { found[object.objectID, default: [:]][slot.name] = try object.value(forKey: slot.name).storeValue }
    }
    return found
  }

  @Test func columnsOfAllWidthsAndPatternsComeBack() throws {
    var random = SeededGenerator("Columns")
    let file = try BinaryTestFile()
    let context = try file.context()
    // In different ranges, values are equal, close together, far apart, present or missing.
    for stretch in 0..<12 {
      let width = Int64(1) << Int64.random(in: 0...62, using: &random), base = Int64.random(in: -width...width, using: &random)
      let share = [0.0, 0.1, 0.5, 1][Int.random(in: 0...3, using: &random)]
      for index in 0..<Int.random(in: 1...700, using: &random) {
        let book = try context.insert(entityNamed: stretch % 3 == 1 ? "Atlas" : "Book")
        func set(_ name: String, _ value: StoreValue) throws {
          if Double.random(in: 0..<1, using: &random) <= share { try book.setValue(value, forKey: name) }
        }
        let near = base &+ Int64.random(in: 0...width, using: &random)
        try set("pages", .int16(Int16(truncatingIfNeeded: near)))
        try set("sold", .int32(Int32(truncatingIfNeeded: near)))
        try book.setValue(.int64(Int64(stretch) << 40 | Int64(index)), forKey: "number")
        try set(
          "weight",
          .double(
            [Double(near), Double(index), 0.1 * Double(index), .infinity, .nan, -0.0, .leastNonzeroMagnitude].randomElement(using: &random)
              ?? 0))
        try set("height", .float([Float(index), 0.1, .greatestFiniteMagnitude, .nan].randomElement(using: &random) ?? 0))
        try set("printed", .date(Double(stretch % 2 == 0 ? near >> 12 : near >> 12) + (stretch % 4 == 0 ? 0.25 : 0)))
        try set("price", .decimal(Decimal(index) / 100))
        try set("isLent", .bool(index % 3 == 0))
        try set(
          "title", .string(["", "a", "é", "\u{0}", "日本", String(repeating: "x", count: index % 400)].randomElement(using: &random) ?? ""))
        try set(
          "cover", .data(Data(repeating: UInt8(truncatingIfNeeded: index), count: [0, 64, index].randomElement(using: &random) ?? 0)))
        try set("uid", .uuid(UUID()))
        try set("page", .uri("https://example.org/\(index)"))
      }
      try context.save()
    }
    let saved = try values(context)
    try context.persistentStoreCoordinator.close()
    for isReadOnly in [true, false] {
      let again = try file.context(isReadOnly: isReadOnly)
      let found = try values(again)
      #expect(found.count == saved.count && found.count > 12)
      for (id, expected) in saved {
        let values = found[id] ?? [:]
        for (name, value) in expected where !isSame(value, values[name] ?? .null) {
          Issue.record("\(name) of \(id) is \(String(describing: values[name])) and was \(value).")
        }
      }
      try again.persistentStoreCoordinator.close()
    }
  }

  private func isSame(_ a: StoreValue, _ b: StoreValue) -> Bool {
    switch (a, b) {
    case (.double(let a), .double(let b)): a == b || a.isNaN && b.isNaN
    case (.float(let a), .float(let b)): a == b || a.isNaN && b.isNaN
    default: a == b
    }
  }

  @Test func equalContentsMakeEqualFilesButForTheirNamesAndGenerations() throws {
    let files = try (0..<2).map { _ in
      let file = try BinaryTestFile()
      let context = try file.context()
      try Library.fill(context)
      try context.persistentStoreCoordinator.close()
      return file
    }
    let (first, second) = (try files[0].bytes(), try files[1].bytes())
    // External values have random file names, and the two open stores that saved each file random numbers, which the digest of the store
    // information covers.
    let different = zip(first, second).enumerated().filter { $0.offset >= 32 && $0.element.0 != $0.element.1 }
    #expect(first.count == second.count && different.count <= 16 + 8 + 8 + 8 + 2 * 8 + 8)
  }

  @Test func theExampleOfTheArticleIsWhatIsWritten() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("age", .integer16), AttributeDescription("name", .string, isOptional: true)])
    ])
    let file = try BinaryTestFile()
    let context = try file.context(model)
    for (age, name) in [(3, "Rex"), (5, nil), (4, "Ada")] as [(Int16, String?)] {
      let dog = try context.insert(entityNamed: "Dog")
      try dog.setValue(.int16(age), forKey: "age")
      if let name { try dog.setValue(.string(name), forKey: "name") }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    let bytes = try file.bytes(), parts = BinaryParts(bytes)
    #expect(bytes.starts(with: [0x89, 0x48, 0x46, 0x42, 0x0D, 0x0A, 0x1A, 0x0A, 1, 0, 0, 0, 0, 0, 0, 0]))
    #expect(parts.entries.map(\.kind) == [1, 2, 3] && parts.entries[0].offset == 32)
    let rows = parts.entries[2]
    #expect(
      Array(bytes[rows.offset..<rows.offset + rows.byteCount]) == [
        4, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,  // keys 1, 2, 3
        0, 1, 0, 0, 0, 0, 0, 0, 0,  // versions: all 1
        1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1,  // age: all have one; 3 + 0, 2, 1
        2, 0b101, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x52, 0x65, 0x78, 0x41, 0x64, 0x61,  // name: the first and the third, 3 bytes each
      ])
  }
}
