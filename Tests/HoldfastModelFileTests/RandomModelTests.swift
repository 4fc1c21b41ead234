import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// A model built in code is unchanged after being written to a file and read again, or it isn't written.
@Suite struct RandomModelTests {
  /// The violated guarantee; nil if there is none.
  private func violation(_ model: ManagedObjectModel, mayBeRefused: Bool) throws -> String? {
    let bytes: [UInt8]
    do { bytes = try ModelDocument(model).serialized() } catch {
      if !mayBeRefused { return "It was refused: \(error)" }
      return error.code == .unwritable && error.reason.hasSuffix(".") ? nil : "It was refused with another error: \(error)"
    }
    let again: ManagedObjectModel
    do { again = try ModelDocument(bytes: bytes).model() } catch {
      return "What was written cannot be read: \(error)"
    }
    if again != model { return "It comes back as another: \(difference(model, again))" }
    if try again.canonicalJSON() != model.canonicalJSON() { return "Its JSON is another: \(difference(model, again))" }
    return again.versionDigest == model.versionDigest ? nil : "It has other hashes."
  }

  /// The first difference between the JSON of two models.
  private func difference(_ a: ManagedObjectModel, _ b: ManagedObjectModel) -> String {
    guard let a = try? a.canonicalJSON(), let b = try? b.canonicalJSON() else { return "no JSON" }
    let same = zip(a, b).prefix { $0 == $1 }.count
    return [a, b].map { String(decoding: $0.dropFirst(max(0, same - 200)).prefix(280), as: UTF8.self) }.joined(separator: "\n")
  }

  @Test func aModelComesBackFromItsFile() throws {
    let seed = UInt64.random(in: 0...UInt64.max / 2)
    for number in 0..<TestTier.count(100, full: 400) {
      let model = try RandomModels.model(seed: seed + UInt64(number), isOdd: false)
      let found = try violation(model, mayBeRefused: false)
      #expect(found == nil, "seed \(seed + UInt64(number)): \(found ?? "")")
    }
  }

  @Test func anOddModelComesBackOrIsRefused() throws {
    let seed = UInt64.random(in: 0...UInt64.max / 2)
    let count = TestTier.count(200, full: 600)
    var madeCount = 0
    for number in 0..<count {
      // Some declarations aren't valid models.
      guard let model = try? RandomModels.model(seed: seed + UInt64(number), isOdd: true) else { continue }
      madeCount += 1
      let found = try violation(model, mayBeRefused: true)
      #expect(found == nil, "seed \(seed + UInt64(number)): \(found ?? "")")
    }
    #expect(madeCount > count / 12)
  }

  /// Settings that a file can't represent, each with the word that names it.
  private static let unsayable: [(word: String, attribute: AttributeDescription)] = {
    var cases: [(String, AttributeDescription)] = [
      ("pattern", AttributeDescription("a", .string, validation: .pattern(""))),
      ("length", AttributeDescription("a", .string, validation: .length(-1, nil))),
      ("modifier", AttributeDescription("a", .string, versionHashModifier: "")),
      ("renaming", AttributeDescription("a", .string, renamingIdentifier: "")),
      ("default", AttributeDescription("a", .uri, default: .uri(""))), ("default", AttributeDescription("a", .string, default: .null)),
      ("transformer", .transformable("a", by: "")),
    ]
    var named = AttributeDescription("a", .transformable)
    named.valueClassName = ""
    cases.append(("class", named))
    return cases
  }()

  @Test(arguments: unsayable.indices) func whatAFileCannotSayIsRefusedWithItsName(_ place: Int) throws {
    let (word, attribute) = Self.unsayable[place]
    let model = try ManagedObjectModel(entities: [EntityDescription("E", attributes: [attribute])])
    let error = try #require(throws: ModelFileError.self) { try ModelDocument(model) }
    #expect(error.code == .unwritable && error.reason.contains(word) && error.element == "attribute \"a\" of entity \"E\"", "\(error)")
  }

  /// The bug: the mark was lost, so stores created the index, or the file couldn't be read.
  @Test(arguments: ["a", "gone"]) func anIgnoredIndexThatAReaderWouldNotIgnoreIsRefused(_ property: String) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "E", attributes: [AttributeDescription("a", .double)],
        indexes: [FetchIndexDescription("i", elements: [FetchIndexElement(property)], isIgnored: true)])
    ])
    let error = try #require(throws: ModelFileError.self) { try ModelDocument(model) }
    #expect(error.code == .unwritable && error.element == "index \"i\" of entity \"E\"", "\(error)")
  }

  @Test func severalVersionIdentifiersAreRefused() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("E")], versionIdentifiers: ["1", "2"])
    let error = try #require(throws: ModelFileError.self) { try ModelDocument(model) }
    #expect(error.code == .unwritable && error.reason.contains("2 version identifiers"), "\(error)")
  }
}
