import ArgumentParser
import BenchmarkRunner
import Logging

/// `holdfast-bench`: measures one store, or compares all stores.
@main
struct HoldfastBench: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast-bench",
    abstract: "Measures the time and memory that Holdfast's stores use.",
    subcommands: [
      Peer.self, Compare.self, Wrappers.self, Contexts.self, Properties.self, Migrations.self, Measure.self, MigrationStep.self,
    ])

  static func main() {
    // Informational log messages would disrupt the progress bar and be measured as part of the store.
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = .warning
      return handler
    }
    // `peer` is measured from spawn to exit. The argument parser would take a quarter of that time, so it isn't used.
    guard let peer = Peer(plain: CommandLine.arguments) else { return main(nil) }
    let status = peer.measure()
    if status != ExitStatus.success { exit(withError: ExitCode(status)) }
  }
}
