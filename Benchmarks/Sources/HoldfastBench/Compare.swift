import ArgumentParser
import BenchmarkData
import BenchmarkRunner

/// Compares all stores.
struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure every store with people, ordered lists and a real package index.",
    discussion: "Exits with 1 if the stores disagree, a measurement fails, or a count exceeds its threshold.")

  @Option(help: "The inputs: people, packages, lists. Defaults to all of them.", transform: parseInputs)
  var dataset: Set<MeasurementInput> = ComparisonOptions().inputs
  @Option(help: "The numbers of people and of objects in a list, separated by commas.", transform: parseSizes)
  var size: [Int] = ComparisonOptions().sizes
  @Option(help: "A file of Debian control stanzas. Defaults to this machine's package index.") var packages: String?
  @Option(help: "The stores to compare, separated by commas. Defaults to all of them.") var stores: String?
  @Option(help: "The number of timed runs of each workload.") var rounds = ComparisonOptions().rounds
  @Option(help: "The folder for results.json and report.html.") var output = ComparisonOptions().outputFolder
  @Option(help: "The results.json of an earlier comparison to compare with.") var baseline: String?
  @Option(help: "A file of maximum counts. The comparison fails if a count exceeds it.") var thresholds: String?
  @Flag(help: "Write the file of maximum counts from the current counts.") var writeThresholds = false

  func validate() throws {
    if writeThresholds && thresholds == nil { throw ValidationError("Specify the file to write with --thresholds.") }
  }

  func run() throws {
    var options = ComparisonOptions()
    options.inputs = dataset
    options.sizes = size
    if let packages { options.packages = .file(packages) }
    options.stores = stores.map { $0.split(separator: ",").map(String.init) }
    options.rounds = rounds
    options.outputFolder = output
    options.baseline = baseline
    options.thresholds = thresholds
    options.writesThresholds = writeThresholds
    var comparison = Comparison(options, stores: storesUnderTest)
    throw ExitCode(comparison.run())
  }
}

private func parseInputs(_ text: String) throws -> Set<MeasurementInput> {
  Set(try text.split(separator: ",").map { try parseInput(String($0)) })
}

private func parseSizes(_ text: String) throws -> [Int] {
  try text.split(separator: ",").map {
    guard let size = Int($0), size > 0 else { throw ValidationError("A size is a positive integer, not \($0).") }
    return size
  }
}
