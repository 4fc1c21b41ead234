import HoldfastModelFile
import Testing

/// Every file that Xcode wrote can be read and written again without loss.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CorpusDocumentTests {
  @Test func thereAreFilesOfEveryXcode() { #expect(Corpus.contents.count >= 69) }

  @Test(arguments: Corpus.contents) func aFileComesOutByteForByte(_ file: String) throws {
    let bytes = try Corpus.bytes(file)
    let document = try ModelDocument(bytes: bytes, path: file)
    let written = try document.serialized()
    // An editor added a line break at the end of three files. Xcode doesn't write one.
    let expected = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
    #expect(String(decoding: written, as: UTF8.self) == String(decoding: expected, as: UTF8.self))
    #expect(try ModelDocument(bytes: written) == document)
  }

  @Test func onlyThreeFilesEndWithALineBreak() throws {
    #expect(try Corpus.contents.filter { try Corpus.bytes($0).last == UInt8(ascii: "\n") }.count == 3)
  }

  @Test(arguments: Corpus.contents) func attributesInAnyOrderAreWrittenInXcodes(_ file: String) throws {
    let document = try ModelDocument(bytes: Corpus.bytes(file))
    // The attribute order of the root element indicates its age.
    let model = document.root.attributes
    var shuffled = reversed(document.root)
    shuffled.attributes = model
    #expect(ModelDocument(root: shuffled) == document)
    #expect(try ModelDocument(root: shuffled).serialized() == document.serialized())
  }

  private func reversed(_ element: ModelElement) -> ModelElement {
    var element = element
    element.attributes.reverse()
    element.children = element.children.map(reversed)
    return element
  }
}
