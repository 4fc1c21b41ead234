public import HoldfastFiles
public import HoldfastStore

/// The store's current file and what its sections contain. A save copies unchanged sections from it.
///
/// The binary store uses it: saving one changed object of 100,000 takes less than half of the time of writing all sections (39 instead of
/// 88 ms with `fsync`). Text files gain too little: their saves would take 60 % (JSON) or 70 to 90 % (XML) of the time.
public struct SavedFile: Sendable {
  /// The rows and links in the file.
  public let generation: TableGeneration
  /// The file's bytes, which don't change.
  public let bytes: FileBytes
  /// The file's sections as recorded by the format, in file order.
  public let parts: [FilePart]

  /// Creates a description of a file.
  public init(generation: TableGeneration, bytes: FileBytes, parts: [FilePart]) {
    self.generation = generation
    self.bytes = bytes
    self.parts = parts
  }

  /// The sections of a kind and subject that are worth keeping.
  ///
  /// - Parameters:
  ///   - kind: The kind, as numbered by the format.
  ///   - subject: The subject, as numbered by the format.
  ///   - smallByteCount: Sections with fewer bytes are dropped if a neighboring section isn't kept, so that small sections don't
  ///     accumulate.
  ///   - isKept: Whether to keep a section. `old` is the generation in the file. Return true if the content is unchanged since
  ///     then, or changed so little that the format can derive the new section from the old one.
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

  /// Reads a section and verifies its digest.
  ///
  /// - Returns: Whether the section is intact and was passed to `body`. If false, write its content from memory.
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

/// A section of a file: a range of bytes and what it contains.
public struct FilePart: Sendable {
  /// What the section contains, as numbered by the format.
  public var kind: Int
  /// The entity, relationship or constraint, as numbered by the format.
  public var subject: Int
  /// The file offset of the first byte.
  public var offset: Int64
  /// The number of bytes.
  public var byteCount: Int
  /// XXH64 of the bytes.
  public var digest: UInt64
  /// The number of rows, links or entries.
  public var count: Int
  /// The smallest key, or another number by which the format orders sections.
  public var first: Int64
  /// The largest key, or another number by which the format orders sections.
  public var last: Int64

  /// Creates a section description.
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

  /// The keys from the smallest to the largest.
  public var keys: ClosedRange<ObjectKey> { ObjectKey(first)...ObjectKey(last) }
}

extension TableGeneration {
  /// Whether an entity's rows in a key range are unchanged since an older generation.
  ///
  /// False means only that a row may have changed: a change of a row with a nearby key has the same effect. Takes time proportional
  /// to the number of keys in the range divided by 1,024.
  public func hasSameRows(as old: TableGeneration, entity: EntityIndex, keys: ClosedRange<ObjectKey>) -> Bool {
    table(of: entity).hasSameLocations(as: old.table(of: entity), keys: keys)
  }

  /// Whether the links of owners in a key range are unchanged since an older generation.
  ///
  /// Compares the links of a to-many relationship and their order. False means only that a link may have changed, as with
  /// ``hasSameRows(as:entity:keys:)``.
  public func hasSameLinks(as old: TableGeneration, _ relationship: ManagedObjectModel.Relationship, sources: ClosedRange<ObjectKey>)
    -> Bool
  {
    let forward = forwardIndex(of: relationship)
    guard adjacencies[forward].hasSameLinks(as: old.adjacencies[forward], sources: sources) else { return false }
    return schema.order(of: relationship).map { orders[$0].hasSameKeys(as: old.orders[$0], sources: sources) } ?? true
  }

  /// Whether all values of a uniqueness constraint are unchanged since an older generation.
  ///
  /// - Parameters:
  ///   - old: The older generation.
  ///   - constraint: The index of the constraint in ``TableSchema/uniqueConstraints``.
  public func hasSameUniqueValues(as old: TableGeneration, constraint: Int) -> Bool {
    var place = constraint
    for (table, constraints) in schema.constraints.enumerated() {
      if place < constraints.count { return tables[table].unique[place].isSame(as: old.tables[table].unique[place]) }
      place -= constraints.count
    }
    return false
  }
}
