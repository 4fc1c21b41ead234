import Foundation

/// The files of the checkout.
enum Repository {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The READMEs and the articles, as paths from the root.
  static let documents =
    ["README.md", "Examples/DogServer/README.md", "Examples/HTTPStore/README.md"]
    + files(in: "Sources", endingIn: ".md").filter { $0.contains(".docc/") }

  /// The sources with examples in their comments. Worked examples are themselves examples.
  static let sources = files(in: "Sources", endingIn: ".swift").filter { !$0.hasPrefix("Sources/Examples/") }

  /// The files in which examples are compiled: beside the tests that run them, and among the worked examples.
  static let examples =
    files(in: "Tests/DocumentationTests", endingIn: ".swift").filter {
      !$0.hasPrefix("Tests/DocumentationTests/Support/") && !$0.hasSuffix("/SnippetTests.swift")
    }
    + ["Sources/Examples", "Examples/Sources", "Examples/DogServer/Sources", "Examples/HTTPStore/Sources"].flatMap {
      files(in: $0, endingIn: ".swift")
    }

  static func text(_ path: String) throws -> String { try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8) }

  /// The files in a folder and its subfolders, sorted. Empty if the folder doesn't exist.
  private static func files(in folder: String, endingIn suffix: String) -> [String] {
    let paths = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
    return (paths?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(suffix) }.map { "\(folder)/\($0)" }.sorted()
  }
}
