import Foundation
import HoldfastFiles
import TestSupport
import Testing

@testable import HoldfastXMLStore

/// Neither the number of bytes that libxml2 reads at a time, nor the size of the pieces of a file, decides what is read or refused.
@Suite struct XMLReadSizeTests {
  /// Whether a tag with too many attributes is found, if the bytes are read in parts of a size.
  private func isFound(_ bytes: [UInt8], readIn size: Int) -> Bool {
    var tag = LongTag()
    return bytes.withUnsafeBytes { bytes in
      for start in stride(from: 0, to: bytes.count, by: size) {
        tag.update(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + size, bytes.count)]))
        if tag.attributeCount > LongTag.mostAttributes { return true }
      }
      return false
    }
  }

  private static func attributes(_ count: Int, _ one: String = " a=\"\"") -> String { String(repeating: one, count: count) }

  private static let tags: [(text: String, isTooMany: Bool)] = [
    ("<a\(attributes(1000))>", false), ("<a\(attributes(1001))>", true), ("<a\(attributes(1001))", true),
    ("<a\(attributes(1000))><a\(attributes(1000))>", false), ("<a\(attributes(1000))/>\(attributes(900))<b c='d'/>", false),
    ("<a\(attributes(1000, " a='b=\"c\" d=\"e\">'"))>", false), ("<a\(attributes(1001, "\n a = '>' "))>", true),
    ("<a b='\(attributes(3000))'>", false), ("<a>\(attributes(3000))</a>", false), ("<!--\(attributes(3000))-->", false),
    ("<?a\(attributes(3000))?>", false), (String(repeating: "<a b='c' d='e' f='g'>", count: 2000), false),
    ("text\(attributes(300))<a\(attributes(1001)) b='\(attributes(300))'>", true), (attributes(3000), false),
    // Not attributes: libxml2 stops at the first one.
    ("<a\(attributes(3000, "\"\""))>", false), ("<a\(attributes(3000, "=''"))>", false),
  ]

  @Test func attributesAreCountedWhereverReadsEnd() {
    for (number, tag) in Self.tags.enumerated() {
      let bytes = Array(tag.text.utf8)
      for size in [1, 2, 3, 7, 100, 3_999, 4_000, 5_000, 5_001, 9_000, bytes.count] {
        #expect(isFound(bytes, readIn: size) == tag.isTooMany, "number \(number) in reads of \(size) bytes")
      }
    }
  }

  /// Both readers, with the scanner of objects and without it, refuse the tag, and accept the same text in a comment.
  @Test func onlyTheAttributesOfTagsCount() throws {
    let bytes = Array(try ObjectComparison.text().utf8)
    let place = try #require(bytes.ranges(of: Array("</object>\n".utf8)).dropFirst().first).upperBound
    let many = "<object" + Self.attributes(1001, " type=\"BOOK\"") + "/>"
    for lines in [true, false] {
      let (unchanged, _) = ObjectComparison.read(bytes, lines: lines)
      var changed = bytes
      changed.insert(contentsOf: many.utf8, at: place)
      #expect(ObjectComparison.read(changed, lines: lines).result.contains("more than 1000 attributes"))
      changed = bytes
      changed.insert(contentsOf: "<!-- \(String(repeating: "<object type=\"BOOK\" id=\"z9\"/>\n", count: 1001)) -->\n".utf8, at: place)
      #expect(ObjectComparison.read(changed, lines: lines).result == unchanged)
    }
  }

  /// Puts a text in a title so that it begins a number of bytes before the end of the file's first piece.
  private func file(_ text: String, beforeEnd count: Int) throws -> [UInt8] {
    var bytes = Array(try ObjectComparison.text().utf8)
    let place = try #require(bytes.ranges(of: Array("Volume 2".utf8)).first).lowerBound
    let filling = [UInt8](repeating: UInt8(ascii: "a"), count: FileReader.maximumChunkByteCount - count - place)
    bytes.insert(contentsOf: filling + Array(text.utf8), at: place)
    return bytes
  }

  @Test(arguments: 0...4) func theEndOfACDATASectionIsRefusedBetweenPiecesOfAFile(count: Int) throws {
    for text in ["]]>", "]]]>", "]]]]]>"] {
      let bytes = try file(text, beforeEnd: count)
      for lines in [true, false] {
        let result = ObjectComparison.read(bytes, lines: lines).result
        #expect(result.contains("libxml2 error 62"), "\(text): \(result.prefix(200))")
      }
    }
  }

  /// Half of the texts, from a random one, or all in the full tier.
  @Test(arguments: 0...4) func bracketsAreKeptBetweenPiecesOfAFile(count: Int) throws {
    let texts = ["]", "]]", "]]]", "]]]]]", "]a]]", "]&gt;", "]]&gt;"], step = TestTier.step(2)
    for number in stride(from: Int.random(in: 0..<step), to: texts.count, by: step) {
      let text = texts[number]
      let written = text.replacingOccurrences(of: "&gt;", with: "\\u3e00")
      let bytes = try file(text, beforeEnd: count)
      for lines in [true, false] {
        let result = ObjectComparison.read(bytes, lines: lines).result
        #expect(result.contains("a" + written + "Volume 2<"), "\(text): \(result.prefix(200))")
      }
    }
  }
}
