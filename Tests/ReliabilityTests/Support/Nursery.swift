import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Kills saving processes at random instants. Each is a fork of this process, so many can be killed in a short time.
///
/// Use it only in a separate process without other active threads, because a fork has only the calling thread.
struct Nursery {
  /// The results of the rounds.
  struct Report: Codable {
    var kills = 0
    var acknowledged = 0
    /// How often the store had a save that wasn't acknowledged.
    var unacknowledged = 0
    var faults: [String] = []
  }

  /// When a process acknowledges a save.
  enum Order: String, Codable {
    case afterSaving
    /// A mistake that the rounds must detect.
    case beforeSaving
  }

  let victim: Victim
  var order = Order.afterSaving

  /// All rounds use one file. They end at the first fault.
  func run(rounds: Int, random: inout SeededGenerator) throws -> Report {
    var report = Report()
    var saves = try survey().saves + 1
    while report.kills < rounds && report.faults.isEmpty {
      // Some processes are killed while they open the store, others after one or two saves, however long those take.
      let acks = try killOne(afterAcks: report.kills % 3, UInt32.random(in: 0...50_000, using: &random))
      report.kills += 1
      do {
        let found = try survey()
        if let fault = Self.fault(acks, saves, found) { report.faults.append("round \(report.kills): \(fault)") }
        report.acknowledged += acks
        if found.saves - saves > acks { report.unacknowledged += 1 }
        saves = found.saves + 1
      } catch {
        report.faults.append("round \(report.kills): \(error)")
      }
    }
    return report
  }

  private func survey() throws -> (saves: Int, fault: String?) {
    let found = try apart {
      let found = try victim.survey()
      return ["\(found.saves)"] + (found.fault.map { [$0] } ?? [])
    }
    return (Int(found[0]) ?? 0, found.dropFirst().first)
  }

  /// Compares a store with its previous number of saves and the acknowledgements since; nil if it is correct.
  static func fault(_ acks: Int, _ saves: Int, _ found: (saves: Int, fault: String?)) -> String? {
    if let fault = found.fault { return fault }
    let isRight = (acks...acks + 1).contains(found.saves - saves)
    return isRight ? nil : "\(acks) saves acknowledged after \(saves), \(found.saves) found"
  }

  /// Kills a process some microseconds after a number of acknowledged saves.
  ///
  /// - Returns: the total number of acknowledged saves.
  private func killOne(afterAcks wanted: Int, _ microseconds: UInt32) throws -> Int {
    let acks = Acknowledgements(emptying: victim.acks)
    defer { acks.close() }
    let child = System.fork()
    if child == 0 {
      do { try save() } catch { FileHandle.standardError.write(Data("A process couldn't save before it was killed: \(error)\n".utf8)) }
      _exit(1)
    }
    while acks.count < wanted && waitpid(child, nil, WNOHANG) == 0 { usleep(200) }
    usleep(microseconds)
    kill(child, SIGKILL)
    var status: Int32 = 0
    waitpid(child, &status, 0)
    precondition(status & 0x7F == SIGKILL, "A process ended by itself.")
    return try TemporaryFolder.read(victim.acks).count
  }

  private func save() throws {
    let acks = Acknowledgements(emptying: victim.acks)
    let context = try Harbour.context(victim.store.description(at: victim.path))
    while true {
      if order == .beforeSaving { acks.add() }
      try Voyage.saveNext(context)
      if order == .afterSaving { acks.add() }
    }
  }
}
