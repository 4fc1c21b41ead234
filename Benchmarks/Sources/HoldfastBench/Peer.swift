import ArgumentParser
import BenchmarkRunner

/// Runs one workload on people in this process, and prints its figures like the reference programs in C.
struct Peer: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run one workload on people and print a line of JSON per figure.",
    discussion: "Exits with 64 if the store or workload doesn't exist.")

  @Argument(help: "memory, xml, json, binary or sqlite.") var store: String
  @Argument(help: "W1, W2 … W8, W4i, or READ for all workloads of a whole-file store after loading.") var workload: String
  @Argument(help: "The number of people.") var count: Int
  @Argument(help: "The store's file.") var path: String

  func validate() throws {
    guard count > 0 else { throw ValidationError("The number of people isn't positive.") }
  }

  init() {}

  /// Parses exactly `peer STORE WORKLOAD N PATH`. Anything else is left to the argument parser.
  init?(plain arguments: [String]) {
    guard arguments.count == 6, arguments[1] == "peer", !arguments.dropFirst(2).contains(where: { $0.hasPrefix("-") && $0 != "-" }),
      let count = Int(arguments[4]), count > 0
    else { return nil }
    store = arguments[2]
    workload = arguments[3]
    self.count = count
    path = arguments[5]
  }

  func run() throws { throw ExitCode(measure()) }

  /// Runs the workload and returns the exit status.
  func measure() -> Int32 {
    let context = WorkloadContext(path: path, size: count)
    return MeasuringProcess(stores: storesUnderTest).run(store: store, input: .people, workload: workload, context)
  }
}
