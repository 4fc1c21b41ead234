public import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What a workload is given: the path of the store, the input, and where to report figures.
///
/// Inputs are made when asked for: a workload that makes a store asks before its clock starts, one that only reads
/// asks for none, so that its memory figures are the store's alone.
public struct WorkloadContext: Sendable {
  /// Where the files of a package measurement are.
  public struct PackageFiles: Hashable, Sendable {
    /// The control stanzas.
    public var stanzas: String
    /// The ``/BenchmarkData/PackagePlan`` as JSON.
    public var plan: String

    /// Names the files.
    public init(stanzas: String, plan: String) {
      self.stanzas = stanzas
      self.plan = plan
    }
  }

  /// The file of the store.
  public let path: String
  /// How many people, or objects of a list, there are; 0 with packages.
  public let size: Int
  /// Whether allocations, requests and the like are to be counted, which costs time: the times of such a run are not used.
  public let isCounting: Bool
  private let packageFiles: PackageFiles?
  private let sink: @Sendable (Figure) -> Void

  /// Describes what a workload is given.
  public init(
    path: String, size: Int = 0, isCounting: Bool = false, packageFiles: PackageFiles? = nil,
    sink: @escaping @Sendable (Figure) -> Void = { Output.standardOutput.write($0.line + "\n") }
  ) {
    self.path = path
    self.size = size
    self.isCounting = isCounting
    self.packageFiles = packageFiles
    self.sink = sink
  }

  /// Makes the people.
  public func people() -> PeopleDataset { PeopleDataset(count: size) }

  /// Plans the list.
  public func list() -> ListPlan { ListPlan(count: size) }

  /// Reads and parses the packages.
  public func packages() throws -> PackageIndex { try PackageSource.file(files().stanzas).parse() }

  /// Reads what the phases of a package measurement ask for.
  public func packagePlan() throws -> PackagePlan {
    try JSONDecoder().decode(PackagePlan.self, from: Data(contentsOf: URL(filePath: files().plan)))
  }

  /// Reports a figure.
  ///
  /// Those named in ``/BenchmarkData/PeoplePhase`` and ``/BenchmarkData/PackagePhase`` are checked against the input, others
  /// among the stores.
  public func report(_ figure: Figure) { sink(figure) }

  /// Reports a figure of what was done since a mark.
  public func report(_ name: String, since mark: Mark, check: UInt64) { report(mark.figure(name, check: check)) }

  private func files() throws -> PackageFiles {
    guard let packageFiles else { throw MeasurementError.noPackages }
    return packageFiles
  }
}

/// Why a measurement could not be made.
public enum MeasurementError: Error, CustomStringConvertible {
  /// A workload asked for packages where none were given.
  case noPackages

  /// One sentence: what failed, why, what to do.
  public var description: String {
    "The workload needs packages, but the measuring process was given none: name --packages and --plan."
  }
}
