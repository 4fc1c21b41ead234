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
}
