public import BenchmarkData

/// What a comparison is asked to do.
public struct ComparisonOptions: Hashable, Sendable {
  /// What the stores are measured with.
  public var inputs = Set(MeasurementInput.allCases)
  /// How many people there are, and how many objects in a list: a measurement for each.
  public var sizes = [1000, 10_000, 100_000]
  /// Where the packages come from.
  public var packages = PackageSource.aptCache
  /// The names of the stores; nil means all.
  public var stores: [String]?
  /// How often each workload is run for its times.
  public var rounds = 5
  /// The folder for `results.json` and `report.html`; stores are made in a folder inside it, which goes away.
  public var outputFolder = "comparison"
  /// The `results.json` of an earlier comparison, with which this one is compared.
  public var baseline: String?
  /// A file of counts that must not be exceeded.
  public var thresholds: String?
  /// Whether that file is written, from what is counted, instead of read.
  public var writesThresholds = false

  /// The usual comparison.
  public init() {}
}
