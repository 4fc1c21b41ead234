import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Damaged files are refused with a typed error and not changed.
@Suite(.bothReaders) struct JSONDamageTests {
  private let file: JSONFile
  private let whole: [UInt8]

  init() throws {
    file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    whole = try file.bytes()
  }

  @Test func RE4_aNewerFormatIsRefusedAndLeftAlone() throws {
    let text = String(decoding: whole, as: UTF8.self)
    let newer = [
      text.replacingOccurrences(of: "\"version\":1,", with: "\"version\":3,"),
      text.replacingOccurrences(of: "\"metadata\":{},", with: "\"metadata\":{},\"compression\":{},"),
      text.replacingOccurrences(of: "\"row\":3", with: "\"row\":3,\"room\":1"),
      text.replacingOccurrences(of: "\n\"Sign\":[", with: "\n\"Lamp\":[],\n\"Sign\":["),
    ]
    for text in newer {
      #expect(text != String(decoding: whole, as: UTF8.self))
      let sealed = JSONFile.sealed(text)
      try file.write(sealed)
      for options in [JSONStoreOptions(), JSONFile.unverified] {
        let refusal = try #require(file.refusal(options: options))
        #expect(refusal.code == .newerFormat && refusal.path == file.path && refusal.reason.contains("newer version"), "\(refusal)")
      }
      #expect(try file.bytes() == sealed)
      #expect(file.names == [".store.json.lock", "store.json"])
    }
  }

  @Test func anotherModelIsRefusedWithTheNamesOfWhatDiffers() throws {
    var entities = Library.model.declarations
    let author = try #require(entities.firstIndex { $0.name == "Author" })
    entities[author].attributes[0].isOptional = true
    let other = try ManagedObjectModel(entities: entities + [EntityDescription("Lamp")])
    let refusal = try #require(throws: StoreError.self) { try file.open(other) }
    #expect(refusal.code == .incompatibleModel && refusal.coreDataCode == 134100, "\(refusal)")
    #expect(refusal.reason.contains("Author, Lamp (not in the store)"), "\(refusal)")
    #expect(try file.bytes() == whole)
  }

  // MARK: Deliberate changes

  @Test func aFileThatWasEditedByHandSaysHowToOpenItAndIsSealedByTheNextSave() throws {
    let edited = String(decoding: whole, as: UTF8.self).replacingOccurrences(of: "\"name\":\"Ada\"", with: "\"name\": \"Ada Lovelace\"")
    try file.write(edited)
    let refusal = try #require(file.refusal())
    #expect(refusal.code == .damaged && refusal.reason.contains("allowsUnverified"), "\(refusal)")

    let context = try file.context(options: JSONFile.unverified)
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    #expect(try author.value(forKey: "name") == .string("Ada Lovelace"))
    #expect(try file.text() == edited)
    try author.setValue(.string("Ada King"), forKey: "name")
    try context.save()
    try context.persistentStoreCoordinator.close()
    try file.open()
  }

  @Test func aFileWithoutADigestOrInAnotherLayoutOpensUnverified() throws {
    let text = String(decoding: whole, as: UTF8.self)
    let end = try #require(text.range(of: ",\n\"digest\""))
    let bare = text[..<end.lowerBound] + "}"
    let pretty = try JSONSerialization.data(
      withJSONObject: try JSONSerialization.jsonObject(with: Data(whole)), options: [.prettyPrinted, .sortedKeys])
    try file.write(String(bare))
    #expect(file.refusal()?.code == .damaged)
    #expect(file.refusal(options: JSONFile.unverified) == nil)
    try file.write(bare.replacingOccurrences(of: ",\"", with: " ,\r\n\t\"").replacingOccurrences(of: ":[", with: " : [ "))
    #expect(file.refusal(options: JSONFile.unverified) == nil)
    // The members of the document are ordered. A tool that sorts them breaks the order.
    try file.write(Array(pretty))
    #expect(file.refusal(options: JSONFile.unverified)?.code == .notAStore)
  }

  @Test(
    arguments: [
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":3,\"row\":3", "The member appears twice"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":3.5", "isn't an integer"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":32768", "isn't an integer"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":\"3\"", "can't be a string"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":true", "can't be a Boolean"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"row\":3,\"$key\":1,\"$version\":2", "isn't the first member"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"row\":3", "isn't the first member"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":0,\"$version\":2,\"row\":3", "isn't a valid key"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":-1,\"$version\":2,\"row\":3", "isn't a valid key"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":9223372036854775807,\"$version\":2,\"row\":3", "isn't a valid key"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":[3]", "Unexpected array"),
      ("\"$key\":1,\"$version\":2,\"row\":3", "\"$key\":1,\"$version\":2,\"row\":{}", "Unexpected object"),
      ("\"height\":0.1", "\"height\":1e60", "out of range"), ("\"weight\":0.1", "\"weight\":1e-400", "out of range"),
      ("\"cover\":\"AA==\"", "\"cover\":\"AB==\"", "isn't valid base64"), ("\"cover\":\"AA==\"", "\"cover\":\"AA\"", "isn't valid base64"),
      ("\"cover\":\"AA==\"", "\"cover\":\"A A=\"", "isn't valid base64"), ("0D0E0F00\"", "0D0E0F0\"", "isn't a valid UUID"),
      ("0D0E0F00\"", "0D0E0FxZ\"", "isn't a valid UUID"),
      ("\"price\":\"12345678901234567", "\"price\":\"1,2345678901234567", "stored as a decimal"),
      ("\"isLent\":true", "\"isLent\":1", "can't be a number"),
      ("\"signs\":[1]", "\"signs\":[1,1]", "contradict each other"), ("\"signs\":[1]", "\"signs\":[\"x\"]", "isn't a valid key"),
      ("\"similar\":[2]", "\"similar\":[3]", "contradict each other"), ("\"similar\":[2]", "\"similar\":[2,2]", "contradict each other"),
      ("\"number\":\"1152921504606846977\"", "\"number\":\"1152921504606846976\"", "contradicts itself"),
      ("{\"$key\":2,", "{\"$key\":1,", "contradicts itself"), ("\"books\":[3,1,4]", "\"books\":[3,1,99]", "doesn't contain exactly"),
      ("\"books\":[3,1,4]", "\"books\":[4,1,3]", ""),
      ("\"Shelf\":[", "\"Sign\":[],\n\"Shelf\":[", "two members with the same name"),
      ("\"nextKeys\":{", "\"nextKeys\":{\"Shelf\":1,", "two members with the same name"),
      ("\"nextKeys\":{\"Author\":2", "\"nextKeys\":{\"Author\":0", "next key is invalid"),
      ("\"generation\":3", "\"generation\":-3", "generation number is invalid"),
      ("\"metadata\":{}", "\"metadata\":{\"a\":5}", "Unexpected number"),
      ("\"metadata\":{}", "\"metadata\":{\"a\":[\"integer64\"]}", "pair"),
      ("\"metadata\":{}", "\"metadata\":{\"a\":[\"colour\",1]}", "doesn't match its type"),
      ("\"uuid\":\"", "\"uuid\":\"x", "UUID is invalid"),
      ("\"version\":1,", "\"version\":1,\"version\":1,", "duplicated or out of order"),
      ("\"version\":1,", "", "duplicated or out of order"),
      ("\"model\":{", "\"model\":{\"a\":1,\"a\":2,", "two members with the same name"),
      ("\"$order\":{\"books\":[", "\"$order\":{\"books\":[1,", "order keys"),
      ("\"$order\":{\"books\"", "\"$order\":{\"row\"", "isn't an ordered relationship"),
    ] as [(String, String, String)])
  func whatContradictsTheModelIsRefusedEvenUnverified(old: String, new: String, reason: String) throws {
    let text = String(decoding: whole, as: UTF8.self)
    let place = try #require(text.range(of: old), "\(old) is not in the file:\n\(text)")
    try file.write(text.replacingCharacters(in: place, with: new))
    let refusal = file.refusal(options: JSONFile.unverified)
    if reason.isEmpty { return #expect(refusal == nil, "\(refusal.map { "\($0)" } ?? "")") }
    #expect(refusal?.code == .damaged && refusal?.path == file.path, "\(refusal.map { "\($0)" } ?? "opened")")
    let told = "\(refusal?.reason ?? "") \(refusal?.cause.map { "\($0)" } ?? "")"
    #expect(told.contains(reason), "\(told)")
  }

  @Test func whatASealedFileSaysIsWhatWasSaved() throws {
    let context = try file.context()
    let shelf = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first)
    let titles = try shelf.ordered(forKey: "books").map { try $0.value(forKey: "title").storeValue }
    #expect(titles == [2, 3, 1, 0].map { .string("Volume \($0)") })
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    #expect(
      try author.ordered(forKey: "books").map { try $0.value(forKey: "title").storeValue } == [2, 0, 3].map { .string("Volume \($0)") })
    let sign = try #require(try shelf.toMany(forKey: "signs").first { _ in true })
    #expect(try sign.value(forKey: "text") == .string("quiet \"please\"\n\u{1F4DA}"))
    try context.persistentStoreCoordinator.close()
  }

  @Test func equalContentsMakeEqualFilesButForWhatNamesTheStore() throws {
    let other = try JSONFile()
    let context = try other.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    func lines(_ bytes: [UInt8]) -> [Substring] { String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst().dropLast() }
    #expect(lines(try other.bytes()) == lines(whole))
  }
}
