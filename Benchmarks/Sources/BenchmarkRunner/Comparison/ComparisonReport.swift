public import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What `comparison/results.json` holds: one JSON object, every number of it measured or asked of the machine.
///
/// | key | value |
/// |---|---|
/// | `schema` | 1; grows when a reader has to change |
/// | `date` | when the comparison began, ISO 8601, UTC |
/// | `machine` | `processor`, `processorCount`, `memoryKilobytes`, `system`, `kernel`, `compiler`; what the machine does not say is missing |
/// | `source` | `commit`, `isModified`; missing outside a git repository |
/// | `rounds` | how often each workload was run |
/// | `people` | `persons`, `companies`, `friendLinks`, `bytes` of the input; missing when it was not used |
/// | `packages` | `packages`, `maintainers`, `sections`, `links` by kind, `bytes` of all texts, `inputBytes`; missing when not used |
/// | `agreement` | whether all stores gave the same checksums and nothing failed |
/// | `problems` | sentences about what did not agree or failed |
/// | `samples` | one object per figure and round, in the order of measuring |
///
/// A sample has `store`, `input` ("people" or "packages"), `phase`, `round` (from 1; 0 for the one in
/// which requests and statements were counted, whose times mean nothing), `wallSeconds`, `cpuSeconds`, `check`
/// (decimal digits as a string, since many readers keep only 53 bits of a number), `residentDeltaKilobytes`,
/// `peakResidentKilobytes`, `heapDeltaBytes`, `processSeconds` (start to end of the process that measured), and, where
/// they are known, `fileBytes`, `requests` and `statements`.
public struct ComparisonReport: Encodable, Sendable {
  /// The figures of the people input.
  public struct People: Hashable, Encodable, Sendable {
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
  public struct Packages: Hashable, Encodable, Sendable {
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
  public let schema = 1
  /// When the comparison began.
  public var date: String
  /// What it ran on.
  public var machine: MachineFacts
  /// What was built.
  public var source: SourceFacts?
  /// How often each workload was run.
  public var rounds: Int
  /// The people input.
  public var people: People?
  /// The package input.
  public var packages: Packages?
  /// Whether nothing is wrong.
  public var agreement: Bool { problems.isEmpty }
  /// What did not agree or failed.
  public var problems: [String] = []
  /// Every figure of every round.
  public var samples: [Sample] = []

  /// Begins a report now, on this machine.
  public init(rounds: Int) {
    date = Date.now.formatted(.iso8601)
    machine = .ofThisMachine()
    source = .ofWorkingFolder()
    self.rounds = rounds
  }

  /// Writes the report over what is there.
  public func write(to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(self) + Data("\n".utf8)).write(to: URL(filePath: path))
  }

  private enum CodingKeys: String, CodingKey {
    case schema, date, machine, source, rounds, people, packages, agreement, problems, samples
  }

  /// Writes the object that the overview describes.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schema, forKey: .schema)
    try container.encode(date, forKey: .date)
    try container.encode(machine, forKey: .machine)
    try container.encodeIfPresent(source, forKey: .source)
    try container.encode(rounds, forKey: .rounds)
    try container.encodeIfPresent(people, forKey: .people)
    try container.encodeIfPresent(packages, forKey: .packages)
    try container.encode(agreement, forKey: .agreement)
    try container.encode(problems, forKey: .problems)
    try container.encode(samples, forKey: .samples)
  }
}
