import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Comparisons of two stores.
@Suite struct DifferenceTests {
  private static let large = Data(repeating: 9, count: 200_000)
  private static let keys = GraphDifference.Matching.uniqueKeys(["Animal": ["tag"], "Owner": ["tag"], "Home": ["tag"]])
  static let matchings: [GraphDifference.Matching] = [.objectIDs, keys, .structure]

  private static func everything() throws -> ManagedObjectModel {
    try model(
      EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
      EntityDescription(
        "Cat", superentity: "Animal",
        attributes: [
          .init("a", .integer16, isOptional: true), .init("b", .decimal, isOptional: true), .init("c", .date, isOptional: true),
          .init("d", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true), .init("e", .uuid, isOptional: true),
          .init("f", .objectID, isOptional: true), .init("g", .boolean, isOptional: true),
        ]),
      EntityDescription("Dog", superentity: "Animal", relationships: [.toMany("peers", to: "Dog", inverse: "peers")]),
      EntityDescription(
        "Owner",
        relationships: [
          .toMany("animals", to: "Animal", inverse: "owner", isOrdered: true), .toMany("seen", to: "Animal", inverse: nil),
          .toMany("friends", to: "Owner", inverse: "friendOf", isOrdered: true), .toMany("friendOf", to: "Owner", inverse: "friends"),
          .toOne("home", to: "Home", inverse: "owner"),
        ]), EntityDescription("Home", relationships: [.toOne("owner", to: "Owner", inverse: "home")]))
  }

  /// - Parameter isLarge: Whether a value is kept in an external file.
  private static func fill(_ place: MigratedStore.Place, _ model: ManagedObjectModel, isLarge: Bool = false) throws {
    try place.fill(model) { context in
      let o = try context.add("Owner", "o"), p = try context.add("Owner", "p"), home = try context.add("Home", "h")
      let cat = try context.add(
        "Cat", "c",
        [
          "a": .int16(-3), "b": .decimal(Decimal(string: "12.75") ?? 0), "c": .date(1.5), "d": .data(isLarge ? large : Data([1, 2, 3])),
          "e": .uuid(UUID(uuidString: "00000000-0000-0000-0000-00000000000A") ?? UUID()), "g": true,
        ])
      try context.add("Cat", "empty")
      let dogs = try (1...3).map { try context.add("Dog", "d\($0)") }
      try o.setValue([dogs[2], cat, dogs[0]], forKey: "animals")
      try p.setValue([dogs[1]], forKey: "animals")
      try o.setValue([cat], forKey: "seen")
      try o.setValue([p, o], forKey: "friends")
      try dogs[0].setValue([dogs[1], dogs[2]], forKey: "peers")
      try o.setValue(home, forKey: "home")
      try context.save()
      try cat.setValue(StoreValue.objectID(p.objectID), forKey: "f")
    }
  }

  /// A change, and the differences that it makes.
  struct Change: CustomTestStringConvertible, Sendable {
    let name: String
    let differences: [String]
    let run: @Sendable (ManagedObjectContext) throws -> Void
    var testDescription: String { name }

    init(_ name: String, _ differences: [String], _ run: @escaping @Sendable (ManagedObjectContext) throws -> Void) {
      (self.name, self.differences, self.run) = (name, differences, run)
    }
  }

  static let changes = [
    Change("value", ["changed Cat a"]) { try $0.tagged("Cat", "c").setValue(StoreValue.int16(4), forKey: "a") },
    Change("no value", ["changed Cat b"]) { try $0.tagged("Cat", "c").setValue(StoreValue.null, forKey: "b") },
    Change("first value", ["changed Cat g"]) { try $0.tagged("Cat", "empty").setValue(StoreValue.bool(false), forKey: "g") },
    Change("two values", ["changed Cat a c"]) {
      let cat = try $0.tagged("Cat", "c")
      try cat.setValue(StoreValue.int16(4), forKey: "a")
      try cat.setValue(StoreValue.date(2.5), forKey: "c")
    },
    Change("external file", ["changed Cat d"]) {
      var bytes = large
      bytes[100_000] = 8
      try $0.tagged("Cat", "c").setValue(StoreValue.data(bytes), forKey: "d")
    },
    Change("object ID", ["changed Cat f"]) {
      try $0.tagged("Cat", "c").setValue(StoreValue.objectID(try $0.tagged("Owner", "o").objectID), forKey: "f")
    },
    Change("order", ["changed Owner animals"]) { context in
      let dogs = try (1...3).map { try context.tagged("Dog", "d\($0)") }
      try context.tagged("Owner", "o").setValue([dogs[0], try context.tagged("Cat", "c"), dogs[2]], forKey: "animals")
    },
    Change("order of a many-to-many relationship", ["changed Owner friends"]) {
      try $0.tagged("Owner", "o").setValue([try $0.tagged("Owner", "o"), try $0.tagged("Owner", "p")], forKey: "friends")
    },
    Change("links without an inverse", ["changed Owner seen"]) { try $0.tagged("Owner", "o").setValue([], forKey: "seen") },
    Change("both ends of a one-to-one link", ["changed Home owner", "changed Owner home"]) {
      try $0.tagged("Home", "h").setValue(nil, forKey: "owner")
    },
    Change("link of a relationship to itself", ["changed Dog peers", "changed Dog peers"]) {
      try $0.tagged("Dog", "d1").setValue([try $0.tagged("Dog", "d2")], forKey: "peers")
    },
    Change("another owner", ["changed Dog owner", "changed Owner animals", "changed Owner animals"]) {
      try $0.tagged("Dog", "d2").setValue(try $0.tagged("Owner", "o"), forKey: "owner")
    },
    Change("deletion", ["onlyInFirst Cat"]) { $0.delete(try $0.tagged("Cat", "empty")) },
    Change("insertion", ["onlyInSecond Home"]) { try $0.add("Home", "second") },
    Change("deletion of a linked object", ["changed Cat f", "changed Dog owner", "changed Owner friends", "onlyInFirst Owner"]) {
      try $0.tagged("Cat", "c").setValue(StoreValue.null, forKey: "f")
      $0.delete(try $0.tagged("Owner", "p"))
    },
  ]

  /// The differences as text without keys: kind, entity and properties.
  static func differences(_ difference: GraphDifference) -> [String] {
    difference.objects.map { object in
      (["\(object.kind)", object.entityName] + object.properties.map(\.name)).joined(separator: " ")
    }.sorted()
  }

  static func difference(
    _ first: MigratedStore.Place, _ second: MigratedStore.Place, _ model: ManagedObjectModel, _ matching: GraphDifference.Matching
  ) throws -> GraphDifference {
    try PersistentStoreCoordinator.difference(between: first.description, and: second.description, model: model, matching: matching)
  }

  // MARK: Every store

  @Test(arguments: CopyTests.Pair.all) func aCopyOfAnotherTypeIsEqual(_ pair: CopyTests.Pair) throws {
    let model = try Self.everything(), source = MigratedStore.Place(pair.source), copy = MigratedStore.Place(pair.destination)
    try Self.fill(source, model, isLarge: pair.source == pair.destination || pair.source == .coreData)
    try PersistentStoreCoordinator.copyPersistentStore(source.description, to: copy.description, model: model)
    for matching in [Self.keys, .structure] {
      for (first, second) in [(source, copy), (copy, source)] {
        let difference = try Self.difference(first, second, model, matching)
        #expect(difference.isEmpty && difference.objects.isEmpty, "\(matching) \(difference)")
        #expect(difference.entities.map(\.name) == ["Cat", "Dog", "Home", "Owner"])
        #expect(difference.entities.map(\.pairCount) == [2, 3, 1, 2])
      }
    }
  }

  @Test(arguments: MigratedStore.allCases, changes) func exactlyTheChangeIsReported(_ store: MigratedStore, _ change: Change) throws {
    let model = try Self.everything(), before = MigratedStore.Place(store), after = MigratedStore.Place(store)
    try Self.fill(before, model, isLarge: change.name == "external file")
    try PersistentStoreCoordinator.replacePersistentStore(after.description, withCopyOf: before.description)
    try after.change(model, change.run)
    let files = try before.folder.snapshot()
    for matching in Self.matchings {
      let difference = try Self.difference(before, after, model, matching)
      #expect(Self.differences(difference) == change.differences, "\(matching)\n\(difference)")
      #expect(difference.differenceCount == change.differences.count && !difference.isEmpty)
      // A debug build is slow with large values.
      if change.name == "external file" { continue }
      // From the other side, the stores exchange their roles.
      let reverse = try Self.difference(after, before, model, matching)
      #expect(reverse.differenceCount == difference.differenceCount)
      #expect(reverse.entities.map(\.onlyInFirstCount) == difference.entities.map(\.onlyInSecondCount), "\(reverse)")
    }
    #expect(try before.folder.snapshot() == files)
  }

  @Test(arguments: CopyTests.Pair.all) func aChangeIsReportedBetweenStoresOfOtherTypes(_ pair: CopyTests.Pair) throws {
    let model = try Self.everything(), before = MigratedStore.Place(pair.source), after = MigratedStore.Place(pair.destination)
    try Self.fill(before, model)
    try PersistentStoreCoordinator.copyPersistentStore(before.description, to: after.description, model: model)
    try after.change(model) { try $0.tagged("Cat", "c").setValue(StoreValue.int16(4), forKey: "a") }
    for matching in [Self.keys, .structure] {
      #expect(try Self.differences(Self.difference(before, after, model, matching)) == ["changed Cat a"])
    }
  }

  @Test func theModelIsTakenFromEitherStore() throws {
    let model = try Self.everything(), foreign = MigratedStore.Place(.coreData), own = MigratedStore.Place(.json)
    try Self.fill(foreign, model)
    try PersistentStoreCoordinator.copyPersistentStore(foreign.description, to: own.description, model: model)
    for (first, second) in [(foreign, own), (own, foreign)] {
      let difference = try PersistentStoreCoordinator.difference(
        between: first.description, and: second.description, matching: .structure)
      #expect(difference.isEmpty)
    }
  }

  // MARK: Values

  @Test func zerosAreEqualAndNotANumberEqualsItself() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .double), .init("y", .float, isOptional: true)]))
    let first = MigratedStore.Place(.json), second = MigratedStore.Place(.json), third = MigratedStore.Place(.sqlite)
    try first.fill(model) {
      try $0.add("N", "a", ["x": .double(-0.0), "y": .float(.nan)])
      try $0.add("N", "b", ["x": .double(.nan)])
    }
    try second.fill(model) {
      try $0.add("N", "b", ["x": .double(.nan)])
      try $0.add("N", "a", ["x": .double(0), "y": .float(.nan)])
    }
    try third.fill(model) { try $0.add("N", "a", ["x": .double(0)]) }
    for matching in [GraphDifference.Matching.uniqueKeys(["N": ["tag"]]), .structure] {
      #expect(try Self.difference(first, second, model, matching).isEmpty)
      #expect(try Self.differences(Self.difference(first, third, model, matching)) == ["changed N y", "onlyInFirst N"])
    }
  }

  @Test func textIsComparedByItsBytes() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .string)]))
    let first = MigratedStore.Place(.sqlite), second = MigratedStore.Place(.sqlite)
    try first.fill(model) { try $0.add("N", "a", ["x": "\u{E9}"]) }
    try second.fill(model) { try $0.add("N", "a", ["x": "e\u{301}"]) }
    for matching in Self.matchings where matching != Self.keys {
      #expect(try Self.differences(Self.difference(first, second, model, matching)) == ["changed N x"])
    }
  }

  @Test func valuesAreReportedOnRequestOnly() throws {
    let model = try Self.everything(), before = MigratedStore.Place(.sqlite), after = MigratedStore.Place(.sqlite)
    try Self.fill(before, model, isLarge: true)
    try PersistentStoreCoordinator.replacePersistentStore(after.description, withCopyOf: before.description)
    var (o, p): (ManagedObjectID?, ManagedObjectID?)
    try after.change(model) {
      try $0.tagged("Cat", "c").setValue(StoreValue.null, forKey: "a")
      try $0.tagged("Cat", "c").setValue(StoreValue.data(Data([1])), forKey: "d")
      try $0.tagged("Dog", "d2").setValue(try $0.tagged("Owner", "o"), forKey: "owner")
      (o, p) = (try $0.tagged("Owner", "o").objectID, try $0.tagged("Owner", "p").objectID)
    }
    let plain = try Self.difference(before, after, model, .objectIDs)
    #expect(plain.objects.flatMap(\.properties).allSatisfy { $0.first == nil && $0.second == nil })
    let full = try PersistentStoreCoordinator.difference(between: before.description, and: after.description, includesValues: true)
    let values = Dictionary(full.objects.flatMap(\.properties).map { ($0.name, [$0.first, $0.second]) }) { first, _ in first }
    #expect(values["a"] == [.int16(-3), .null] && values["animals"] == [nil, nil])
    #expect(values["d"]?[0]?.isExternal == true && values["d"]?[1] == .data(Data([1])))
    #expect(try values["owner"] == [.objectID(#require(p)), .objectID(#require(o))])
    #expect(full.description == plain.description)
    #expect(full.text { _ in "value" }.contains("a (value → value)"))
  }

  // MARK: Results

  @Test func theDescriptionNamesObjectsAndPropertiesButNoValues() throws {
    let model = try Self.everything(), before = MigratedStore.Place(.sqlite), after = MigratedStore.Place(.sqlite)
    try Self.fill(before, model)
    try PersistentStoreCoordinator.replacePersistentStore(after.description, withCopyOf: before.description)
    try after.change(model) {
      try $0.tagged("Cat", "c").setValue(StoreValue.string("secret"), forKey: "tag")
      $0.delete(try $0.tagged("Cat", "empty"))
      try $0.add("Home", "second")
    }
    let difference = try Self.difference(before, after, model, .objectIDs)
    let lines = difference.description.split(separator: "\n").map(String.init)
    #expect(lines.count == 7 && !difference.description.contains("secret"), "\(difference)")
    #expect(lines[0] == "Cat: 1 object in both stores, 1 changed; 1 only in the first store")
    #expect(lines[1] == "Dog: 3 objects in both stores")
    #expect(lines[2] == "Home: 1 object in both stores; 1 only in the second store")
    let cat = try #require(difference.objects.first?.first)
    #expect(lines[4] == "Changed: Cat/p\(cat.key): tag" && difference.objects[0].description == lines[4])
    #expect(lines[5].hasPrefix("Only in the first store: Cat/p") && lines[6].hasPrefix("Only in the second store: Home/p"))
  }

  @Test func numbersAreExactIfTheListIsNot() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .integer32)]))
    let first = MigratedStore.Place(.sqlite), second = MigratedStore.Place(.sqlite)
    try first.fill(model) { for number in 0..<3_000 { try $0.add("N", "\(number)", ["x": .int32(1)]) } }
    try PersistentStoreCoordinator.replacePersistentStore(second.description, withCopyOf: first.description)
    try second.change(model) { context in
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: "N")) {
        guard let number = Int(try Contents.tag(object)) else { continue }
        if number % 10 == 0 { context.delete(object) } else if number % 2 == 0 { try object.setValue(StoreValue.int32(2), forKey: "x") }
      }
    }
    for matching in [GraphDifference.Matching.objectIDs, .uniqueKeys(["N": ["tag"]]), .structure] {
      func difference(_ count: Int) throws -> GraphDifference {
        try PersistentStoreCoordinator.difference(
          between: first.description, and: second.description, matching: matching, maximumCount: count)
      }
      let few = try difference(5)
      #expect(few.objects.count == 5 && few.differenceCount == 1_500)
      #expect(few.entities.map(\.changedCount) == [1_200] && few.entities.map(\.onlyInFirstCount) == [300])
      #expect(few.description.hasSuffix("\nAnd 1495 more differences."))
      #expect(try difference(10_000).objects.count == 1_500 && difference(-1).objects.isEmpty)
    }
  }

  @Test func emptyStoresAreEqual() throws {
    let model = try Self.everything(), first = MigratedStore.Place(.json), second = MigratedStore.Place(.sqlite)
    for place in [first, second] { try place.fill(model) { _ in } }
    for matching in Self.matchings {
      let difference = try Self.difference(first, second, model, matching)
      #expect(difference.isEmpty && difference.entities.isEmpty && difference.description.isEmpty)
    }
  }

  // MARK: Unique keys

  private func unique() throws -> ManagedObjectModel {
    try model(
      EntityDescription(
        "Chapter", attributes: [.init("number", .integer32, isOptional: true), .init("title", .string, isOptional: true)],
        relationships: [.toOne("book", to: "Book", inverse: "chapters")], uniquenessConstraints: [["book", "number"]]),
      EntityDescription(
        "Book", attributes: [.init("isbn", .string, isOptional: true), .init("price", .double, isOptional: true)],
        relationships: [.toMany("chapters", to: "Chapter", inverse: "book")], uniquenessConstraints: [["isbn"]]))
  }

  @Test(arguments: [MigratedStore.json, .sqlite]) func constraintsOfTheModelAreUniqueKeys(_ store: MigratedStore) throws {
    let model = try unique(), first = MigratedStore.Place(store), second = MigratedStore.Place(.binary)
    try first.fill(model) { context in
      for isbn in ["1", "2", "3"] {
        let book = try context.add("Book", isbn, ["isbn": .string(isbn)])
        for number in 1...3 { try context.add("Chapter", "", ["number": .int32(Int32(number))]).setValue(book, forKey: "book") }
      }
    }
    try second.fill(model) { context in
      // Everything but the keys differs, and the objects have other keys in the store.
      for isbn in ["4", "2", "1"] {
        let book = try context.add("Book", "new", ["isbn": .string(isbn), "price": .double(1)])
        for number in (1...3).reversed() {
          try context.add("Chapter", "", ["number": .int32(Int32(number)), "title": "new"]).setValue(book, forKey: "book")
        }
      }
    }
    let difference = try Self.difference(first, second, model, .uniqueKeys())
    let counts = Dictionary(grouping: Self.differences(difference)) { $0 }.mapValues(\.count)
    #expect(counts["changed Book price tag"] == 2 && counts["onlyInFirst Book"] == 1 && counts["onlyInSecond Book"] == 1, "\(difference)")
    #expect(counts["changed Chapter title"] == 6, "\(difference)")
  }

  @Test func objectsWithoutACompleteKeyAreMatchedByStructure() throws {
    let model = try unique(), first = MigratedStore.Place(.json), second = MigratedStore.Place(.xml)
    for (place, order) in [(first, [0, 1, 2, 3]), (second, [3, 1, 0, 2])] {
      try place.fill(model) { context in
        let add: [() throws -> Void] = [
          { try context.add("Book", "a", ["price": .double(1)]) }, { try context.add("Book", "b", ["price": .double(2)]) },
          { try context.add("Book", "c", ["isbn": "1"]) }, { try context.add("Chapter", "d") },
        ]
        for number in order { try add[number]() }
      }
    }
    #expect(try Self.difference(first, second, model, .uniqueKeys()).isEmpty)
    // A key that several objects share doesn't identify them.
    #expect(try Self.difference(first, second, model, .uniqueKeys(["Book": ["price"], "Chapter": ["number"]])).isEmpty)
    try second.change(model) { try $0.tagged("Book", "b").setValue(StoreValue.double(1), forKey: "price") }
    let difference = try Self.difference(first, second, model, .uniqueKeys(["Book": ["price"]]))
    #expect(Self.differences(difference) == ["onlyInFirst Book", "onlyInSecond Book"], "\(difference)")
  }

  private func chained() throws -> ManagedObjectModel {
    try model(
      EntityDescription(
        "Step", attributes: [.init("name", .string, isOptional: true), .init("note", .string, isOptional: true)],
        relationships: [.toOne("before", to: "Step", inverse: "after"), .toOne("after", to: "Step", inverse: "before")],
        uniquenessConstraints: [["name"], ["before"]]))
  }

  /// Fills a store with a chain of objects with equal values. Only the first one has a name.
  private func fillChain(_ place: MigratedStore.Place, _ count: Int, backwards: Bool, noting number: Int? = nil) throws {
    try place.fill(chained()) { context in
      var steps = try (0..<count).map { _ in try context.add("Step", "") }
      if backwards { steps.reverse() }
      try steps[0].setValue(StoreValue.string("first"), forKey: "name")
      for (step, next) in zip(steps, steps.dropFirst()) { try next.setValue(step, forKey: "before") }
      if let number { try steps[number].setValue(StoreValue.string("changed"), forKey: "note") }
    }
  }

  /// The bug: all objects were read again for each step of the chain.
  @Test(arguments: [MigratedStore.json, .sqlite]) func objectsThatDependOnEachOtherAreReadAFewTimes(_ store: MigratedStore) throws {
    let first = MigratedStore.Place(store), second = MigratedStore.Place(store), count = 400, rows = RowCount()
    try fillChain(first, count, backwards: false)
    try fillChain(second, count, backwards: true, noting: count - 1)
    let difference = try PersistentStoreCoordinator.difference(
      between: first.description.wrapped { CountedStore($0, rows) }, and: second.description.wrapped { CountedStore($0, rows) },
      model: try chained(), matching: .uniqueKeys())
    #expect(Self.differences(difference) == ["changed Step note"], "\(difference)")
    #expect(rows.value <= 20 * 2 * count, "\(rows.value)")
  }

  // MARK: Errors

  @Test func aMissingStoreIsReportedAndNotCreated() throws {
    let model = try Self.everything()
    for store in MigratedStore.allCases {
      let place = MigratedStore.Place(store), missing = MigratedStore.Place(store)
      try Self.fill(place, model)
      for (first, second) in [(place, missing), (missing, place), (missing, missing)] {
        let error = #expect(throws: StoreError.self) { try Self.difference(first, second, model, .objectIDs) }
        #expect(error?.code == .notFound, "\(store): \(error.map { "\($0)" } ?? "")")
      }
      #expect(missing.folder.names.isEmpty)
    }
  }

  @Test(arguments: MigratedStore.allCases) func storesOfOtherVersionsOfTheModelAreRefused(_ store: MigratedStore) throws {
    let model = try Self.everything(), other = try unique()
    let first = MigratedStore.Place(store), second = MigratedStore.Place(store), third = MigratedStore.Place(.json)
    try Self.fill(first, model)
    try second.fill(other) { _ in }
    try third.fill(other) { _ in }
    let error = #expect(throws: StoreError.self) { try Self.difference(first, second, model, .structure) }
    #expect(error?.code == .incompatibleModel && error?.path == second.description.location?.description)
    #expect(error?.reason.contains("Migrate the older one") == true && error?.cause is StoreError, "\(error.map { "\($0)" } ?? "")")
    let reverse = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.difference(between: first.description, and: third.description)
    }
    #expect(reverse?.code == .incompatibleModel && reverse?.reason.contains("Migrate the older one") == true)
  }

  @Test func anOpenStoreIsRefused() throws {
    let model = try Self.everything(), first = MigratedStore.Place(.json), second = MigratedStore.Place(.json)
    try Self.fill(first, model)
    try Self.fill(second, model)
    try second.change(model) { _ in
      let error = #expect(throws: StoreError.self) { try Self.difference(first, second, model, .structure) }
      #expect(error?.code == .alreadyOpen)
    }
  }

  @Test(arguments: MigratedStore.allCases) func aStoreIsNotComparedWithItself(_ store: MigratedStore) throws {
    let model = try Self.everything(), place = MigratedStore.Place(store)
    try Self.fill(place, model)
    let error = #expect(throws: StoreError.self) { try Self.difference(place, place, model, .structure) }
    #expect(error?.code == .alreadyOpen)
  }

  @Test func storesWithoutAModelNeedOne() throws {
    let model = try Self.everything(), place = MigratedStore.Place(.coreData), other = MigratedStore.Place(.coreData)
    try Self.fill(place, model)
    try Self.fill(other, model)
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.difference(between: place.description, and: other.description)
    }
    #expect(error?.code == .missingSourceModel)
  }

  @Test func namesInUniqueKeysAreChecked() throws {
    let model = try Self.everything(), place = MigratedStore.Place(.json), other = MigratedStore.Place(.json)
    try Self.fill(place, model)
    try Self.fill(other, model)
    let cases: [([String: [String]], PersistenceError.Code)] = [
      (["Horse": ["tag"]], .unknownEntity), (["Cat": ["tag", "colour"]], .unknownProperty), (["Owner": ["animals"]], .unknownProperty),
      (["Owner": []], .invalidRequest), ([:], .invalidRequest),
    ]
    for (names, code) in cases {
      let error = #expect(throws: PersistenceError.self) { try Self.difference(place, other, model, .uniqueKeys(names)) }
      #expect(error?.code == code, "\(names)")
    }
  }

  @Test func aMissingExternalFileIsAnError() throws {
    let model = try Self.everything(), first = MigratedStore.Place(.sqlite), second = MigratedStore.Place(.sqlite)
    try Self.fill(first, model, isLarge: true)
    try PersistentStoreCoordinator.replacePersistentStore(second.description, withCopyOf: first.description)
    for name in try FileManager.default.subpathsOfDirectory(atPath: second.folder.path) where name.contains("_EXTERNAL_DATA/") {
      try FileManager.default.removeItem(atPath: second.folder.file(name))
    }
    for matching in Self.matchings {
      let error = #expect(throws: StoreError.self) { try Self.difference(first, second, model, matching) }
      #expect(error?.code == .missingExternalData)
    }
  }

  @Test func aCancelledTaskStopsComparing() async throws {
    let model = try Self.everything(), place = MigratedStore.Place(.sqlite), other = MigratedStore.Place(.sqlite)
    try Self.fill(place, model)
    try Self.fill(other, model)
    for matching in Self.matchings {
      let task = Task {
        while !Task.isCancelled { await Task.yield() }
        return try Self.difference(place, other, model, matching)
      }
      task.cancel()
      let error = await #expect(throws: StoreError.self) { _ = try await task.value }
      #expect(error?.code == .cancelled)
    }
  }
}
