import BenchmarkData
import Foundation
import Testing

@testable import BenchmarkRunner

/// Comparisons of made-up stores. Their measurements are correct, unless a test falsifies one value.
@Suite struct ComparisonTests {
  static let packages = """
    Package: one
    Version: 1
    Section: libs
    Depends: two

    Package: two
    Version: 1
    Section: text
    """

  let folder = NSTemporaryDirectory() + "comparison-" + UUID().uuidString

  /// The result of a comparison.
  final class Outcome {
    var status: Int32 = -1
    var printed = ""
    var complained = ""
    var steps: [String] = []
    var report: [String: Any] = [:]
    /// The paths in the folder of the results.
    var files: Set<String> = []
  }

  static let sqlite = StoreUnderTest(
    "sqlite",
    workloads: [
      Workload("W1", .people, .makesStore) { _ in }, Workload("W2", .people, .readsStore) { _ in },
      Workload("W7", .people, .changesStore) { _ in }, Workload("import", .packages, .makesStore) { _ in },
    ])
  static let memory = StoreUnderTest(
    "memory", workloads: [Workload("READ", .people, .needsNoFile) { _ in }, Workload("READ", .packages, .needsNoFile) { _ in }])

  /// Compares the two stores; `answer` may replace the correct result of a step.
  func compare(
    stores: [String]? = nil, rounds: Int = 2, sizes: [Int] = [150], terminal: Comparison.Terminal = .plain,
    answer: @escaping (ComparisonStep, ChildProcess.Result) -> ChildProcess.Result = { $1 },
    change: (inout ComparisonOptions, _ folder: String) throws -> Void = { _, _ in }
  ) throws -> Outcome {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Self.packages.write(toFile: folder + "/input", atomically: true, encoding: .utf8)
    var options = ComparisonOptions()
    options.inputs = [.people, .packages]
    options.sizes = sizes
    options.packages = .file(folder + "/input")
    options.stores = stores
    options.rounds = rounds
    options.outputFolder = folder + "/out"
    try change(&options, folder)
    let outcome = Outcome()
    var comparison = Comparison(
      options, stores: [Self.memory, Self.sqlite], terminal: terminal,
      launch: { step, path, files in
        outcome.steps.append(
          "\(step.store.name) \(step.workload.name) \(path.split(separator: "/").last ?? "")" + (step.isCounting ? " counted" : ""))
        return answer(step, try Self.launch(step, path, files))
      }, print: { outcome.printed += $0 }, complain: { outcome.complained += $0 })
    outcome.status = comparison.run()
    if let data = FileManager.default.contents(atPath: folder + "/out/results.json") {
      outcome.report = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }
    outcome.files = Set(FileManager.default.subpaths(atPath: folder + "/out") ?? [])
    #expect(!outcome.files.contains { $0.hasPrefix("stores-") })
    return outcome
  }

  /// The correct figures of a step. Creates the file of a new store, and requires the file of a store that the step changes.
  static func launch(_ step: ComparisonStep, _ path: String, _ files: WorkloadContext.PackageFiles) throws -> ChildProcess.Result {
    switch step.workload.use {
    case .makesStore: #expect(FileManager.default.createFile(atPath: path, contents: Data(count: 1000)))
    case .readsStore, .changesStore: #expect(FileManager.default.fileExists(atPath: path))
    case .needsNoFile: break
    }
    let figures =
      try step.workload.input == .people
      ? peopleFigures(step) : packageFigures(step.workload.name, WorkloadContext(path: path, packageFiles: files))
    return ChildProcess.Result(status: 0, output: figures.map { $0.line + "\n" }.joined(), seconds: 1)
  }

  /// Times in proportion to the size; counts in the counting round.
  static func peopleFigures(_ step: ComparisonStep) -> [Figure] {
    let people = PeopleDataset(count: step.size), workload = step.workload.name
    let phases = workload == "READ" ? [.insert, .readAll, .delete] : PeoplePhase.allCases.filter { $0.rawValue == workload }
    return phases.map {
      var figure = Figure(
        workload: $0.rawValue, seconds: Double(step.size) * 1e-3, cpuSeconds: 0.1, check: people.expected($0), peakKilobytes: 3000,
        heapDeltaBytes: 151_000)
      if step.isCounting { (figure.allocations, figure.requests, figure.synchronizations) = (10 * step.size, 3, 1) }
      return figure
    }
  }

  static func packageFigures(_ workload: String, _ context: WorkloadContext) throws -> [Figure] {
    let index = try context.packages()
    let plan = try context.packagePlan()
    let phases = workload == "READ" ? PackagePhase.allCases : PackagePhase.allCases.filter { $0.rawValue == workload }
    return phases.map { Figure(workload: $0.rawValue, seconds: 0.1, cpuSeconds: 0.1, check: index.expected($0, plan)) }
  }

  @Test("Stores that agree are compared, and every sample is in the results")
  func agreement() throws {
    let outcome = try compare()
    #expect(outcome.status == 0)
    #expect(outcome.printed.contains("\n150 people, time\n"))
    #expect(outcome.printed.contains("\n2 packages, time\n"))
    #expect(outcome.report["schema"] as? Int == 2)
    #expect(outcome.report["agreement"] as? Bool == true)
    #expect((outcome.report["people"] as? [[String: Any]])?.first?["persons"] as? Int == 150)
    #expect((outcome.report["packages"] as? [String: Any])?["packages"] as? Int == 2)
    let samples = try #require(outcome.report["samples"] as? [[String: Any]])
    let perRound = 3 + 3 + 7 + 1
    #expect(samples.count == 3 * perRound)
    #expect(samples.count { $0["round"] as? Int == 0 } == perRound)
    let made = try #require(samples.first { $0["store"] as? String == "sqlite" })
    #expect(made["phase"] as? String == "W1")
    #expect(made["check"] as? String == "150")
    #expect(made["fileBytes"] as? Int == 1000)
    #expect(made["round"] as? Int == 1)
    #expect(made["size"] as? Int == 150)
    #expect((outcome.report["summaries"] as? [[String: Any]])?.count == 14)
  }

  @Test("Each round creates a store, reads it and changes a copy; the last round counts")
  func steps() throws {
    let outcome = try compare(rounds: 1)
    let round = [
      "memory READ memory-people-150", "sqlite W1 sqlite-people-150", "sqlite W2 sqlite-people-150", "sqlite W7 sqlite-people-150-copy",
      "memory READ memory-packages-2", "sqlite import sqlite-packages-2",
    ]
    #expect(outcome.steps == round + round.map { $0 + " counted" })
  }

  /// The bug: the folder `stores` beside the results was removed, also if it wasn't the comparison's.
  @Test("Other files and folders beside the results stay")
  func otherFiles() throws {
    let outcome = try compare(
      rounds: 1,
      change: { options, _ in
        try FileManager.default.createDirectory(atPath: options.outputFolder + "/stores", withIntermediateDirectories: true)
        try "a store".write(toFile: options.outputFolder + "/stores/zoo.sqlite", atomically: true, encoding: .utf8)
      })
    #expect(outcome.status == 0)
    #expect(outcome.files == ["stores", "stores/zoo.sqlite", "results.json", "report.html", "summary.md"])
  }

  @Test("One wrong value in one store fails the run and names the store, the phase and both values")
  func wrongValue() throws {
    let outcome = try compare { step, result in
      guard step.store.name == "sqlite", step.workload.name == "W7", step.round == 2 else { return result }
      var wrong = result
      wrong.output = Figure(workload: "W7", seconds: 0.1, cpuSeconds: 0.1, check: 3173).line
      return wrong
    }
    let sentence = "The stores disagree in W7 on 150 people: sqlite returned 3173, and the input has 3172."
    #expect(outcome.status == 1)
    #expect(outcome.complained.contains(sentence))
    #expect(outcome.report["agreement"] as? Bool == false)
    #expect(outcome.report["problems"] as? [String] == [sentence])
  }

  @Test("If the input has no value, the value of the first store counts")
  func storesAgainstEachOther() {
    var ledger = ChecksumLedger()
    func sample(_ store: String, _ check: UInt64) -> Sample {
      Sample(store: store, input: .people, size: 9, round: 1, figure: Figure(workload: "W4i", seconds: 1, cpuSeconds: 1, check: check))
    }
    for sample in [sample("memory", 5), sample("sqlite", 6), sample("xml", 5), sample("sqlite", 6)] { ledger.record(sample) }
    #expect(
      ledger.disagreements.map(\.description) == [
        "The stores disagree in W4i on 9 people: sqlite returned 6, and memory has 5."
      ])
  }

  @Test("A store that can't be created fails the run, and its other workloads are skipped")
  func failedStore() throws {
    let outcome = try compare(rounds: 1) { step, result in
      step.workload.name == "W1" ? ChildProcess.Result(status: -9, output: "", seconds: 1) : result
    }
    #expect(outcome.status == 1)
    #expect(
      outcome.report["problems"] as? [String] == [
        "sqlite, 150 people, W1, round 1: the measuring process ended with status -9.",
        "sqlite, 150 people, W1, counted: the measuring process ended with status -9.",
      ])
    #expect(!outcome.steps.contains("sqlite W2 sqlite-people-150"))
    #expect(outcome.steps.contains("sqlite import sqlite-packages-2"))
  }

  @Test("A process that prints no figure, or something else, fails the run", arguments: ["", "Segmentation fault\n"])
  func noFigure(_ output: String) throws {
    let outcome = try compare(rounds: 1) { step, result in
      step.workload.name == "W2" ? ChildProcess.Result(status: 0, output: output, seconds: 1) : result
    }
    #expect(outcome.status == 1)
    #expect((outcome.report["problems"] as? [String])?.count == 2)
  }

  @Test("Stores can be selected, and an unknown one is refused")
  func choice() throws {
    #expect(
      try compare(stores: ["memory"], rounds: 1).steps.prefix(2) == ["memory READ memory-people-150", "memory READ memory-packages-2"])
    let refused = try compare(stores: ["memory", "floppy"])
    #expect(refused.status == 64)
    #expect(refused.complained == "The store floppy doesn't exist. Stores: memory, sqlite.\n")
  }

  @Test("A build without stores reports that")
  func noStores() {
    var complained = ""
    var comparison = Comparison(ComparisonOptions(), stores: [], complain: { complained += $0 })
    #expect(comparison.run() == 64)
    #expect(complained == "This build has no store to compare.\n")
  }

  @Test("A missing package file is reported in a sentence")
  func noPackages() {
    var complained = ""
    var options = ComparisonOptions()
    options.sizes = [1]
    options.packages = .file("/no/such/file")
    options.outputFolder = folder
    var comparison = Comparison(options, stores: [Self.memory], complain: { complained += $0 })
    #expect(comparison.run() == 1)
    #expect(complained.contains("Couldn't read the package index /no/such/file"))
    try? FileManager.default.removeItem(atPath: folder)
  }

  @Test("Sizes are measured in turn in each round, and growth is reported")
  func sizes() throws {
    let outcome = try compare(stores: ["memory"], rounds: 1, sizes: [2000, 150])
    #expect(outcome.steps.prefix(2) == ["memory READ memory-people-150", "memory READ memory-people-2000"])
    #expect(outcome.printed.contains("how times grow with the number of objects\n"))
    let growth = try #require(outcome.report["growth"] as? [[String: Any]])
    #expect(growth.count == 3 && growth.allSatisfy { abs(($0["exponent"] as? Double ?? 0) - 1) < 1e-9 })
  }

  @Test("A count above its threshold fails the run and is named; written thresholds are kept")
  func thresholds() throws {
    func written(_ options: inout ComparisonOptions, _ folder: String) {
      (options.thresholds, options.writesThresholds) = (folder + "/thresholds.json", true)
    }
    func read(_ options: inout ComparisonOptions, _ folder: String) throws {
      let limits = Thresholds(
        Summary.of([
          Sample(
            store: "sqlite", input: .people, size: 150, round: 0,
            figure: Figure(workload: "W2", seconds: 1, cpuSeconds: 1, check: 1, requests: 2, allocations: 1500, synchronizations: 1))
        ]))
      try limits.write(to: folder + "/thresholds.json")
      options.thresholds = folder + "/thresholds.json"
    }
    #expect(try compare(change: written).status == 0)
    let failed = try compare(change: read)
    #expect(failed.status == 1)
    #expect(failed.report["problems"] as? [String] == ["W2 of sqlite on 150 people takes 3 requests; the limit is 2."])
  }

  /// The bug: the limits of what was measured replaced those of what failed.
  @Test("Thresholds aren't written if a measurement fails")
  func thresholdsOfFailures() throws {
    func written(_ options: inout ComparisonOptions, _ folder: String) {
      (options.thresholds, options.writesThresholds) = (folder + "/out/thresholds.json", true)
    }
    let good = try compare(change: written)
    #expect(good.status == 0 && good.files.contains("thresholds.json"), "\(good.complained)")
    let failed = try compare(
      answer: { step, result in step.workload.name == "W7" ? ChildProcess.Result(status: 1, output: "", seconds: 1) : result },
      change: written)
    #expect(failed.status == 1 && !failed.files.contains("thresholds.json"))
    #expect(failed.complained.contains("The thresholds weren't written, because something else failed."))
  }

  /// The bug: the error ended the comparison before its results were written or printed.
  @Test("If the thresholds can't be written, the results are")
  func unwritableThresholds() throws {
    let outcome = try compare(
      rounds: 1, change: { options, folder in (options.thresholds, options.writesThresholds) = (folder + "/none/thresholds.json", true) })
    #expect(outcome.status == 1 && outcome.complained.contains("The thresholds couldn't be written to "), "\(outcome.complained)")
    #expect((outcome.report["problems"] as? [String])?.count == 1)
    #expect(outcome.printed.contains("\n150 people, time\n"))
  }

  @Test("Unreadable thresholds and baselines are reported before anything is measured")
  func unreadableReferences() throws {
    let first = try compare(change: { options, folder in options.thresholds = folder + "/none.json" })
    #expect(first.status == 1 && first.steps.isEmpty && first.complained.contains("/none.json contains no thresholds"))
    let second = try compare(change: { options, folder in options.baseline = folder + "/input" })
    #expect(second.status == 1 && second.steps.isEmpty && second.complained.contains("/input isn't a comparison result of schema 2"))
  }

  @Test("An earlier result is compared line by line")
  func baseline() throws {
    let outcome = try compare(change: { options, folder in
      let samples = [1, 0].map { round in
        Sample(
          store: "sqlite", input: .people, size: 150, round: round,
          figure: Figure(workload: "W2", seconds: 0.3, cpuSeconds: 0.1, check: 1, requests: 5))
      }
      let earlier = ComparisonReport(date: "2026-01-01T00:00:00Z", machine: .ofThisMachine(), rounds: 1, samples: samples)
      try earlier.write(to: folder + "/earlier.json")
      options.baseline = folder + "/earlier.json"
    })
    #expect(
      outcome.printed.contains(
        """
        150 people, against 2026-01-01T00:00:00Z

                               store   before     now  ratio
        ---------------------  ------  ------  ------  -----  -----------
        open, load everything  sqlite  300 ms  150 ms   0.50  -2 requests

        One of the comparisons has only one round, so times can differ by chance.
        """), "\(outcome.printed)")
  }

  @Test("A terminal gets a progress bar, other output plain lines; the table is the same")
  func terminal() throws {
    let plain = try compare(stores: ["sqlite"], rounds: 1), terminal = try compare(stores: ["sqlite"], rounds: 1, terminal: .screen)
    #expect(plain.printed == terminal.printed)
    #expect(
      plain.complained == """
        Preparing the inputs
        people: 150 persons, 1 companies, 457 friend links, 11160 bytes of values
        packages: 2 packages, 0 maintainers, 2 sections, 1 links, 16 bytes of text from 89 bytes
        Comparing: 1 of 8 measurements: sqlite, 150 people, W1, round 1
        Comparing: 2 of 8 measurements: sqlite, 150 people, W2, round 1
        Comparing: 3 of 8 measurements: sqlite, 150 people, W7, round 1
        Comparing: 4 of 8 measurements: sqlite, 2 packages, import, round 1
        Comparing: 5 of 8 measurements: sqlite, 150 people, W1, counted
        Comparing: 6 of 8 measurements: sqlite, 150 people, W2, counted
        Comparing: 7 of 8 measurements: sqlite, 150 people, W7, counted
        Comparing: 8 of 8 measurements: sqlite, 2 packages, import, counted
        Comparing: 8 measurements in 0.0 s

        """)
    let drawn = terminal.complained.split(separator: "\r").dropFirst()
    #expect(drawn.count == 8 + 1 + 1 + 1)
    #expect(drawn.first == "Comparing [........................] 0 % 0/8 sqlite, 150 people, W1, round 1\u{1B}[K")
    #expect(drawn.last == "Comparing: 8 measurements in 0.0 s\u{1B}[K\n")
  }

  @Test("If the terminal is too narrow, only the page and the results show the spread")
  func narrow() throws {
    let outcome = try compare(terminal: Comparison.Terminal(isTerminal: false, columns: 60) { 0 })
    #expect(!outcome.printed.contains("±") && outcome.printed.contains("150 ms*  150 ms~"))
  }

  @Test("The printed output is exactly this, and fits 80 columns")
  func printed() throws {
    let outcome = try compare()
    let lines = outcome.printed.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.dropLast(3).allSatisfy { $0.count <= 80 })
    #expect(
      lines.dropLast(3).joined(separator: "\n") + "\n" == """

        150 people, time

                                       memory       sqlite
        ------------------------  -----------  -----------
        open, load everything     150 ms ±0%*  150 ms ±0%~
        make and save everything  150 ms ±0%*  150 ms ±0%~
        find and delete 1 in 100  150 ms ±0%*  150 ms ±0%~

        2 packages, time

                                      memory       sqlite
        -----------------------  -----------  -----------
        open, load everything    100 ms ±0%
        import in batches        100 ms ±0%*  100 ms ±0%~
        change a section         100 ms ±0%
        delete a section         100 ms ±0%
        filter, sort, first 200  100 ms ±0%
        follow every link        100 ms ±0%
        transitive dependencies  100 ms ±0%

        150 people, requests/statements/fsyncs

                                  memory  sqlite
        ------------------------  ------  ------
        open, load everything      3/-/1   3/-/1
        make and save everything   3/-/1   3/-/1
        find and delete 1 in 100   3/-/1   3/-/1

        150 people, memory and file

                                    memory   sqlite
        -------------------------  -------  -------
        peak while making, saving  3.07 MB  3.07 MB
        peak while loading         3.07 MB  3.07 MB
        kept, all loaded            151 kB   151 kB
        of that, per object        1.00 kB  1.00 kB
        allocations while loading     1500     1500
        file                                1.00 kB

        Smallest memory with everything loaded: memory and sqlite, within measurement
          error (151 kB).
        Fastest to load everything: memory and sqlite, within measurement error
          (150 ms).
        Fastest to make and save everything: memory and sqlite, within measurement error
          (150 ms).

        Times are medians of 2 rounds; ± half the range, * the minimum, ~ within
          measurement error of it. Times vary by 0 % between rounds (median).

        """)
  }
}

extension Comparison.Terminal {
  static let plain = Comparison.Terminal(isTerminal: false, columns: 80) { 0 }
  static let screen = Comparison.Terminal(isTerminal: true, columns: 80) { 0 }
}
