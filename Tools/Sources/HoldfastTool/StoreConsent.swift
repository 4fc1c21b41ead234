import ArgumentParser
import Foundation
import HoldfastCommands

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

extension Store {
  /// The options of commands that change a store.
  struct Consent: ParsableArguments {
    @Flag(help: "Don't ask.") var yes = false

    /// Asks on a terminal. Without one, fails unless the user passed `--yes`.
    ///
    /// - Parameters:
    ///   - consequence: What the command would do, as a sentence.
    ///   - question: Whether to do it.
    ///   - remedy: What `--yes` is for, as the beginning of a sentence: "To lose it".
    func confirm(_ consequence: String, _ question: String, _ remedy: String) throws {
      if yes { return }
      guard isatty(STDIN_FILENO) != 0 else {
        Output.note("\(consequence) \(remedy), repeat the command with --yes.")
        throw ExitCode(1)
      }
      // Where the user sees it, because the output can go to a file or another program, and without a buffer.
      let terminal = isatty(STDOUT_FILENO) != 0 ? FileHandle.standardOutput : .standardError
      try terminal.write(contentsOf: Data("\(consequence) \(question) Type yes: ".utf8))
      if readLine() != "yes" { throw ExitCode(1) }
    }
  }

  /// The options of commands that copy a store before they change it.
  struct Backup: ParsableArguments {
    @Flag(help: "Don't copy the store before.") var noBackup = false

    /// The path of the copy; nil for no copy.
    func path(of store: String) -> String? { noBackup ? nil : StoreSource.backupPath(of: store) }

    /// Names the copy, behind the result of a command.
    static func sentence(_ backup: String?) -> String { backup.map { ". The former store is \($0)." } ?? "" }
  }
}
