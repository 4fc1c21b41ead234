import Foundation
import Testing

/// The pages about the examples show the examples' own code.
@Suite struct ExamplePagesTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(arguments: [("Examples", 1), ("DogWalk", 3), ("Warehouse", 7), ("Packages", 8), ("BowTies", 6), ("Moody", 3)])
  func everySwiftBlockIsFoundInTheSources(_ page: String, _ count: Int) throws {
    let text = try String(contentsOf: Self.root.appendingPathComponent("Sources/Holdfast/Holdfast.docc/\(page).md"), encoding: .utf8)
    let sources = try Self.sources("Examples/Sources")
    let blocks = text.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "\n```").first }
    #expect(blocks.count == count)
    for block in blocks { #expect(sources.contains { SourceText($0).contains(block) }, "\(page).md:\n\(block)") }
  }

  @Test func aBlockIsFoundWhateverItsIndentationAndNotWhenALineDiffers() {
    let source = SourceText("struct A {\n  func b() {\n    c()\n\n    d()\n  }\n}\n")
    #expect(source.contains("func b() {\n  c()\n\n  d()\n}"))
    #expect(source.contains("d()"))
    #expect(!source.contains("func b() {\n  c()\n  d()\n}"))
    #expect(!source.contains("c()\n\n  d()"))
    #expect(!source.contains("(c)"))
    #expect(!source.contains("}\n}\n}"))
    #expect(!source.contains(""))
  }

  private static func sources(_ folder: String) throws -> [String] {
    let files = FileManager.default.enumerator(at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil)
    return try (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
      .map { try String(contentsOf: $0, encoding: .utf8) }
  }
}

/// A source to search for lines.
private struct SourceText {
  private let lines: [Substring]

  init(_ text: String) { lines = text.split(separator: "\n", omittingEmptySubsequences: false) }

  /// Whether a block's lines follow each other here, all with the same indentation.
  func contains(_ block: String) -> Bool {
    let wanted = block.split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = wanted.first, !first.isEmpty, wanted.count <= lines.count else { return false }
    return (0...lines.count - wanted.count).contains { start in
      guard lines[start].hasSuffix(first) else { return false }
      let indentation = lines[start].dropLast(first.count)
      guard indentation.allSatisfy({ $0 == " " }) else { return false }
      return zip(lines[start...], wanted).allSatisfy { line, wanted in line == (wanted.isEmpty ? "" : indentation + wanted) }
    }
  }
}
