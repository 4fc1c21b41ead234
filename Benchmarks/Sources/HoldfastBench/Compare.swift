import ArgumentParser
import BenchmarkData
import BenchmarkRunner

/// Measures all stores against each other.
struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Put people and a real package index through every store and print a table.",
    discussion: "Exits with 1 when the stores do not agree or a measurement fails.")

  @Option(help: "How many people.") var people = ComparisonOptions().peopleCount
  @Option(help: "A file of Debian control stanzas instead of this machine's own package index.") var packages: String?
  @Option(help: "The stores to compare, separated by commas; all of them if not given.") var stores: String?
  @Option(help: "How often each workload is run.") var rounds = ComparisonOptions().rounds
  @Option(help: "The folder for results.json.") var output = ComparisonOptions().outputFolder

  func run() throws {
    var options = ComparisonOptions()
    options.peopleCount = people
    if let packages { options.packages = .file(packages) }
    options.stores = stores.map { $0.split(separator: ",").map(String.init) }
    options.rounds = rounds
    options.outputFolder = output
    var comparison = Comparison(options, stores: storesUnderTest)
    throw ExitCode(comparison.run())
  }
}
