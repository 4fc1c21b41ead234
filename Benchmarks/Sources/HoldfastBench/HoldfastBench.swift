import ArgumentParser
import BenchmarkRunner
import Logging

/// `holdfast-bench`: measures the stores, one by one or all against each other. Parses and hands over.
@main
struct HoldfastBench: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast-bench",
    abstract: "Measures what the stores of Holdfast cost in time and memory.",
    subcommands: [Peer.self, Compare.self, Measure.self])

  static func main() {
    // What the stores tell for information would tear the progress bar and be measured as theirs.
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = .warning
      return handler
    }
    // `peer` is measured from spawn to exit, of which the parser, not under test, would take a quarter.
    guard let peer = Peer(plain: CommandLine.arguments) else { return main(nil) }
    let status = peer.measure()
    if status != ExitStatus.success { exit(withError: ExitCode(status)) }
  }
}
