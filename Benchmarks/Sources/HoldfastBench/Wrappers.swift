import ArgumentParser
import BenchmarkStores

/// Measures what one more wrapper around a store costs per request.
struct Wrappers: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure what one more wrapper around a store costs per request.",
    discussion: """
      Reads a row by its key from a memory store, without wrappers and within 8 wrappers that forward each request. Prints the difference per \
      wrapper, in nanoseconds: the median of all rounds, and the smallest and the largest.
      """)

  @Option(help: "The number of rounds.") var rounds = 15
  @Option(help: "The number of requests in a round.") var requests = 100_000

  func validate() throws {
    guard rounds > 0, requests > 0 else { throw ValidationError("Rounds and requests must be greater than 0.") }
  }

  func run() throws {
    let cost = try WrapperCost(depth: 8).measured(rounds: rounds, requests: requests)
    func text(_ nanoseconds: Double) -> String { "\((nanoseconds * 10).rounded() / 10)" }
    print("A request: \(text(cost.request)) ns. One more wrapper: \(text(cost.median)) ns (\(text(cost.least)) to \(text(cost.most))).")
  }
}
