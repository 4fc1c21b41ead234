import ArgumentParser
import BenchmarkRunner

/// The measuring process of a comparison: one workload of one store with one input.
struct Measure: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Run one measurement of a comparison.", shouldDisplay: false)

  @Argument var store: String
  @Argument(transform: parseInput) var input: MeasurementInput
  @Argument var workload: String
  @Argument var path: String
  @Option var size = 0
  @Option var packages: String?
  @Option var plan: String?
  @Flag var counting = false

  func run() throws {
    let files = packages.flatMap { stanzas in plan.map { WorkloadContext.PackageFiles(stanzas: stanzas, plan: $0) } }
    let context = WorkloadContext(path: path, size: size, isCounting: counting, packageFiles: files)
    let process = MeasuringProcess(stores: storesUnderTest)
    throw ExitCode(process.run(store: store, input: input, workload: workload, context))
  }
}

/// Returns the input with a name.
func parseInput(_ text: String) throws -> MeasurementInput {
  guard let input = MeasurementInput(rawValue: text) else {
    throw ValidationError(
      "The dataset \(text) doesn't exist. Datasets: \(MeasurementInput.allCases.map(\.rawValue).joined(separator: ", ")).")
  }
  return input
}
