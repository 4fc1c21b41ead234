import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastXMLStore

/// Objects in the form of the writer are read without libxml2, with the same result.
@Suite struct XMLObjectTests {
  private static let model = Library.model

  /// Reads a file.
  ///
  /// - Returns: The objects as the writer writes them, or the error with its position, and the number of bytes that libxml2 didn't receive.
  private func read(_ bytes: [UInt8], lines: Bool = true, _ limits: XMLStoreOptions = XMLStoreOptions()) -> (result: String, skipped: Int) {
    WrittenObjects.$areRead.withValue(lines) {
      var skipped = 0
      do {
        let loader = TableLoader(model: Self.model, path: "/store")
        var options = limits
        options.wholeFile.allowsUnverified = true
        let errors = XMLErrors(path: "/store")
        let rows = XMLRowReader(loader, XMLModel(Self.model), options, errors, XMLFormat.mostListed)
        let document = XMLDocumentReader(rows: rows, errors: errors, options: options, madeUpUUID: nil)
        skipped = try XMLParser(document, options: options).parse(FileReader(bytes, path: "/store"))
        return (String(decoding: try written(loader.finish()), as: UTF8.self), skipped)
      } catch {
        return ("\(error)", skipped)
      }
    }
  }

  private func written(_ store: LoadedStore) throws -> [UInt8] {
    var bytes: [UInt8] = []
    let model = XMLModel(Self.model)
    try XMLDocumentWriter(
      image: StoreImage(header: store.header, generation: store.generation), metadata: "", model: model,
      lists: XMLLists(store.generation, model), output: TextOutput { bytes += $0 }, format: XMLFormat(options: XMLStoreOptions(), path: "/")
    ).write()
    return bytes
  }

  private func expectSame(_ bytes: [UInt8], _ comment: @autoclosure () -> String = "") {
    let (one, other) = (read(bytes).result, read(bytes, lines: false).result)
    if one != other { Issue.record("\(comment()): \(one)\nlibxml2: \(other)\n\(String(decoding: bytes, as: UTF8.self))") }
  }

  /// A file with random values of every kind.
  private func file(_ count: Int, _ random: inout SeededGenerator) throws -> [UInt8] {
    let file = try XMLFile(), context = try file.context()
    let texts = [
      "", "a", "\"", "\\", "\u{1}\n\t\r\u{1F}", "é\u{1F4DA}", "\u{0}\u{7F}\u{2028}", "]]>&amp;<object>", "\r\n", "\u{FFFE}\u{FFFF}\u{F000}",
      "\\u", "\u{D7FF}\u{E000}\u{10FFFF}",
      String(repeating: "long ", count: 40),
    ]
    try Bookshelf.fill(context, count: count, texts, &random)
    try context.persistentStoreCoordinator.close()
    return Array(try file.text().utf8)
  }

  @Test func allButTheFirstAndLastObjectsAreReadWithoutLibxml2() throws {
    var random = SeededGenerator("Lines")
    let bytes = try file(2000, &random)
    let start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound, (result, skipped) = read(bytes)
    #expect(skipped * 100 > (bytes.count - start) * 90, "\(skipped) of \(bytes.count) bytes")
    let (expected, none) = read(bytes, lines: false)
    #expect(none == 0 && result == expected && result.contains("\"ATLAS\""))
  }

  @Test func randomObjectsAreReadAsLibxml2ReadsThem() throws {
    var random = SeededGenerator("Random lines")
    for _ in 0..<TestTier.count(20, full: 1000) { expectSame(try file(40, &random)) }
  }

  /// Random changes of objects. Most make the file invalid. Errors have the same text and position.
  @Test func changedObjectsAreReadOrRefusedAsByLibxml2() throws {
    var random = SeededGenerator("Changed lines")
    let bytes = try file(30, &random), start = try #require(bytes.firstRange(of: Array("<object".utf8))).lowerBound
    let marks = Array("<>/!?-&;=\"'\\0123456789.+eEuz \n\t\r\u{1}\u{E9}\u{FFFE}".utf8)
    var accepted = 0, skipped = 0
    for _ in 0..<TestTier.count(1500, full: 200_000) {
      let changed = TestBytes.changed(bytes, from: start, with: marks, &random)
      let (one, other) = (read(changed), read(changed, lines: false))
      if one.result != other.result {
        Issue.record("\(one.result)\nlibxml2: \(other.result)\n\(String(decoding: changed, as: UTF8.self))")
        return
      }
      skipped += one.skipped > 0 ? 1 : 0
      accepted += one.result.hasPrefix("<") ? 1 : 0
    }
    #expect(accepted > 30 && skipped > 30, "\(accepted) accepted, \(skipped) with lines")
  }

  @Test(arguments: [
    ("</object>\n<object", "</object>\n <object"), ("</object>\n<object", "</object>\n<!-- \n<object"),
    ("</object>\n<object", "</object>\n-->\n<object"),
    ("</object>\n<object", "</object>\n<!---->\n<object"), ("</object>\n<object", "</object>\n<![CDATA[ ]]>\n<object"),
    ("</object>\n<object", "</object>\n<?a b?>\n<object"), ("</object>\n<object", "</object>\nx\n<object"),
    ("</object>\n<object", "\n</object>\n<object"),
    ("</object>\n<object", "</object></object>\n<object"), ("</object>\n<object", "<object></object>\n<object"),
    ("</attribute>", "</attribut>"),
    ("</attribute>", "</attribute >"), ("</attribute>", "&#65;</attribute>"), ("</attribute>", "&amp;</attribute>"),
    ("</attribute>", "]]></attribute>"),
    ("</attribute>", "<!-- --></attribute>"), ("id=\"z2\"", "id=\"z02\""), ("id=\"z2\"", "id=\"z0\""), ("id=\"z2\"", "id=\"z1\""),
    ("id=\"z2\"", "id=\"y2\""),
    ("id=\"z2\"", "id=\"z2\" a=\"\""), ("id=\"z2\"", "id='z2'"), ("type=\"BOOK\" id=\"z2\"", "id=\"z2\" type=\"BOOK\""),
    ("name=\"title\"", "name=\"titlf\""),
    ("name=\"title\"", "name=\"TITLE\""), ("type=\"int16\">7", "type=\"int16\">007"), ("type=\"int16\">7", "type=\"int16\"> 7 "),
    ("type=\"int16\">7", "type=\"int16\">32768"),
    ("type=\"int16\">7", "type=\"int32\">7"), ("type=\"int16\">7", "type=\"int16\">7.0"), ("type=\"int16\">7", "type=\"int16\">"),
    ("type=\"double\">1.1", "type=\"double\">01.1"),
    ("type=\"double\">1.1", "type=\"double\">1e5"), ("type=\"double\">1.1", "type=\"double\">1e999"),
    ("type=\"double\">1.1", "type=\"double\">nan"),
    ("type=\"double\">1.1", "type=\"double\">\n1.1\t"), ("Volume 1", "Volume \\u"), ("Volume 1", "Volume \\u00d8"),
    ("Volume 1", "Volume \\u14002"), ("Volume 1", "a\r\nb"),
    ("idrefs=\"z", "idrefs=\" z"), ("idrefs=\"z", "idrefs=\"z99 z"), ("idrefs=\"z", "idrefs=\"z1 z1 z"), ("idrefs=\"z", "idrefs=\""),
    ("/>", " />"),
    ("/>", "></relationship>"), ("/>", "/>\n"), ("type=\"0/1\"", "type=\"1/1\""), ("\"/>", "\" idrefs=\"z1\"/>"),
  ])
  func oneChangeIsReadOrRefusedAsByLibxml2(_ change: (from: String, to: String)) throws {
    let file = try XMLFile(), context = try file.context()
    try Bookshelf.fill(context) { book, number in try book.setValue(.int16(7), forKey: "pages") }
    try context.persistentStoreCoordinator.close()
    let text = try file.text(), entities = try #require(text.range(of: "<object"))
    let places = text[entities.lowerBound...].ranges(of: change.from)
    #expect(!places.isEmpty)
    for place in places { expectSame(Array(text.replacingCharacters(in: place, with: change.to).utf8), "\(change)") }
  }

  /// The limits hold for objects in the form of the writer, too.
  @Test(arguments: [
    XMLStoreOptions(maximumTextByteCount: 3), XMLStoreOptions(maximumTextByteCount: 19), XMLStoreOptions(maximumTextByteCount: 24),
    XMLStoreOptions(maximumAttributeValueByteCount: 4), XMLStoreOptions(maximumMemberCount: 12), XMLStoreOptions(maximumNameByteCount: 5),
  ])
  func limitsAreThoseOfLibxml2(_ limits: XMLStoreOptions) throws {
    var random = SeededGenerator("Limits")
    for _ in 0..<5 {
      let bytes = try file(40, &random)
      #expect(read(bytes, limits).result == read(bytes, lines: false, limits).result)
    }
  }
}
