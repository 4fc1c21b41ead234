import BenchmarkData
import Foundation
import Testing

@testable import BenchmarkRunner

/// What maximum counts find.
@Suite struct ThresholdsTests {
  private func summaries(_ change: (inout Figure) -> Void = { _ in }, store: String = "sqlite", size: Int = 150) -> [Summary] {
    var figure = Figure(
      workload: "W2", seconds: 1, cpuSeconds: 1, check: 1, requests: 2, statements: 3, allocations: 1500, synchronizations: 1)
    change(&figure)
    return Summary.of([Sample(store: store, input: .people, size: size, round: 0, figure: figure)])
  }

  private var thresholds: Thresholds { Thresholds(summaries()) }

  @Test("Counts at and below their limits are no problem, and each one above is")
  func directions() {
    #expect(thresholds.exceeded(by: summaries()).isEmpty)
    #expect(thresholds.exceeded(by: summaries { ($0.requests, $0.allocations) = (1, 0) }).isEmpty)
    // 5 percent and 20 more.
    #expect(thresholds.exceeded(by: summaries { $0.allocations = 1595 }).isEmpty)
    #expect(
      thresholds.exceeded(by: summaries { ($0.allocations, $0.requests, $0.statements, $0.synchronizations) = (1596, 3, 4, 2) }) == [
        "W2 of sqlite on 150 people takes 1,596 allocations; the limit is 1,595.",
        "W2 of sqlite on 150 people takes 3 requests; the limit is 2.", "W2 of sqlite on 150 people takes 4 statements; the limit is 3.",
        "W2 of sqlite on 150 people takes 2 fsyncs; the limit is 1.",
      ])
  }

  /// The bug: a count that was missing didn't exceed its limit.
  @Test("A count with a limit that is missing is a problem")
  func missingCounts() {
    #expect(
      thresholds.exceeded(by: summaries { ($0.requests, $0.statements) = (nil, nil) }) == [
        "W2 of sqlite on 150 people has a limit of requests, but they weren't counted.",
        "W2 of sqlite on 150 people has a limit of statements, but they weren't counted.",
      ])
    // Another store was counted, so the platform can.
    let others = summaries(store: "memory"), some = summaries { ($0.allocations, $0.synchronizations) = (nil, nil) }
    #expect(
      thresholds.exceeded(by: some + others) == [
        "W2 of sqlite on 150 people has a limit of allocations, but they weren't counted.",
        "W2 of sqlite on 150 people has a limit of fsyncs, but they weren't counted.",
      ])
  }

  @Test("Allocations and fsyncs that the platform can't count are no problem")
  func otherPlatforms() {
    #expect(thresholds.exceeded(by: summaries { ($0.allocations, $0.synchronizations) = (nil, nil) }).isEmpty)
  }

  /// The bug: a comparison of another size, or with an empty file, compared nothing and succeeded.
  @Test("Limits that are all for something else are a problem")
  func otherSubjects() throws {
    for found in [thresholds.exceeded(by: summaries(size: 151)), thresholds.exceeded(by: summaries(store: "memory"))] {
      #expect(found.count == 1 && found.first?.hasPrefix("None of the limits is for a store, input and size that was measured.") == true)
    }
    let none = try JSONDecoder().decode(Thresholds.self, from: Data(#"{"limits": []}"#.utf8))
    #expect(none.exceeded(by: summaries()).count == 1)
  }

  @Test("A missing figure is a problem, but not a store that wasn't measured")
  func missingFigures() {
    let more = Thresholds(summaries() + summaries(store: "memory"))
    #expect(more.exceeded(by: summaries()).isEmpty)
    #expect(more.exceeded(by: summaries { $0.workload = "W3" }) == ["W2 of sqlite on 150 people has a limit, but wasn't measured."])
  }
}
