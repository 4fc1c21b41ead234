import BenchmarkRunner
import Testing

@Suite struct ComparisonTableTests {
  func sample(
    _ store: String, _ phase: String, wall: Double, cpu: Double, round: Int = 1, file: Int64? = nil, requests: Int? = nil
  ) -> Sample {
    Sample(
      store: store, input: .people, round: round,
      figure: Figure(
        workload: phase, seconds: wall, cpuSeconds: cpu, check: 1, peakKilobytes: 20000, heapDeltaBytes: 1_500_000, requests: requests,
        statements: requests.map { $0 * 2 }), fileBytes: file)
  }

  @Test("Times are the least of the rounds, the rest is the most, ratios are to the fastest store of the phase")
  func summary() {
    let summaries = Summary.of([
      sample("memory", "W2", wall: 0.2, cpu: 0.1), sample("sqlite", "W2", wall: 0.5, cpu: 0.3, requests: 4),
      sample("memory", "W2", wall: 0.1, cpu: 0.2, round: 2), sample("sqlite", "W2", wall: 0.4, cpu: 0.4, round: 2, requests: 5),
    ])
    #expect(summaries.map(\.store) == ["memory", "sqlite"])
    #expect(summaries.map(\.seconds) == [0.1, 0.4])
    #expect(summaries.map(\.cpuSeconds) == [0.1, 0.3])
    #expect(summaries.map(\.requests) == [nil, 5])
    #expect(summaries[0].ratio == 1)
    #expect(summaries[1].ratio.map { ($0 * 100).rounded() } == 300)
  }

  @Test("The round in which requests were counted has no part in times and memory")
  func counted() {
    let summary = Summary.of([
      sample("sqlite", "W2", wall: 0.5, cpu: 0.4), sample("sqlite", "W2", wall: 0.1, cpu: 0.1, round: 0, requests: 4),
    ])[0]
    #expect(summary.seconds == 0.5)
    #expect(summary.ratio == 1)
    #expect(summary.requests == 4)
    #expect(summary.statements == 8)
  }

  @Test("Phases stand in their order, whatever the order of measuring; others follow")
  func order() {
    let samples = ["W4i", "W3", "other", "W2", "W1"].map { sample("memory", $0, wall: 1, cpu: 1) }
    #expect(Summary.of(samples).map(\.phase) == ["W1", "W2", "W3", "W4i", "other"])
  }

  @Test("The table is aligned and has a block per phase")
  func table() {
    let table = ComparisonTable([
      sample("memory", "W1", wall: 0.0012, cpu: 0.001), sample("sqlite", "W1", wall: 0.2, cpu: 0.01, file: 2_320_000, requests: 12),
      sample("memory", "W2", wall: 0.0005, cpu: 0.0005),
    ])
    #expect(
      table.text(for: .people) == """
        phase  store   wall ms  CPU ms  x fastest  peak RSS MB  heap MB  file MB  requests  statements
        -----  ------  -------  ------  ---------  -----------  -------  -------  --------  ----------
        W1     memory    1.200   1.000       1.00         20.5      1.5
               sqlite  200.000  10.000      10.00         20.5      1.5     2.32        12          24

        W2     memory    0.500   0.500       1.00         20.5      1.5

        """)
  }
}
