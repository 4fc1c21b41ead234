import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastXMLStore

/// Values up to a limit are read, larger ones are refused, and lists continue in further elements.
@Suite(.bothReaders) struct XMLLimitTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  /// A count in a document, and the option that limits it.
  struct Limit: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let option: any WritableKeyPath<XMLStoreOptions, Int> & Sendable
    let bound: Int
    let document: @Sendable (_ count: Int) -> String
  }

  static let limits: [Limit] = [
    Limit(testDescription: "nesting", option: \.maximumNesting, bound: 12) { count in
      // The list is four elements deep, and its contents are in a fifth.
      let arrays = String(repeating: "<array>", count: count - 5) + String(repeating: "</array>", count: count - 5)
      return XMLHostileFileTests.metadata("<plist><dict><key>a</key>\(arrays)</dict></plist>")
    },
    Limit(testDescription: "a name", option: \.maximumNameByteCount, bound: 70_000) { count in
      let name = "text" + String(repeating: "x", count: count - 4)
      return XMLHostileFileTests.document(
        "<object type=\"SIGN\" id=\"z1\"><attribute name=\"\(name)\" type=\"string\">a</attribute></object>")
    },
    Limit(testDescription: "a list", option: \.maximumAttributeValueByteCount, bound: 3_000) { count in
      list("z1" + String(repeating: " ", count: count - 2))
    },
    Limit(testDescription: "a text", option: \.maximumTextByteCount, bound: 5_000) { count in
      XMLHostileFileTests.document(XMLHostileFileTests.sign(String(repeating: "a", count: count)))
    },
    Limit(testDescription: "members of an object", option: \.maximumMemberCount, bound: 20) { count in
      let members = (0..<count).map { "<attribute name=\"a\($0)\" type=\"string\">a</attribute>" }.joined()
      return "<database><object type=\"BROAD\" id=\"z1\">\(members)</object></database>"
    },
    Limit(testDescription: "values of the metadata", option: \.maximumMemberCount, bound: 50) { count in
      // The dictionary, its key and the array are three levels.
      XMLHostileFileTests.metadata(
        "<plist><dict><key>a</key><array>\(String(repeating: "<true/>", count: count - 3))</array></dict></plist>")
    },
  ]

  private static func list(_ ids: String) -> String {
    XMLHostileFileTests.document(
      "<object type=\"SIGN\" id=\"z1\"><relationship name=\"near\" type=\"0/0\" destination=\"SIGN\" idrefs=\"\(ids)\"/></object>")
  }

  private static let broad: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Sign", attributes: [AttributeDescription("text", .string, isOptional: true)],
          relationships: [.toMany("near", to: "Sign", inverse: "near")]),
        EntityDescription("Broad", attributes: (0..<40).map { AttributeDescription("a\($0)", .string, isOptional: true) }),
      ])
    } catch { fatalError("\(error)") }
  }()

  @Test(arguments: limits) func RG4_whatIsAtALimitIsReadAndWhatIsBeyondIsRefusedAndOptionsRaiseIt(_ limit: Limit) throws {
    var options = XMLStoreOptions()
    options[keyPath: limit.option] = limit.bound
    for (count, isWithin) in [(limit.bound - 1, true), (limit.bound, true), (limit.bound + 1, false)] {
      try file.write(limit.document(count))
      let refusal = file.refusal(Self.broad, options: options)
      let isOfLimit = refusal?.reason.contains("raise the limit") == true
      // A name of that length isn't in the model. That is only checked within the limit.
      #expect(isOfLimit != isWithin && (refusal == nil || !isWithin || refusal?.code == .incompatibleModel), "\(count): \(refusal as Any)")
      var raised = options
      raised[keyPath: limit.option] = limit.bound + 1
      let other = file.refusal(Self.broad, options: raised)
      #expect(other == nil || other?.code == .incompatibleModel, "\(count), raised: \(other as Any)")
    }
  }

  /// No program can save such an object, but a file can be edited. The limit of the file has to be raised for it.
  @Test func RG4_anObjectWhoseValuesAreLargerThanARowIsRefused() throws {
    let folder = TemporaryFolder(), store = StoreDescription.xml(at: folder.file("store.xml")), names = ["a", "b", "c"]
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: names.map { AttributeDescription($0, .string, isOptional: true) })
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    for _ in 0..<3 {
      let note = try context.insert(entityNamed: "Note")
      for name in names { try note.setValue(.string(String(repeating: name, count: 10_000)), forKey: name) }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    for (limit, isWithin) in [(40_000, true), (25_000, false), (8_000, false)] {
      let error = RowValues.$maximumByteCount.withValue(limit) { () -> StoreError? in
        do { try PersistentStoreCoordinator(model: model, store: store).close() } catch { return error as? StoreError }
        return nil
      }
      #expect((error == nil) == isWithin && (isWithin || error?.code == .damaged && error?.reason.contains("2 GiB") == true), "\(limit)")
    }
  }

  @Test func RG4_theUsualLimitsAreThoseThatAreSaid() {
    let options = XMLStoreOptions()
    #expect(
      (
        options.maximumNesting, options.maximumNameByteCount, options.maximumAttributeValueByteCount, options.maximumTextByteCount,
        options.maximumMemberCount
      ) == (
        64, 65_536, 10_000_000, 256 << 20, 1_000_000
      ))
    #expect(XMLFormat.mostListed == 400_000)
    // A full list of the longest ids can be read.
    #expect(XMLFormat.mostListed * ("z".count + "\(Int64(1) << 62)".count + 1) <= options.maximumAttributeValueByteCount)
  }

  /// A save of a sign with a text, a binary value and neighbours, or with metadata.
  private func save(
    text: String? = nil, photo: Int? = nil, near: Int = 0, metadata: Int = 0, _ change: (inout XMLStoreOptions) -> Void
  ) throws {
    var options = XMLStoreOptions()
    change(&options)
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Sign",
        attributes: [
          AttributeDescription("text", .string, isOptional: true), AttributeDescription("photo", .binaryData, isOptional: true),
        ],
        relationships: [.toMany("near", to: "Sign", inverse: "near")])
    ])
    try? FileManager.default.removeItem(atPath: file.path)
    let context = try file.context(model, options: options)
    defer { try? context.persistentStoreCoordinator.close() }
    let sign = try context.insert(entityNamed: "Sign")
    if let text { try sign.setValue(.string(text), forKey: "text") }
    if let photo { try sign.setValue(.data(Data(repeating: 1, count: photo)), forKey: "photo") }
    for _ in 0..<near { try sign.toMany(forKey: "near").insert(context.insert(entityNamed: "Sign")) }
    if metadata > 0 {
      let values = (0..<metadata).map { ("key \($0)", StoreValue.bool(true)) }
      try context.persistentStoreCoordinator.setMetadata(Dictionary(uniqueKeysWithValues: values))
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    // What was saved can be read.
    try file.context(model, options: options).persistentStoreCoordinator.close()
  }

  private func refusal(_ save: () throws -> Void) -> StoreError.Code? {
    do {
      try save()
      return nil
    } catch { return (error as? StoreError)?.code ?? .general }
  }

  @Test func RG4_whatCouldNotBeReadAgainIsNotSaved() throws {
    let usual = try #require(refusal { try save(text: "a") { $0.maximumTextByteCount = 0 } })
    #expect(usual == .unstorableValue)
    for (text, isWithin) in [(600, true), (601, false)] {
      #expect(refusal { try save(text: String(repeating: "a", count: text)) { $0.maximumTextByteCount = 600 } } == (isWithin ? nil : usual))
    }
    // An escape takes six bytes. Base64 takes four bytes for three, and a line feed for each 57.
    for (escaped, isWithin) in [(100, true), (101, false)] {
      #expect(
        refusal { try save(text: String(repeating: "<", count: escaped)) { $0.maximumTextByteCount = 600 } } == (isWithin ? nil : usual))
    }
    for (photo, isWithin) in [(57 * 6, true), (57 * 10, false)] {
      #expect(refusal { try save(photo: photo) { $0.maximumTextByteCount = 600 } } == (isWithin ? nil : usual))
    }
    for (near, isWithin) in [(19, true), (25, false)] {
      #expect(refusal { try save(near: near) { $0.maximumAttributeValueByteCount = 80 } } == (isWithin ? nil : usual))
    }
    for (metadata, isWithin) in [(20, true), (200, false)] {
      #expect(refusal { try save(metadata: metadata) { $0.maximumMemberCount = 100 } } == (isWithin ? nil : usual))
    }
  }

  // MARK: Models

  private static func model(entity: String = "Dog", attribute: String = "name", relationship: String = "pups") throws
    -> ManagedObjectModel
  {
    try ManagedObjectModel(entities: [
      EntityDescription(
        entity, attributes: ([attribute] + (0..<50).map { "a\($0)" }).map { AttributeDescription($0, .string, isOptional: true) },
        relationships: [.toMany(relationship, to: entity, inverse: "dam"), .toOne("dam", to: entity, inverse: relationship)])
    ])
  }

  /// Whether a new store can be created, and two objects saved, of which one has some values. In both cases, the file can be read.
  private static func isWithin(
    _ model: ManagedObjectModel, values: Int = 0, _ what: String, _ change: (inout XMLStoreOptions) -> Void
  ) throws -> Bool {
    var options = XMLStoreOptions(), isWithin = true
    change(&options)
    let folder = TemporaryFolder(), store = StoreDescription.xml(at: folder.file("store.xml"), options: options)
    let entity = try #require(model.entities.first)
    do {
      let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
      defer { try? context.persistentStoreCoordinator.close() }
      let dog = try context.insert(entityNamed: entity.name), pup = try context.insert(entityNamed: entity.name)
      try dog.setValue([pup], forKey: try #require(entity.toManyRelationships.first).name)
      for number in 0..<values { try dog.setValue(.string("a"), forKey: "a\(number)") }
      try context.save()
    } catch let error as StoreError {
      #expect(error.code == .unstorableValue && error.reason.contains("limit in the"), "\(what): \(error)")
      isWithin = false
    }
    if isWithin || folder.names.contains("store.xml") {
      #expect(throws: Never.self, "\(what)") { try PersistentStoreCoordinator(model: model, store: store).close() }
      #expect(throws: Never.self, "\(what)") { _ = try PersistentStoreCoordinator.cachedModel(for: store) }
    }
    return isWithin
  }

  @Test func RG4_aModelWhoseObjectsCouldNotBeReadAgainIsNotSaved() throws {
    for levels in 1...20 {
      #expect(try Self.isWithin(Self.model(), "\(levels) levels") { $0.maximumNesting = levels } == (levels >= 7))
    }
    for (count, isRight) in [(50, true), (51, false)] {
      let name = String(repeating: "n", count: count)
      for model in try [Self.model(entity: name), Self.model(attribute: name), Self.model(relationship: name)] {
        #expect(try Self.isWithin(model, "a name of \(count)") { $0.maximumNameByteCount = 50 } == isRight)
      }
    }
    // The header contains a UUID.
    for (count, isRight) in [(36, true), (35, false)] {
      #expect(try Self.isWithin(Self.model(), "\(count) bytes") { $0.maximumNameByteCount = count } == isRight)
    }
    // No option is needed for a name that is too long.
    let usual = XMLStoreOptions().maximumNameByteCount
    #expect(try !Self.isWithin(Self.model(attribute: String(repeating: "n", count: usual + 1)), "the usual options") { _ in })
  }

  @Test func RG4_anObjectWithMoreMembersThanCouldBeReadAgainIsNotSaved() throws {
    // An object has both relationships in any case.
    for (count, isRight) in [(0, true), (38, true), (39, false), (50, false)] {
      #expect(try Self.isWithin(Self.model(), values: count, "\(count) values") { $0.maximumMemberCount = 40 } == isRight)
    }
  }

  @Test func RG4_referencesInTheMetadataOfAnotherProgramCountWithTheirKeys() throws {
    let references = String(repeating: "<dict><key>CF$UID</key><integer>1</integer></dict>", count: 10)
    var savedCount = 0
    for limit in 30...90 {
      try file.write(XMLHostileFileTests.metadata("<plist><dict><key>a</key><array>\(references)</array></dict></plist>"))
      var options = XMLStoreOptions()
      options.maximumMemberCount = limit
      if file.refusal(Self.broad, options: options) != nil { continue }
      let coordinator = try file.context(Self.broad, options: options).persistentStoreCoordinator
      let refusal = refusal { try coordinator.setMetadata(["b": .bool(true)]) }
      try coordinator.close()
      #expect(refusal == nil || refusal == .unstorableValue, "\(limit)")
      #expect(file.refusal(Self.broad, options: options) == nil, "\(limit)")
      savedCount += refusal == nil ? 1 : 0
    }
    #expect(savedCount > 0)
  }

  @Test func RG4_noOptionAllowsDeeperElementsThanTheLibrary() throws {
    for (depth, isWithin) in [(255, true), (256, false), (290, false)] {
      let arrays = String(repeating: "<array>", count: depth - 5) + String(repeating: "</array>", count: depth - 5)
      try file.write(XMLHostileFileTests.metadata("<plist><dict><key>a</key>\(arrays)</dict></plist>"))
      var options = XMLStoreOptions()
      options.maximumNesting = 300
      let refusal = file.refusal(Self.broad, options: options)
      #expect(refusal?.reason.contains("nested more than 255 levels") == (isWithin ? nil : true), "\(depth): \(refusal as Any)")
    }
  }

  // MARK: Long lists

  /// A store whose lists continue after three targets.
  private func context(_ options: XMLStoreOptions = XMLStoreOptions()) throws -> ManagedObjectContext {
    let path = file.path
    let store = StoreDescription(type: XMLFormat.type, at: .file(path)) {
      WholeFileStore(format: XMLFormat(options: options, path: path, mostListed: 3), at: path, options: WholeFileOptions())
    }
    return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.shelves, store: store))
  }

  private static let shelves: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Shelf",
          relationships: [
            .toMany("row", to: "Book", inverse: "shelf", isOrdered: true), .toMany("loans", to: "Book", inverse: "lender"),
            .toMany("topics", to: "Topic", inverse: "shelves"),
          ]),
        EntityDescription(
          "Book", relationships: [.toOne("shelf", to: "Shelf", inverse: "row"), .toOne("lender", to: "Shelf", inverse: "loans")]),
        EntityDescription("Topic", relationships: [.toMany("shelves", to: "Shelf", inverse: "topics", isOrdered: true)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  /// Creates a shelf with the given number of targets in each relationship.
  private func make(_ count: Int, _ options: XMLStoreOptions = XMLStoreOptions()) throws -> (rows: [ObjectKey], topics: [ObjectKey]) {
    let context = try context(options)
    defer { try? context.persistentStoreCoordinator.close() }
    let shelf = try context.insert(entityNamed: "Shelf")
    for number in 0..<count {
      let (book, topic) = (try context.insert(entityNamed: "Book"), try context.insert(entityNamed: "Topic"))
      if number % 2 == 0 { try shelf.ordered(forKey: "row").insert(book, at: 0) } else { try shelf.ordered(forKey: "row").append(book) }
      try shelf.toMany(forKey: "loans").insert(book)
      try topic.ordered(forKey: "shelves").append(shelf)
    }
    try context.save()
    let row = try shelf.ordered(forKey: "row").map(\.objectID.key), topics = try shelf.toMany(forKey: "topics").map(\.objectID.key).sorted()
    try context.persistentStoreCoordinator.close()
    return (row, topics)
  }

  /// The bug: such an object was saved, but its file couldn't be opened again.
  @Test func RG4_eachElementOfALongListIsAMember() throws {
    var options = XMLStoreOptions()
    options.maximumMemberCount = 60
    // A shelf has three lists.
    for (count, isWithin) in [(60, true), (61, false)] {
      try? FileManager.default.removeItem(atPath: file.path)
      let refusal = refusal { _ = try make(count, options) }
      #expect(refusal == (isWithin ? nil : .unstorableValue), "\(count)")
      let found = try context(options)
      #expect(try found.count(for: FetchRequest<ManagedObject>(entityName: "Shelf")) == (isWithin ? 1 : 0), "\(count)")
      try found.persistentStoreCoordinator.close()
    }
  }

  @Test(arguments: [0, 1, 2, 3, 4, 6, 7, 10]) func RG4_aFullListContinuesInAnotherElement(_ count: Int) throws {
    let made = try make(count)
    #expect(made.rows.count == count && made.topics.count == count)
    let text = try file.text()
    let elements = max(1, (count + 2) / 3)
    for name in ["row", "loans", "topics"] {
      let found = text.components(separatedBy: "<relationship name=\"\(name)\"").count - 1
      #expect(found == elements, "\(name): \(found) elements for \(count) targets")
    }
    let context = try context()
    let shelf = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first)
    #expect(try shelf.ordered(forKey: "row").map(\.objectID.key) == made.rows)
    #expect(try shelf.toMany(forKey: "loans").map(\.objectID.key).sorted() == made.rows.sorted())
    #expect(try shelf.toMany(forKey: "topics").map(\.objectID.key).sorted() == made.topics)
    // Saving what was read writes the same lists.
    try context.persistentStoreCoordinator.setMetadata(["a": .bool(true)])
    try context.persistentStoreCoordinator.close()
    let again = try file.text()
    #expect(again.components(separatedBy: "<relationship ").count == text.components(separatedBy: "<relationship ").count)
  }

  @Test(arguments: ["row", "loans", "topics"]) func aListThatContinuesAlthoughItIsNotFullIsRefused(_ name: String) throws {
    _ = try make(4)
    let text = try file.text()
    let first = try #require(text.range(of: "<relationship name=\"\(name)\""))
    let end = try #require(text.range(of: "/>", range: first.upperBound..<text.endIndex))
    let element = text[first.lowerBound..<end.upperBound]
    let last = try #require(element.range(of: " z", options: .backwards))
    // One of the three targets moves to an element between the two.
    let (start, moved) = (element[..<last.lowerBound] + "\"/>", element[last.lowerBound...].dropFirst().dropLast(3))
    let label = element[..<(try #require(element.range(of: " idrefs")).lowerBound)]
    try file.write(
      XMLFile.sealed(text.replacingCharacters(in: first.lowerBound..<end.upperBound, with: start + label + " idrefs=\"\(moved)\"/>")))
    let error = try #require(throws: StoreError.self) { try context() }
    #expect(error.code == .damaged && error.reason.contains("twice"), "\(error)")
  }

  // MARK: An element's declaration of a relationship

  /// The bounds are part of the version hashes, which are compared first. The destinations decide.
  @Test(arguments: ["0/1", "1/1", "0/0", "1/0", "2/9", ""]) func theBoundsOfARelationshipAreNotComparedButItsTargetsAre(_ type: String)
    throws
  {
    let model = Self.shelves
    func text(_ row: String, _ shelf: String) -> String {
      """
      <database><object type="SHELF" id="z1"><relationship name="row" type="\(type)" destination="BOOK" idrefs="\(row)"/></object>
      <object type="BOOK" id="z2"><relationship name="shelf" type="\(type)" destination="SHELF" idrefs="\(shelf)"/></object>
      <object type="SHELF" id="z3"/></database>
      """
    }
    try file.write(text("z2", "z1"))
    let context = try file.context(model)
    let book = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Book")).first)
    #expect(
      try book.value(forKey: "shelf").storeValue
        == .objectID(try #require(context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first { $0.objectID.key == 1 }).objectID))
    try context.persistentStoreCoordinator.close()
    // A to-one relationship can't have two targets.
    try file.write(text("z2", "z1 z3"))
    #expect(try #require(file.refusal(model)).code == .damaged)
  }

  @Test(arguments: [("row", "SHELF"), ("row", "PAPER"), ("row", ""), ("shelf", "BOOK")])
  func aDestinationThatIsNotTheModelsIsRefused(_ name: String, _ destination: String) throws {
    let (entity, other) = name == "row" ? ("SHELF", "BOOK") : ("BOOK", "SHELF")
    func text(_ destination: String) -> String {
      "<database><object type=\"\(entity)\" id=\"z1\"><relationship name=\"\(name)\" type=\"0/0\" destination=\"\(destination)\"/></object></database>"
    }
    for right in [other, other.lowercased(), other.capitalized] {
      try file.write(text(right))
      #expect(file.refusal(Self.shelves) == nil)
    }
    try file.write(text(destination))
    let refusal = try #require(file.refusal(Self.shelves))
    #expect(refusal.code == .damaged && refusal.reason.contains("destination"), "\(refusal)")
  }
}
