/// A transaction that reads lists and appends a number to some of them.
struct AppendTransaction: Codable, Sendable, Equatable {
  /// The lists before its own appends, by register.
  var reads: [Int: [Int]] = [:]
  /// The appended number, by register.
  var appends: [Int: Int] = [:]
  /// Whether it was saved. False if the save was refused.
  var isSaved = true
}

/// Transactions of several writers on shared lists, and a check of their isolation.
///
/// Each number is appended once, so a list shows which transactions wrote it, and in which order. This is the method of Kingsbury and
/// Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations* (2020). The names in parentheses are Adya's.
struct AppendHistory {
  /// The transactions of each writer, in order.
  let writers: [[AppendTransaction]]
  /// The lists after the last transaction, by register.
  let last: [Int: [Int]]

  enum Anomaly: String {
    /// A number that was saved is missing at the end, or a number is there twice: an update was lost.
    case lostUpdate
    /// A list contains a number whose save was refused (G1a).
    case refusedRead
    /// A list isn't the beginning of the last version of the same list.
    case forkedRead
    /// Each of several transactions precedes itself in the order of writes (G0).
    case writeCycle
    /// Each of several transactions has read or overwritten what the next one wrote, or follows it in the same writer (G1c).
    case readCycle
    /// A transaction has read a list before, and another list after a save of another transaction (G-single).
    case readSkew
    /// Transactions have each read what another one of them changed afterwards (G2-item).
    case writeSkew
  }

  /// The anomalies.
  ///
  /// - Parameter allowed: Those that aren't looked for.
  func anomalies(except allowed: Set<Anomaly> = []) -> Set<Anomaly> {
    var found = anomaliesOfLists()
    // The other anomalies are defined by the order of the writes, which isn't known then.
    if !found.isEmpty { return found }
    let graph = makeGraph()
    if graph.hasCycle(.write) { found.insert(.writeCycle) }
    if graph.hasCycle([.write, .read, .sequence]) { found.insert(.readCycle) }
    if !found.isEmpty || allowed.contains(.readSkew) { return found }
    if graph.hasCycleWithOneOvertaking() { found.insert(.readSkew) }
    if !found.isEmpty || allowed.contains(.writeSkew) { return found }
    if graph.hasCycle(.all) { found.insert(.writeSkew) }
    return found
  }

  private func anomaliesOfLists() -> Set<Anomaly> {
    var found: Set<Anomaly> = []
    let all = writers.joined()
    let refused = Set(all.filter { !$0.isSaved }.flatMap(\.appends.values))
    for (register, list) in last {
      let saved = all.filter(\.isSaved).compactMap { $0.appends[register] }
      if Set(list).count != list.count || !Set(saved).isSubset(of: list) { found.insert(.lostUpdate) }
      if !refused.isDisjoint(with: list) { found.insert(.refusedRead) }
    }
    for (register, list) in all.flatMap(\.reads) {
      if !refused.isDisjoint(with: list) { found.insert(.refusedRead) }
      if !(last[register] ?? []).starts(with: list) { found.insert(.forkedRead) }
    }
    return found
  }

  /// The order of the saved transactions, as far as the lists show it.
  private func makeGraph() -> TransactionGraph {
    let saved = writers.map { $0.filter(\.isSaved) }, transactions = Array(saved.joined())
    var graph = TransactionGraph(count: transactions.count), writer: [Int: Int] = [:]
    for (index, transaction) in transactions.enumerated() {
      for number in transaction.appends.values { writer[number] = index }
    }
    for list in last.values {
      for (earlier, later) in zip(list, list.dropFirst()) { graph.add(.write, writer[earlier], writer[later]) }
    }
    for (index, transaction) in transactions.enumerated() {
      for (register, list) in transaction.reads {
        graph.add(.read, list.last.flatMap { writer[$0] }, index)
        if let all = last[register], list.count < all.count { graph.add(.overtaking, index, writer[all[list.count]]) }
      }
    }
    var start = 0
    for list in saved {
      for index in start..<max(start, start + list.count - 1) { graph.add(.sequence, index, index + 1) }
      start += list.count
    }
    return graph
  }
}

/// Transactions, and which of them precede which others.
struct TransactionGraph {
  /// The reasons why one transaction precedes another.
  struct Reason: OptionSet {
    let rawValue: Int
    /// The other has overwritten what it wrote.
    static let write = Reason(rawValue: 1)
    /// The other has read what it wrote.
    static let read = Reason(rawValue: 2)
    /// The same writer has made the other afterwards.
    static let sequence = Reason(rawValue: 4)
    /// The other has overwritten what it read.
    static let overtaking = Reason(rawValue: 8)
    static let all: Reason = [.write, .read, .sequence, .overtaking]
  }

  private var successors: [[(index: Int, reason: Reason)]]

  init(count: Int) { successors = Array(repeating: [], count: count) }

  /// Adds that one transaction precedes another, if there are two.
  mutating func add(_ reason: Reason, _ first: Int?, _ second: Int?) {
    if let first, let second, first != second { successors[first].append((second, reason)) }
  }

  /// Whether a transaction precedes itself for some of the reasons.
  func hasCycle(_ reasons: Reason) -> Bool { !remainder(reasons).isEmpty }

  /// Whether a transaction precedes itself, once because of what it read, and otherwise for other reasons.
  func hasCycleWithOneOvertaking() -> Bool {
    let inside = Set(remainder(.all)), others = Reason.all.subtracting(.overtaking)
    for first in inside {
      for second in successors[first] where second.reason == .overtaking && inside.contains(second.index) {
        if reaches(first, from: second.index, others, inside) { return true }
      }
    }
    return false
  }

  /// The transactions that are left when those without predecessors are removed, again and again.
  private func remainder(_ reasons: Reason) -> [Int] {
    var counts = Array(repeating: 0, count: successors.count)
    for list in successors { for next in list where reasons.contains(next.reason) { counts[next.index] += 1 } }
    var free = counts.indices.filter { counts[$0] == 0 }
    while let index = free.popLast() {
      for next in successors[index] where reasons.contains(next.reason) {
        counts[next.index] -= 1
        if counts[next.index] == 0 { free.append(next.index) }
      }
    }
    return counts.indices.filter { counts[$0] > 0 }
  }

  private func reaches(_ target: Int, from start: Int, _ reasons: Reason, _ inside: Set<Int>) -> Bool {
    var visited: Set<Int> = [start], open = [start]
    while let index = open.popLast() {
      if index == target { return true }
      for next in successors[index] where reasons.contains(next.reason) && inside.contains(next.index) {
        if visited.insert(next.index).inserted { open.append(next.index) }
      }
    }
    return false
  }
}
