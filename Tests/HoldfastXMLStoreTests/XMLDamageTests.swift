import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Every change of a sealed file is detected.
@Suite(.bothReaders) struct XMLDamageTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  private func make() throws -> [UInt8] {
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    return try file.bytes()
  }

  @Test func RE4_aNewerFormatIsRefusedAndTheFileLeftAlone() throws {
    let text = String(decoding: try make(), as: UTF8.self)
    let mark = "<key>_HoldfastSeal</key>"
    let newer = [
      text.replacingOccurrences(of: "<version>134481920<", with: "<version>134481921<"),
      text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1</, with: "\(mark)<integer>2<"),
      text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1</, with: "\(mark)<integer>9223372036854775807<"),
    ]
    for text in newer {
      let sealed = XMLFile.sealed(text)
      try file.write(sealed)
      for options in [XMLStoreOptions(), XMLFile.unverified] {
        let refusal = try #require(file.refusal(options: options))
        #expect(refusal.code == .newerFormat && refusal.path == file.path, "\(refusal)")
      }
      #expect(try file.bytes() == sealed)
    }
    #expect(Set(newer).count == 3 && !newer.contains(text))
  }

  /// Additions to the layout by another or later program.
  @Test(
    arguments: [
      ("<databaseInfo>", "<databaseInfo><compression>1</compression>"), ("</database>", "<index/></database>"),
      ("</database>", "<object type=\"LAMP\" id=\"z900\"/></database>"), ("<object type=\"SIGN\"", "<object colour=\"red\" type=\"SIGN\""),
      ("<attribute name=\"text\" type=\"string\">", "<attribute name=\"txt\" type=\"string\">"),
      ("<attribute name=\"text\" type=\"string\">", "<attribute name=\"text\" type=\"rope\">"),
      ("<attribute name=\"text\" type=\"string\">", "<attribute name=\"text\" unit=\"m\" type=\"string\">"),
    ])
  func RE4_whatTheLayoutOrTheModelHasNotIsRefusedAndTheFileLeftAlone(old: String, new: String) throws {
    _ = try make()
    try file.edit(old, new)
    let sealed = try file.bytes()
    for options in [XMLStoreOptions(), XMLFile.unverified] {
      let refusal = try #require(file.refusal(options: options))
      #expect([.damaged, .incompatibleModel, .newerFormat].contains(refusal.code) && refusal.path == file.path, "\(refusal)")
    }
    #expect(try file.bytes() == sealed)
  }

  @Test func theMarkOrTheDigestAloneIsDamageAndNeitherIsAForeignFile() throws {
    _ = try make()
    let text = try file.text()
    let withoutDigest = text.replacing(/<!-- xxh64.*/, with: "").trimmingCharacters(in: .newlines)
    try file.write(withoutDigest)
    #expect(file.refusal()?.code == .damaged && file.refusal(options: XMLFile.unverified) == nil)
    let withoutMark = text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: "")
    try file.write(XMLFile.sealed(withoutMark))
    #expect(file.refusal()?.code == .damaged && file.refusal(options: XMLFile.unverified) == nil)
    try file.write(withoutMark.replacing(/<!-- xxh64.*/, with: ""))
    #expect(file.refusal() == nil)
    try file.write(
      XMLFile.sealed(
        text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: "<key>_HoldfastSeal</key><integer>2</integer>")))
    #expect(file.refusal()?.code == .newerFormat)
  }

  @Test func aFileMendedByHandOpensUnverifiedAndIsSealedBySaving() throws {
    _ = try make()
    try file.write(try file.text().replacingOccurrences(of: "Volume 2", with: "Volume two"))
    #expect(file.refusal()?.code == .damaged)
    let context = try file.context(options: XMLFile.unverified)
    try context.persistentStoreCoordinator.setMetadata([:])
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
    #expect(try file.text().contains("Volume two"))
  }

  /// The order keys of the shelf's books are in the metadata, which other programs keep.
  @Test func aListThatAnotherProgramShortenedKeepsItsOrder() throws {
    _ = try make()
    let text = try file.text()
    let shelf = try #require(text.firstMatch(of: /<object type="SHELF" id="(z\d+)">.*?name="books"[^>]*idrefs="(z\d+) ([^"]*)"/))
    let rest = String(shelf.3)
    #expect(text.contains("_HoldfastRows") && rest.split(separator: " ").count == 3)
    var changed = text.replacingOccurrences(of: " idrefs=\"\(shelf.2) \(rest)\"", with: " idrefs=\"\(rest)\"")
    let book = try #require(changed.range(of: " id=\"\(shelf.2)\">"))
    let owner = try #require(changed.range(of: " idrefs=\"\(shelf.1)\"", range: book.upperBound..<changed.endIndex))
    changed.removeSubrange(owner)
    try file.write(XMLFile.sealed(changed))
    for options in [XMLStoreOptions(), XMLFile.unverified] { #expect(file.refusal(options: options)?.code == .damaged) }
    try file.write(changed)
    #expect(file.refusal()?.code == .damaged)
    for options in [XMLFile.unverified, XMLStoreOptions()] {
      let context = try file.context(options: options)
      let found = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Shelf")).first)
      #expect(try found.ordered(forKey: "books").map { "z\($0.objectID.key)" }.joined(separator: " ") == rest)
      try context.persistentStoreCoordinator.setMetadata([:])
      try context.persistentStoreCoordinator.close()
    }
  }
}
