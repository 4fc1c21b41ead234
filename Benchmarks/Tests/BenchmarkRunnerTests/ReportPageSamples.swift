@testable import BenchmarkRunner

/// Made-up reports, for tests of their page.
enum ReportPageSamples {
  /// The description of a machine that doesn't exist.
  static let machine = MachineFacts(processor: "A processor", processorCount: 2, memoryKilobytes: 8_000_000, system: "A system")

  /// A report of samples, on that machine.
  static func report(_ samples: [Sample], rounds: Int = 3, machine: MachineFacts = machine) -> ComparisonReport {
    ComparisonReport(date: "2020-02-20T20:20:20Z", machine: machine, rounds: rounds, samples: samples)
  }

  /// A sample of a phase for each of the times, each in its own round.
  static func samples(
    _ store: String, _ phase: String, _ seconds: [Double], input: MeasurementInput = .people, size: Int = 1000, heap: Int64 = 1_500_000,
    file: Int64? = nil
  ) -> [Sample] {
    seconds.enumerated().map { round, seconds in
      sample(store, phase, seconds, input: input, size: size, round: round + 1, heap: heap, file: file)
    }
  }

  /// The sample of the counting round.
  static func counted(_ store: String, _ phase: String, requests: Int, size: Int = 1000) -> Sample {
    var sample = sample(store, phase, 1, size: size, round: 0)
    sample.figure.requests = requests
    sample.figure.statements = requests * 2
    sample.figure.synchronizations = requests * 3
    sample.figure.allocations = requests * 4
    return sample
  }

  private static func sample(
    _ store: String, _ phase: String, _ seconds: Double, input: MeasurementInput = .people, size: Int, round: Int, heap: Int64 = 0,
    file: Int64? = nil
  ) -> Sample {
    let figure = Figure(workload: phase, seconds: seconds, cpuSeconds: seconds / 2, check: 1, peakKilobytes: 20_000, heapDeltaBytes: heap)
    return Sample(store: store, input: input, size: size, round: round, figure: figure, fileBytes: file)
  }

  /// Two stores, two sizes, a few phases of each group, in three rounds.
  static func usual() -> ComparisonReport {
    var all: [Sample] = []
    for size in [1000, 20_000] {
      let many = Double(size) / 1000
      all += samples("memory", "W1", [0.001 * many, 0.0012 * many, 0.0013 * many], size: size)
      all += samples("sqlite", "W1", [0.002 * many, 0.0022 * many, 0.0024 * many], size: size, file: Int64(size) * 300)
      all += samples("memory", "W2", [0.0004, 0.0005, 0.0006], size: size)
      all += samples("sqlite", "W2", [0.003, 0.004, 0.005], size: size)
      all += samples("sqlite", "W5", [0.1, 0.2, 0.3], size: size)
      all += samples("memory", "S1", [0.00001, 0.00002, 0.00003], size: size)
      all += samples("sqlite", "S1", [0.02, 0.03, 0.04], size: size)
      all.append(counted("sqlite", "W2", requests: 1234, size: size))
    }
    return report(all)
  }
}
