import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Replay {
  func compare(
    _ sent: Sent, _ outcome: Result<Answer, any Error>, _ seconds: Double, _ store: ReplayedStore, _ reader: RecordingReader
  ) throws {
    if sent.seconds != nil { result.requestCount += 1 }
    let isUncertain = isUncertain(sent.request)
    func differ(_ expected: String, _ actual: String) { self.differ(sent, store, expected, actual, isUncertain: isUncertain) }
    switch (sent.answer, outcome) {
    case (.failed(let expected), .failure(let error)):
      let actual = (error as? StoreError).map { store.failure($0) } ?? RecordedFailure(code: .general)
      if expected == actual { return count(sent.request, sent.seconds, seconds) }
      let counts = expected.code == actual.code ? [expected, actual].map { " of \($0.objects.count) objects" } : ["", ""]
      return differ("the error \(expected.code.rawValue)\(counts[0])", "\(actual.code.rawValue)\(counts[1])")
    case (.failed(let expected), .success):
      if case .prepare = sent.request { saves.removeValue(forKey: sent.line)?.prepared.abort() }
      return differ("the error \(expected.code.rawValue)", "an answer")
    case (_, .failure(let error)): return differ("an answer", "the error \(code(error))")
    case (.rows(let expected), .success(.rows(let sink))):
      if let texts = try difference(sent.request, expected, sink, store, reader) {
        let isUnsure = isUncertain || !names.keepsOrder && sink.digest.isOrdered
        self.differ(sent, store, texts.expected, texts.actual, isUncertain: isUnsure)
      }
    case (.destinations(let expected), .success(.destinations(let digests, let destinationCount))):
      let actual = RecordedDestinations(digests, count: destinationCount, keepsDigests: true)
      if expected.count != actual.count {
        differ("\(expected.count) destinations", "\(actual.count)")
      } else if expected.digest != actual.digest {
        let index = zip(expected.digests ?? [], actual.digests ?? []).enumerated().first { $1.0 != $1.1 }?.offset
        differ("\(expected.count) destinations", "other destinations\(index.map { " of source \($0)" } ?? "")")
      }
    case (.data(let byteCount, let digest), .success(.data(let data))):
      var actual = ContentDigest()
      actual.update(data)
      if byteCount != data.count || digest.value != actual.value { differ("\(byteCount) bytes", "\(data.count) other bytes") }
    case (.done, .success), (.keys, .success), (.receipt, .success): break
    default: throw reader.damaged("The line doesn't answer the request in line \(sent.line).")
    }
    count(sent.request, sent.seconds, seconds)
  }

  /// Describes the difference between two answers of rows; nil if there is none.
  private func difference(
    _ request: RecordedRequest, _ expected: RecordedRows, _ sink: ReplaySink, _ store: ReplayedStore, _ reader: RecordingReader
  ) throws -> AnswerComparison.Texts? {
    let actual = sink.digest
    // Without an order, a partial answer can contain any of the rows.
    if expected.digest.value == actual.value || expected.isPartial && !actual.isOrdered && expected.count == actual.count { return nil }
    var texts = (expected: "\(expected.count) rows", actual: actual.count == expected.count ? "other rows" : "\(actual.count)")
    guard let coded = expected.rows else { return texts }
    let rows: [RowBatch]
    do { rows = try coded.map { try $0.batch() } } catch { throw reader.damaged("The line contains invalid rows.", cause: error) }
    let plan: FetchPlan? = if case .fetch(let plan, _) = request { plan } else { nil }
    let comparison = AnswerComparison(
      model: store.model, recorded: store.recordedDigest(plan), replayed: actual, showsValues: showsValues)
    switch plan?.output {
    case .aggregates: return ("\(expected.count) groups", "other groups")
    case .count:
      let counts = [rows, sink.rows].map { $0.first.flatMap { $0.count == 1 ? $0[0].values.first?.integer : nil } ?? 0 }
      return ("\(counts[0])", "\(counts[1])")
    case .rows, .keys, nil: break
    }
    if expected.isPartial && !actual.isOrdered { return texts }
    if expected.count == actual.count { texts = ("the order of \(expected.count) rows", "another order") }
    return comparison.difference(rows, sink.rows) ?? texts
  }

  /// Whether the recorded answer depends on which of several concurrent requests was first.
  private func isUncertain(_ request: RecordedRequest) -> Bool {
    switch request {
    case .fetch(_, let view), .rows(_, let view), .relationships(_, let view): views[view]?.isUncertain(commits) ?? true
    // A replay reads the current value, which may differ from the value in an older view.
    case .externalData: commits.running > 0 || views.values.contains { $0.view != nil && $0.began.begun < commits.begun }
    default: false
    }
  }
}

extension RecordedFailure {
  /// Whether another store has to fail in the same way. Other errors depend on files, connections and time.
  func isComparable(_ capabilities: StoreCapabilities) -> Bool {
    switch code {
    // The framework does the checks of a store that doesn't declare them.
    case .conflict: capabilities.versions
    case .constraintConflict: capabilities.uniqueness
    case .unstorableValue, .missingRow: true
    default: false
    }
  }
}
