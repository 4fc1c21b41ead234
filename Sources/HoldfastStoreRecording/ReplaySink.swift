import HoldfastStore

/// Collects the rows of an answer, and computes their digest.
final class ReplaySink: RowSink {
  private(set) var digest: AnswerDigest
  /// The maximum number of rows; nil for no maximum.
  private let limit: Int?
  private let keepsRows: Bool
  /// Replaces the names of external files with the values.
  private let resolved: (RowBatch) throws -> RowBatch
  private(set) var rows: [RowBatch] = []
  /// The time that this sink took.
  private(set) var duration = Duration.zero

  init(_ digest: AnswerDigest, limit: Int?, keepsRows: Bool, resolved: @escaping (RowBatch) throws -> RowBatch) {
    (self.digest, self.limit, self.keepsRows, self.resolved) = (digest, limit, keepsRows, resolved)
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let start = ContinuousClock.now
    defer { duration += .now - start }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix), room = limit.map { $0 - digest.count } ?? .max
    rows.forEach(in: batch) { if builder.count < room { builder.append(batch.pointer($0)) } }
    let taken = try resolved(builder.seal())
    digest.add(taken, .all)
    if keepsRows { self.rows.append(taken) }
    return limit.map { digest.count >= $0 } ?? false ? .enough : .more
  }
}
