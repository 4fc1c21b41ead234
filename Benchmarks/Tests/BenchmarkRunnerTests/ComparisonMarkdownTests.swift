import Testing

@testable import BenchmarkRunner

@Suite struct ComparisonMarkdownTests {
  private func sample(_ store: String, _ phase: String, _ size: Int, _ seconds: Double, file: Int64? = nil) -> Sample {
    Sample(
      store: store, input: .people, size: size, round: 1,
      figure: Figure(workload: phase, seconds: seconds, cpuSeconds: seconds, check: 1, heapDeltaBytes: 101_000 * 300), fileBytes: file)
  }

  @Test("The table shows the largest size, has a column per store, and names its origin")
  func table() {
    let machine = MachineFacts(processor: "A Processor", processorCount: 2, memoryKilobytes: 1, system: "A System")
    let report = ComparisonReport(
      date: "2026-01-02T03:04:05Z", machine: machine, rounds: 1,
      samples: [
        sample("json", "W1", 100, 9), sample("json", "W1", 100_000, 0.5, file: 28_300_000), sample("json", "W2", 100_000, 0.2),
        sample("sqlite", "W2", 100_000, 0.1),
      ])
    #expect(
      ComparisonMarkdown(report).text == """
        Measured 2026-01-02 on A Processor, 2 processors, A System: medians of 1 rounds, wall time.

        | 100,000 people | json | sqlite |
        | - | -: | -: |
        | open, load everything | 200 ms | 100 ms |
        | make and save everything | 500 ms |  |
        | memory for each object, all loaded | 300 B | 300 B |
        | file | 28.3 MB |  |

        """)
  }

  @Test("Without people, the table is omitted")
  func none() {
    #expect(ComparisonMarkdown(ComparisonReport(date: "2026", machine: .ofThisMachine(), rounds: 1, samples: [])).text.isEmpty)
  }
}
