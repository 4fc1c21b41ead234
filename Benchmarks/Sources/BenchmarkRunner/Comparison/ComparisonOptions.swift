public import BenchmarkData

/// What a comparison is asked to do.
public struct ComparisonOptions: Hashable, Sendable {
  /// How many people.
  public var peopleCount = 10000
  /// Where the packages come from.
  public var packages = PackageSource.aptCache
  /// The names of the stores; nil means all.
  public var stores: [String]?
  /// How often each workload is run.
  public var rounds = 3
  /// The folder for `results.json`; stores are made in a folder inside it, which goes away.
  public var outputFolder = "comparison"

  /// The usual comparison.
  public init() {}
}
