import ArgumentParser
import BenchmarkData
import BenchmarkRunner

/// Measures all stores against each other.
struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Put people, ordered lists and a real package index through every store, and tell what each costs.",
    discussion: "Exits with 1 when the stores do not agree, a measurement fails or a count is above its threshold.")

  @Option(help: "What the stores are measured with: people, packages, lists; all if not given.", transform: parseInputs)
  var dataset: Set<MeasurementInput> = ComparisonOptions().inputs
  @Option(help: "How many people, and objects in a list: one or more numbers with commas.", transform: parseSizes)
  var size: [Int] = ComparisonOptions().sizes
  @Option(help: "A file of Debian control stanzas instead of this machine's own package index.") var packages: String?
  @Option(help: "The stores to compare, separated by commas; all of them if not given.") var stores: String?
  @Option(help: "How often each workload is run for its times.") var rounds = ComparisonOptions().rounds
  @Option(help: "The folder for results.json and report.html.") var output = ComparisonOptions().outputFolder
  @Option(help: "The results.json of an earlier comparison, with which this one is compared line by line.") var baseline: String?
  @Option(help: "A file of counts; what counts more makes the comparison fail.") var thresholds: String?
  @Flag(help: "Write the file of counts from what is counted now.") var writeThresholds = false

  func validate() throws {
    if writeThresholds && thresholds == nil { throw ValidationError("Name the file to write with --thresholds.") }
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
    guard let size = Int($0), size > 0 else { throw ValidationError("A size is a whole number of 1 or more, not \($0).") }
    return size
  }
}
