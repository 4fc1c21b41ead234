internal import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Measures every store with every input and compares them. This implements `make compare`.
///
/// Each measurement runs in a separate process. The comparison fails if the checksums of all stores don't agree with each other and
/// with the input, or if a measurement fails.
public struct Comparison {
  /// Runs a step on a store's file and returns the measurement.
  public typealias Launch = (ComparisonStep, _ path: String, WorkloadContext.PackageFiles) throws -> ChildProcess.Result

  private let options: ComparisonOptions
  private let stores: [StoreUnderTest]
  private let launch: Launch
  private let print: (String) -> Void
  private let complain: (String) -> Void
  private let terminal: Terminal

  /// The folder for stores. It is next to the results, because a temporary folder can be in memory rather than on a disk. Its name is unique,
  /// because it is removed at the end, with everything in it.
  private let folder: String

  private var ledger = ChecksumLedger()
  private var report: ComparisonReport
  /// Stores that couldn't be created in this round, with the input. Their other workloads are skipped.
  private var broken: Set<String> = []

  /// The output for progress, and the maximum width of tables.
  public struct Terminal: Sendable {
    /// Whether lines can be redrawn.
    public var isTerminal: Bool
    /// The number of characters per line.
    public var columns: Int
    /// The seconds of a clock, used for progress.
    public var clock: @Sendable () -> Double

    /// Describes a terminal or another output.
    public init(
      isTerminal: Bool = Output.standardError.isTerminal, columns: Int = Output.standardOutput.columns,
      clock: @escaping @Sendable () -> Double = { Mark.now }
    ) {
      (self.isTerminal, self.columns, self.clock) = (isTerminal, columns, clock)
    }
  }

  /// Creates a comparison.
  ///
  /// - Parameters:
  ///   - options: What to compare.
  ///   - stores: The stores in this build.
  ///   - terminal: The output for progress.
  ///   - launch: Runs a step; nil runs it as a process of this program.
  ///   - print: Receives the tables.
  ///   - complain: Receives progress and errors.
  public init(
    _ options: ComparisonOptions, stores: [StoreUnderTest], terminal: Terminal = Terminal(), launch: Launch? = nil,
    print: @escaping (String) -> Void = Output.standardOutput.write, complain: @escaping (String) -> Void = Output.standardError.write
  ) {
    self.options = options
    self.stores = stores
    self.terminal = terminal
    self.launch = launch ?? { try Self.measure($0, $1, $2) }
    self.print = print
    self.complain = complain
    folder = options.outputFolder + "/stores-" + UUID().uuidString
    report = ComparisonReport(rounds: options.rounds)
  }

  /// Runs the comparison and returns the exit status.
  ///
  /// The status is 0 for success, 1 if stores disagree, a measurement fails or a count exceeds its threshold, and 64 if there is
  /// nothing to do.
  public mutating func run() -> Int32 {
    guard let chosen = chooseStores() else { return ExitStatus.usage }
    do {
      let references = try ComparisonReferences(options)
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let inputs = try prepareInputs()
      measureAll(chosen, inputs)
      return try conclude(references)
    } catch {
      complain("The comparison failed: \(error)\n")
      return ExitStatus.failure
    }
  }

  // MARK: Steps of `run()`

  private func chooseStores() -> [StoreUnderTest]? {
    let all = stores.filter { !$0.workloads.isEmpty }
    guard options.rounds > 0, !options.inputs.isEmpty, !options.sizes.isEmpty, options.sizes.allSatisfy({ $0 > 0 }) else {
      complain("A comparison needs at least one round, one dataset and one positive size.\n")
      return nil
    }
    for name in options.stores ?? [] where !all.contains(where: { $0.name == name }) {
      complain("The store \(name) doesn't exist. Stores: \(all.map(\.name).joined(separator: ", ")).\n")
      return nil
    }
    let chosen = options.stores.map { names in all.filter { names.contains($0.name) } } ?? all
    if chosen.isEmpty { complain("This build has no store to compare.\n") }
    return chosen.isEmpty ? nil : chosen
  }

  private mutating func prepareInputs() throws -> ComparisonInputs {
    complain("Preparing the inputs\n")
    let inputs = try ComparisonInputs(options, folder: folder)
    complain(inputs.description)
    inputs.expect(in: &ledger)
    report.people = inputs.people
    report.packages = inputs.packages
    return inputs
  }

  private mutating func measureAll(_ chosen: [StoreUnderTest], _ inputs: ComparisonInputs) {
    let steps = ComparisonStep.all(chosen, inputs.subjects, rounds: options.rounds)
    var progress = ProgressBar(
      "Comparing", total: steps.count, unit: "measurements", isTerminal: terminal.isTerminal, columns: terminal.columns,
      clock: terminal.clock, write: complain)
    for step in steps {
      progress.begin(step: step.title)
      do {
        try measure(step, inputs)
      } catch {
        fail(step, "\(error)")
      }
      progress.advance()
    }
    progress.finish()
  }

  private mutating func conclude(_ references: ComparisonReferences) throws -> Int32 {
    report.problems += ledger.disagreements.map(\.description)
    report.conclude()
    report.problems += references.check(report)
    try report.write(to: options.outputFolder + "/results.json")
    try ReportPage(report).write(to: options.outputFolder + "/report.html")
    try ComparisonMarkdown(report).write(to: options.outputFolder + "/summary.md")
    print(ComparisonText(report, width: terminal.columns).text)
    print(references.comparison(of: report, width: terminal.columns))
    print("Charts are in \(options.outputFolder)/report.html, a short table in summary.md, every figure of every round in results.json.\n")
    for problem in report.problems { complain(problem + "\n") }
    return report.problems.isEmpty ? ExitStatus.success : ExitStatus.failure
  }

  // MARK: One step

  private mutating func measure(_ step: ComparisonStep, _ inputs: ComparisonInputs) throws {
    guard let files = try prepareFiles(step) else { return }
    let result = try launch(step, files.path, inputs.packageFiles)
    guard result.status == 0 else { return fail(step, "the measuring process ended with status \(result.status)") }
    let figures = try Figure.parse(result.output)
    if figures.isEmpty { return fail(step, "the measuring process reported no figures") }
    for figure in figures {
      let sample = Sample(
        store: step.store.name, input: step.workload.input, size: step.size, round: step.round, figure: figure,
        fileBytes: step.workload.use == .makesStore ? files.size : nil, processSeconds: result.seconds)
      report.add(sample)
      ledger.record(sample)
    }
    if step.workload.use == .changesStore { try files.remove() }
  }

  /// Prepares the files for a workload. Returns nil if the store couldn't be created before.
  private mutating func prepareFiles(_ step: ComparisonStep) throws -> StoreFiles? {
    // Each store has its own folder, because a save lists the folder and other files would slow it down.
    let name = storeName(step), place = folder + "/" + step.store.name
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let made = StoreFiles(place + "/" + name)
    switch step.workload.use {
    case .makesStore:
      broken.remove(name)
      try made.remove()
    case .readsStore:
      if broken.contains(name) { return nil }
    case .changesStore:
      if broken.contains(name) { return nil }
      let copy = StoreFiles(place + "/" + name + "-copy")
      try made.copy(to: copy)
      return copy
    case .needsNoFile: break
    }
    return made
  }

  private mutating func fail(_ step: ComparisonStep, _ reason: String) {
    if step.workload.use == .makesStore { broken.insert(storeName(step)) }
    report.problems.append("\(step.title): \(reason).")
  }

  private func storeName(_ step: ComparisonStep) -> String { "\(step.store.name)-\(step.workload.input.rawValue)-\(step.size)" }

  private static func measure(
    _ step: ComparisonStep, _ path: String, _ packages: WorkloadContext.PackageFiles
  ) throws -> ChildProcess.Result {
    var arguments = ["measure", step.store.name, step.workload.input.rawValue, step.workload.name, path]
    switch step.workload.input {
    case .people, .lists: arguments += ["--size", String(step.size)]
    case .packages: arguments += ["--packages", packages.stanzas, "--plan", packages.plan]
    }
    if step.isCounting { arguments.append("--counting") }
    return try ChildProcess(ChildProcess.ownPath(), arguments).run()
  }
}
