import HoldfastAtomicStore
import HoldfastStore

/// Updates the index of a uniqueness constraint in a save: adds and removes the entries of changed rows, and copies sections
/// without changes. Without an old file, it writes the entries of all rows.
struct IndexChange {
  private let constraint: UniqueConstraint
  private let generation: TableGeneration
  /// The sections of the old file, ascending.
  private let parts: [FilePart]
  /// Whether the constraint's values are unchanged since the old file, so that no row needs processing.
  let isSame: Bool
  private var added: [IndexSections.Entry] = []
  private var removed: [IndexSections.Entry] = []

  /// If a section has more entries than this, all entries are divided into new sections.
  private static let mostEntries = 4 * IndexSections.usualCount

  init(_ number: Int, _ generation: TableGeneration, _ saved: SavedFile?) {
    constraint = generation.schema.uniqueConstraints[number]
    self.generation = generation
    parts = saved?.parts.filter { $0.kind == Int(BinaryLayout.Kind.unique.rawValue) && $0.subject == number } ?? []
    isSame = saved.map { generation.hasSameUniqueValues(as: $0.generation, constraint: number) } ?? false
    // A new file has an entry for nearly every row.
    if saved == nil { added.reserveCapacity(constraint.entities.reduce(0) { $0 + generation.rowCount(of: $1) }) }
  }

  /// Adds a row of a new file.
  mutating func add(_ row: RowPointer) { if let entry = entry(row) { added.append(entry) } }

  /// Processes a changed row. `old` is nil for an inserted row, and `new` is nil for a deleted row.
  mutating func change(_ old: RowPointer?, _ new: RowPointer?) {
    let (old, new) = (old.flatMap(entry), new.flatMap(entry))
    if old?.digest == new?.digest { return }
    if let old { removed.append(old) }
    if let new { added.append(new) }
  }

  @inline(__always) private func entry(_ row: RowPointer) -> IndexSections.Entry? {
    UniqueDigest.value(of: row, constraint).map { IndexSections.Entry(digest: $0, key: row.key.rawValue) }
  }

  /// Releases the collected entries.
  mutating func removeAll() { (added, removed) = ([], []) }

  /// Receives a section: its bytes, the number of entries, the smallest and largest upper half of their digests, and the digest of the
  /// bytes if known.
  typealias Take = (UnsafeRawBufferPointer, Int, ClosedRange<Int64>, UInt64?) throws -> Void

  /// Passes on the sections, ascending.
  func write(_ saved: SavedFile?, _ take: Take) throws {
    guard let saved else { return try writeAll(added, take) }
    let count = parts.reduce(0) { $0 + $1.count }
    // Without sections, there was no index yet, or it was empty.
    let isWorthIt = !parts.isEmpty && added.count + removed.count <= count / 2 && parts.allSatisfy { $0.count <= IndexChange.mostEntries }
    guard isWorthIt, let sections = try sections(saved) else { return try writeAll(allEntries(), take) }
    for section in sections { try write(section, saved, take) }
  }

  private func writeAll(_ entries: [IndexSections.Entry], _ take: Take) throws {
    try IndexSections.write(entries) { try take($0, $1, $2, nil) }
  }

  /// A section of the new file.
  private enum Next {
    /// A section of the old file, unchanged.
    case copied(FilePart)
    case made(IndexSections.Section, ClosedRange<Int64>)
  }

  private func write(_ next: Next, _ saved: SavedFile, _ take: Take) throws {
    switch next {
    case .made(let section, let range): try section.bytes.withUnsafeBytes { try take($0, section.count, range, nil) }
    case .copied(let part):
      if try saved.copy(part, { try take($0, part.count, part.first...part.last, part.digest) }) { return }
      // If the section can't be copied, recreate it from the rows.
      let entries = allEntries().filter { (part.first...part.last).contains(Int64($0.digest >> 32)) }
      if !entries.isEmpty { try write(.made(IndexSections.Section(entries), part.first...part.last), saved, take) }
    }
  }

  /// The entries of all rows.
  private func allEntries() -> [IndexSections.Entry] {
    var entries: [IndexSections.Entry] = []
    for entity in constraint.entities { generation.forEachRow(of: entity) { if let entry = entry($0) { entries.append(entry) } } }
    return entries
  }

  /// The updated sections of the old file; nil if they aren't in the expected state.
  private func sections(_ saved: SavedFile) throws -> [Next]? {
    var added = self.added.sorted { $0.digest < $1.digest }[...], removed = self.removed.sorted { $0.digest < $1.digest }[...]
    var sections: [Next] = []
    var next: Int64 = 0
    for part in parts {
      let between = IndexChange.prefix(of: &added, before: part.first)
      if !between.isEmpty { sections.append(.made(IndexSections.Section(between), next...part.first - 1)) }
      let (comes, goes) = (IndexChange.prefix(of: &added, before: part.last + 1), IndexChange.prefix(of: &removed, before: part.last + 1))
      next = part.last + 1
      if comes.isEmpty && goes.isEmpty {
        sections.append(.copied(part))
        continue
      }
      var section: IndexSections.Section?, isRight = false
      let isRead = try saved.copy(part) {
        section = IndexSections.Section($0, part)
        isRight = section?.change(removing: goes, adding: comes) ?? false
      }
      guard isRead, isRight, let section else { return nil }
      if section.count > 0 { sections.append(.made(section, part.first...part.last)) }
    }
    if !removed.isEmpty { return nil }
    if !added.isEmpty { sections.append(.made(IndexSections.Section(Array(added)), next...Int64(UInt32.max))) }
    return sections
  }

  /// Removes and returns the first entries of a sorted slice: those whose digest's upper half is less than `part`.
  private static func prefix(of entries: inout ArraySlice<IndexSections.Entry>, before part: Int64) -> [IndexSections.Entry] {
    let prefix = entries.prefix { Int64($0.digest >> 32) < part }
    entries = entries.dropFirst(prefix.count)
    return Array(prefix)
  }
}
