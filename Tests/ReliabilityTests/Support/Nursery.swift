import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Has processes that save killed at random instants, many in a short time: each is a fork of this process, so none has to be
/// started.
///
/// Only for a process of its own whose other threads do nothing, because a fork has no other threads.
struct Nursery {
  /// What the rounds have shown.
  struct Report: Codable {
    var kills = 0
    var acknowledged = 0
    /// How often a save was in the store that nobody had been told of.
    var unacknowledged = 0
    var faults: [String] = []
  }

  /// When a process says that it has saved.
  enum Order: String, Codable {
    case afterSaving
    /// The mistake that the rounds have to find.
    case beforeSaving
  }

  let victim: Victim
  var order = Order.afterSaving

  /// All rounds work on one file. They end at the first fault.
  func run(rounds: Int, random: inout SeededGenerator) throws -> Report {
    var report = Report()
    var saves = try victim.survey().saves + 1
    while report.kills < rounds && report.faults.isEmpty {
      // The earliest instant is the fork itself, so some are killed while they open the store. Others are killed after a save or two,
      // however long these take on a busy machine.
      let acks = try killOne(afterAcks: report.kills % 3, UInt32.random(in: 0...50_000, using: &random))
      report.kills += 1
      do {
        let found = try victim.survey()
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

  /// What is wrong with a store in which there were so many saves, and for which so many further ones were acknowledged.
  static func fault(_ acks: Int, _ saves: Int, _ found: (saves: Int, fault: String?)) -> String? {
    if let fault = found.fault { return fault }
    let isRight = (acks...acks + 1).contains(found.saves - saves)
    return isRight ? nil : "\(acks) saves acknowledged after \(saves), \(found.saves) found"
  }

  /// Kills a process so long after so many saves were acknowledged.
  ///
  /// - Returns: how many were acknowledged in the end.
  private func killOne(afterAcks wanted: Int, _ microseconds: UInt32) throws -> Int {
    let acks = try victim.openAcks()
    defer { close(acks) }
    let child = try Self.fork()
    if child == 0 {
      do { try save() } catch { FileHandle.standardError.write(Data("A process that is to be killed could not save: \(error)\n".utf8)) }
      _exit(1)
    }
    while lseek(acks, 0, SEEK_END) < wanted && waitpid(child, nil, WNOHANG) == 0 { usleep(200) }
    usleep(microseconds)
    kill(child, SIGKILL)
    var status: Int32 = 0
    waitpid(child, &status, 0)
    precondition(status & 0x7F == SIGKILL, "A process ended by itself.")
    return try TemporaryFolder.read(victim.acks).count
  }

  private func save() throws {
    let file = try victim.openAcks()
    let context = try Harbour.context(victim.store.description(at: victim.path))
    while true {
      if order == .beforeSaving { victim.acknowledge(file) }
      try Voyage.saveNext(context)
      if order == .afterSaving { victim.acknowledge(file) }
    }
  }

  /// Swift hides `fork`, because it is seldom what one wants.
  static func fork() throws -> pid_t {
    struct NoFork: Error {}
    guard let fork = System.symbol("fork", as: (@convention(c) () -> pid_t).self) else { throw NoFork() }
    let child = fork()
    guard child >= 0 else { throw NoFork() }
    return child
  }
}
