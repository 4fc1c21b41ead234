/// The encodable form of a batch: its rows as values, for recording and replay.
public struct CodedRows: Sendable, Codable {
  private struct Row: Codable {
    var key: ObjectKey
    var version: RowVersion
    var values: [StoreValue]
  }

  private var columns: [ColumnType]
  private var idPrefix: String?
  private var rows: [Row]

  /// Copies the rows of a batch as values.
  public init(_ batch: RowBatch) {
    columns = batch.layout.columns
    idPrefix = batch.idPrefix.flatMap { $0.identity.storeUUID.isEmpty ? nil : $0.uriRepresentation }
    rows = (0..<batch.count).map { index in
      let pointer = batch.pointer(index)
      let values = batch.layout.slots.map { pointer.value($0, batch.layout.columns[$0]) }
      return Row(key: pointer.key, version: pointer.version, values: values)
    }
  }

  /// Rebuilds the batch.
  ///
  /// - Throws: ``StoreError`` if the values don't fit the columns.
  public func batch() throws -> RowBatch {
    let builder = RowBatchBuilder(layout: RowLayout(columns), idPrefix: idPrefix.flatMap { ManagedObjectID(uriRepresentation: $0) })
    for row in rows { try builder.append(key: row.key, version: row.version, values: row.values) }
    return builder.seal()
  }
}
