import HoldfastModelFile
import Testing

/// Invalid files end in an error with the position.
@Suite struct HostileDocumentTests {
  private func failure(_ bytes: [UInt8], _ options: ModelFileOptions = ModelFileOptions()) -> ModelFileError? {
    do throws(ModelFileError) {
      _ = try ModelDocument(bytes: bytes, path: "p", options: options)
      return nil
    } catch {
      return error
    }
  }

  private func failure(_ text: String, _ options: ModelFileOptions = ModelFileOptions()) -> ModelFileError? {
    failure(Array(text.utf8), options)
  }

  @Test(
    arguments: [
      ("", nil), ("   \n", nil), ("model", 1), ("<model>", 1), ("<model>\n<entity>\n</model>", 3), ("<model>\n</entity>", 2),
      ("<model></model>\n<model/>", 2), ("<model a=\"1\"\na=\"2\"/>", 2), ("<model a=1/>", 1), ("<model a/>", 1), ("<model a=\"1/>", 1),
      ("<model a=\"<\"/>", 1), ("<model a=\"&x;\"/>", 1), ("<model a=\"&#0;\"/>", 1), ("<model a=\"&#xD800;\"/>", 1),
      ("<model a=\"&\"/>", 1), ("<model>text</model>", 1), ("<model>&amp;</model>", 1), ("<model>\n<![CDATA[x]]></model>", 2),
      ("<model>\n<?php x?></model>", 2), ("<model>\n<!-- ", 2), ("<model>\u{1}</model>", 1), ("<model a=\"\u{1}\"/>", 1),
      ("<model a=\"\u{FFFF}\"/>", 1), ("<model/>\0", 1), ("<model\n<entity/>", 2), ("<model xmlns=\"urn:x\"/>", 1),
      ("<x:model xmlns:x=\"urn:x\"/>", 1), ("<model x:a=\"\"/>", 1), ("<model xml:space=\"preserve\"/>", 1), ("</model>", 1), ("<", 1),
      ("<>", 1), ("<model/", 1), ("<model / >", 1), ("< model/>", 1), ("<model><!-- -- --></model>", 1), ("<?xml version=\"1.0\"", 1),
      ("<?xml version=\"9\"?><model/>", 1), ("<?xml version=\"1.0\" encoding=\"UTF-7\"?><model/>", 1),
      ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><model/>", 1), ("<?xml version=\"1.0\" encoding='EBCDIC-CP-US'?><model/>", 1),
      (" <?xml version=\"1.0\"?><model/>", 1), ("<!DOCTYPE model>\n<model/>", 1),
      ("<?xml version=\"1.0\"?>\n<!DOCTYPE model SYSTEM \"file:///etc/passwd\"><model/>", 2),
      ("<!DOCTYPE model [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><model x=\"&b;\"/>", 1),
      ("<!DOCTYPE model [<!ENTITY % p SYSTEM \"http://127.0.0.1/\"> %p;]><model/>", 1), ("<!doctype model><model/>", 1),
      ("<model>\n<!ENTITY a 'b'></model>", 2),
    ] as [(String, Int?)]) func whatNoModelFileHoldsIsRefusedAtItsLine(_ text: String, _ line: Int?) throws
  {
    let error = try #require(failure(text), "This was read: \(text)")
    #expect(error.code == .malformed || error.code == .notAModel)
    #expect(error.line == line, "\(error)")
    #expect(error.path == "p")
  }

  @Test func patternsAreRefusedIfTheOptionsSaySo() throws {
    let rule = "regularExpressionString=\"a+\""
    let attribute = "<attribute name=\"x\" attributeType=\"String\" optional=\"YES\" \(rule)/>"
    var options = ModelFileOptions()
    for text in [
      "<model><entity name=\"A\">\(attribute)</entity></model>", "<model><composite name=\"C\">\(attribute)</composite></model>",
    ] {
      let document = try ModelDocument(bytes: Array(text.utf8), path: "p")
      options.refusesPatterns = false
      #expect(throws: Never.self) { _ = try document.model(options: options) }
      options.refusesPatterns = true
      let error = #expect(throws: ModelFileError.self) { _ = try document.model(options: options) }
      #expect(error?.code == .refusedPattern && error?.element?.contains("\"x\"") == true, "\(String(describing: error))")
    }
  }

  @Test func otherDocumentsAreNotModels() {
    #expect(failure("<plist version=\"1.0\"/>")?.code == .notAModel)
    #expect(failure("<database/>")?.description.contains("element \"database\"") == true)
  }

  @Test(
    arguments: [
      [0xC0, 0xAF], [0xC1, 0x81], [0xE0, 0x80, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFF],
      [0x80], [0xC3],
    ] as [[UInt8]]) func wrongUTF8IsRefused(_ sequence: [UInt8])
  {
    let found = failure(Array("<model>\n<entity name=\"".utf8) + sequence + Array("\"/></model>".utf8))
    #expect(found?.code == .malformed)
    #expect(found?.line == 2)
    #expect(failure(Array("<model>\n<entity na".utf8) + sequence + Array("=\"\"/></model>".utf8))?.line == 2)
  }

  @Test(arguments: [true, false]) func utf16IsRefused(_ isBigEndian: Bool) {
    let bytes = "\u{FEFF}<model/>".utf16.flatMap { isBigEndian ? [UInt8($0 >> 8), UInt8($0 & 255)] : [UInt8($0 & 255), UInt8($0 >> 8)] }
    #expect(failure(bytes)?.reason.contains("UTF-16") == true)
    #expect(failure(Array(bytes.dropFirst(2)))?.code == .malformed)
  }

  @Test(
    arguments: [
      [0x3C, 0x00, 0x3F, 0x00], [0x3C, 0x00, 0x00, 0x00], [0x00, 0x3C, 0x00, 0x3F], [0x00, 0x00, 0x00, 0x3C], [0x4C, 0x6F, 0xA7, 0x94],
      [0x3C, 0x0A, 0x00],
    ] as [[UInt8]]) func beginningsThatSuggestAnotherEncodingAreRefused(_ beginning: [UInt8])
  {
    let found = failure(beginning + Array("=''\n/>".utf8))
    #expect(found?.code == .malformed)
    #expect(found?.line == (beginning.contains(0x0A) ? 2 : 1))
    // The scan refuses it before the parser runs.
    #expect(found?.reason.contains("libxml2") == false && found?.reason.contains("It isn't valid XML") == false)
  }

  @Test func controlCharactersAreRefusedEverywhere() {
    for control in (0..<0x20).compactMap(UnicodeScalar.init(_:)) where ![0x09, 0x0A, 0x0D].contains(control.value) {
      for text in ["\n<\(control)model/>", "\n<model \(control)/>", "\n<model a='\(control)'/>", "\n<!--\(control)--><model/>"] {
        #expect(failure(text)?.line == 2, "character \(control.value)")
      }
    }
  }

  // MARK: Limits: the maximum is allowed, one more isn't

  @Test func depthIsBounded() {
    func nested(_ depth: Int) -> String {
      "<model>" + String(repeating: "<a>", count: depth - 1) + String(repeating: "</a>", count: depth - 1) + "</model>"
    }
    #expect(failure(nested(64)) == nil)
    #expect(failure(nested(65))?.code == .tooLarge)
    #expect(failure(nested(100_000))?.code == .tooLarge)
  }

  @Test func elementsAreBounded() {
    var options = ModelFileOptions()
    options.maximumElementCount = 10
    func model(_ count: Int) -> String { "<model>\n" + String(repeating: "<a/>\n", count: count - 1) + "</model>" }
    #expect(failure(model(10), options) == nil)
    #expect(failure(model(11), options)?.code == .tooLarge)
    #expect(failure(model(11), options)?.line == 11)
    #expect(failure(model(100_001))?.code == .tooLarge)
  }

  @Test func attributesAreBounded() {
    func model(_ count: Int) -> String { "<model " + (0..<count).map { "a\($0)=''" }.joined(separator: " ") + "/>" }
    #expect(failure(model(256)) == nil)
    #expect(failure(model(257))?.code == .tooLarge)
    #expect(failure(model(200_000))?.code == .tooLarge)
    var options = ModelFileOptions()
    options.maximumAttributeCount = 4
    #expect(failure("<model a='' b=''><c d='' e=''/></model>", options) == nil)
    #expect(failure("<model a='' b=''><c d='' e='' f=''/></model>", options)?.code == .tooLarge)
  }

  @Test func valuesAreBounded() {
    var options = ModelFileOptions()
    options.maximumValueByteCount = 5
    #expect(failure("<model a=\"12345\"/>", options) == nil)
    #expect(failure("<model a=\"123456\"/>", options)?.code == .tooLarge)
    #expect(failure("<model a=\"" + String(repeating: "x", count: 1 << 20) + "\"/>") == nil)
    #expect(failure("<model a=\"" + String(repeating: "x", count: 12 << 20) + "\"/>")?.code == .tooLarge)
    // Many large values in one tag, which the parser keeps in memory together.
    let values = (0..<12).map { "a\($0)=\"" + String(repeating: "x", count: 1 << 20) + "\"" }.joined(separator: " ")
    #expect(failure("<model " + values + "/>")?.code == .malformed)
    #expect(failure("<" + String(repeating: "x", count: 1 << 20) + "/>")?.code == .malformed)
  }

  @Test func bytesAreBounded() {
    var options = ModelFileOptions()
    options.maximumByteCount = 10
    #expect(failure("<model  />", options) == nil)
    #expect(failure("<model   />", options)?.code == .tooLarge)
  }

  @Test func everyBeginningOfAFileIsRefused() {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<model type=\"é\">\n  <entity name=\"A\"/>\n</model>"
    #expect(failure(text) == nil)
    for count in 0..<text.utf8.count { #expect(failure(Array(text.utf8.prefix(count))) != nil, "\(count) bytes were read as a model.") }
  }

  @Test func anErrorTellsWhereAndWhatToDo() throws {
    let error = try #require(failure("<model>\n<!DOCTYPE x></model>"))
    #expect(
      "\(error)"
        == "Could not read the model at p, line 2: The file has a document type, which can exhaust a reader's memory. Remove it; model files need none. [malformed]"
    )
  }
}
