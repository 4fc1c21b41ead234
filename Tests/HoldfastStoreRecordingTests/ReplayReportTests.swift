import Testing

@testable import HoldfastStoreRecording

/// The description of a report.
@Suite struct ReplayReportTests {
  /// The bug: the times of a damaged recording ended the process.
  @Test func timesOfAnyLengthAreShown() {
    let times = ReplayReport.Times([1e18, 0.001])
    var report = ReplayReport(replayedType: "memory")
    report.costs = [ReplayReport.Costs(kind: "fetch rows", requestCount: 2, recorded: times, replayed: times)]
    #expect(report.description.contains("fetch rows"))
  }
}
