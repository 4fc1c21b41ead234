import Foundation
import HoldfastCommands
import HoldfastModelFile
import HoldfastStore
import Testing

@Suite struct ModelCommandTests {
  @Test func infoTellsEveryVersionWithItsHashes() throws {
    let fixture = try Fixture()
    let report = ModelReport(try ModelSource(path: try fixture.writeModel()))
    #expect(report.versions.map(\.name) == ["Zoo", "Zoo 2"] && report.versions.map(\.isCurrent) == [false, true])
    let model = try Fixture.model()
    let dog = try #require(report.versions[1].entities.first { $0.name == "Dog" })
    #expect(dog.versionHash == model.entity(named: "Dog")?.versionHash.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
    #expect(report.versions[1].digest == model.versionDigest && report.versions[1].entities.first?.subentities == ["Dog"])
    let text = report.text()
    for words in [
      "version Zoo 2 (current)", "entity Dog: parent Animal", "rating     double", "default 0.0, at least 0.0, at most 5.0",
      "derived walks.@count",
      "to many Walk", "inverse dog, on delete cascade", "unique name", "index byRating: rating descending", "composite Place",
    ] { #expect(text.contains(words), "\(words) is not in\n\(text)") }
  }

  @Test func infoAsJSONIsWhatItsTypesSay() throws {
    let fixture = try Fixture()
    let report = ModelReport(try ModelSource(path: try fixture.writeModel()))
    #expect(try JSONDecoder().decode(ModelReport.self, from: report.json()) == report)
    let keys = try #require(try JSONSerialization.jsonObject(with: report.json()) as? [String: Any]).keys.sorted()
    #expect(keys == ["currentVersion", "kind", "path", "schema", "unreadable", "versions"])
  }

  @Test func aVersionThatCannotBeReadDoesNotHideTheOthers() throws {
    let fixture = try Fixture()
    let path = try fixture.writeModel()
    try Data("<model>".utf8).write(to: URL(fileURLWithPath: path + "/Zoo.xcdatamodel/contents"))
    let report = ModelReport(try ModelSource(path: path))
    #expect(report.versions.map(\.name) == ["Zoo 2"] && report.unreadable.keys.sorted() == ["Zoo"])
    #expect(report.text().contains("version Zoo: can't be read."))
  }

  @Test(arguments: ["Nothing.xcdatamodeld", "empty", "text.json", "text.mom", "folder.momd"]) func whatIsNoModelIsAnErrorWithThePath(
    name: String
  ) throws {
    let fixture = try Fixture()
    if name.hasPrefix("text") { try Data("hello".utf8).write(to: fixture.folder.appendingPathComponent(name)) }
    if name == "folder.momd" || name == "empty" {
      try FileManager.default.createDirectory(at: fixture.folder.appendingPathComponent(name), withIntermediateDirectories: true)
    }
    let error = try #require(throws: CommandError.self) { try ModelSource(path: fixture.path(name)) }
    #expect(error.description.contains(name))
  }

  @Test func convertWritesAllVersionsOneVersionOrJSON() throws {
    let fixture = try Fixture()
    let path = try fixture.writeModel()
    try ModelConvert.run(path, to: fixture.path("Copy.xcdatamodeld"))
    for version in ["Zoo", "Zoo 2"] {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(version).xcdatamodel/contents"))
      #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path("Copy.xcdatamodeld/\(version).xcdatamodel/contents"))) == bytes)
    }
    try ModelConvert.run(path, to: fixture.path("Old.xcdatamodel"), version: "Zoo")
    #expect(try ModelSource(path: fixture.path("Old.xcdatamodel")).current?.model.versionDigest == Fixture.model(rating: 4).versionDigest)
    try ModelConvert.run(path, to: fixture.path("zoo.json"))
    try ModelConvert.run(fixture.path("zoo.json"), to: fixture.path("Back.xcdatamodeld"))
    let back = try #require(try ModelSource(path: fixture.path("Back.xcdatamodeld")).current)
    let original = try #require(try ModelSource(path: path).current)
    #expect(back.name == "zoo" && back.model.declarations == original.model.declarations)
    #expect(throws: CommandError.self) { try ModelConvert.run(path, to: fixture.path("zoo.txt")) }
    #expect(throws: CommandError.self) { try ModelConvert.run(path, to: fixture.path("Zoo.xcdatamodel"), version: "Zoo 3") }
  }

  /// The bug: the model replaced the store, and all its objects were lost.
  @Test(arguments: ["zoo.json", "link.json"]) func aModelDoesNotReplaceAStore(name: String) throws {
    let fixture = try Fixture(), store = fixture.path("zoo.json"), output = fixture.path(name)
    try fixture.writeStore(Fixture.Kind.json.description(at: store))
    if output != store { try FileManager.default.createSymbolicLink(atPath: output, withDestinationPath: "zoo.json") }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: store))
    for input in [store, try fixture.writeModel()] {
      let error = #expect(throws: CommandError.self) { try ModelConvert.run(input, to: output) }
      #expect(error?.path == output && error?.reason.hasPrefix("The file is a store") == true, "\(error as Any)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == bytes)
    }
  }

  /// The bug: a file that everyone can write replaced the link.
  @Test func convertReplacesTheFileToWhichALinkPointsAndKeepsItsPermissions() throws {
    let fixture = try Fixture(), file = fixture.path("old.json"), link = fixture.path("link.json"), model = try fixture.writeModel()
    try #require(FileManager.default.createFile(atPath: file, contents: Data("{}".utf8), attributes: [.posixPermissions: 0o640]))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "old.json")
    try ModelConvert.run(model, to: link)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "old.json")
    #expect(try ModelSource(path: file).current?.model.versionDigest == Fixture.model().versionDigest)
    #expect((try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? NSNumber)?.intValue == 0o640)
  }

  @Test func lintFindsWhatIsSeldomMeantAndNothingElse() throws {
    let fixture = try Fixture()
    let found = ModelLint.findings(in: try ModelSource(path: try fixture.writeModel())).filter { $0.version == "Zoo 2" }
    #expect(found.map { "\($0.rule) \($0.path)" } == ["no-inverse Walk.next"], "\(found)")
    #expect(Set(ModelLint.rules.map(\.name)).count == ModelLint.rules.count)
  }

  @Test func everyRuleOfLintFindsItsCase() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription("Empty"),
        EntityDescription("Leaf", isAbstract: true, attributes: [AttributeDescription("a", .string, isOptional: true)]),
        EntityDescription(
          "Owner",
          attributes: [
            AttributeDescription("description", .string, isOptional: true), AttributeDescription("must", .integer16),
            AttributeDescription("rating", .double, default: .double(6), validation: .range(nil, .double(5))),
            .transformable("colour", by: nil, isOptional: true),
          ], relationships: [.toMany("things", to: "Thing", inverse: "owner"), .toOne("lost", to: "Thing", inverse: nil)]),
        EntityDescription(
          "Thing", relationships: [.toOne("owner", to: "Owner", inverse: "things", isOptional: false, deleteRule: .noAction)]),
      ], composites: [CompositeDescription("Unused", [AttributeDescription("x", .double)])])
    let fixture = try Fixture()
    let documents = ["A": try ModelDocument(model), "B": try ModelDocument(model)]
    try ModelBundle.write(documents, currentVersion: "A", to: fixture.path("M.xcdatamodeld"))
    let found = ModelLint.findings(in: try ModelSource(path: fixture.path("M.xcdatamodeld")))
    let rules = Set(found.map(\.rule))
    let onlyOfFiles: Set<String> = ["unreadable-version", "default-of-another-type", "ignored-index"]
    #expect(rules == Set(ModelLint.rules.map(\.name)).subtracting(onlyOfFiles), "\(found)")
  }

  @Test func lintFindsWhatXcodeAcceptsAndConverts() throws {
    let text = """
      <model><entity name="E"><attribute name="n" attributeType="Integer 16" defaultValueString="NO"/>
      <attribute name="b" attributeType="Boolean" defaultValueString="7"/>
      <relationship name="m" toMany="YES" inverseName="m" inverseEntity="E" destinationEntity="E"/>
      <fetchIndex name="byM"><fetchIndexElement property="m"/></fetchIndex>
      <fetchIndex name="byN"><fetchIndexElement property="n"/></fetchIndex>
      <fetchIndex name="byn"><fetchIndexElement property="b"/></fetchIndex></entity></model>
      """
    let fixture = try Fixture()
    try FileManager.default.createDirectory(
      at: fixture.folder.appendingPathComponent("M.xcdatamodel"), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: fixture.folder.appendingPathComponent("M.xcdatamodel/contents"))
    let source = try ModelSource(path: fixture.path("M.xcdatamodel"))
    let found = ModelLint.findings(in: source).map(\.description).sorted()
    #expect(
      found == [
        "M: E.b: Its default value \"7\" has the wrong type. YES is used. Write YES in the model. [default-of-another-type]",
        "M: E.byM: It isn't an index on attributes and to-one relationships, so the index has no effect. Rename, change or remove it. [ignored-index]",
        "M: E.byn: Another index of the entity has this name, so the index has no effect. Rename, change or remove it. [ignored-index]",
        "M: E.n: Its default value \"NO\" has the wrong type. 0 is used. Write 0 in the model. [default-of-another-type]",
      ], "\(found)")
    #expect(ModelReport(source).text().contains("index byM: m (ignored)"))
  }

  @Test func lintFindsEveryKindOfDefaultThatIsRefused() throws {
    func decimal(_ value: Int) -> StoreValue { .decimal(Decimal(value)) }
    let refused: [AttributeDescription] = [
      AttributeDescription("a", .decimal, default: decimal(5), validation: .range(nil, decimal(3))),
      AttributeDescription("b", .decimal, default: decimal(-1), validation: .range(decimal(0), nil)),
      AttributeDescription("d", .string, default: .string("ab"), validation: .length(3, nil)),
      AttributeDescription("e", .uri, default: .uri("http:a"), validation: .length(nil, 3)),
      AttributeDescription("f", .date, default: .date(2), validation: .range(nil, .date(1))),
      AttributeDescription("g", .integer64, default: .int64(.max), validation: .range(nil, .int64(.max - 1))),
      AttributeDescription("h", .float, default: .float(2), validation: .range(nil, .float(1))),
    ]
    let kept: [AttributeDescription] = [
      AttributeDescription("p", .decimal, default: decimal(3), validation: .range(decimal(3), decimal(3))),
      AttributeDescription("q", .string, default: .string("abc"), validation: .length(3, 3)),
      // The pattern isn't run, because this one would take practically forever.
      AttributeDescription("t", .string, default: .string(String(repeating: "a", count: 60)), validation: .pattern("(a+)+b")),
      AttributeDescription("r", .integer64, default: .int64(.max), validation: .range(.int64(.max), .int64(.max))),
      AttributeDescription("s", .date, default: .date(1), validation: .range(nil, nil)),
    ]
    let fixture = try Fixture()
    let model = try ManagedObjectModel(entities: [EntityDescription("E", attributes: refused + kept)])
    try ModelBundle.write(try ModelDocument(model), to: fixture.path("M.xcdatamodeld"))
    let found = ModelLint.findings(in: try ModelSource(path: fixture.path("M.xcdatamodeld"))).filter { $0.rule == "default-beyond-rules" }
    #expect(found.map(\.path).sorted() == refused.map { "E.\($0.name)" })
  }

  /// Files intended as JSON models, with the expected message for each.
  private static let brokenModels = [
    ("{\"entities\":[{\"name\":\"A\",\"isAbstract\":false}],\"versionIdentifiers\":7}", "versionIdentifiers"),
    ("{\"entities\":[{\"isAbstract\":false}],\"versionIdentifiers\":[]}", "name"),
    ("{\"entities\":[{\"name\":\"A\",\"isAbstract\":false,\"superentity\":\"Gone\"}],\"versionIdentifiers\":[]}", "Gone"),
    ("{\"entities\":[", "JSON"), ("{\"a\":1}", "entities"), ("[1]", "neither a model"), ("", "neither a model"),
  ]

  @Test(arguments: brokenModels.indices) func aBrokenModelAsJSONIsReported(_ place: Int) throws {
    let (text, word) = Self.brokenModels[place]
    let fixture = try Fixture()
    try Data(text.utf8).write(to: fixture.folder.appendingPathComponent("m.json"))
    let error = try #require(throws: CommandError.self) { try ModelSource(path: fixture.path("m.json")) }
    #expect(error.description.contains(word) && !error.description.contains("Check the path"), "\(error)")
    #expect(!error.description.contains("\n"), "\(error)")
  }

  @Test(arguments: ModelGraph.Format.allCases) func theGraphHasEveryEntityAttributeAndPairOfRelationships(format: ModelGraph.Format) throws
  {
    let text = try ModelGraph.text(Fixture.model(), format)
    for word in ["Animal", "Dog", "Walk", "rating", "minutes", format == .svg ? "Walk *" : "walks / dog", "next"] {
      #expect(text.contains(word), "\(word)")
    }
    #expect(text == (try ModelGraph.text(Fixture.model(), format)))
    switch format {
    case .mermaid: #expect(text.hasPrefix("erDiagram\n") && text.contains("\"Dog\" |o--o{ \"Walk\""))
    case .dot: #expect(text.hasPrefix("digraph") && text.filter { $0 == "{" }.count == text.filter { $0 == "}" }.count)
    case .svg:
      let parser = XMLLines(text)
      #expect(parser.isWellFormed && text.hasPrefix("<svg "))
    }
  }

  /// Keywords of Graphviz, in any case, and of Mermaid.
  private static let words = [
    "Node", "EDGE", "graph", "Subgraph", "Digraph", "Strict", "Class", "classDef", "End", "Style", "One", "many", "To", "Title",
    "Direction",
    "u", "erDiagram",
  ]

  @Test(arguments: [ModelGraph.Format.dot, .mermaid]) func namesThatAreWordsOfTheLanguageAreQuoted(_ format: ModelGraph.Format) throws {
    let entities = Self.words.map {
      EntityDescription(
        $0, superentity: $0 == "Node" ? nil : "Node", attributes: $0 == "Node" ? [AttributeDescription("PK", .string)] : [],
        relationships: [.toOne("to\($0)", to: "Node", inverse: nil)])
    }
    let text = try ModelGraph.text(ManagedObjectModel(entities: entities), format)
    for line in text.split(separator: "\n") {
      // Outside of quotes, a line contains no name.
      let bare = line.split(separator: "\"", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
      let isSetting = line.hasPrefix("  node [") || line.hasPrefix("  edge [") || !line.hasPrefix("  ") || line.contains("=LR")
      if !isSetting && !line.contains("<table") && !line.hasPrefix("    ") {
        let left = bare.joined(separator: " ").split { !$0.isLetter }.map(String.init)
        #expect(
          Set(left).isSubset(of: ["o", "dir", "both", "arrowhead", "arrowtail", "crow", "tee", "label", "empty", "style", "dashed"]),
          "\(line)")
      }
    }
    for word in Self.words { #expect(text.contains("\n  \"\(word)\" "), "\(word)") }
    if format == .mermaid { #expect(text.contains("\n    string PK_\n")) }
  }

  @Test(.enabled(if: Corpus.path != nil, "HOLDFAST_CORPUS is not set")) func everyModelOfTheCorpusCanBeLookedAt() throws {
    let paths = Corpus.paths("models", [".xcdatamodeld", ".momd"])
    #expect(paths.count > 30)
    for path in paths {
      do throws(CommandError) {
        let source = try ModelSource(path: path)
        let report = ModelReport(source)
        #expect(!report.text().isEmpty && report.versions.allSatisfy { !$0.entities.isEmpty })
        _ = ModelLint.findings(in: source)
        for version in source.versions {
          for format in ModelGraph.Format.allCases { #expect(!ModelGraph.text(version.model, format).isEmpty) }
        }
      } catch {
        // Some contain only files of Xcode before version 4.
        #expect("\(error)".contains("oldFormat") || "\(error)".contains("elements"), "\(error)")
      }
    }
  }

  /// A name may contain an escape sequence, including a single-character control code, or a mark that changes the writing direction.
  @Test func controlCharactersArePrintedAsDigits() throws {
    let printed = TerminalText.escaped(Data("a\u{1B}[31mb\u{9B}c\u{202E}d\u{7}\n\te".utf8))
    #expect(String(decoding: printed, as: UTF8.self) == "a\\u001B[31mb\\u009Bc\\u202Ed\\u0007\n\te")
    let json = try JSONEncoder().encode(["a\u{9B}\u{202E}\u{1B}"])
    #expect(try JSONDecoder().decode([String].self, from: TerminalText.escaped(json)) == ["a\u{9B}\u{202E}\u{1B}"])
  }

  @Test(arguments: ["new.json", "New.xcdatamodel", "New.xcdatamodeld"]) func whatConvertWritesIsPrivateOrAsTheFileThatItReplaces(
    name: String
  ) throws {
    func permissions(_ path: String) throws -> Int? {
      (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }
    let fixture = try Fixture()
    let path = try fixture.writeModel()
    try ModelConvert.run(path, to: fixture.path(name))
    var file = fixture.path(name)
    if name.hasSuffix("model") { file += "/contents" }
    if name.hasSuffix("modeld") { file += "/Zoo.xcdatamodel/contents" }
    #expect(try permissions(file) == 0o600)
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
    try ModelConvert.run(path, to: fixture.path(name))
    #expect(try permissions(file) == 0o640)
  }
}

/// Whether tags are nested correctly. Sufficient for our own pictures.
struct XMLLines {
  let isWellFormed: Bool

  init(_ text: String) {
    var open: [Substring] = []
    var isGood = true
    for part in text.split(separator: "<").dropFirst(text.hasPrefix("<") ? 0 : 1) {
      guard let end = part.firstIndex(of: ">") else {
        isGood = false
        break
      }
      let tag = part[..<end]
      let name = tag.drop { $0 == "/" }.prefix { !" /".contains($0) }
      if tag.hasPrefix("/") { isGood = isGood && open.popLast() == name } else if !tag.hasSuffix("/") { open.append(name) }
    }
    isWellFormed = isGood && open.isEmpty
  }
}
