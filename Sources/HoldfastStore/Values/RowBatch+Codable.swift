/// The encodable form of a batch: its rows as values, for recording and replay.
public struct CodedRows: Sendable, Codable {
  private struct Row: Codable {
    var key: ObjectKey
    var version: RowVersion
    var values: [StoreValue]
  }

  private var columns: [ColumnType]
  /// The names of the entities of to-one destinations, by index; nil if there are none.
  private var destinations: [Int: String]?
  private var idPrefix: String?
  private var rows: [Row]

  /// Copies the rows of a batch as values.
  public init(_ batch: RowBatch) {
    let layout = batch.layout
    columns = layout.columns
    for case .toOne(let destination) in columns {
      if let name = layout.name(of: destination) { destinations = (destinations ?? [:]).merging([destination.rawValue: name]) { $1 } }
    }
    idPrefix = batch.idPrefix.flatMap { $0.identity.storeUUID.isEmpty ? nil : $0.uriRepresentation }
    rows = (0..<batch.count).map { index in
      let pointer = batch.pointer(index)
      let values = layout.slots.map { pointer.value($0, layout.columns[$0]) }
      return Row(key: pointer.key, version: pointer.version, values: values)
    }
  }

  /// Rebuilds the batch.
  ///
  /// - Throws: ``StoreError`` if the values don't fit the columns.
  public func batch() throws -> RowBatch {
    let prefix = idPrefix.flatMap { ManagedObjectID(uriRepresentation: $0) }
    let builder = RowBatchBuilder(layout: RowLayout(columns, destinations: destinations ?? [:]), idPrefix: prefix)
    for row in rows { try builder.append(key: row.key, version: row.version, values: row.values) }
    return builder.seal()
  }
}
