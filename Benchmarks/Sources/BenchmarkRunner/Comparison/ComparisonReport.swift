public import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The contents of `comparison/results.json`: one JSON object with measured numbers and facts about the machine.
///
/// Its JSON Schema is `Benchmarks/results.schema.json`.
///
/// | key | value |
/// |---|---|
/// | `schema` | 2; increases if readers have to change |
/// | `date` | when the comparison started, ISO 8601, UTC |
/// | `machine` | `processor`, `processorCount`, `memoryKilobytes`, `system`, `kernel`, `compiler`; unknown ones are missing |
/// | `source` | `commit`, `isModified`; missing outside a git repository |
/// | `rounds` | the number of timed runs of each workload |
/// | `people` | for each size, the `persons`, `companies`, `friendLinks` and `bytes` of the input |
/// | `packages` | `packages`, `maintainers`, `sections`, `links` by kind, `bytes` of all strings, `inputBytes`; missing if not used
/// |
/// | `agreement` | whether all stores returned the same checksums and nothing failed |
/// | `problems` | descriptions of disagreements and failures |
/// | `noise` | the variation between rounds (``Noise``); missing with one round |
/// | `findings` | recommendations for choosing a store (``Finding``) |
/// | `summaries` | the summary of each figure's rounds (``Summary``) |
/// | `growth` | the growth of figures with the size (``Growth``) |
/// | `samples` | one object per figure and round, in the order of measurements (``Sample``) |
public struct ComparisonReport: Codable, Sendable {
  /// The counts of the people input.
  public struct People: Hashable, Codable, Sendable {
    var persons: Int
    var companies: Int
    var friendLinks: Int
    var bytes: Int

    /// Counts a dataset.
    public init(_ people: PeopleDataset) {
      persons = people.count
      companies = people.companyCount
      friendLinks = people.friendLinkCount
      bytes = people.byteCount
    }
  }

  /// The counts of the package input.
  public struct Packages: Hashable, Codable, Sendable {
    var packages: Int
    var maintainers: Int
    var sections: Int
    var links: [String: Int]
    var bytes: Int
    var inputBytes: Int

    /// Counts an index.
    public init(_ index: PackageIndex) {
      packages = index.count
      maintainers = index.maintainerCount
      sections = index.sectionCount
      links = Dictionary(uniqueKeysWithValues: PackageRelationKind.allCases.map { ("\($0)", index.links($0).count) })
      bytes = index.checksum.bytes
      inputBytes = index.statistics.bytes
    }
  }

  /// The current version of this format.
  public static let schemaVersion = 2
  /// The version of the format that was read, or that will be written.
  public var schema = ComparisonReport.schemaVersion
  /// When the comparison started.
  public var date: String
  /// The machine of the comparison.
  public var machine: MachineFacts
  /// The state of the source code.
  public var source: SourceFacts?
  /// The number of timed runs of each workload.
  public var rounds: Int
  /// The people inputs, by size.
  public var people: [People] = []
  /// The package input.
  public var packages: Packages?
  /// Whether there are no problems.
  public private(set) var agreement = true
  /// Descriptions of disagreements and failures.
  public var problems: [String] = [] {
    didSet { agreement = problems.isEmpty }
  }
  /// The variation between rounds.
  public private(set) var noise: Noise?
  /// Recommendations for choosing a store.
  public private(set) var findings: [Finding] = []
  /// The summary of each figure's rounds.
  public private(set) var summaries: [Summary] = []
  /// The growth of figures with the size.
  public private(set) var growth: [Growth] = []
  /// Every figure of every round.
  public private(set) var samples: [Sample] = []

  /// Starts a report now, on this machine.
  public init(rounds: Int) {
    date = Date.now.formatted(.iso8601)
    machine = .ofThisMachine()
    source = .ofWorkingFolder()
    self.rounds = rounds
  }

  /// Creates a report from samples, with a given date and machine.
  init(date: String, machine: MachineFacts, rounds: Int, samples: [Sample]) {
    (self.date, self.machine, self.rounds) = (date, machine, rounds)
    for sample in samples { add(sample) }
    conclude()
  }

  /// Adds a sample.
  public mutating func add(_ sample: Sample) { samples.append(sample) }

  /// Computes the summaries and findings from the samples.
  public mutating func conclude() {
    summaries = Summary.of(samples)
    growth = Growth.of(summaries)
    noise = Noise(summaries, rounds: rounds)
    findings = Finding.of(summaries)
  }

  /// Writes the report to a file, replacing it.
  public func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(filePath: path))
  }

  /// Reads a report.
  ///
  /// - Throws: ``UnreadableReport`` if the file is missing, or has another version.
  public static func read(_ path: String) throws -> ComparisonReport {
    do {
      let report = try JSONDecoder().decode(ComparisonReport.self, from: Data(contentsOf: URL(filePath: path)))
      if report.schema == schemaVersion { return report }
      throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "The schema of the file is \(report.schema)."))
    } catch {
      throw UnreadableReport(path: path, cause: error)
    }
  }
}

/// A file isn't the result of a comparison of this version.
public struct UnreadableReport: Error, CustomStringConvertible {
  /// The file.
  public let path: String
  /// The underlying error.
  public let cause: any Error

  /// What failed, and what to do.
  public var description: String {
    FileManager.default.fileExists(atPath: path)
      ? "\(path) isn't a comparison result of schema \(ComparisonReport.schemaVersion). Create it again with this version. (\(cause))"
      : "The file \(path) doesn't exist."
  }
}
