import Foundation
import Holdfast
import HoldfastCommands
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// Commands that change a store ask before, and keep a copy of it.
@Suite struct StoreConsentTests {
  /// A command that changes the store zoo.sqlite.
  struct Change: CustomTestStringConvertible, Sendable {
    let arguments: [String]
    let refusal: String
    let question: String

    var testDescription: String { arguments[0] }
  }

  static let changes = [
    Change(
      arguments: ["compact", "zoo.sqlite"],
      refusal: "The store's file would be rebuilt. To rebuild it, repeat the command with --yes.", question: "Compact it? Type yes: "),
    Change(
      arguments: ["import", "zoo.sqlite", "walks.json"],
      refusal: "Objects would be added to the store. To add them, repeat the command with --yes.", question: "Import them? Type yes: "),
  ]

  private let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    try Data(#"{"Walk": [{"minutes": 4}]}"#.utf8).write(to: URL(fileURLWithPath: fixture.path("walks.json")))
  }

  private func run(_ arguments: [String]) throws -> CommandProcess { try CommandProcess(["store"] + arguments, in: fixture) }

  private func digest(_ name: String) throws -> String { "\(try StoreSource(path: fixture.path(name)).check())" }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: fixture.path(name))) }

  private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: fixture.path(name)) }

  @Test(arguments: changes) func aChangeNeedsConsentAndKeepsTheFormerStore(_ change: Change) throws {
    let before = try digest("zoo.sqlite"), file = try bytes("zoo.sqlite")
    let refused = try run(change.arguments)
    #expect(refused.status == 1 && refused.output.isEmpty && refused.errors == "holdfast: \(change.refusal)\n", "\(refused)")
    #expect(try bytes("zoo.sqlite") == file && !exists("zoo-backup.sqlite"))
    let done = try run(change.arguments + ["--yes"])
    #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
    #expect(done.output.hasSuffix(". The former store is zoo-backup.sqlite.\n"), "\(done)")
    #expect(try digest("zoo-backup.sqlite") == before)
    let again = try run(change.arguments + ["--yes", "--no-backup"])
    #expect(again.status == 0 && !again.output.contains("former store") && !exists("zoo-backup-2.sqlite"), "\(again)")
    #expect(try digest("zoo-backup.sqlite") == before)
  }

  @Test(
    .enabled(if: FileManager.default.isExecutableFile(atPath: CommandProcess.terminal), "The program script isn't installed."),
    arguments: changes)
  func aChangeAsksOnATerminal(_ change: Change) throws {
    let before = try digest("zoo.sqlite"), file = try bytes("zoo.sqlite")
    let refused = try CommandProcess(["store"] + change.arguments, in: fixture, typing: "no")
    #expect(refused.status == 1 && refused.output.contains(change.question), "\(refused)")
    #expect(try bytes("zoo.sqlite") == file && !exists("zoo-backup.sqlite"))
    let done = try CommandProcess(["store"] + change.arguments, in: fixture, typing: "yes")
    #expect(done.status == 0 && done.output.contains("The former store is zoo-backup.sqlite."), "\(done)")
    #expect(try digest("zoo-backup.sqlite") == before)
  }

  /// The bug: the question was in the file, and the user waited for a command that waited for an answer.
  @Test(
    .enabled(if: FileManager.default.isExecutableFile(atPath: CommandProcess.terminal), "The program script isn't installed."),
    arguments: changes)
  func aChangeAsksOnATerminalIfTheOutputGoesToAFile(_ change: Change) throws {
    let file = try bytes("zoo.sqlite")
    let refused = try CommandProcess(["store"] + change.arguments, in: fixture, typing: "no", outputTo: "log.txt")
    #expect(refused.status == 1 && refused.output.contains(change.question), "\(refused)")
    #expect(try bytes("log.txt").isEmpty && bytes("zoo.sqlite") == file)
    let done = try CommandProcess(["store"] + change.arguments, in: fixture, typing: "yes", outputTo: "log.txt")
    #expect(done.status == 0 && done.output.contains(change.question), "\(done)")
    #expect(try String(decoding: bytes("log.txt"), as: UTF8.self).hasSuffix("The former store is zoo-backup.sqlite.\n"))
  }

  /// The bug: only the error of the output was reported, so the user didn't know that the change was made.
  @Test(arguments: changes) func aChangeWhoseResultCannotBeWrittenIsReportedAsMade(_ change: Change) throws {
    let before = try digest("zoo.sqlite")
    let done = try CommandProcess(["store"] + change.arguments + ["--yes"], in: fixture, closing: ">&-")
    #expect(done.status == 1 && done.errors.hasPrefix("holdfast: The change was made, but standard output can't be written."), "\(done)")
    #expect(done.errors.hasSuffix(". The former store is zoo-backup.sqlite.\n") && done.errors.count { $0 == "\n" } == 1, "\(done)")
    #expect(try digest("zoo-backup.sqlite") == before)
    #expect(try (digest("zoo.sqlite") == before) == (change.arguments[0] == "compact"))
  }

  /// The bug: the signal of the pipe ended the command without a word.
  @Test(arguments: changes) func aChangeWhoseResultNobodyReadsIsReportedAsMade(_ change: Change) throws {
    let before = try digest("zoo.sqlite")
    try #require(mkfifo(fixture.path("pipe"), 0o600) == 0)
    // The shell opens both ends, and closes the one for reading.
    let done = try CommandProcess(["store"] + change.arguments + ["--yes"], in: fixture, closing: "4<>pipe >pipe 4>&-")
    #expect(done.status == 1 && done.errors.hasPrefix("holdfast: The change was made, but standard output can't be written."), "\(done)")
    #expect(try digest("zoo-backup.sqlite") == before)
  }

  @Test func anImportThatCreatesItsStoreDoesNotAsk() throws {
    let model = try fixture.writeModel()
    let done = try run(["import", "new.json", "walks.json", "--model", model])
    #expect(done.status == 0 && done.output == "1 objects imported\n" && !exists("new-backup.json"), "\(done)")
  }

  @Test func whatCannotBeChangedIsReportedBeforeAsking() throws {
    for arguments in [["compact", "walks.json"], ["import", "walks.csv", "walks.json"], ["move", "missing.json", "new.json"]] {
      let outcome = try run(arguments)
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("holdfast: \(arguments[1]): "), "\(outcome)")
    }
  }

  @Test func movingAStoreMovesPreviousVersions() throws {
    try fixture.writeStore(.json(at: fixture.path("zoo.json")))
    let before = try digest("zoo.json"), file = try bytes("zoo.json")
    try file.write(to: URL(fileURLWithPath: fixture.path("zoo.json~1")))
    let done = try run(["move", "zoo.json", "new.json"])
    #expect(try done.status == 0 && digest("new.json") == before && !exists("zoo.json") && !exists("zoo.json~1"), "\(done)")
    #expect(try bytes("new.json~1") == file)
  }

  @Test(arguments: ["copy", "move", "convert", "migrate", "compact", "repair", "import"])
  func theHelpOfACommandThatWritesAStoreExplainsBackups(command: String) throws {
    let help = try run([command, "--help"])
    #expect(help.status == 0 && help.output.contains("backup"), "\(help)")
  }
}
