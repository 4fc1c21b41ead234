import Testing

/// Every Swift code block in the documentation is part of a compiled file.
@Suite struct SnippetTests {
  private static let compiled = Result { CompiledSources(try Repository.examples.map(Repository.text)) }

  @Test(arguments: Repository.documents) func everyExampleOfAnArticleIsCompiled(_ document: String) throws {
    try expectCompiled(Snippet.all(in: Repository.text(document), of: document))
  }

  @Test func everyExampleOfACommentIsCompiled() throws {
    let snippets = try Repository.sources.flatMap { try Snippet.allInComments(of: Repository.text($0), $0) }
    #expect(snippets.count > 20)
    try expectCompiled(snippets)
  }

  @Test func theTextsThatPeopleReadAreFound() {
    for document in [
      "README.md", "Sources/Holdfast/Holdfast.docc/Objects.md", "Sources/HoldfastJSONStore/HoldfastJSONStore.docc/Format.md",
      "Sources/HoldfastXMLStore/HoldfastXMLStore.docc/Format.md",
    ] {
      #expect(Repository.documents.contains(document))
    }
    #expect(Repository.sources.contains("Sources/Holdfast/Fetching/FetchRequest.swift"))
    #expect(Repository.examples.contains("Tests/DocumentationTests/ReadmeExamples.swift"))
    #expect(!Repository.examples.contains("Tests/DocumentationTests/SnippetTests.swift"))
  }

  private func expectCompiled(_ snippets: [Snippet]) throws {
    let compiled = try Self.compiled.get()
    for snippet in snippets {
      // No block is excluded from compilation.
      #expect(snippet.excuse == nil, "\(snippet.file):\(snippet.line)")
      if let problem = compiled.problem(with: snippet) { Issue.record("\(problem)") }
    }
  }

  // MARK: The mechanism

  private static let source = """
    func f() {
      if a {
        b()

        c()
      }
    }
    """

  private func problem(_ code: String) throws -> String? {
    let snippets = try Snippet.all(in: "# Title\n\n```swift\n\(code)\n```\n", of: "A.md")
    try #require(snippets.count == 1)
    return CompiledSources([Self.source]).problem(with: snippets[0])
  }

  @Test func anExampleMayBeIndentedFurther() throws {
    #expect(try problem(Self.source) == nil)
    #expect(try problem("if a {\n  b()\n\n  c()\n}") == nil)
    #expect(try problem("b()\n\nc()") == nil)
  }

  private static let different: [(code: String, line: Int)] = [
    ("if a {\n  b()\n\n  d()\n}", 7), ("if a {\n  b()\n  c()\n}", 6), ("if a {\nb()\n\n  c()\n}", 5), ("c()\nb()", 5), ("a()", 4),
    ("}\n}\n}", 5),
    ("b() ", 4), ("f() {", 4),
  ]

  @Test(arguments: different.indices) func aLineThatDiffersIsNamed(_ place: Int) throws {
    let (code, line) = Self.different[place]
    let problem = try #require(try problem(code))
    #expect(problem.hasPrefix("A.md:\(line): "))
  }

  @Test func examplesAreFoundInListsAndComments() throws {
    let list = try Snippet.all(in: "- One:\n\n  ```swift\n  a()\n    b()\n  ```\n\n```json\n{}\n```\n", of: "A.md")
    #expect(list.map(\.lines) == [["a()", "  b()"]])
    let source =
      "  /// Text:\n  ///\n  /// ```swift\n  /// a()\n  ///\n  /// if b {\n  ///   c()\n  /// }\n  /// ```\n  func f() {}\n// ```swift\n"
    let comment = try Snippet.allInComments(of: source, "A.swift")
    #expect(comment == [Snippet(file: "A.swift", line: 3, lines: ["a()", "", "if b {", "  c()", "}"], excuse: nil)])
  }

  @Test func whatIsLeftOutSaysWhy() throws {
    func excuse(_ line: String) throws -> String? { try Snippet.all(in: "\(line)\n```swift\na()\n```", of: "A.md").first?.excuse }
    #expect(try excuse("<!-- not compiled: it is the code of another package -->") != nil)
    #expect(try excuse("<!-- not compiled: -->") == nil)
    #expect(try excuse("<!-- something else -->") == nil)
  }

  @Test func aBlockWithoutLanguageOrEndIsAnError() {
    #expect(throws: SnippetError(file: "A.md", line: 2, reason: "The block has no language.")) {
      try Snippet.all(in: "Text:\n```\na()\n```", of: "A.md")
    }
    #expect(throws: SnippetError(file: "A.md", line: 1, reason: "The block has no end.")) {
      try Snippet.all(in: "```swift\na()\n", of: "A.md")
    }
  }
}
