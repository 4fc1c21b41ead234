import CSVStore
import Foundation
import Holdfast
import HoldfastAtomicStore
import TestSupport
import Testing

/// Stores in a document format: what the framework guarantees for any format.
@Suite struct DocumentFormatTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("notes.csv") }

  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Note",
          attributes: [AttributeDescription("text", .string, isOptional: true), AttributeDescription("weight", .double, isOptional: true)],
          relationships: [
            .toMany("tags", to: "Tag", inverse: "notes"), .toOne("parent", to: "Note", inverse: "children"),
            .toMany("children", to: "Note", inverse: "parent", isOrdered: true),
          ]),
        EntityDescription(
          "Tag", attributes: [AttributeDescription("name", .string)], relationships: [.toMany("notes", to: "Note", inverse: "tags")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private func open(_ format: some DocumentFormat = CSVFormat(), options: WholeFileOptions = WholeFileOptions()) throws
    -> ManagedObjectContext
  {
    try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Self.model, store: .document(format, at: path, options: options)))
  }

  private func insert(_ texts: [String], _ context: ManagedObjectContext) throws {
    for text in texts { try context.insert(entityNamed: "Note").setValue(.string(text), forKey: "text") }
  }

  private func texts(_ context: ManagedObjectContext) throws -> [[UInt8]] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")).map { note -> [UInt8] in
      guard case .single(.string(let text)) = try note.value(forKey: "text") as PropertyValue else { return [0xFF] }
      return Array(text.utf8)
    }.sorted { $0.lexicographicallyPrecedes($1) }
  }

  private static let unusual = [
    "", " ", "\"", "\"\u{301}", ",", "\n", "\r\n", "a\r\nb\n\nc", "\u{0}", "@", "1 2", "e\u{301}", "\u{E9}", "# x", "$key",
    "holdfast1:xxh64:",
  ]

  @Test func textComesBackByteForByte() throws {
    let context = try open()
    try insert(Self.unusual, context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try open()
    #expect(try texts(again) == Self.unusual.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) })
    try again.persistentStoreCoordinator.close()
  }

  /// A format with a mistake.
  struct Mistaken: DocumentFormat {
    enum Mistake: CaseIterable {
      case trimsText, losesEmptyText, losesLastRecord, normalisesText, returnsNullForNothing, encodesHeader, writesHeaderLast, cannotRead
    }
    struct Failure: Error {}
    let mistake: Mistake
    let storeType = "mistaken"

    func encode(_ records: [DocumentRecord], header: String) throws -> [UInt8] {
      switch mistake {
      case .encodesHeader: return CSVFormat().encode(records, header: Data(header.utf8).base64EncodedString())
      case .writesHeaderLast: return CSVFormat().encode(records, header: "") + Array("# \(header)".utf8)
      default: return CSVFormat().encode(records, header: header)
      }
    }

    func decode(_ bytes: [UInt8]) throws -> [DocumentRecord] {
      let records = try CSVFormat().decode(bytes)
      func changing(_ change: (String) -> String?) -> [DocumentRecord] {
        records.map { record in
          var fields = record.fields
          fields["text"] = fields["text"].flatMap(change)
          return DocumentRecord(entity: record.entity, fields: fields)
        }
      }
      switch mistake {
      case .trimsText: return changing { $0.trimmingCharacters(in: .whitespaces) }
      case .losesEmptyText: return changing { $0.isEmpty ? nil : $0 }
      case .returnsNullForNothing:
        return records.map { record in
          var record = record
          if record.values["text"] == .string("") { record.values["text"] = .null }
          return record
        }
      case .losesLastRecord: return records.dropLast()
      case .normalisesText: return changing { $0.precomposedStringWithCanonicalMapping }
      case .cannotRead where !records.isEmpty: throw Failure()
      default: return records
      }
    }
  }

  @Test(arguments: Mistaken.Mistake.allCases) func aMistakeInAFormatLosesNothing(_ mistake: Mistaken.Mistake) throws {
    let first = try open()
    try insert(["kept"], first)
    try first.save()
    try first.persistentStoreCoordinator.close()
    let before = TestFile.read(path)

    let text =
      mistake == .writesHeaderLast
      ? "holdfast1:xxh64:0000000000000000::" : [.losesEmptyText, .returnsNullForNothing].contains(mistake) ? "" : " e\u{301}"
    func save() throws {
      let context = try open(Mistaken(mistake: mistake))
      defer {
        context.rollback()
        try? context.persistentStoreCoordinator.close()
      }
      try insert([text], context)
      try context.save()
    }
    let error = #expect(throws: StoreError.self) { try save() }
    #expect(
      error?.code == .unstorableValue || mistake == .cannotRead && error?.code == .damaged, "\(mistake): \(String(describing: error))")
    #expect(TestFile.read(path) == before)
    let again = try open()
    #expect(try texts(again) == [Array("kept".utf8)])
    try again.persistentStoreCoordinator.close()
  }

  @Test func aFileThatWasEditedOnPurposeOpensUnverified() throws {
    let context = try open()
    try insert(["before"], context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let edited = String(decoding: TestFile.read(path), as: UTF8.self).replacing("before", with: "after")
    try Data(edited.utf8).write(to: URL(fileURLWithPath: path))
    #expect(throws: StoreError.self) { try open() }
    // The metadata and the model are verified, too.
    let description = StoreDescription.document(CSVFormat(), at: path)
    let damage = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: description) }
    #expect(damage?.code == .damaged)
    let unverified = try open(options: WholeFileOptions(allowsUnverified: true))
    #expect(try texts(unverified) == [Array("after".utf8)])
    try insert(["more"], unverified)
    try unverified.save()
    try unverified.persistentStoreCoordinator.close()
    let again = try open()
    #expect(try texts(again) == [Array("after".utf8), Array("more".utf8)])
    try again.persistentStoreCoordinator.close()
  }

  /// The next save would remove what isn't read.
  @Test func aCSVFileThatAnotherProgramHasRewrittenIsDamageAndLosesNothing() throws {
    let context = try open()
    try insert(["Rex"], context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let saved = String(decoding: TestFile.read(path), as: UTF8.self)
    let changed = [
      "no quotes": saved.replacing("\"", with: ""), "no quotes around a text": saved.replacing("\"Rex\"", with: "Rex"),
      "text after a quote": saved.replacing("\"Rex\"", with: "\"Rex\" "), "other line breaks": saved.replacing("\n", with: "\r\n"),
      "an empty line in a table": saved.replacing("\"text\"\n", with: "\"text\"\n\n"),
      "a row after an empty line": saved + "\n\"2\",\"Max\"\n\"3\",\"Fido\"\n", "a table without rows": saved + "\n\"Note\"\n\"$key\"\n",
    ]
    for (change, text) in changed {
      #expect(text != saved, "\(change)")
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      let error = #expect(throws: StoreError.self, "\(change)") { try open(options: WholeFileOptions(allowsUnverified: true)) }
      #expect(error?.code == .damaged, "\(change): \(String(describing: error))")
      #expect(TestFile.read(path) == Array(text.utf8), "\(change)")
    }
  }

  /// The UUID is a part of file names, and of the lock file's record, which has a maximum size.
  @Test(arguments: ["", "A", "../../a", "3b1a60a8-6d1f-4d77-8f6e-6f0b7d2c9e11", String(repeating: "A", count: 5000)])
  func aHeaderWhoseUUIDIsNoneIsDamage(_ uuid: String) throws {
    let context = try open()
    try insert(["a"], context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let former = try PersistentStoreCoordinator.metadata(for: .document(CSVFormat(), at: path)).storeUUID
    // Its fields are the name, the digest's name, the digest, the header and the model.
    let lines = String(decoding: TestFile.read(path), as: UTF8.self).split(separator: "\n", maxSplits: 1)
    var fields = lines[0].split(separator: ":").map(String.init)
    let header = String(decoding: try #require(Data(base64Encoded: fields[3])), as: UTF8.self)
    try #require(header.contains("\"\(former)\""))
    fields[3] = Data(header.replacing("\"\(former)\"", with: "\"\(uuid)\"").utf8).base64EncodedString()
    TestFile.write(Array("\(fields.joined(separator: ":"))\n\(lines[1])".utf8), to: path)
    let error = #expect(throws: StoreError.self) { try open(options: WholeFileOptions(allowsUnverified: true)) }
    #expect(error?.code == .damaged && error?.path == path, "\(String(describing: error))")
  }

  @Test func theMetadataAndTheModelOfAClosedFileAreReadable() throws {
    let context = try open()
    try context.persistentStoreCoordinator.setMetadata(["a": .double(.nan), "b": .string("x")])
    try context.persistentStoreCoordinator.close()
    let description = StoreDescription.document(CSVFormat(), at: path)
    let metadata = try PersistentStoreCoordinator.metadata(for: description)
    #expect(metadata.type == "CSV" && metadata.userInfo["b"] == .string("x") && metadata.userInfo["a"]?.isNaN == true)
    #expect(try PersistentStoreCoordinator.cachedModel(for: description)?.entities.map(\.name) == ["Note", "Tag"])
    try Data("# holdfast2:xxh64:0000000000000000::\n".utf8).write(to: URL(fileURLWithPath: path))
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: description) }
    #expect(error?.code == .newerFormat)
  }

  @Test func aClosedFileCanBeReplacedMovedAndDestroyed() throws {
    let context = try open()
    try insert(["a"], context)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let moved = StoreDescription.document(CSVFormat(), at: path + ".moved"), original = StoreDescription.document(CSVFormat(), at: path)
    try PersistentStoreCoordinator.movePersistentStore(original, to: moved)
    #expect(!FileManager.default.fileExists(atPath: path))
    try PersistentStoreCoordinator.replacePersistentStore(original, withCopyOf: moved)
    try PersistentStoreCoordinator.destroyPersistentStore(moved)
    #expect(!FileManager.default.fileExists(atPath: path + ".moved"))
    let again = try open()
    #expect(try texts(again) == [Array("a".utf8)])
    try again.persistentStoreCoordinator.close()
  }

  /// A format whose files have one record, whatever their bytes are.
  struct Fixed: DocumentFormat {
    let storeType = "fixed"
    let record: DocumentRecord
    func encode(_ records: [DocumentRecord], header: String) -> [UInt8] { Array(header.utf8) }
    func decode(_ bytes: [UInt8]) -> [DocumentRecord] { [record] }
  }

  /// Otherwise, opening the value would read a file, and nothing would remove it.
  @Test func onlyAnAttributeThatAllowsItCanNameAnExternalFile() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Image",
        attributes: [
          AttributeDescription("inside", .binaryData, isOptional: true),
          AttributeDescription("outside", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
        ])
    ])
    func open(_ format: some DocumentFormat) throws -> PersistentStoreCoordinator {
      try PersistentStoreCoordinator(model: model, store: .document(format, at: path))
    }
    try open(CSVFormat()).close()
    for name in [StoreValue.string("@\(UUID().uuidString)"), .externalData(UUID())] {
      try open(Fixed(record: DocumentRecord(entity: "Image", key: 7, values: ["outside": name]))).close()
      let error = #expect(throws: StoreError.self) {
        try open(Fixed(record: DocumentRecord(entity: "Image", key: 7, values: ["inside": name])))
      }
      #expect(error?.code == .damaged && error?.path == path, "\(String(describing: error))")
    }
  }

  @Test func invalidRecordsAreDamageThatNamesTheObject() throws {
    let empty = try open()
    try empty.persistentStoreCoordinator.close()
    let records = [
      DocumentRecord(entity: "Cat", key: 1), DocumentRecord(entity: "Note", key: 0), DocumentRecord(entity: "Note", key: 7, version: -1),
      DocumentRecord(entity: "Note", key: 7, values: ["weight": .string("heavy")]),
      DocumentRecord(entity: "Note", key: 7, values: ["weight": .bool(true), "text": .int64(1)]),
      DocumentRecord(entity: "Note", key: 7, values: ["colour": .string("red")]),
      DocumentRecord(entity: "Note", key: 7, values: ["parent": .string("x")]),
      // No object has such a key in a file.
      DocumentRecord(entity: "Note", key: 7, values: ["parent": .string("-3")]),
      DocumentRecord(entity: "Note", key: 7, values: ["parent": .int64(0)]),
      DocumentRecord(entity: "Note", key: 7, values: ["parent": .int64(.max)]),
      DocumentRecord(entity: "Note", key: 7, values: ["tags": .string("1 -3")]),
      DocumentRecord(entity: "Note", key: 7, targets: ["tags": [-3]]), DocumentRecord(entity: "Note", key: 7, targets: ["children": [0]]),
      DocumentRecord(entity: "Note", key: 7, targets: ["colours": [1]]),
      DocumentRecord(entity: "Note", key: 7, targets: ["children": [7]], orderKeys: ["children": []]),
      DocumentRecord(entity: "Note", fields: ["$key": "seven"]),
    ]
    for record in records {
      let error = #expect(throws: StoreError.self, "\(record)") { try open(Fixed(record: record)) }
      #expect(error?.code == .damaged && error?.path == path, "\(record): \(String(describing: error))")
      #expect(error?.reason.contains("heavy") == false && error?.reason.contains("colour") == false)
    }
  }
}
