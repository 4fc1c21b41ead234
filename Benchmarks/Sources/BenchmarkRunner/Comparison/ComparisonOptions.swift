public import BenchmarkData

/// The options of a comparison.
public struct ComparisonOptions: Hashable, Sendable {
  /// The inputs of the measurements.
  public var inputs = Set(MeasurementInput.allCases)
  /// The numbers of people and of objects in a list. Each is measured separately.
  public var sizes = [1000, 10_000, 100_000]
  /// The source of the packages.
  public var packages = PackageSource.aptCache
  /// The names of the stores; nil for all stores.
  public var stores: [String]?
  /// The number of timed runs of each workload.
  public var rounds = 5
  /// The folder for `results.json` and `report.html`. Stores are created in a new subfolder, which is removed at the end. If the process is
  /// killed, the subfolder `stores-…` remains.
  public var outputFolder = "comparison"
  /// The `results.json` of an earlier comparison to compare with.
  public var baseline: String?
  /// A file of maximum counts.
  public var thresholds: String?
  /// Whether to write the file of maximum counts from the current counts, instead of reading it.
  public var writesThresholds = false

  /// The default comparison.
  public init() {}
}
