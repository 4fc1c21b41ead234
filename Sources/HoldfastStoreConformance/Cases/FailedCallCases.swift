import HoldfastFiles
import HoldfastStore

/// Tests rules S5 and S6 of the store contract: calls of the file system that fail during a save. The cases do nothing at places without
/// ``StorePlace/onFileSystem``.
enum FailedCallCases {
  static let all = [
    StoreConformanceCase("S5", "a preparation whose file-system call fails changes nothing, and the next save works") { run in
      try failEachCall(run, of: .prepare)
    },
    StoreConformanceCase("S6", "a commit whose file-system call fails saves everything or nothing, and the next save works") { run in
      try failEachCall(run, of: .commit)
    },
  ]

  /// The step of a save whose file-system calls fail.
  private enum Step: String {
    case prepare, commit
  }

  /// Saves once for each call that the step makes. In each save, one call fails.
  private static func failEachCall(_ run: CaseRun, of step: Step) throws {
    guard let describe = try run.makePlace().onFileSystem else { return }
    for operation in StoreFileOperation.allCases {
      for number in takesSpace.contains(operation) ? [inputOutputError, noSpaceError] : [inputOutputError] {
        var call = 1
        while try fail(operation, call, number, in: step, run, describe) { call += 1 }
      }
    }
  }

  /// The calls that fail on a full disk, too.
  private static let takesSpace: Set<StoreFileOperation> = [.write, .allocate, .create, .rename, .synchronize]

  /// `EIO` and `ENOSPC`, which have the same numbers on all systems.
  private static let inputOutputError: Int32 = 5, noSpaceError: Int32 = 28

  /// Saves while one call fails, and checks the store afterwards.
  ///
  /// - Returns: Whether the step made enough calls for the failure to occur.
  private static func fail(
    _ operation: StoreFileOperation, _ call: Int, _ number: Int32, in step: Step, _ run: CaseRun,
    _ describe: (any StoreFileSystem) -> StoreDescription
  ) throws -> Bool {
    let disk = SimulatedFileSystem(), store = try run.open(describe(disk), ConformanceModel.general)
    let graph = try ConformanceRows.people(store), before = ExpectedGraph(graph), view = try store.store.beginRead(.snapshot)
    let key = try store.keys("Person", 1)[0], people = graph.rows("Person").keys.sorted()
    let edit = GraphEdit(graph)
    edit.insert("Person", key, ["name": .string("New")])
    edit.update("Person", people[0], ["name": .string("Changed")])
    edit.delete("Person", people[1])
    edit.link("Person", "friends", key, people[2])

    let when = "after \(step.rawValue) whose call \(call) of \(operation.rawValue) failed with error \(number)"
    var prepared = step == .commit ? try store.store.prepare(edit.request()) : nil
    let callsBefore = disk.count(of: operation)
    disk.inject(FileFault(operation, nth: call, .error(number)))
    let outcome = save(run, when) {
      if let prepared { try prepared.commit() } else { try store.store.prepare(edit.request()).abort() }
    }
    prepared = nil
    let isReached = disk.count(of: operation) - callsBefore >= call
    disk.clearFaults()

    if step == .commit, try outcome == .saved || outcome == .unknown && !store.rows("Person", [key]).isEmpty { edit.apply() }
    try store.expectContents(graph, when)
    if run.harness.capabilities.snapshots { try store.expectContents(before, "in an older view \(when)", in: view) }
    view.end()
    try store.save(graph) { $0.update("Person", people[3], ["city": .string("Next")]) }
    try store.expectContents(graph, "in the next save \(when)")
    try run.close(store)
    let again = try run.open(describe(disk), ConformanceModel.general)
    try again.expectContents(graph, "after reopening \(when)")
    try run.close(again)
    return isReached
  }

  /// What the result or the error of a save reports to the caller.
  private enum Outcome {
    case saved, notSaved, unknown
  }

  private static func save(_ run: CaseRun, _ when: String, _ body: () throws -> Void) -> Outcome {
    do {
      try body()
      return .saved
    } catch let error as StoreError {
      return error.code == .durabilityUnknown ? .saved : error.code == .outcomeUnknown ? .unknown : .notSaved
    } catch {
      run.fail("a StoreError \(when)", got: "\(error)")
      return .notSaved
    }
  }
}
