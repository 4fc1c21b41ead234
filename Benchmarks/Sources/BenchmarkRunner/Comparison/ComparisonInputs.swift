internal import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The inputs of a comparison: created once, with counts and the expected checksums.
struct ComparisonInputs {
  /// A subject of measurements: an input and its number of objects.
  struct Subject: Hashable {
    let input: MeasurementInput
    let size: Int
  }

  /// The subjects, in the order of measurements.
  private(set) var subjects: [Subject] = []
  private(set) var people: [ComparisonReport.People] = []
  private(set) var packages: ComparisonReport.Packages?
  /// The files for the measuring processes, so that all of them read the same bytes.
  let packageFiles: WorkloadContext.PackageFiles
  private var answers: [(subject: Subject, phase: String, value: UInt64)] = []

  /// Creates the people, reads the packages, and writes the files for the measuring processes to a folder.
  init(_ options: ComparisonOptions, folder: String) throws {
    packageFiles = WorkloadContext.PackageFiles(stanzas: folder + "/packages", plan: folder + "/plan.json")
    let sizes = unique(options.sizes).sorted()
    if options.inputs.contains(.people) { sizes.forEach { addPeople($0) } }
    if options.inputs.contains(.packages) { try addPackages(options.packages) }
    if options.inputs.contains(.lists) { sizes.forEach { addList($0) } }
  }

  /// Passes the expected checksums to a ledger.
  func expect(in ledger: inout ChecksumLedger) {
    for answer in answers { ledger.expect(answer.value, in: answer.phase, on: answer.subject.input, size: answer.subject.size) }
  }

  /// A line about each input.
  var description: String {
    var text = ""
    for people in people {
      text +=
        "people: \(people.persons) persons, \(people.companies) companies, \(people.friendLinks) friend links, "
        + "\(people.bytes) bytes of values\n"
    }
    if let packages {
      text +=
        "packages: \(packages.packages) packages, \(packages.maintainers) maintainers, \(packages.sections) sections, "
        + "\(packages.links.values.reduce(0, +)) links, \(packages.bytes) bytes of text from \(packages.inputBytes) bytes\n"
    }
    return text
  }

  private mutating func addPeople(_ size: Int) {
    let subject = Subject(input: .people, size: size), dataset = PeopleDataset(count: size)
    subjects.append(subject)
    people.append(ComparisonReport.People(dataset))
    for phase in PeoplePhase.allCases {
      for name in [phase.rawValue] + phase.variants { answers.append((subject, name, dataset.expected(phase))) }
    }
    for phase in SavePhase.phases(of: size) { answers.append((subject, phase.rawValue, dataset.expected(phase))) }
  }

  private mutating func addPackages(_ source: PackageSource) throws {
    let index = try Self.read(source, copyTo: packageFiles.stanzas), plan = PackagePlan(index: index)
    let subject = Subject(input: .packages, size: index.count)
    subjects.append(subject)
    packages = ComparisonReport.Packages(index)
    answers += PackagePhase.allCases.map { (subject, $0.rawValue, index.expected($0, plan)) }
    try JSONEncoder().encode(plan).write(to: URL(filePath: packageFiles.plan))
  }

  private mutating func addList(_ size: Int) {
    let subject = Subject(input: .lists, size: size), plan = ListPlan(count: size)
    subjects.append(subject)
    answers += ListPhase.allCases.map { (subject, $0.rawValue, plan.expected($0)) }
  }

  private static func read(_ source: PackageSource, copyTo path: String) throws -> PackageIndex {
    var parser = PackageIndexParser()
    var copy = Data()
    try source.read { bytes in
      parser.consume(bytes)
      copy.append(contentsOf: bytes)
    }
    try copy.write(to: URL(filePath: path))
    let index = parser.finish()
    if index.count == 0 { throw PackageSourceError.empty(source) }
    return index
  }
}
