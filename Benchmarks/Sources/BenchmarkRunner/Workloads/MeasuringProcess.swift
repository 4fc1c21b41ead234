/// The statuses with which the program ends.
public enum ExitStatus {
  /// Everything was done.
  public static let success: Int32 = 0
  /// A measurement failed or stores do not agree.
  public static let failure: Int32 = 1
  /// There is no such store or workload, or the command line is wrong.
  public static let usage: Int32 = 64
}

/// What a measuring process does: finds one workload of one store and runs it.
public struct MeasuringProcess {
  private let stores: [StoreUnderTest]
  private let complain: (String) -> Void

  /// Knows some stores; sentences about what went wrong go to standard error.
  public init(stores: [StoreUnderTest], complain: @escaping (String) -> Void = { Output.standardError.write($0 + "\n") }) {
    self.stores = stores
    self.complain = complain
  }

  /// Runs a workload and gives the exit status: 64 when the store or the workload does not exist.
  public func run(store name: String, input: MeasurementInput, workload: String, _ context: WorkloadContext) -> Int32 {
    guard let store = stores.first(where: { $0.name == name }) else {
      complain("There is no store \(name). \(listed("Stores", stores.map(\.name)))")
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
