import Testing

@testable import Packages

@Suite struct StanzaReaderTests {
  private func stanzas(_ text: String, piece: Int) -> [Stanza] {
    var reader = StanzaReader()
    var stanzas: [Stanza] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: piece) {
      reader.read(bytes[start..<min(start + piece, bytes.count)]) { stanzas.append($0) }
    }
    reader.finish { stanzas.append($0) }
    return stanzas
  }

  @Test(arguments: 1...40) func piecesMayEndAnywhere(_ piece: Int) {
    #expect(stanzas(PackageFixture.text, piece: piece) == stanzas(PackageFixture.text, piece: .max))
  }

  @Test func everyPackageIsAStanza() {
    let names = stanzas(PackageFixture.text, piece: .max).compactMap { $0["package"] }
    #expect(names == ["editor", "libtext", "libbase", "spell", "postman", "parrot", "game", "spell", "alone"])
  }

  @Test func linesMayEndAsElsewhereAndFieldsBeInAnyCase() {
    let read = stanzas("PACKAGE:a\r\nDepends: b,\r\n\tc\r\n\r\nPackage: d\r\n", piece: .max)
    #expect(read == [["package": "a", "depends": "b, c"], ["package": "d"]])
  }

  @Test func bytesThatAreNoTextAreReplaced() {
    var reader = StanzaReader()
    var names: [String?] = []
    reader.read(Array("Package: ".utf8) + [0xFF]) { names.append($0["package"]) }
    reader.finish { names.append($0["package"]) }
    #expect(names == ["\u{FFFD}"])
  }

  @Test func relationsAreNames() {
    #expect(names(inRelation: "a (>= 1:2.0) | b:any , c[amd64] <!nocheck>,, d(= 3)") == ["a", "b", "c", "d"])
    #expect(names(inRelation: " ") == [])
    #expect(names(inRelation: nil) == [])
  }
}
