public import ArgumentParser
import Foundation
public import HoldfastCommands
import HoldfastModelCode

/// The command line: describes and parses the arguments, and runs the commands.
@main struct HoldfastCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast",
    abstract: "Inspects models and stores of Holdfast and Core Data.",
    discussion: """
      `model convert`, `generate`, and the commands of `store` other than info, check and diff write files. Exit codes: 0 success, 1 an input can't be read or an output can't be written, \
      2 lint has findings, a check finds outdated files, two stores differ, or a repair lost something, 64 the command line is invalid.
      """,
    subcommands: [Model.self, Store.self, Generate.self])

  static func main() {
    StandardFiles.openMissing()
    main(nil)
  }
}

struct Generate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes Swift classes for a model: for each entity its class, once, and its properties, always.",
    discussion: "A file that already has the right text isn't touched.")
  @Argument(help: "The model, or a store.", completion: .file()) var model: String
  @Option(help: "The folder for the files.", completion: .directory) var output: String
  @Option(help: "The version of the model. Defaults to the current one.") var version: String?
  @Flag(name: .customLong("public"), help: "Let other modules use the classes.") var isPublic = false
  @Flag(help: "Write nothing. Exit with 2 if a file is missing or outdated.") var check = false

  func run() throws {
    let result = try Output.asking { () throws(CommandError) in
      try ModelGenerate.run(model, to: output, version: version, access: isPublic ? .public : .internal, isCheck: check)
    }
    let lines =
      result.files.map { "\(check ? "outdated" : "written"): \($0)" } + result.orphans.map { "of no entity: \($0)" }
      + result.notes.map { "note: \($0)" }
    try Output.write(Data(lines.map { $0 + "\n" }.joined().utf8))
    if check && !(result.files.isEmpty && result.orphans.isEmpty) { throw ExitCode(2) }
  }
}

struct Model: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Inspects models: .xcdatamodeld, .xcdatamodel, .momd, .mom, .json, or a store that contains its model.",
    subcommands: [Info.self, Convert.self, Lint.self, Graph.self])

  struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows entities, properties with all settings, and version hashes.")
    @Argument(help: "The model, or a store.", completion: .file()) var model: String
    @Flag(help: "Write JSON, as documented in Tools/README.md.") var json = false

    func run() throws {
      let report = ModelReport(try Output.asking { () throws(CommandError) in try ModelSource(path: model) })
      try Output.write(json ? report.json() : Data(report.text().utf8))
    }
  }

  struct Convert: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Writes a model in the format of the output's extension.")
    @Argument(help: "The model, or a store.", completion: .file()) var input: String
    @Argument(help: "The output: .xcdatamodeld, .xcdatamodel or .json.", completion: .file()) var output: String
    @Option(help: "The version to write. Defaults to all versions, or the current one if the output has only one.") var version: String?

    func run() throws {
      let notes = try Output.asking { () throws(CommandError) in try ModelConvert.run(input, to: output, version: version) }
      for note in notes { Output.note("note: \(note)") }
    }
  }

  struct Lint: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Finds constructs that are allowed but rarely intended. Exits with 2 if it finds any.",
      discussion: "Rules:\n" + ModelLint.rules.map { "  \($0.name): \($0.meaning)" }.joined(separator: "\n"))
    @Argument(help: "The model, or a store.", completion: .file()) var model: String
    @Flag(help: "Write JSON, as documented in Tools/README.md.") var json = false

    func run() throws {
      let source = try Output.asking { () throws(CommandError) in try ModelSource(path: model) }
      let report = LintReport(source)
      try Output.write(json ? report.json() : Data(report.text().utf8))
      if !report.findings.isEmpty { throw ExitCode(2) }
    }
  }

  struct Graph: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Draws entities and relationships.")
    @Argument(help: "The model, or a store.", completion: .file()) var model: String
    @Option(help: "mermaid, dot or svg.") var format = ModelGraph.Format.mermaid
    @Option(help: "The version to draw. Defaults to the current one.") var version: String?

    func run() throws {
      let text = try Output.asking { () throws(CommandError) in try ModelGraph.text(path: model, version: version, format) }
      try Output.write(Data(text.utf8))
    }
  }
}

extension ModelGraph.Format: ExpressibleByArgument {}
extension StoreDifference.Method: ExpressibleByArgument {}
extension ExchangeFormat: ExpressibleByArgument {}

/// Writes output and errors.
enum Output {
  static func write(_ data: Data) throws { try FileHandle.standardOutput.write(contentsOf: TerminalText.escaped(data)) }

  /// Writes the result of a command that has changed a store. If that isn't possible, reports that the change was made, and exits with 1.
  static func writeResult(_ result: String) throws {
    StandardFiles.ignoreClosedPipes()
    do { try write(Data("\(result)\n".utf8)) } catch {
      note("The change was made, but standard output can't be written. Don't repeat the command. Its result: \(result)")
      throw ExitCode(1)
    }
  }

  /// Writes a line to standard error, for example with a path that contains a line feed. If that isn't possible, the exit code still
  /// reports an error.
  static func note(_ text: String) { writeError(TerminalText.line(text)) }

  private static func writeError(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: TerminalText.escaped(Data("holdfast: \(text)\n".utf8)))
  }

  /// Runs a command. If it throws, prints the error to standard error and exits with 1.
  static func asking<Result>(_ body: () throws(CommandError) -> Result) throws -> Result {
    do throws(CommandError) { return try body() } catch {
      writeError("\(error)")
      throw ExitCode(1)
    }
  }
}
