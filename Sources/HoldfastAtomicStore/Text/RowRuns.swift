public import HoldfastStore

/// Writes the rows of entities as text, in runs of some 64 KiB that the next save can copy while nobody has changed a row or a link in
/// them.
///
/// What a row's text may depend on: its values, and the targets of its entity's to-many relationships with their order.
public final class RowRuns {
  private let output: TextOutput
  private let generation: TableGeneration
  private let saved: SavedFile?
  /// The runs so far, for the save after this one.
  public private(set) var parts: [FilePart] = []

  private static let usualByteCount = 1 << 16
  /// Runs with fewer bytes are written anew when one beside them is, so that small ones do not gather.
  private static let smallByteCount = usualByteCount / 8

  /// Begins with no row.
  ///
  /// - Parameters:
  ///   - output: takes the text. Pieces are handed on between runs alone.
  ///   - generation: the rows.
  ///   - saved: the file that is replaced; nil to write every row.
  public init(_ output: TextOutput, _ generation: TableGeneration, after saved: SavedFile?) {
    self.output = output
    self.generation = generation
    self.saved = saved
  }

  /// Writes the rows of an entity, without those of sub-entities, ascending by key.
  ///
  /// - Parameters:
  ///   - entity: the entity's index.
  ///   - first: what stands before the first row.
  ///   - next: what stands before every other row.
  ///   - put: puts a row.
  /// - Returns: whether there was a row.
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

  /// The run of an entity that is being written.
  private struct EntityRuns {
    let entity: Int
    let first: StaticString
    let next: StaticString
    var hasRows = false
    /// How many rows the run has.
    var count = 0
    /// Where the run begins in the output, and with which key.
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
