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
    var found: Set<Anomaly> = [], refused: Set<Int> = [], saved: [Int: [Int]] = [:]
    for transaction in writers.joined() {
      for (register, number) in transaction.appends {
        if transaction.isSaved { saved[register, default: []].append(number) } else { refused.insert(number) }
      }
    }
    for (register, list) in last {
      let numbers = Set(list)
      if numbers.count != list.count || !numbers.isSuperset(of: saved[register] ?? []) { found.insert(.lostUpdate) }
      if !refused.isDisjoint(with: list) { found.insert(.refusedRead) }
    }
    for (register, list) in writers.joined().flatMap(\.reads) where !(last[register] ?? []).starts(with: list) {
      found.insert(.forkedRead)
      if !refused.isDisjoint(with: list) { found.insert(.refusedRead) }
    }
    return found
  }

  /// The order of the saved transactions, as far as the lists show it.
  private func makeGraph() -> TransactionGraph {
    let saved = writers.map { $0.filter(\.isSaved) }, transactions = Array(saved.joined())
    var graph = TransactionGraph(sequences: saved.map(\.count)), writer: [Int: Int] = [:]
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
    return graph
  }
}

/// Transactions, and which of them precede which others.
///
/// All checks take time in proportion to the number of transactions.
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

  private var successors: [[(index: Int, reason: Reason)]] = []
  /// The writer of each transaction, and its position in the writer's sequence.
  private var places: [(writer: Int, position: Int)] = []
  private let writers: Int

  /// Creates a graph of the sequences of several writers, with indexes that continue from one sequence to the next.
  ///
  /// - Parameter sequences: The number of transactions of each writer.
  init(sequences: [Int]) {
    writers = sequences.count
    for (writer, count) in sequences.enumerated() {
      for position in 0..<count {
        places.append((writer, position))
        successors.append(position + 1 < count ? [(places.count, .sequence)] : [])
      }
    }
  }

  /// Adds that one transaction precedes another, if there are two.
  mutating func add(_ reason: Reason, _ first: Int?, _ second: Int?) {
    if let first, let second, first != second { successors[first].append((second, reason)) }
  }

  /// Whether a transaction precedes itself for some of the reasons.
  func hasCycle(_ reasons: Reason) -> Bool { order(reasons).count < successors.count }

  /// Whether a transaction precedes itself, once because of what it read, and otherwise for other reasons.
  ///
  /// Requires that no transaction precedes itself for the other reasons alone.
  func hasCycleWithOneOvertaking() -> Bool {
    let others = Reason.all.subtracting(.overtaking)
    // For each transaction and writer, the position of the writer's last transaction that precedes it, or -1. The writer's earlier ones
    // precede it as well.
    var last = Array(repeating: -1, count: successors.count * writers)
    for index in order(others) {
      last[index * writers + places[index].writer] = places[index].position
      for next in successors[index] where others.contains(next.reason) {
        for writer in 0..<writers {
          last[next.index * writers + writer] = max(last[next.index * writers + writer], last[index * writers + writer])
        }
      }
    }
    return successors.indices.contains { first in
      successors[first].contains { second in
        second.reason == .overtaking && last[first * writers + places[second.index].writer] >= places[second.index].position
      }
    }
  }

  /// The transactions after those that precede them, without those of cycles and those that follow one.
  private func order(_ reasons: Reason) -> [Int] {
    var counts = Array(repeating: 0, count: successors.count)
    for list in successors { for next in list where reasons.contains(next.reason) { counts[next.index] += 1 } }
    var order = counts.indices.filter { counts[$0] == 0 }, visited = 0
    while visited < order.count {
      for next in successors[order[visited]] where reasons.contains(next.reason) {
        counts[next.index] -= 1
        if counts[next.index] == 0 { order.append(next.index) }
      }
      visited += 1
    }
    return order
  }
}
