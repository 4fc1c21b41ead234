import BenchmarkRunner
import Testing

@testable import BenchmarkStores

/// The counts of figures are those of the store, without those of measuring.
@Suite struct HarnessAllocationTests {
  /// The bug: reading the memory figures was counted as six allocations. Counts include all threads, so the test counts in a process of its
  /// own, and takes the least of many intervals.
  @Test("An interval in which nothing happens has no allocations, requests and fsyncs")
  func nothing() async {
    await #expect(processExitsWith: .success) {
      let run = StoreRun(.memory, WorkloadContext(path: "", isCounting: true) { _ in })
      let figures = (0..<100).map { _ in
        run.begin()
        return run.figure("W2")
      }
      // Nil on platforms without counts.
      try #require(figures.map { $0.allocations ?? 0 }.min() == 0, "\(figures.map(\.allocations))")
      try #require(figures.allSatisfy { $0.requests == 0 && $0.synchronizations ?? 0 == 0 })
    }
  }
}
