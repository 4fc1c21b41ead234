/// The exit statuses of the program.
public enum ExitStatus {
  /// Everything was done.
  public static let success: Int32 = 0
  /// A measurement failed, or stores disagree.
  public static let failure: Int32 = 1
  /// The store or workload doesn't exist, or the command line is invalid.
  public static let usage: Int32 = 64
}

/// Finds and runs one workload of one store, in a measuring process.
public struct MeasuringProcess {
  private let stores: [StoreUnderTest]
  private let complain: (String) -> Void

  /// Creates a measuring process for stores. Errors are written to standard error by default.
  public init(stores: [StoreUnderTest], complain: @escaping (String) -> Void = { Output.standardError.write($0 + "\n") }) {
    self.stores = stores
    self.complain = complain
  }

  /// Runs a workload and returns the exit status: 64 if the store or the workload doesn't exist.
  public func run(store name: String, input: MeasurementInput, workload: String, _ context: WorkloadContext) -> Int32 {
    guard let store = stores.first(where: { $0.name == name }) else {
      complain("The store \(name) doesn't exist. \(listed("Stores", stores.map(\.name)))")
      return ExitStatus.usage
    }
    guard let found = store.workload(workload, input) else {
      let others = store.workloads.filter { $0.input == input }.map(\.name)
      complain("The store \(name) has no workload \(workload) on \(input.rawValue). \(listed("Workloads", others))")
      return ExitStatus.usage
    }
    do {
      try found.run(context)
      return ExitStatus.success
    } catch {
      complain("\(name) failed in \(workload) on \(input.rawValue): \(error)")
      return ExitStatus.failure
    }
  }

  private func listed(_ what: String, _ names: [String]) -> String {
    names.isEmpty ? "This build has none." : "\(what): \(names.joined(separator: ", "))."
  }
}
