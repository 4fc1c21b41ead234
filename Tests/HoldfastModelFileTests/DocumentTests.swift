import HoldfastModelFile
import Testing

/// What a document keeps, and how it is written.
@Suite struct DocumentTests {
  private let head = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"

  private func read(_ text: String) throws -> ModelElement { try ModelDocument(bytes: Array(text.utf8)).root }

  @Test func unknownElementsAndAttributesAreKept() throws {
    let text = head + "<model type=\"x\" futureFlag=\"YES\">\n    <novelty depth=\"3\">\n        <inner/>\n    </novelty>\n</model>"
    let document = try ModelDocument(bytes: Array(text.utf8))
    #expect(document.root.child(named: "novelty")?["depth"] == "3")
    #expect(String(decoding: try document.serialized(), as: UTF8.self) == text)
  }

  @Test func everyCharacterOfAValueComesBack() throws {
    let value = "a<b>c&d&amp;&#38;\"e'\t\n\r é\u{301} 🐢 \u{7F}\u{85}\u{2028}&#10;"
    let document = ModelDocument(root: ModelElement("model", ["name": value]))
    #expect(try ModelDocument(bytes: document.serialized()).root["name"] == value)
    let odd = ModelDocument(root: ModelElement("model", ["name": "&", "type": "&&", "iOSVersion": "#38;&#38;#38;"]))
    #expect(try ModelDocument(bytes: odd.serialized()) == odd)
  }

  @Test func valuesAreWrittenAsXcodeDoes() throws {
    let document = ModelDocument(root: ModelElement("model", ["name": "a > \"b\" & 'c' <\n"]))
    #expect(String(decoding: try document.serialized(), as: UTF8.self) == head + "<model name=\"a > &quot;b&quot; &amp; 'c' &lt;&#10;\"/>")
  }

  @Test func handMadeFilesAreRead() throws {
    let root = try read(
      "\u{FEFF}<?xml version='1.0'?><!-- by hand --><model\n  type = 'a'\r\n><!-- < \" --><entity name='A'></entity ></model>\n<!-- -->\n")
    #expect(root["type"] == "a")
    #expect(root.children == [ModelElement("entity", ["name": "A"])])
  }

  @Test func elementsKnowTheirLines() throws {
    let root = try read("<model>\n<!--\n-->\n<entity name=\"A\">\n\n<attribute name=\"x\"/></entity></model>")
    #expect(root.line == 1)
    #expect(root.children[0].line == 4)
    #expect(root.children[0].children[0].line == 6)
  }

  @Test func attributesAreSetAndRemovedByName() {
    var element = ModelElement("attribute", ["name": "age"])
    element["optional"] = "YES"
    element["optional"] = "NO"
    #expect(element == ModelElement("attribute", ["optional": "NO", "name": "age"]))
    #expect(element.hashValue == ModelElement("attribute", ["optional": "NO", "name": "age"]).hashValue)
    element["optional"] = nil
    #expect(element.attributes == [ModelElement.Attribute("name", "age")])
    #expect(element != ModelElement("attribute", ["name": "Age"]))
  }

  @Test func attributesThatXcodeDoesNotKnowComeLast() throws {
    let element = ModelElement("entity", ["zoo": "1", "syncable": "YES", "ark": "2", "name": "A"])
    let text = String(decoding: try ModelDocument(root: element).serialized(), as: UTF8.self)
    #expect(text == head + "<entity name=\"A\" syncable=\"YES\" zoo=\"1\" ark=\"2\"/>")
  }

  @Test(arguments: ["", "a b", "1a", "a:b", "a\"", "×", "<"]) func aNameThatIsNoneIsNotWritten(_ name: String) {
    for element in [ModelElement(name), ModelElement("model", [name: "x"])] {
      #expect { try ModelDocument(root: element).serialized() } throws: { ($0 as? ModelFileError)?.code == .unwritable }
    }
  }

  @Test func whatXMLCannotSayIsNotWritten() {
    var deep = ModelElement("element")
    for _ in 0..<64 { deep = ModelElement("element", children: [deep]) }
    var twice = ModelElement("model", ["a": "1"])
    twice.attributes.append(ModelElement.Attribute("a", "2"))
    for element in [ModelElement("model", ["a": "\u{1}"]), ModelElement("model", ["a": "\u{FFFF}"]), deep, twice] {
      #expect { try ModelDocument(root: element).serialized() } throws: { ($0 as? ModelFileError)?.code == .unwritable }
    }
    #expect(throws: Never.self) { try ModelDocument(root: deep.children[0]).serialized() }
  }
}
