import BenchmarkData
import Foundation
import Testing

@testable import BenchmarkRunner

/// Comparisons of stores that are made up: what they measure is right, unless a test makes one value wrong.
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

  /// What a comparison did.
  final class Outcome {
    var status: Int32 = -1
    var printed = ""
    var complained = ""
    var steps: [String] = []
    var report: [String: Any] = [:]
  }

  static let sqlite = StoreUnderTest(
    "sqlite",
    workloads: [
      Workload("W1", .people, .makesStore) { _ in }, Workload("W2", .people, .readsStore) { _ in },
      Workload("W7", .people, .changesStore) { _ in }, Workload("import", .packages, .makesStore) { _ in },
    ])
  static let memory = StoreUnderTest(
    "memory", workloads: [Workload("READ", .people, .needsNoFile) { _ in }, Workload("READ", .packages, .needsNoFile) { _ in }])

  /// Compares the two stores; `answer` may put another result in place of the right one.
  func compare(
    stores: [String]? = nil, rounds: Int = 2, answer: @escaping (ComparisonStep, ChildProcess.Result) -> ChildProcess.Result = { $1 }
  ) throws -> Outcome {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Self.packages.write(toFile: folder + "/input", atomically: true, encoding: .utf8)
    var options = ComparisonOptions()
    options.peopleCount = 150
    options.packages = .file(folder + "/input")
    options.stores = stores
    options.rounds = rounds
    options.outputFolder = folder + "/out"
    let outcome = Outcome()
    var comparison = Comparison(
      options, stores: [Self.memory, Self.sqlite],
      launch: { step, path, files in
        outcome.steps.append(
          "\(step.store.name) \(step.workload.name) \(path.split(separator: "/").last ?? "")" + (step.isCounting ? " counted" : ""))
        return answer(step, try Self.launch(step, path, files))
      }, print: { outcome.printed += $0 }, complain: { outcome.complained += $0 })
    outcome.status = comparison.run()
    if let data = FileManager.default.contents(atPath: folder + "/out/results.json") {
      outcome.report = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }
    #expect(!FileManager.default.fileExists(atPath: folder + "/out/stores"))
    return outcome
  }

  /// The right figures of a step; a store that is made gets a file, a store that is changed must have one.
  static func launch(_ step: ComparisonStep, _ path: String, _ files: WorkloadContext.PackageFiles) throws -> ChildProcess.Result {
    switch step.workload.use {
    case .makesStore: #expect(FileManager.default.createFile(atPath: path, contents: Data(count: 1000)))
    case .readsStore, .changesStore: #expect(FileManager.default.fileExists(atPath: path))
    case .needsNoFile: break
    }
    let figures =
      try step.workload.input == .people
      ? peopleFigures(step.workload.name) : packageFigures(step.workload.name, WorkloadContext(path: path, packageFiles: files))
    return ChildProcess.Result(status: 0, output: figures.map { $0.line + "\n" }.joined(), seconds: 1)
  }

  static func peopleFigures(_ workload: String) -> [Figure] {
    let people = PeopleDataset(count: 150)
    let phases = workload == "READ" ? [.insert, .readAll, .delete] : PeoplePhase.allCases.filter { $0.rawValue == workload }
    return phases.map { Figure(workload: $0.rawValue, seconds: 0.1, cpuSeconds: 0.1, check: people.expected($0)) }
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
    #expect(outcome.printed.contains("\npeople\n"))
    #expect(outcome.printed.contains("\npackages\n"))
    #expect(outcome.report["schema"] as? Int == 1)
    #expect(outcome.report["agreement"] as? Bool == true)
    #expect((outcome.report["people"] as? [String: Any])?["persons"] as? Int == 150)
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
  }

  @Test("Each round makes a fresh store, reads it and changes a copy; a last one counts")
  func steps() throws {
    let outcome = try compare(rounds: 1)
    let round = [
      "memory READ memory-people", "sqlite W1 sqlite-people", "sqlite W2 sqlite-people", "sqlite W7 sqlite-people-copy",
      "memory READ memory-packages", "sqlite import sqlite-packages",
    ]
    #expect(outcome.steps == round + round.map { $0 + " counted" })
  }

  @Test("One wrong value of one store fails the run and names store, phase and both values")
  func wrongValue() throws {
    let outcome = try compare { step, result in
      guard step.store.name == "sqlite", step.workload.name == "W7", step.round == 2 else { return result }
      var wrong = result
      wrong.output = Figure(workload: "W7", seconds: 0.1, cpuSeconds: 0.1, check: 3173).line
      return wrong
    }
    let sentence = "The stores do not agree: in W7 on people, sqlite gives 3173 where the input gives 3172."
    #expect(outcome.status == 1)
    #expect(outcome.complained.contains(sentence))
    #expect(outcome.report["agreement"] as? Bool == false)
    #expect(outcome.report["problems"] as? [String] == [sentence])
  }

  @Test("Where the input has no value the first store's counts")
  func storesAgainstEachOther() {
    var ledger = ChecksumLedger()
    func sample(_ store: String, _ check: UInt64) -> Sample {
      Sample(store: store, input: .people, round: 1, figure: Figure(workload: "W4i", seconds: 1, cpuSeconds: 1, check: check))
    }
    for sample in [sample("memory", 5), sample("sqlite", 6), sample("xml", 5), sample("sqlite", 6)] { ledger.record(sample) }
    #expect(
      ledger.disagreements.map(\.description) == [
        "The stores do not agree: in W4i on people, sqlite gives 6 where memory gives 5."
      ])
  }

  @Test("A store that cannot be made fails the run, and its other workloads are left out")
  func failedStore() throws {
    let outcome = try compare(rounds: 1) { step, result in
      step.workload.name == "W1" ? ChildProcess.Result(status: -9, output: "", seconds: 1) : result
    }
    #expect(outcome.status == 1)
    #expect(
      outcome.report["problems"] as? [String] == [
        "sqlite people W1, round 1: the measuring process ended with status -9.",
        "sqlite people W1, counted: the measuring process ended with status -9.",
      ])
    #expect(!outcome.steps.contains("sqlite W2 sqlite-people"))
    #expect(outcome.steps.contains("sqlite import sqlite-packages"))
  }

  @Test("A process that prints no figure, or something else, fails the run", arguments: ["", "Segmentation fault\n"])
  func noFigure(_ output: String) throws {
    let outcome = try compare(rounds: 1) { step, result in
      step.workload.name == "W2" ? ChildProcess.Result(status: 0, output: output, seconds: 1) : result
    }
    #expect(outcome.status == 1)
    #expect((outcome.report["problems"] as? [String])?.count == 2)
  }

  @Test("Some stores can be chosen, and one that does not exist is refused")
  func choice() throws {
    #expect(try compare(stores: ["memory"], rounds: 1).steps.prefix(2) == ["memory READ memory-people", "memory READ memory-packages"])
    let refused = try compare(stores: ["memory", "floppy"])
    #expect(refused.status == 64)
    #expect(refused.complained == "There is no store floppy to compare. Stores: memory, sqlite.\n")
  }

  @Test("A build without stores says so")
  func noStores() {
    var complained = ""
    var comparison = Comparison(ComparisonOptions(), stores: [], complain: { complained += $0 })
    #expect(comparison.run() == 64)
    #expect(complained == "This build has no store to compare.\n")
  }

  @Test("A package file that does not exist is a sentence")
  func noPackages() {
    var complained = ""
    var options = ComparisonOptions()
    options.peopleCount = 1
    options.packages = .file("/no/such/file")
    options.outputFolder = folder
    var comparison = Comparison(options, stores: [Self.memory], complain: { complained += $0 })
    #expect(comparison.run() == 1)
    #expect(complained.contains("Could not read the package index /no/such/file"))
    try? FileManager.default.removeItem(atPath: folder)
  }
}
