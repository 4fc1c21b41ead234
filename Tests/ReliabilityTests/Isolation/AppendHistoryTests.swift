import TestSupport
import Testing

/// The check of isolation finds each anomaly in a history that contains it.
@Suite struct AppendHistoryTests {
  typealias Transaction = AppendTransaction

  private func anomalies(
    _ writers: [[Transaction]], _ last: [Int: [Int]], except allowed: Set<AppendHistory.Anomaly> = []
  ) -> Set<AppendHistory.Anomaly> {
    AppendHistory(writers: writers, last: last).anomalies(except: allowed)
  }

  @Test func transactionsOneAfterTheOtherHaveNone() {
    let writers = [
      [Transaction(reads: [0: []], appends: [0: 1]), Transaction(reads: [0: [1, 2], 1: [2]], appends: [0: 3])],
      [Transaction(reads: [0: [1], 1: []], appends: [0: 2, 1: 2]), Transaction(reads: [1: [2]])],
      [Transaction(reads: [0: [1, 2]], appends: [0: 9], isSaved: false)],
    ]
    #expect(anomalies(writers, [0: [1, 2, 3], 1: [2]]) == [])
  }

  @Test func anUpdateThatWasOverwrittenIsFound() {
    let writers = [[Transaction(reads: [0: []], appends: [0: 1])], [Transaction(reads: [0: []], appends: [0: 2])]]
    #expect(anomalies(writers, [0: [2]]) == [.lostUpdate])
    #expect(anomalies(writers, [0: [1, 2, 1]]) == [.lostUpdate])
    // Nothing is missing, but the second one hasn't read what it changed.
    #expect(anomalies(writers, [0: [1, 2]]) == [.readSkew])
  }

  @Test func whatARefusedTransactionWroteIsFound() {
    let refused = Transaction(reads: [0: []], appends: [0: 1], isSaved: false)
    #expect(anomalies([[refused]], [0: [1]]) == [.refusedRead])
    #expect(anomalies([[refused], [Transaction(reads: [0: [1]])]], [0: []]) == [.refusedRead, .forkedRead])
  }

  @Test func aVersionThatNeverWasIsFound() {
    let writers = [[Transaction(reads: [0: []], appends: [0: 1]), Transaction(reads: [0: [1]], appends: [0: 2])]]
    #expect(anomalies(writers + [[Transaction(reads: [0: [2]])]], [0: [1, 2]]) == [.forkedRead])
  }

  @Test func writesInDifferentOrdersAreFound() {
    let writers = [[Transaction(appends: [0: 1, 1: 1])], [Transaction(appends: [0: 2, 1: 2])]]
    #expect(anomalies(writers, [0: [1, 2], 1: [2, 1]]).contains(.writeCycle))
  }

  @Test func transactionsThatReadEachOtherAreFound() {
    let writers = [[Transaction(reads: [1: [2]], appends: [0: 1])], [Transaction(reads: [0: [1]], appends: [1: 2])]]
    #expect(anomalies(writers, [0: [1], 1: [2]]) == [.readCycle])
  }

  @Test func aWriterThatGoesBackInTimeIsFound() {
    let writers = [[Transaction(reads: [0: []], appends: [0: 1])], [Transaction(reads: [0: [1]]), Transaction(reads: [0: []])]]
    #expect(anomalies(writers, [0: [1]]) == [.readSkew])
  }

  @Test func aTransactionThatReadsTwoVersionsIsFound() {
    let writers = [[Transaction(reads: [0: [], 1: []], appends: [0: 1, 1: 1])], [Transaction(reads: [0: [], 1: [1]])]]
    #expect(anomalies(writers, [0: [1], 1: [1]]) == [.readSkew])
    #expect(anomalies(writers, [0: [1], 1: [1]], except: [.readSkew, .writeSkew]) == [])
  }

  @Test func transactionsThatChangeWhatTheOtherReadAreFound() {
    let writers = [[Transaction(reads: [0: [], 1: []], appends: [0: 1])], [Transaction(reads: [0: [], 1: []], appends: [1: 2])]]
    #expect(anomalies(writers, [0: [1], 1: [2]]) == [.writeSkew])
    #expect(anomalies(writers, [0: [1], 1: [2]], except: [.writeSkew]) == [])
  }

  /// Two writers of which each transaction changes what one of the other has read, and perhaps a third.
  private func writeSkews(_ count: Int, _ third: [Transaction] = []) -> AppendHistory {
    var first: [Transaction] = [], second: [Transaction] = [], last: [Int: [Int]] = [:]
    for even in stride(from: 0, to: 2 * count, by: 2) {
      let odd = even + 1
      first.append(Transaction(reads: [even: [], odd: []], appends: [even: even]))
      second.append(Transaction(reads: [even: [], odd: []], appends: [odd: odd]))
      (last[even], last[odd]) = ([even], [odd])
    }
    return AppendHistory(writers: [first, second, third], last: last)
  }

  @Test func aTransactionThatReadsTwoVersionsIsFoundAmongManyThatOnlyChangeWhatTheOtherRead() {
    #expect(writeSkews(1000).anomalies() == [.writeSkew])
    #expect(writeSkews(1000).anomalies(except: [.writeSkew]) == [])
    #expect(writeSkews(1000, [Transaction(reads: [0: [], 1998: [1998]])]).anomalies(except: [.writeSkew]) == [.readSkew])
  }

  /// The bug: each overtaking was searched for in all transactions after the first cycle, and each list in all transactions.
  @Test func theTimeOfTheCheckIsProportionalToTheNumberOfTransactions() {
    let few = writeSkews(1000), many = writeSkews(16_000)
    expectCost(below: 80, times: { processorTime { _ = few.anomalies(except: [.writeSkew]) } }) {
      processorTime { _ = many.anomalies(except: [.writeSkew]) }
    }
  }
}
