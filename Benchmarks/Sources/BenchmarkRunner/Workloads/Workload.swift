/// What a store is measured with.
public enum MeasurementInput: String, CaseIterable, Codable, Sendable {
  /// ``/BenchmarkData/PeopleDataset``.
  case people
  /// ``/BenchmarkData/PackageIndex``.
  case packages
  /// A list of objects in an order: ``/BenchmarkData/ListPlan``.
  case lists
}

/// One thing that a store can be asked to do, in a process of its own.
///
/// A workload may report several figures: a store that loads its whole file does everything in one process.
///
///     Workload("W2", .people, .readsStore) { context in
///       let mark = Mark.begin()
///       let sum = try readEveryPerson(at: context.path)
///       context.report("W2", since: mark, check: sum)
///     }
public struct Workload: Sendable {
  /// What a workload needs of the file that it is given.
  public enum StoreUse: Sendable {
    /// Makes the store; there is no file at the path, and a closed one afterwards.
    case makesStore
    /// Reads the store that the workload before it made.
    case readsStore
    /// Changes the store; it is given a copy.
    case changesStore
    /// Keeps everything in memory.
    case needsNoFile
  }

  /// The name on the command line, such as `W1`, `READ` or `import`.
  public let name: String
  /// What it is measured with.
  public let input: MeasurementInput
  /// What it needs of the file.
  public let use: StoreUse
  /// Does the work and reports figures.
  public let run: @Sendable (WorkloadContext) throws -> Void

  /// Describes a workload.
  public init(_ name: String, _ input: MeasurementInput, _ use: StoreUse, run: @escaping @Sendable (WorkloadContext) throws -> Void) {
    self.name = name
    self.input = input
    self.use = use
    self.run = run
  }
}

/// A store with everything that it can be asked to do, in the order in which a comparison asks.
public struct StoreUnderTest: Sendable {
  /// The name on the command line: memory, xml, json, binary, sqlite.
  public let name: String
  /// For each input the workload that makes the store comes before those that use it.
  public let workloads: [Workload]

  /// Describes a store.
  public init(_ name: String, workloads: [Workload]) {
    self.name = name
    self.workloads = workloads
  }

  /// The workload with a name, if the store has it.
  public func workload(_ name: String, _ input: MeasurementInput) -> Workload? {
    workloads.first { $0.name == name && $0.input == input }
  }
}
