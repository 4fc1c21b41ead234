import BenchmarkData
import Testing

@Suite struct PackageIndexParserTests {
  let index = PackageFixture.index

  @Test("Every stanza with a name is a package, except exact repetitions")
  func packages() {
    let names = (0..<index.count).map { index[$0].name }
    #expect(names == ["editor", "libedit2", "libedit2", "postman", "postwoman", "runtime"])
    #expect(index.statistics.stanzas == 8)
    #expect(index.statistics.namelessStanzas == 1)
    #expect(index.statistics.repeatedStanzas == 1)
    #expect(index.statistics.malformedLines == 1)
    #expect(index.statistics.bytes == PackageFixture.text.utf8.count)
  }

  @Test("All fields are read")
  func fields() {
    var editor = PackageFields(key: PackageKey(name: "editor", version: "1:2.0-1", architecture: "amd64"))
    editor.section = "text"
    editor.maintainer = PackageMaintainer(name: "Ånna Editor", email: "anna@example.org")
    editor.installedSize = 420
    editor.size = 12345
    editor.summary = "small editor"
    editor.longDescription = "It edits.\n\n Two blanks stay one."
    editor.homepage = "https://example.org/editor"
    editor.priority = "optional"
    editor.source = "editor-src (2.0)"
    editor.multiArch = "foreign"
    #expect(index[0].fields == editor)
  }

  @Test("Field names are compared case-insensitively; missing and unusable values are nil")
  func missingFields() {
    let postman = index[3]
    #expect(postman.key == PackageKey(name: "postman", version: "3", architecture: "all"))
    #expect(postman.fields.maintainer == PackageMaintainer(name: "Nobody", email: nil))
    #expect(postman.installedSize == nil)
    #expect(postman.section == nil)
    #expect(postman.summary == nil)
    #expect(postman.longDescription == "nothing in the first line")
    #expect(index[5].architecture == "")
    #expect(index[5].maintainer == nil)
  }

  @Test("If a field occurs twice, the first occurrence counts")
  func repeatedField() {
    #expect(index[4].version == "3")
  }

  @Test("Sections and maintainers are distinguished by their text")
  func shared() {
    #expect(index.sectionCount == 2)
    #expect(index.maintainerCount == 2)
    #expect(index[0].maintainer == index[1].maintainer)
    #expect(index[1].section == index[2].section)
  }

  @Test("Relations are split into groups, alternatives and demands")
  func relations() {
    #expect(
      index[0].relations == [
        PackageRelation(kind: .depends, group: 0, name: "libedit2", comparison: .laterOrEqual, version: "2.0~"),
        PackageRelation(kind: .depends, group: 1, name: "libedit2", comparison: .earlier, version: "3"),
        PackageRelation(kind: .depends, group: 2, name: "runtime", qualifier: "any"),
        PackageRelation(kind: .depends, group: 2, name: "runtime-mini"),
        PackageRelation(kind: .depends, group: 3, name: "mail-agent"),
        PackageRelation(kind: .preDepends, group: 0, name: "libbase"),
        PackageRelation(kind: .recommends, group: 0, name: "spell"),
        PackageRelation(kind: .suggests, group: 0, name: "editor"),
        PackageRelation(kind: .suggests, group: 1, name: "no-such-package"),
      ])
    #expect(
      index[1].relations.filter { $0.kind == .replaces } == [
        PackageRelation(kind: .replaces, group: 0, name: "editor", comparison: .earlierOrEqual, version: "1.0"),
        PackageRelation(kind: .replaces, group: 1, name: "runtime", comparison: .laterOrEqual, version: "0.1"),
      ])
    #expect(index[3].relations.first { $0.kind == .provides }?.comparison == .equal)
  }

  @Test("Relations without a name and unclosed demands are tolerated")
  func brokenRelations() {
    #expect(index[5].relations == [PackageRelation(kind: .depends, group: 1, name: "spell")])
  }

  @Test("A truncated last stanza is read as far as possible")
  func truncatedEnd() {
    #expect(index[5].summary == "cut o")
  }

  @Test("A name resolves to all packages with it, or else to those that provide it, but never to the package itself")
  func links() {
    #expect(Array(index.links(.depends)[0]) == [1, 2, 5, 3, 4])
    #expect(index.links(.suggests)[0].isEmpty)
    #expect(Array(index.links(.breaks)[1]) == [0])
    #expect(Array(index.links(.replaces)[1]) == [0, 5])
    #expect(Array(index.links(.conflicts)[3]) == [4])
    #expect(index.links(.provides).count == 0)
    #expect(index.linkCount == 9)
    #expect(index.statistics.unresolvedAlternatives == 5)
  }

  @Test("The chunk boundaries of the input don't matter", arguments: [1, 2, 3, 7, 8, 9, 64, 100])
  func pieces(_ size: Int) {
    let cut = PackageFixture.parse(PackageFixture.text, pieces: size)
    #expect(cut.checksum == index.checksum)
    #expect(cut.statistics == index.statistics)
  }

  @Test("Carriage returns at the ends of lines don't matter")
  func carriageReturns() {
    let text = PackageFixture.text.replacing("\n", with: "\r\n")
    #expect(PackageFixture.parse(text).checksum == index.checksum)
  }

  @Test("Invalid UTF-8 becomes replacement characters")
  func invalidUTF8() {
    let bytes = Array("Package: a\nVersion: 1\nMaintainer: Jos".utf8) + [0xE9] + Array(" <j@example.org>\n".utf8)
    #expect(PackageFixture.parse(bytes).maintainer(0) == PackageMaintainer(name: "Jos\u{FFFD}", email: "j@example.org"))
  }

  @Test("Empty input, blank lines and noise are an empty index", arguments: ["", "\n\n \n", "no field\n", " only a continuation", ":\n"])
  func noise(_ text: String) {
    let index = PackageFixture.parse(text)
    #expect(index.count == 0)
    #expect(index.linkCount == 0)
  }

  @Test("Every prefix of the input can be parsed")
  func everyBeginning() {
    let bytes = Array(PackageFixture.text.utf8)
    for end in bytes.indices { #expect(PackageFixture.parse(Array(bytes[..<end])).count <= index.count) }
  }
}
