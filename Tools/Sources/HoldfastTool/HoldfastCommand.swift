public import ArgumentParser
import Foundation
public import HoldfastCommands

/// The command line: says what there is, parses, and calls the commands.
@main struct HoldfastCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast",
    abstract: "Looks into models and stores of Holdfast and Core Data.",
    discussion: """
      Nothing is changed but the output of convert. Exit codes: 0 done, 1 an input could not be read or an output not be written, \
      2 lint has remarks, 64 the command line is wrong.
      """,
    subcommands: [Model.self, Store.self])
}

struct Model: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Looks into models: .xcdatamodeld, .xcdatamodel, .momd, .mom, .json, or a store that keeps its model.",
    subcommands: [Info.self, Convert.self, Lint.self, Graph.self])

  struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows entities, properties with all settings, and version hashes.")
    @Argument(help: "The model, or a store.", completion: .file()) var model: String
    @Flag(help: "Write JSON, as Tools/README.md documents it.") var json = false

    func run() throws {
      let report = ModelReport(try Output.asking { () throws(CommandError) in try ModelSource(path: model) })
      try Output.write(json ? report.json() : Data(report.text().utf8))
    }
  }

  struct Convert: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Writes a model in the form that the ending of OUT says.")
    @Argument(help: "The model, or a store.", completion: .file()) var input: String
    @Argument(help: "What to write: .xcdatamodeld, .xcdatamodel or .json.", completion: .file()) var output: String
    @Option(help: "The version to write; all of them, or the current one where there is room for one, unless given.") var version: String?

    func run() throws {
      try Output.asking { () throws(CommandError) in try ModelConvert.run(input, to: output, version: version) }
    }
  }

  struct Lint: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Looks for what is allowed and seldom meant; exits with 2 when it finds something.",
      discussion: "Rules:\n" + ModelLint.rules.map { "  \($0.name): \($0.meaning)" }.joined(separator: "\n"))
    @Argument(help: "The model, or a store.", completion: .file()) var model: String
    @Flag(help: "Write JSON, as Tools/README.md documents it.") var json = false

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
    @Option(help: "The version to draw; the current one unless given.") var version: String?

    func run() throws {
      let text = try Output.asking { () throws(CommandError) in try ModelGraph.text(path: model, version: version, format) }
      try Output.write(Data(text.utf8))
    }
  }
}

struct Store: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Looks into stores, which are only read.", subcommands: [Info.self])

  struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Shows type, UUID, model, rows per entity and version hashes of a store, also of one that Core Data made.")
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Option(help: "A model to read it with, in place of the one that it keeps.", completion: .file()) var model: String?
    @Flag(help: "Write JSON, as Tools/README.md documents it.") var json = false

    func run() throws {
      let report = try Output.asking { () throws(CommandError) in try StoreReport(path: store, modelPath: model) }
      try Output.write(json ? report.json() : Data(report.text().utf8))
    }
  }
}

extension ModelGraph.Format: ExpressibleByArgument {}

/// What is written where.
enum Output {
  static func write(_ data: Data) throws { try FileHandle.standardOutput.write(contentsOf: TerminalText.escaped(data)) }

  /// Runs a command; its error goes to the error output, and ends the program with 1.
  static func asking<Result>(_ body: () throws(CommandError) -> Result) throws -> Result {
    do throws(CommandError) { return try body() } catch {
      FileHandle.standardError.write(TerminalText.escaped(Data("holdfast: \(error)\n".utf8)))
      throw ExitCode(1)
    }
  }
}
