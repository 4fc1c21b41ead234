import TestSupport

#if os(Linux)
  import Foundation
  import Holdfast
  import TestSupport
  import Testing

  /// The memory that opening and reading a whole-file store takes in the worst cases: rows without values, wide rows, unique values, links and
  /// long texts.
  @Suite(.serialized, .ownThreads) struct FileMemoryTests {
    /// The main contents of a file.
    enum Shape: String, CaseIterable, Codable {
      case emptyRows, wideRows, uniqueNumbers, toOneLinks, manyToManyLinks, orderedLinks, longTexts
    }

    @Test(arguments: FileStore.wholeFile, Shape.allCases)
    func openingAndReadingTakesNoMoreMemoryThanDocumented(store: FileStore, shape: Shape) async throws {
      let folder = TemporaryFolder(), path = folder.file("file")
      try FileOfShape(shape: shape, store: store, path: path).make()
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as FileStore, shape = shape as Shape, path = path as String] in
        let file = FileOfShape(shape: shape, store: store, path: path), size = try TemporaryFolder.read(path).count
        // Running code for the first time takes memory too, so a small file is read first.
        try file.readAnotherOne()
        let taken = try ProcessMemory.taken { try file.read() }
        let multiple = String(format: "%.1f", Double(taken) / Double(size))
        demand(taken <= (64 << 20) + 128 * size, "\(taken) bytes for a file of \(size), \(multiple) times as much")
        print("REPORT \(store), \(shape): \(size) bytes in the file, \(multiple) times as much in memory")
      }
      report(child)
    }
  }

  /// Runs in a separate process.
  struct FileOfShape {
    let shape: FileMemoryTests.Shape
    let store: FileStore
    let path: String

    private static let width = 2000
    private static let model = Harbour.made([
      EntityDescription(
        "Dot", attributes: [AttributeDescription("text", .string, isOptional: true)],
        relationships: [
          .toOne("one", to: "Dot", inverse: "many"), .toMany("many", to: "Dot", inverse: "one"),
          .toMany("all", to: "Dot", inverse: "others"), .toMany("others", to: "Dot", inverse: "all"),
          .toMany("list", to: "Dot", inverse: "lists", isOrdered: true), .toMany("lists", to: "Dot", inverse: "list"),
        ]),
      EntityDescription("Unique", attributes: [AttributeDescription("number", .integer64)], uniquenessConstraints: [["number"]]),
      EntityDescription("Wide", attributes: (0..<width).map { AttributeDescription("a\($0)", .integer64, isOptional: true) }),
    ])

    private func context(_ path: String) throws -> ManagedObjectContext {
      try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model, store: store.description(at: path)))
    }

    /// 300,000 rows or links with `HOLDFAST_TESTS=full`.
    func make() throws { try make(path, count: TestTier.count(20_000, full: 300_000)) }

    private func make(_ path: String, count: Int) throws {
      let context = try context(path)
      switch shape {
      case .wideRows: for _ in 0..<count / 200 { _ = try context.insert(entityNamed: "Wide") }
      case .uniqueNumbers:
        for number in 0..<count { try context.insert(entityNamed: "Unique").setValue(.int64(Int64(number)), forKey: "number") }
      case .longTexts:
        for number in 0..<count / 1000 {
          let text = String(repeating: "\(number) ", count: 50_000)
          try context.insert(entityNamed: "Dot").setValue(.string(text), forKey: "text")
        }
      case .emptyRows: for _ in 0..<count { _ = try context.insert(entityNamed: "Dot") }
      case .toOneLinks, .manyToManyLinks, .orderedLinks: try link(context, count)
      }
      try context.save()
      try context.persistentStoreCoordinator.close()
    }

    /// Links one object to all, or each of a smaller number of objects to all of them.
    private func link(_ context: ManagedObjectContext, _ count: Int) throws {
      let name = shape == .toOneLinks ? "many" : shape == .orderedLinks ? "list" : "all"
      let number = shape == .toOneLinks ? count : Int(Double(count).squareRoot())
      let objects = try (0..<number).map { _ in try context.insert(entityNamed: "Dot") }
      for object in shape == .toOneLinks ? [objects[0]] : objects { try object.setValue(objects, forKey: name) }
    }

    /// Opens the file, counts its rows and reads its links.
    func read() throws { try read(path) }

    private func read(_ path: String) throws {
      let context = try context(path)
      let names = shape == .uniqueNumbers ? ["Unique"] : shape == .wideRows ? ["Wide"] : ["Dot"]
      for name in names {
        let count = try context.count(for: FetchRequest<ManagedObject>(entityName: name))
        demand(count > 0, "The file has no rows.")
      }
      if [.toOneLinks, .manyToManyLinks, .orderedLinks].contains(shape) {
        let name = shape == .toOneLinks ? "many" : shape == .orderedLinks ? "list" : "all"
        for object in try context.fetch(FetchRequest<ManagedObject>(entityName: "Dot")) { _ = try object.value(forKey: name) }
      }
      try context.persistentStoreCoordinator.close()
    }

    func readAnotherOne() throws {
      let other = path + ".small"
      try make(other, count: 1000)
      try read(other)
    }
  }
#endif
