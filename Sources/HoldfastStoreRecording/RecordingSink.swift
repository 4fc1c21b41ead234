import HoldfastStore

/// Passes rows on, and converts them for the recording.
final class RecordingSink: RowSink {
  private let next: any RowSink
  private var digest: AnswerDigest
  private let ids: RecordedIDs
  /// The rows for the recording; nil in a recording of digests.
  private var copies: [RowBatchBuilder]?
  private var last: (layout: RowLayout, prefix: ManagedObjectID?)?
  private var isPartial = false
  private(set) var hasThrown = false
  /// The time that the next sink and the digest took.
  private(set) var duration = Duration.zero

  init(_ next: any RowSink, _ digest: AnswerDigest, ids: RecordedIDs, keepsRows: Bool) {
    (self.next, self.digest, self.ids) = (next, digest, ids)
    copies = keepsRows ? [] : nil
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let start = ContinuousClock.now
    defer { duration += .now - start }
    // A store may deliver some more rows after the sink has enough.
    if !isPartial {
      digest.add(batch, rows)
      if copies != nil { copy(batch, rows) }
    }
    do {
      let demand = try next.take(batch, rows)
      if demand == .enough { isPartial = true }
      return demand
    } catch {
      (isPartial, hasThrown) = (true, true)
      throw error
    }
  }

  private func copy(_ batch: RowBatch, _ rows: RowSelection) {
    if last?.layout !== batch.layout || last?.prefix?.entityNumber != batch.idPrefix?.entityNumber {
      last = (batch.layout, batch.idPrefix)
      copies?.append(RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix))
    }
    rows.forEach(in: batch) { index in
      // A builder traps if its rows have more than 2 GiB.
      if copies?.last?.isFull == true { copies?.append(RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)) }
      copies?.last?.append(batch.pointer(index))
    }
  }

  /// The answer with the rows received so far.
  func answer() -> RecordedAnswer {
    let rows = try? copies?.map { CodedRows(try $0.seal().mappingIDs { ids.id($0) }) }
    return .rows(RecordedRows(count: digest.count, digest: RecordedDigest(digest.value), isPartial: isPartial, rows: rows))
  }
}
