import BenchmarkData
import Foundation
import Testing

@testable import BenchmarkRunner

@Suite struct ReportFileTests {
  /// Compares one made-up store on a list of ten, whose checksum may be wrong. Returns the folder with the output.
  func compare(wrongBy difference: UInt64) throws -> (status: Int32, folder: String) {
    let folder = NSTemporaryDirectory() + "report-" + UUID().uuidString
    var options = ComparisonOptions()
    (options.inputs, options.sizes, options.rounds, options.outputFolder) = ([.lists], [10], 2, folder)
    let store = StoreUnderTest("memory", workloads: [Workload("make", .lists, .needsNoFile) { _ in }])
    let check = ListPlan(count: 10).expected(.make) &+ difference
    var comparison = Comparison(
      options, stores: [store],
      launch: { step, _, _ in
        let figure = Figure(workload: "make", seconds: 0.1 + Double(step.round) / 7, cpuSeconds: 0.1, check: check)
        return ChildProcess.Result(status: 0, output: figure.line + "\n", seconds: 1)
      }, print: { _ in }, complain: { _ in })
    return (comparison.run(), folder)
  }

  @Test("The page of a comparison shows the same results as its results file")
  func page() throws {
    let (status, folder) = try compare(wrongBy: 0)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(status == 0)
    let html = try String(contentsOfFile: folder + "/report.html", encoding: .utf8)
    #expect(html == ReportPage(try ComparisonReport.read(folder + "/results.json")).html)
    #expect(PageReader(html).texts("h2").contains("An ordered list of 10 objects"))
  }

  @Test("A comparison with an error has a page that reports it")
  func problems() throws {
    let (status, folder) = try compare(wrongBy: 1)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(status == 1)
    let problems = try ComparisonReport.read(folder + "/results.json").problems
    #expect(!problems.isEmpty)
    let items = PageReader(try String(contentsOfFile: folder + "/report.html", encoding: .utf8)).texts("li")
    for problem in problems { #expect(items.contains(problem)) }
  }
}
