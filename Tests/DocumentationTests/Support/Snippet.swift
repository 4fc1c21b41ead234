/// A Swift code block in a text: an article, the README, or the comment of a symbol.
struct Snippet: Sendable, Hashable {
  /// The file of the block, for messages.
  let file: String
  /// The number of its opening line, from 1.
  let line: Int
  /// Its lines, without the indentation of the opening line.
  let lines: [String]
  /// Why it isn't compiled, if the line before it says so: `<!-- not compiled: reason -->`.
  let excuse: String?
}

/// An error in a text, found before any comparison.
struct SnippetError: Error, Hashable, CustomStringConvertible {
  let file: String
  let line: Int
  let reason: String
  var description: String { "\(file):\(line): \(reason)" }
}

extension Snippet {
  private static let marker = "<!-- not compiled:"

  /// The Swift code blocks in a Markdown text.
  ///
  /// - Throws: ``SnippetError`` for a block without a language or an end.
  static func all(in text: String, of file: String) throws(SnippetError) -> [Snippet] {
    try all(in: text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init), of: file)
  }

  /// The Swift code blocks in the documentation comments of a source.
  ///
  /// - Throws: as ``all(in:of:)``.
  static func allInComments(of source: String, _ file: String) throws(SnippetError) -> [Snippet] {
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      let line = line.drop { $0 == " " }
      if !line.hasPrefix("///") { return "" }
      let comment = line.dropFirst(3)
      return String(comment.hasPrefix(" ") ? comment.dropFirst() : comment)
    }
    return try all(in: lines, of: file)
  }

  private static func all(in lines: [String], of file: String) throws(SnippetError) -> [Snippet] {
    var snippets: [Snippet] = []
    var opening: (number: Int, language: String, indentation: Int)?
    var code: [String] = []
    for (number, line) in lines.enumerated() {
      let content = line.drop { $0 == " " }
      if let fence = opening {
        guard content.allSatisfy({ $0 == "`" || $0 == " " }), content.hasPrefix("```") else {
          code.append(String(line.dropFirst(min(fence.indentation, line.count - content.count))))
          continue
        }
        if fence.language == "swift" {
          let before = fence.number > 0 ? lines[fence.number - 1] : ""
          snippets.append(Snippet(file: file, line: fence.number + 1, lines: code, excuse: excuse(in: before)))
        }
        opening = nil
        code = []
      } else if content.hasPrefix("```") {
        let language = String(content.drop { $0 == "`" })
        if language.isEmpty { throw SnippetError(file: file, line: number + 1, reason: "The block has no language.") }
        opening = (number, language, line.count - content.count)
      }
    }
    if let opening { throw SnippetError(file: file, line: opening.number + 1, reason: "The block has no end.") }
    return snippets
  }

  private static func excuse(in line: String) -> String? {
    let line = line.drop { $0 == " " }
    guard line.hasPrefix(marker), line.hasSuffix("-->") else { return nil }
    let reason = line.dropFirst(marker.count).dropLast(3).filter { $0 != " " }
    return reason.isEmpty ? nil : String(line)
  }
}

/// The sources that must contain the snippets.
struct CompiledSources: Sendable {
  private let files: [[String]]
  /// The places of each line, by the line without its indentation.
  private let places: [Substring: [(file: Int, line: Int)]]

  init(_ sources: [String]) {
    files = sources.map { $0.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }
    var places: [Substring: [(file: Int, line: Int)]] = [:]
    for (file, lines) in files.enumerated() {
      for (number, line) in lines.enumerated() { places[line.drop { $0 == " " }, default: []].append((file, number)) }
    }
    self.places = places
  }

  /// Why no source contains a snippet line by line, or nil if one does. The source may indent it further.
  func problem(with snippet: Snippet) -> String? {
    var most = 0
    for place in places[snippet.lines.first?.drop { $0 == " " } ?? ""] ?? [] {
      let matching = matchingLines(snippet.lines, files[place.file][place.line...])
      if matching == snippet.lines.count { return nil }
      most = max(most, matching)
    }
    let place = snippet.line + 1 + most
    return "\(snippet.file):\(place): The example isn't in a compiled file. The first line that differs is: "
      + "\(most < snippet.lines.count ? snippet.lines[most] : "")"
  }

  /// The number of a snippet's lines that match the first lines of a source, in order and with one indentation.
  private func matchingLines(_ snippet: [String], _ source: ArraySlice<String>) -> Int {
    guard let first = snippet.first, let start = source.first, start.hasSuffix(first) else { return 0 }
    let indentation = start.dropLast(first.count)
    guard indentation.allSatisfy({ $0 == " " }) else { return 0 }
    return zip(snippet, source).prefix { line, found in found == (line.isEmpty ? "" : indentation + line) }.count
  }
}
