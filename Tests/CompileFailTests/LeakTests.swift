import Foundation
import TestSupport
import Testing

/// The compiler refuses each way of sending an object, a context or a pointer to a row to another thread. It also refuses an index or a
/// version in the place of another number, a switch without a default case over an enum that will grow, and queries that no store could
/// evaluate. A case is a small file that imports the framework. `// ERROR:` has a part of the message about its line; all other lines have no
/// error. `// OPTIONS:` has options of the compiler.
@Suite(.serialized, .ownThreads) struct LeakTests {
  @Test(arguments: LeakCase.all) func theCompilerSaysWhatItShould(_ leak: LeakCase) throws {
    let output = try leak.compile(), marked = leak.marked, found = LeakCase.errors(in: output)
    for (line, message) in marked {
      #expect(found[line]?.contains { $0.contains(message) } == true, "\(leak): line \(line) must be an error: \(message)\n\(output)")
    }
    #expect(Set(found.keys) == Set(marked.keys), "\(leak): the compiler said\n\(output)")
  }

  /// The compiler shows the lines of an error, which contain the expected message.
  @Test func onlyAMessageIsAnError() {
    let output = """
      /tmp/leak-1.swift:3:5: error: var 'kept' is not concurrency-safe
       3 | var kept: Dog?  // ERROR: is mutable
         |     `- error: var 'kept' is not concurrency-safe
      """
    #expect(LeakCase.errors(in: output) == [3: ["var 'kept' is not concurrency-safe"]])
  }
}

/// A file of the folder `Cases`.
struct LeakCase: CustomTestStringConvertible, Sendable {
  let name: String
  let source: String

  var testDescription: String { name }

  /// The rest of the first line that begins with a text.
  private func comment(_ start: String) -> String? {
    source.split(separator: "\n").first { $0.hasPrefix(start) }.map { $0.dropFirst(start.count).trimmingCharacters(in: .whitespaces) }
  }

  /// The expected message of each line, by the line's number in the compiled file.
  var marked: [Int: String] {
    let lines = (LeakCase.prelude + source).components(separatedBy: "\n").enumerated()
    return Dictionary(
      uniqueKeysWithValues: lines.compactMap { number, line in
        line.components(separatedBy: "// ERROR: ").dropFirst().first.map { (number + 1, $0) }
      })
  }

  /// The messages of errors in what the compiler said, by the numbers of their lines.
  static func errors(in output: String) -> [Int: [String]] {
    var errors: [Int: [String]] = [:]
    for match in output.matches(of: /leak-[^:\n]*\.swift:(\d+):\d+: error: (.*)/) {
      errors[Int(match.1) ?? 0, default: []].append(String(match.2))
    }
    return errors
  }

  static let all: [LeakCase] = {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Cases")
    let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).filter { $0.hasSuffix(".case") }.sorted()
    return names.compactMap { name in
      (try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)).map { LeakCase(name: name, source: $0) }
    }
  }()

  private static let prelude = """
    import Holdfast

    final class Dog: ManagedObject {
      override class var entityName: String { "Dog" }
      var age: Int { get { self[0] } set { self[0] = newValue } }
      var name: String { get { self[1] } set { self[1] = newValue } }
      var friends: ToMany<Dog> { toMany(0) }
    }
    final class Walk: ManagedObject {
      override class var entityName: String { "Walk" }
      var dog: Dog? { get { toOne(0) } set { setToOne(0, newValue) } }
    }

    """

  /// Compiles as far as the checks of isolation go, against the modules beside the test bundle.
  func compile() throws -> String {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("leak-\(UUID().uuidString).swift")
    try (LeakCase.prelude + source).write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let build = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let options = comment("// OPTIONS:")?.split(separator: " ").map(String.init) ?? []
    return try Program.run(
      "/usr/bin/env",
      [
        "swiftc", "-emit-sil", "-o", "/dev/null", "-swift-version", "6", "-parse-as-library", "-I",
        build.appendingPathComponent("Modules").path,
      ] + options + [file.path]
    ).errors
  }
}
