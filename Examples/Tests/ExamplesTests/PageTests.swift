import Foundation
import Testing

/// The sessions on the pages about the examples have the output that the pages show.
@Suite struct PageTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  @Test(arguments: [("DogWalk", 7), ("Warehouse", 1), ("Packages", 7), ("BowTies", 6), ("Moody", 1)])
  func sessionsGoAsThePageSays(_ page: String, _ count: Int) throws {
    let text = try String(contentsOf: Self.root.appendingPathComponent("Sources/Holdfast/Holdfast.docc/\(page).md"), encoding: .utf8)
    let sessions = text.components(separatedBy: "```console\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
    let steps = sessions.flatMap(Step.read)
    #expect(steps.count == count)
    let folder = TemporaryFolder()
    try folder.write(PackageFixture.text, to: "sample-index")
    for step in steps {
      let program = try #require(step.command.first.flatMap(Example.init(rawValue:)), "\(step.command)")
      let arguments = step.command.dropFirst().map { $0 == PackageFixture.path ? "sample-index" : $0 }
      let outcome = try program.run(arguments, in: folder, input: step.input)
      #expect(outcome.output + outcome.errors == step.output, "\(step.command)")
    }
  }

  /// A command of a session and its output.
  private struct Step {
    let command: [String]
    /// Its standard input.
    var input: String?
    var output = ""

    static func read(_ session: String) -> [Step] {
      session.split(separator: "\n").reduce(into: []) { steps, line in
        if line.hasPrefix("$ echo "), let pipe = line.range(of: " | swift run --package-path Examples ") {
          let input = line[line.index(line.startIndex, offsetBy: 7)..<pipe.lowerBound] + "\n"
          steps.append(Step(command: line[pipe.upperBound...].split(separator: " ").map(String.init), input: String(input)))
        } else if line.hasPrefix("$ swift run --package-path Examples ") {
          steps.append(Step(command: line.split(separator: " ").dropFirst(5).map(String.init)))
        } else if !steps.isEmpty {
          steps[steps.count - 1].output += line + "\n"
        }
      }
    }
  }
}
