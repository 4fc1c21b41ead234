/// An input for measurements.
public enum MeasurementInput: String, CaseIterable, Codable, Sendable {
  /// ``/BenchmarkData/PeopleDataset``.
  case people
  /// ``/BenchmarkData/PackageIndex``.
  case packages
  /// An ordered list of objects: ``/BenchmarkData/ListPlan``.
  case lists
}

/// A task for a store that is measured in a separate process.
///
/// A workload can report several figures: a whole-file store does everything in one process.
///
///     Workload("W2", .people, .readsStore) { context in
///       let mark = Mark.begin()
///       let sum = try readEveryPerson(at: context.path)
///       context.report("W2", since: mark, check: sum)
///     }
public struct Workload: Sendable {
  /// How a workload uses its file.
  public enum StoreUse: Sendable {
    /// Creates the store. There is no file before, and a closed one afterwards.
    case makesStore
    /// Reads the store that an earlier workload created.
    case readsStore
    /// Changes the store. The workload gets a copy.
    case changesStore
    /// Keeps everything in memory.
    case needsNoFile
  }

  /// The name on the command line, such as `W1`, `READ` or `import`.
  public let name: String
  /// The input of the measurement.
  public let input: MeasurementInput
  /// How the workload uses its file.
  public let use: StoreUse
  /// The minimum number of objects in the input. A comparison of fewer skips the workload.
  public let minimumSize: Int
  /// Runs the workload and reports figures.
  public let run: @Sendable (WorkloadContext) throws -> Void

  /// Creates a workload. The minimum size defaults to 1.
  public init(
    _ name: String, _ input: MeasurementInput, _ use: StoreUse, minimumSize: Int = 1,
    run: @escaping @Sendable (WorkloadContext) throws -> Void
  ) {
    self.name = name
    self.input = input
    self.use = use
    self.minimumSize = minimumSize
    self.run = run
  }
}

/// A store with its workloads, in the order in which a comparison runs them.
public struct StoreUnderTest: Sendable {
  /// The name on the command line: memory, xml, json, binary, sqlite.
  public let name: String
  /// The workloads. For each input, the one that creates the store precedes those that use it.
  public let workloads: [Workload]

  /// Creates a value for a store.
  public init(_ name: String, workloads: [Workload]) {
    self.name = name
    self.workloads = workloads
  }

  /// Returns the workload with a name, if the store has it.
  public func workload(_ name: String, _ input: MeasurementInput) -> Workload? {
    workloads.first { $0.name == name && $0.input == input }
  }
}
