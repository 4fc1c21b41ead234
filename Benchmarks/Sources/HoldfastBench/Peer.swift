import ArgumentParser
import BenchmarkRunner

/// Runs one workload on people in this process and prints its figures as the floors in C do.
struct Peer: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run one workload on people and print a line of JSON per figure.",
    discussion: "Exits with 64 for a store or a workload that does not exist.")

  @Argument(help: "memory, xml, json, binary or sqlite.") var store: String
  @Argument(help: "W1, W2 … W8, W4i, or READ for all that a whole-file store does after loading.") var workload: String
  @Argument(help: "How many people.") var count: Int
  @Argument(help: "The file of the store.") var path: String

  func validate() throws {
    guard count > 0 else { throw ValidationError("The number of people must be 1 or more.") }
  }

  func run() throws {
    let context = WorkloadContext(path: path, peopleCount: count)
    let process = MeasuringProcess(stores: storesUnderTest)
    throw ExitCode(process.run(store: store, input: .people, workload: workload, context))
  }
}
