public import BenchmarkData

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The environment of a workload: the store's path, the input, and the output for figures.
///
/// Inputs are created on demand. A workload that creates a store requests its input before the clock starts. A workload that only
/// reads doesn't, so that its memory figures contain only the store.
public struct WorkloadContext: Sendable {
  /// The paths of the files of a package measurement.
  public struct PackageFiles: Hashable, Sendable {
    /// The control stanzas.
    public var stanzas: String
    /// The ``/BenchmarkData/PackagePlan`` as JSON.
    public var plan: String

    /// Creates a value with the paths.
    public init(stanzas: String, plan: String) {
      self.stanzas = stanzas
      self.plan = plan
    }
  }

  /// The path of the store's file.
  public let path: String
  /// The number of people, or of objects in a list; 0 for packages.
  public let size: Int
  /// Whether to count operations. Counting takes time, so the times of such a run aren't used.
  public let isCounting: Bool
  private let packageFiles: PackageFiles?
  private let sink: @Sendable (Figure) -> Void

  /// Creates a context.
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

  /// Creates the people.
  public func people() -> PeopleDataset { PeopleDataset(count: size) }

  /// Creates the plan of the list.
  public func list() -> ListPlan { ListPlan(count: size) }

  /// Reads and parses the packages.
  public func packages() throws -> PackageIndex { try PackageSource.file(files().stanzas).parse() }

  /// Reads the parameters of the phases of a package measurement.
  public func packagePlan() throws -> PackagePlan {
    try JSONDecoder().decode(PackagePlan.self, from: Data(contentsOf: URL(filePath: files().plan)))
  }

  /// Reports a figure.
  ///
  /// Figures named in ``/BenchmarkData/PeoplePhase`` and ``/BenchmarkData/PackagePhase`` are checked against the input, others
  /// against the other stores.
  public func report(_ figure: Figure) { sink(figure) }

  /// Reports a figure since a mark.
  public func report(_ name: String, since mark: Mark, check: UInt64) { report(mark.figure(name, check: check)) }

  private func files() throws -> PackageFiles {
    guard let packageFiles else { throw MeasurementError.noPackages }
    return packageFiles
  }
}

/// An error that prevented a measurement.
public enum MeasurementError: Error, CustomStringConvertible {
  /// A workload needs packages, but none were passed.
  case noPackages

  /// What failed, why, and what to do.
  public var description: String {
    "The workload needs packages, but the measuring process got none. Pass --packages and --plan."
  }
}
