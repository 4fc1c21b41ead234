import Foundation
import TestSupport
import Testing

/// Two processes save random changes of one store under each merge policy. Afterwards, their logs must explain what the store contains.
///
/// Set HOLDFAST_SEED to repeat the changes of both processes. How their saves alternate differs from run to run.
@Suite(.serialized, .ownThreads) struct ProcessRaceTests {
  private let folder = TemporaryFolder()

  @Test(arguments: FileStore.all)
  func RH4_theLogsOfTwoProcessesExplainWhatTheySavedUnderEachPolicy(store: FileStore) async throws {
    let random = SeededGenerator("Race of two processes on \(store)"), saves = TestTier.count(30, full: 400)
    let races = ProcessRace.Policy.allCases.map { policy in
      ProcessRace(store: store, folder: folder.file(policy.rawValue), policy: policy, saves: saves, seed: random.seed)
    }
    for race in races { try race.begin() }
    await withTaskGroup(of: Void.self) { group in
      for process in 0..<ProcessRace.processes {
        group.addTask {
          await #expect(processExitsWith: .success) { [races = races as [ProcessRace], process = process as Int] in
            for race in races {
              let log = Racer.run(race, process: process)
              try TemporaryFolder.write(Array(try JSONEncoder().encode(log)), to: race.logPath(process))
            }
          }
        }
      }
    }
    for race in races { try expect(race) }
  }

  private func expect(_ race: ProcessRace) throws {
    let logs = try (0..<ProcessRace.processes).map {
      try JSONDecoder().decode(RaceLog.self, from: Data(try TemporaryFolder.read(race.logPath($0))))
    }
    let counts = logs.map { "\($0.saves) saves, \($0.refusals) refused" }.joined(separator: "; ")
    print("\(race.store), \(race.policy): \(counts)")
    var faults = logs.compactMap(\.fault)
    do { faults += try race.faults(logs) } catch { faults.append("The store can't be read: \(error)") }
    if let fault = try race.store.fault(at: race.path) { faults.append(fault) }
    #expect(faults.isEmpty, "HOLDFAST_SEED=\(race.seed), \(race.store), \(race.policy): \(faults.joined(separator: "\n"))")
    // Both have read the first account before one of them changes it.
    let refusals = logs.map(\.refusals).reduce(0, +)
    #expect(race.policy == .error ? refusals > 0 : refusals == 0)
  }
}
