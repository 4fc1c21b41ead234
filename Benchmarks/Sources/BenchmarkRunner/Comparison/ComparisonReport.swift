public import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What `comparison/results.json` holds: one JSON object, every number of it measured or asked of the machine. Its JSON Schema is
/// `Benchmarks/results.schema.json`.
///
/// | key | value |
/// |---|---|
/// | `schema` | 2; grows when a reader has to change |
/// | `date` | when the comparison began, ISO 8601, UTC |
/// | `machine` | `processor`, `processorCount`, `memoryKilobytes`, `system`, `kernel`, `compiler`; what the machine does not say is missing |
/// | `source` | `commit`, `isModified`; missing outside a git repository |
/// | `rounds` | how often each workload was run for its times |
/// | `people` | for each size `persons`, `companies`, `friendLinks`, `bytes` of the input |
/// | `packages` | `packages`, `maintainers`, `sections`, `links` by kind, `bytes` of all texts, `inputBytes`; missing when not used |
/// | `agreement` | whether all stores gave the same checksums and nothing failed |
/// | `problems` | sentences about what did not agree or failed |
/// | `noise` | how much rounds differ (``Noise``); missing with one round |
/// | `findings` | what follows for who chooses a store (``Finding``) |
/// | `summaries` | what the rounds of each figure come to (``Summary``) |
/// | `growth` | how figures grow with the size (``Growth``) |
/// | `samples` | one object per figure and round, in the order of measuring (``Sample``) |
public struct ComparisonReport: Codable, Sendable {
  /// The figures of the people input.
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

  /// The figures of the package input.
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

  /// The version of this format.
  public static let schemaVersion = 2
  /// The version of the format that was read or is written.
  public var schema = ComparisonReport.schemaVersion
  /// When the comparison began.
  public var date: String
  /// What it ran on.
  public var machine: MachineFacts
  /// What was built.
  public var source: SourceFacts?
  /// How often each workload was run.
  public var rounds: Int
  /// The people inputs, by size.
  public var people: [People] = []
  /// The package input.
  public var packages: Packages?
  /// Whether nothing is wrong.
  public private(set) var agreement = true
  /// What did not agree or failed.
  public var problems: [String] = [] {
    didSet { agreement = problems.isEmpty }
  }
  /// How much the rounds differ.
  public private(set) var noise: Noise?
  /// What follows for who chooses a store.
  public private(set) var findings: [Finding] = []
  /// What the rounds of each figure come to.
  public private(set) var summaries: [Summary] = []
  /// How figures grow.
  public private(set) var growth: [Growth] = []
  /// Every figure of every round.
  public private(set) var samples: [Sample] = []

  /// Begins a report now, on this machine.
  public init(rounds: Int) {
    date = Date.now.formatted(.iso8601)
    machine = .ofThisMachine()
    source = .ofWorkingFolder()
    self.rounds = rounds
  }

  /// Makes a report of samples, with a date and a machine of its own.
  init(date: String, machine: MachineFacts, rounds: Int, samples: [Sample]) {
    (self.date, self.machine, self.rounds) = (date, machine, rounds)
    for sample in samples { add(sample) }
    conclude()
  }

  /// Takes down a figure.
  public mutating func add(_ sample: Sample) { samples.append(sample) }

  /// Works out what the samples come to.
  public mutating func conclude() {
    summaries = Summary.of(samples)
    growth = Growth.of(summaries)
    noise = Noise(summaries, rounds: rounds)
    findings = Finding.of(summaries)
  }

  /// Writes the report over what is there.
  public func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(filePath: path))
  }

  /// Reads a report.
  ///
  /// - Throws: ``UnreadableReport`` when the file is missing, or is not of this version.
  public static func read(_ path: String) throws -> ComparisonReport {
    do {
      return try JSONDecoder().decode(ComparisonReport.self, from: Data(contentsOf: URL(filePath: path)))
    } catch {
      throw UnreadableReport(path: path, cause: error)
    }
  }
}

/// A file is not the result of a comparison of this version.
public struct UnreadableReport: Error, CustomStringConvertible {
  /// The file.
  public let path: String
  /// Why it could not be read.
  public let cause: any Error

  /// One sentence: what failed, on what, what to do.
  public var description: String {
    FileManager.default.fileExists(atPath: path)
      ? "\(path) is no result of a comparison of schema \(ComparisonReport.schemaVersion); make it anew with this version. (\(cause))"
      : "There is no file \(path)."
  }
}
