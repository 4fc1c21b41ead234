import Foundation
import Testing

@testable import BenchmarkRunner

@Suite struct FindingsTests {
  func sample(
    _ store: String, _ phase: String, wall: Double, cpu: Double = 0.1, size: Int = 100, round: Int = 1, file: Int64? = nil, heap: Int64 = 0,
    requests: Int? = nil
  ) -> Sample {
    Sample(
      store: store, input: .people, size: size, round: round,
      figure: Figure(
        workload: phase, seconds: wall, cpuSeconds: cpu, check: 1, peakKilobytes: 20000, heapDeltaBytes: heap, requests: requests,
        statements: requests.map { $0 * 2 }), fileBytes: file)
  }

  // MARK: Spread and summary

  @Test("A spread has a minimum, a median and a maximum", arguments: [[3, 1, 2], [2, 1, 3, 2]])
  func spread(_ values: [Double]) {
    let spread = Spread(values)
    #expect((spread.least, spread.median, spread.greatest) == (1, 2, 3))
    #expect(spread.relative == 1)
  }

  @Test("No samples have an empty spread")
  func noSpread() {
    #expect(Spread([]).relative == 0 && Spread([]).median == 0)
    #expect(Spread([1, 3]).overlaps(Spread([3, 4])) && !Spread([1, 2]).overlaps(Spread([3])))
  }

  @Test("Times are medians of the timed rounds, ratios relate to the fastest store of the phase; counts come from the counting round")
  func summary() {
    let summaries = Summary.of([
      sample("memory", "W2", wall: 0.2), sample("sqlite", "W2", wall: 0.5), sample("memory", "W2", wall: 0.1, round: 2),
      sample("sqlite", "W2", wall: 0.7, round: 2), sample("memory", "W2", wall: 0.4, round: 3),
      sample("sqlite", "W2", wall: 9, round: 0, requests: 5),
      sample("sqlite", "W2", wall: 0.6, round: 3),
    ])
    #expect(summaries.map(\.store) == ["memory", "sqlite"])
    #expect(summaries.map(\.wall.median) == [0.2, 0.6])
    #expect(summaries.map(\.wall.greatest) == [0.4, 0.7])
    #expect(summaries.map(\.requests) == [nil, 5] && summaries.map(\.statements) == [nil, 10])
    #expect(summaries[0].ratio == 1 && abs((summaries[1].ratio ?? 0) - 3) < 1e-9)
  }

  @Test("Known phases are listed in their order, whatever the order of measuring; others follow; sizes ascend")
  func order() {
    let samples = ["W4i", "W3", "other", "W2", "W1"].map { sample("memory", $0, wall: 1) } + [sample("memory", "W1", wall: 1, size: 10)]
    let summaries = Summary.of(samples)
    #expect(summaries.map(\.phase) == ["W1", "W3", "W2", "W1", "W4i", "other"])
    #expect(summaries.map(\.size) == [10, 100, 100, 100, 100, 100])
  }

  @Test("Every phase has a title that fits the table", arguments: MeasurementInput.allCases)
  func titles(_ input: MeasurementInput) {
    for text in PhaseText.all(input) { #expect(text.title.count <= 30 && text.text.hasSuffix("."), "\(text.phase)") }
    #expect(Set(PhaseText.all(input).map(\.phase)).count == PhaseText.all(input).count)
  }

  // MARK: Growth and noise

  @Test(
    "Growth is the slope between sizes",
    arguments: [(0.0, "constant"), (1, "linear"), (0.5, "N^0.5"), (2, "N^2.0"), (-0.1, "constant"), (-0.3, "N^-0.3")])
  func growth(_ exponent: Double, _ text: String) {
    let samples = [10, 100, 1000].map { sample("memory", "W2", wall: 1e-6 * pow(Double($0), exponent), size: $0) }
    let growth = Growth.of(Summary.of(samples))
    #expect(growth.map(\.text) == [text] && growth[0].sizes == [10, 100, 1000])
    #expect(abs(growth[0].exponent - exponent) < 1e-9)
  }

  @Test("One size, or sizes close to each other, give no growth", arguments: [[100], [100, 200]])
  func noGrowth(_ sizes: [Int]) {
    #expect(Growth.of(Summary.of(sizes.map { sample("memory", "W2", wall: 1, size: $0) })).isEmpty)
  }

  @Test("Rounds that differ much cause a warning; short phases and one round don't")
  func noise() throws {
    func noise(_ second: Double, _ first: Double = 1) -> Noise? {
      Noise(Summary.of([sample("memory", "W2", wall: first), sample("memory", "W2", wall: second, round: 2)]), rounds: 2)
    }
    #expect(try !#require(noise(1.1)).isTooGreat)
    let warning = try #require(noise(2))
    #expect(warning.isTooGreat && warning.text.contains("67 %") && warning.text.contains("too busy"))
    #expect(noise(2e-6, 1e-6) == nil)
    #expect(Noise(Summary.of([sample("memory", "W2", wall: 1)]), rounds: 1) == nil)
  }

  // MARK: Findings

  @Test("The best store is named for each question, and also the best one that keeps a file")
  func findings() throws {
    let findings = Finding.of(
      Summary.of([
        sample("memory", "W2", wall: 0.01, heap: 1_000_000), sample("json", "W1", wall: 2, file: 5_000_000),
        sample("json", "W2", wall: 0.05, heap: 9_000_000), sample("sqlite", "W1", wall: 3, file: 4_000_000),
        sample("sqlite", "W2", wall: 0.02, heap: 8_000_000),
      ]))
    #expect(
      findings.map { $0.text.replacingOccurrences(of: "\u{A0}", with: " ") } == [
        "Smallest memory with everything loaded: memory (1.00 MB); among stores with a file, sqlite (8.00 MB).",
        "Fastest to load everything: memory (10.0 ms); among stores with a file, sqlite (20.0 ms).",
        "Fastest to make and save everything: json (2.00 s).", "Smallest file: sqlite (4.00 MB).",
      ])
  }

  @Test("Stores within measurement error share the answer; a single store gets none")
  func sharedFindings() {
    let samples = [
      sample("json", "W3", wall: 0.010, file: 1), sample("sqlite", "W3", wall: 0.0101, file: 1),
      sample("json", "W3", wall: 0.012, round: 2),
      sample("sqlite", "W3", wall: 0.011, round: 2),
    ]
    #expect(
      Finding.of(Summary.of(samples)).first?.text
        == "Fastest to the first object: sqlite and json, within measurement error (10.6\u{A0}ms).")
    #expect(Finding.of(Summary.of(samples.filter { $0.store == "json" })).isEmpty)
  }

  @Test("A phase that was counted but never timed isn't the fastest")
  func untimed() {
    let samples = [
      sample("json", "W3", wall: 1), sample("sqlite", "W3", wall: 9, round: 0, requests: 1), sample("memory", "W3", wall: 2),
    ]
    #expect(Finding.of(Summary.of(samples)).map(\.stores) == [["json"]])
  }

  /// The bug: such a figure had a time of 0, which was the fastest, and the memory of 0 bytes.
  @Test("A figure that was only counted has no time, no ratio and no memory in the printed tables")
  func onlyCounted() {
    func report(_ sqlite: [Sample]) -> ComparisonReport {
      let json = [sample("json", "W2", wall: 1, heap: 9_000), sample("json", "W2", wall: 1.1, round: 2, heap: 9_000)]
      return ComparisonReport(date: "2026-01-01T00:00:00Z", machine: .ofThisMachine(), rounds: 2, samples: json + sqlite)
    }
    let now = report([sample("sqlite", "W2", wall: 9, round: 0, requests: 1)])
    let before = report([sample("sqlite", "W2", wall: 2), sample("sqlite", "W2", wall: 9, round: 0, requests: 3)])
    #expect(now.summaries.map(\.ratio) == [1, nil])
    let printed = ComparisonText(now, width: 80).text
    let kept = printed.split(separator: "\n").first { $0.hasPrefix("kept, all loaded") }
    #expect(!printed.contains("0.00 µs") && kept?.split(separator: " ").suffix(3) == ["loaded", "9.00", "kB"], "\(printed)")
    let lines = BaselineText(now, against: before, width: 80).text.split(separator: "\n")
    let line = lines.first { $0.contains("sqlite") } ?? ""
    #expect(line.contains("2.00 s") && line.hasSuffix("  -2 requests, -4 statements"), "\(line)")
    #expect(!line.contains("0.00") && !line.contains("faster"), "\(line)")
  }

  /// The bug: memory of 0 bytes was printed, and was the smallest.
  @Test("Memory that the system doesn't report isn't printed")
  func unknownMemory() {
    let samples = ["json", "sqlite"].map { store in
      let figure = Figure(workload: "W2", seconds: 1, cpuSeconds: 1, check: 1)
      return Sample(store: store, input: .people, size: 100, round: 1, figure: figure, fileBytes: 7)
    }
    let report = ComparisonReport(date: "2026-01-01T00:00:00Z", machine: .ofThisMachine(), rounds: 1, samples: samples)
    for text in [ComparisonText(report, width: 80).text, ComparisonMarkdown(report).text, ReportPage(report).html] {
      #expect(!text.contains(" 0 B") && !text.contains(">0 B<"), "\(text)")
    }
    #expect(!report.findings.contains { $0.question.contains("memory") })
  }

  @Test("Among several sizes, the largest decides")
  func largestSize() {
    let samples = [
      sample("json", "W3", wall: 1, size: 1000), sample("sqlite", "W3", wall: 2, size: 1000), sample("json", "W3", wall: 9, size: 10_000),
      sample("sqlite", "W3", wall: 3, size: 10_000),
    ]
    #expect(Finding.of(Summary.of(samples)).map(\.stores) == [["sqlite"]])
  }

  // MARK: Units

  @Test(
    "Figures have three digits and a unit",
    arguments: [(0.0, "0.00 µs"), (1.5e-6, "1.50 µs"), (0.0123456, "12.3 ms"), (0.9999, "1000 ms"), (1, "1.00 s"), (123.4, "123 s")])
  func seconds(_ value: Double, _ text: String) { #expect(Units.seconds(value) == text) }

  @Test("Counts", arguments: [(7, "7", "7"), (12_345, "12,345", "12.3k"), (9_876_543, "9,876,543", "9.88M"), (-1_000, "-1,000", "-1000")])
  func counts(_ value: Int, _ long: String, _ short: String) {
    #expect(Units.count(value) == long && Units.shortCount(value) == short)
  }

  @Test("Bytes", arguments: [(0.0, "0 B"), (999, "999 B"), (1_500, "1.50 kB"), (28_300_000, "28.3 MB"), (2.5e9, "2.50 GB")])
  func bytes(_ value: Double, _ text: String) { #expect(Units.bytes(value) == text) }

  // MARK: Reports

  @Test("A report that is written and read again is unchanged")
  func report() throws {
    let report = ComparisonReport(
      date: "2026-01-01T00:00:00Z", machine: .ofThisMachine(), rounds: 1,
      samples: [sample("json", "W1", wall: 2, file: 5), sample("json", "W2", wall: 1, round: 0, requests: 3)])
    let path = NSTemporaryDirectory() + "report-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    try report.write(to: path)
    let read = try ComparisonReport.read(path)
    #expect(read.samples == report.samples && read.summaries == report.summaries && read.machine == report.machine)
    #expect(read.agreement && read.findings == report.findings && read.growth == report.growth)
  }

  /// The bug: only the keys were checked, so figures with another meaning were compared.
  @Test("A report of another schema is refused, also if it has the same keys", arguments: [1, 3])
  func otherSchema(_ schema: Int) throws {
    var report = ComparisonReport(date: "2026-01-01T00:00:00Z", machine: .ofThisMachine(), rounds: 1, samples: [])
    report.schema = schema
    let path = NSTemporaryDirectory() + "report-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    try report.write(to: path)
    let error = #expect(throws: UnreadableReport.self) { try ComparisonReport.read(path) }
    #expect(error?.description.hasPrefix("\(path) isn't a comparison result of schema 2.") == true, "\(error as Any)")
  }
}
