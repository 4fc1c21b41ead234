internal import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The inputs of a comparison: made once, counted, and with the answers that every store must give.
struct ComparisonInputs {
  let people: ComparisonReport.People
  let packages: ComparisonReport.Packages
  /// What measuring processes read, so that all of them get the same bytes.
  let packageFiles: WorkloadContext.PackageFiles
  let plan: PackagePlan
  private let peopleAnswers: [(phase: String, value: UInt64)]
  private let packageAnswers: [(phase: String, value: UInt64)]

  /// Makes the people, reads the packages and writes the files for the measuring processes into a folder.
  init(peopleCount: Int, source: PackageSource, folder: String) throws {
    let dataset = PeopleDataset(count: peopleCount)
    people = ComparisonReport.People(dataset)
    peopleAnswers = PeoplePhase.allCases.map { ($0.rawValue, dataset.expected($0)) }
    packageFiles = WorkloadContext.PackageFiles(stanzas: folder + "/packages", plan: folder + "/plan.json")
    let index = try Self.read(source, copyTo: packageFiles.stanzas)
    let plan = PackagePlan(index: index)
    self.plan = plan
    packages = ComparisonReport.Packages(index)
    packageAnswers = PackagePhase.allCases.map { ($0.rawValue, index.expected($0, plan)) }
    try JSONEncoder().encode(plan).write(to: URL(filePath: packageFiles.plan))
  }

  /// Tells a ledger what the inputs give.
  func expect(in ledger: inout ChecksumLedger) {
    for answer in peopleAnswers {
      ledger.expect(answer.value, in: answer.phase, on: .people)
      for variant in PeoplePhase(rawValue: answer.phase)?.variants ?? [] { ledger.expect(answer.value, in: variant, on: .people) }
    }
    for answer in packageAnswers { ledger.expect(answer.value, in: answer.phase, on: .packages) }
  }

  /// One sentence about each input.
  var description: String {
    let links = packages.links.values.reduce(0, +)
    return """
      people: \(people.persons) persons, \(people.companies) companies, \(people.friendLinks) friend links, \(people.bytes) bytes of values
      packages: \(packages.packages) packages, \(packages.maintainers) maintainers, \(packages.sections) sections, \(links) links, \
      \(packages.bytes) bytes of text from \(packages.inputBytes) bytes

      """
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
