public import HoldfastFiles
public import HoldfastStore

/// The file that a store has now and what of it holds which rows: from it a save copies what has not changed.
public struct SavedFile: Sendable {
  /// The rows and links that the file holds.
  public let generation: TableGeneration
  /// The file's bytes, which stay what they are.
  public let bytes: FileBytes
  /// What the format has noted of the file, in the order in which it lies there.
  public let parts: [FilePart]

  /// Names a file.
  public init(generation: TableGeneration, bytes: FileBytes, parts: [FilePart]) {
    self.generation = generation
    self.bytes = bytes
    self.parts = parts
  }

  /// The parts of a kind and subject that are to be kept, and that are worth it.
  ///
  /// - Parameters:
  ///   - kind: as the format numbers it.
  ///   - subject: as the format numbers it.
  ///   - smallByteCount: parts with fewer bytes are left out when a part beside them is not kept, so that small ones do not gather.
  ///   - isKept: whether a part is to be kept: nothing in it has changed since an older generation, which the file holds, or so little
  ///     that the format can make the part from what it was.
  public func kept(
    kind: Int, subject: Int, smallByteCount: Int, _ isKept: (_ old: TableGeneration, _ part: FilePart) -> Bool
  ) -> [FilePart] {
    let found = parts.filter { $0.kind == kind && $0.subject == subject }
    guard zip(found, found.dropFirst()).allSatisfy({ $0.last < $1.first }) else { return [] }
    let kept = found.map { isKept(generation, $0) }
    return found.indices.filter { place in
      let isAmongKept = (place == 0 || kept[place - 1]) && (place == found.count - 1 || kept[place + 1])
      return kept[place] && (isAmongKept || found[place].byteCount >= smallByteCount)
    }.map { found[$0] }
  }

  /// Reads a part and compares its digest.
  ///
  /// - Returns: whether the part is what was written, and so was handed to `body`. When it is not, or cannot be read, what it held is
  ///   to be written from memory.
  public func copy(_ part: FilePart, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    guard part.byteCount > 0, part.offset >= 0, part.offset <= bytes.byteCount - Int64(part.byteCount) else { return false }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: part.byteCount, alignment: 16)
    defer { buffer.deallocate() }
    guard (try? bytes.read(at: part.offset, into: buffer)) != nil, ContentDigest.value(of: UnsafeRawBufferPointer(buffer)) == part.digest
    else { return false }
    try body(UnsafeRawBufferPointer(buffer))
    return true
  }
}

/// A part of a file: bytes that follow each other, and what they hold.
public struct FilePart: Sendable {
  /// What the part holds, as the format numbers it.
  public var kind: Int
  /// The entity, relationship or constraint, as the format numbers it.
  public var subject: Int
  /// Where the first byte lies.
  public var offset: Int64
  /// How many bytes there are.
  public var byteCount: Int
  /// XXH64 of the bytes.
  public var digest: UInt64
  /// How many rows, links or entries there are.
  public var count: Int
  /// The least key.
  public var first: Int64
  /// The largest key.
  public var last: Int64

  /// Describes a part.
  public init(kind: Int, subject: Int, offset: Int64, byteCount: Int, digest: UInt64, count: Int, first: Int64, last: Int64) {
    self.kind = kind
    self.subject = subject
    self.offset = offset
    self.byteCount = byteCount
    self.digest = digest
    self.count = count
    self.first = first
    self.last = last
  }

  /// The keys from the least to the largest.
  public var keys: ClosedRange<Int64> { first...last }
}

extension TableGeneration {
  /// Whether the rows of an entity with keys in a range are those of an older generation: nobody has changed, inserted or removed one.
  /// It may be said of unchanged rows that they are not, when rows with neighbouring keys have changed. Takes time in proportion to
  /// the keys of the range divided by 1,024.
  public func hasSameRows(as old: TableGeneration, entity: Int, keys: ClosedRange<Int64>) -> Bool {
    table(of: entity).hasSameLocations(as: old.table(of: entity), keys: keys)
  }

  /// Whether the links of a to-many relationship from sources with keys in a range, and the order of an ordered one, are those of an
  /// older generation, as ``hasSameRows(as:entity:keys:)`` says it of rows.
  public func hasSameLinks(as old: TableGeneration, _ relationship: ManagedObjectModel.Relationship, sources: ClosedRange<Int64>) -> Bool {
    let forward = forwardIndex(of: relationship)
    guard adjacencies[forward].hasSameLinks(as: old.adjacencies[forward], sources: sources) else { return false }
    return schema.order(of: relationship).map { orders[$0].hasSameKeys(as: old.orders[$0], sources: sources) } ?? true
  }

  /// Whether the values of a uniqueness constraint are those of an older generation, row by row.
  ///
  /// - Parameters:
  ///   - old: the older generation.
  ///   - constraint: its place in ``TableSchema/uniqueConstraints``.
  public func hasSameUniqueValues(as old: TableGeneration, constraint: Int) -> Bool {
    var place = constraint
    for (table, constraints) in schema.constraints.enumerated() {
      if place < constraints.count { return tables[table].unique[place].isSame(as: old.tables[table].unique[place]) }
      place -= constraints.count
    }
    return false
  }
}
