public import HoldfastStore

/// Writes rows as text, in runs of about 64 KiB that later saves can copy.
///
/// A save copies a run if none of its rows and links has changed. The text of a row can therefore depend only on its values, and on
/// the destinations of its to-many relationships with their order.
///
/// The JSON store uses it: saving one changed object of 100,000 takes 45 to 60 % of the processor time of writing all rows. The XML store
/// doesn't, because there it would still take 77 to 85 %.
public final class RowRuns {
  private let output: TextOutput
  private let generation: TableGeneration
  private let saved: SavedFile?
  /// The runs written so far, which the next save can copy.
  public private(set) var parts: [FilePart] = []

  private static let usualByteCount = 1 << 16
  /// Shorter runs are rewritten if a neighboring run is rewritten, so that short runs don't accumulate.
  private static let smallByteCount = usualByteCount / 8

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - output: The destination of the text. It is flushed only between runs.
  ///   - generation: The rows.
  ///   - saved: The file that is being replaced; nil to write every row.
  public init(_ output: TextOutput, _ generation: TableGeneration, after saved: SavedFile?) {
    self.output = output
    self.generation = generation
    self.saved = saved
  }

  /// Writes the rows of an entity, without subentities, in ascending key order.
  ///
  /// - Parameters:
  ///   - entity: The entity's index.
  ///   - first: The text before the first row.
  ///   - next: The text before every other row.
  ///   - put: Writes a row.
  /// - Returns: Whether there was a row.
  public func write(
    _ entity: Int, first: StaticString, next: StaticString, _ put: (RowPointer) throws -> Void
  ) throws -> Bool {
    var writer = EntityRuns(entity: entity, first: first, next: next)
    var key = TableLoader.keys.lowerBound
    let relationships = generation.schema.model.entities[entity].relationships.filter(\.isToMany)
    let unchanged =
      saved?.kept(kind: 0, subject: entity, smallByteCount: RowRuns.smallByteCount) { [generation] old, part in
        generation.hasSameRows(as: old, entity: entity, keys: part.keys)
          && relationships.allSatisfy { generation.hasSameLinks(as: old, $0, sources: part.keys) }
      } ?? []
    for part in unchanged {
      if part.first > key { try write(&writer, key...part.first - 1, put) }
      let isCopied = try saved?.copy(part) { bytes in
        begin(&writer, part.first)
        output.put(bytes)
        writer.count = part.count
        try end(&writer, part.last, digest: part.digest)
      }
      if isCopied != true { try write(&writer, part.keys, put) }
      key = part.last + 1
    }
    if key <= TableLoader.keys.upperBound { try write(&writer, key...TableLoader.keys.upperBound, put) }
    return writer.hasRows
  }

  /// The current run of an entity.
  private struct EntityRuns {
    let entity: Int
    let first: StaticString
    let next: StaticString
    var hasRows = false
    /// The number of rows in the run.
    var count = 0
    /// The offset of the run in the output, and its first key.
    var start = 0
    var firstKey: Int64 = 0
  }

  private func write(_ writer: inout EntityRuns, _ keys: ClosedRange<Int64>, _ put: (RowPointer) throws -> Void) throws {
    var last: Int64 = 0
    try generation.forEachRow(of: writer.entity, keys: keys) { row in
      if writer.count == 0 { begin(&writer, row.key) } else { output.put(writer.next) }
      try put(row)
      writer.count += 1
      last = row.key
      if output.count - writer.start >= RowRuns.usualByteCount { try end(&writer, last, digest: nil) }
    }
    if writer.count > 0 { try end(&writer, last, digest: nil) }
  }

  private func begin(_ writer: inout EntityRuns, _ key: Int64) {
    output.put(writer.hasRows ? writer.next : writer.first)
    writer.hasRows = true
    writer.start = output.count
    writer.firstKey = key
  }

  private func end(_ writer: inout EntityRuns, _ key: Int64, digest: UInt64?) throws {
    let bytes = output.bytes(from: writer.start)
    parts.append(
      FilePart(
        kind: 0, subject: writer.entity, offset: output.handedOn + Int64(writer.start), byteCount: bytes.count,
        digest: digest ?? ContentDigest.value(of: bytes), count: writer.count, first: writer.firstKey, last: key))
    writer.count = 0
    try output.flushIfFull()
  }
}
