import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes a store to a file sequentially. It copies unchanged sections from the file it replaces, and patches sections with few
/// changes.
struct BinaryWriter {
  private let image: StoreImage
  private let model: [UInt8]
  private let file: FileReplacement
  private let saved: SavedFile?
  private var entries: [SectionEntry] = []
  private var offset = Int64(BinaryLayout.headerByteCount)
  /// The changes to the index of each constraint.
  private var indexes: [IndexChange]
  private var generation: TableGeneration { image.generation }
  private var schema: TableSchema { image.generation.schema }

  /// The approximate size of a section in bytes. Rows are measured in memory, links and lists in the file.
  static let usualByteCount = 1 << 16
  /// Smaller sections are rewritten if a neighboring section is, so that small sections don't accumulate.
  static let smallByteCount = usualByteCount / 8

  init(_ image: StoreImage, model: [UInt8], to file: FileReplacement, after saved: SavedFile?) {
    self.image = image
    self.model = model
    self.file = file
    self.saved = saved
    indexes = image.generation.schema.uniqueConstraints.indices.map { IndexChange($0, image.generation, saved) }
  }

  /// The sections, for the next save.
  var parts: [FilePart] { entries.map { $0.part(subject: $0.subject) } }

  mutating func write() throws {
    guard let uuid = UUID(uuidString: image.header.storeUUID) else {
      throw StoreError(.unstorableValue, operation: "write the store", reason: "The store's UUID \(image.header.storeUUID) is invalid.")
    }
    let header = BinaryLayout.header(uuid: uuid)
    try header.withUnsafeBytes { try file.write($0) }
    try putBytes(.info, BinaryInfo(image).bytes())
    try putBytes(.model, model)
    for entity in image.model.entities { try putRows(of: entity) }
    for (number, relationship) in BinaryInfo.listed(image.model).enumerated() where relationship.storesLinks {
      try putLinks(of: relationship, number)
    }
    for (number, relationship) in BinaryInfo.listed(image.model).enumerated() where relationship.isOrdered {
      try putLists(of: relationship, number)
    }
    for number in indexes.indices { try putIndex(number) }
    if let history = image.history { try putBytes(.history, history.bytes) }
    let inverted = BinaryInfo.inverted(image.model)
    if !inverted.isEmpty {
      let links = InverseSections.Writer()
      for (number, relationship) in inverted.enumerated() { try putInverses(of: relationship, number, links) }
    }
    try putEnd(header)
  }

  // MARK: Sections

  private mutating func put(
    _ kind: BinaryLayout.Kind, _ subject: Int, _ bytes: UnsafeRawBufferPointer, count: Int, _ range: ClosedRange<Int64>,
    digest: UInt64? = nil
  ) throws {
    entries.append(
      SectionEntry(
        kind: kind, subject: subject, offset: offset, byteCount: bytes.count, digest: digest ?? ContentDigest.value(of: bytes),
        count: count,
        first: range.lowerBound, last: range.upperBound))
    offset += Int64(bytes.count)
    try file.write(bytes)
  }

  private mutating func putBytes(_ kind: BinaryLayout.Kind, _ bytes: [UInt8]) throws {
    try bytes.withUnsafeBytes { try put(kind, 0, $0, count: 1, 0...0) }
  }

  private func putEnd(_ header: [UInt8]) throws {
    var directory = ByteWriter()
    for entry in entries { entry.append(to: &directory) }
    let bytes = directory.bytes
    let footer = Footer(
      directoryOffset: offset, directoryByteCount: bytes.count, entryCount: entries.count, generation: image.header.generation,
      fileByteCount: offset + Int64(bytes.count + BinaryLayout.footerByteCount),
      directoryDigest: bytes.withUnsafeBytes { ContentDigest.value(of: $0) })
    try bytes.withUnsafeBytes { try file.write($0) }
    try footer.bytes(header: header).withUnsafeBytes { try file.write($0) }
  }

  /// Writes the sections of a subject. Keeps sections of the old file with few or no changes, and writes the key ranges between
  /// them.
  ///
  /// - Parameters:
  ///   - isKept: Whether to keep a section.
  ///   - keep: Writes a kept section, and returns whether that succeeded. Defaults to nil, which copies the section.
  ///   - write: Writes everything in a range of keys.
  private mutating func putSections(
    _ kind: BinaryLayout.Kind, _ subject: Int, isKept: (TableGeneration, FilePart) -> Bool,
    keep: ((inout BinaryWriter, SavedFile, FilePart) throws -> Bool)? = nil,
    _ write: (inout BinaryWriter, ClosedRange<ObjectKey>) throws -> Void
  ) throws {
    var next = TableLoader.keys.lowerBound
    if let saved {
      for part in saved.kept(kind: Int(kind.rawValue), subject: subject, smallByteCount: BinaryWriter.smallByteCount, isKept) {
        let keys = part.keys
        if keys.lowerBound > next { try write(&self, next...keys.lowerBound.advanced(by: -1)) }
        let isDone = try keep?(&self, saved, part) ?? copy(part, kind, subject, saved)
        if !isDone { try write(&self, keys) }
        next = keys.upperBound.advanced(by: 1)
      }
    }
    if next <= TableLoader.keys.upperBound { try write(&self, next...TableLoader.keys.upperBound) }
  }

  private mutating func copy(_ part: FilePart, _ kind: BinaryLayout.Kind, _ subject: Int, _ saved: SavedFile) throws -> Bool {
    try saved.copy(part) { try put(kind, subject, $0, count: part.count, part.first...part.last, digest: part.digest) }
  }

  // MARK: Rows

  private mutating func putRows(of entity: ManagedObjectModel.Entity) throws {
    let buffer = RowSectionBuffer()
    let encoder = RowSectionEncoder(entity, buffer), patcher = RowSectionPatcher(entity, buffer), index = entity.index
    // Not an `Array`, whose `span` needs macOS 26.
    let byteSlots = ContiguousArray(entity.layout.slots.filter { entity.layout.kinds[$0] == .bytes })
    let changes = tellChanges(of: index)
    try putSections(
      .rows, index.rawValue, isKept: { changes.areFew(in: $1) },
      keep: { writer, saved, part in
        let changes = changes.changes(in: part)
        if changes.isEmpty { return try writer.copy(part, .rows, index.rawValue, saved) }
        return try writer.patch(part, index, saved, patcher, changes)
      }
    ) { try $0.putRows(of: entity, $1, encoder, byteSlots) }
  }

  /// Writes a section with few changes.
  private mutating func patch(
    _ part: FilePart, _ entity: EntityIndex, _ saved: SavedFile, _ patcher: RowSectionPatcher, _ changes: ArraySlice<RowChange>
  ) throws -> Bool {
    var isDone = false
    let isRead = try saved.copy(part) { section in
      guard let patched = patcher.patch(section, count: part.count, first: part.first, changes),
        patched.bytes.count <= BinaryWriter.usualByteCount
      else { return }
      try put(.rows, entity.rawValue, patched.bytes, count: patched.count, patched.keys)
      isDone = true
    }
    return isRead && isDone
  }

  private mutating func putRows(
    of entity: ManagedObjectModel.Entity, _ keys: ClosedRange<ObjectKey>, _ encoder: RowSectionEncoder,
    _ byteSlots: ContiguousArray<SlotIndex>
  ) throws {
    let fixed = entity.layout.fixedByteCount
    var rows: [RowPointer] = [], bytesCount = 0
    try generation.forEachRow(of: entity.index, keys: keys) { row in
      let rowBytesCount = BinaryWriter.byteCount(row, byteSlots)
      var isPut = false
      if let first = rows.first, let last = rows.last,
        (rows.count + 1) * fixed + bytesCount + rowBytesCount > BinaryWriter.usualByteCount
      {
        try put(
          .rows, entity.index.rawValue, encoder.encode(rows, bytesCount: bytesCount), count: rows.count,
          first.key.rawValue...last.key.rawValue)
        rows.removeAll(keepingCapacity: true)
        bytesCount = 0
        isPut = true
      }
      rows.append(row)
      bytesCount += rowBytesCount
      return isPut
    }
    guard let first = rows.first, let last = rows.last else { return }
    try put(
      .rows, entity.index.rawValue, encoder.encode(rows, bytesCount: bytesCount), count: rows.count, first.key.rawValue...last.key.rawValue)
  }

  /// The number of bytes of a row's strings and other values of variable length.
  @inline(__always) private static func byteCount(_ row: RowPointer, _ slots: ContiguousArray<SlotIndex>) -> Int {
    let slots = slots.span
    var count = 0
    for index in slots.indices where row.isPresent(slots[index]) { count &+= row.bytes(slots[index]).count }
    return count
  }

  /// Finds the rows of an entity that changed since the old file, and updates the indexes. For a new file, it only adds all rows to
  /// the indexes.
  private mutating func tellChanges(of entity: EntityIndex) -> RowChanges {
    let constraints = indexes.indices.filter { !indexes[$0].isSame && schema.uniqueConstraints[$0].entities.contains(entity) }
    var changes = RowChanges()
    if let saved {
      generation.forEachChange(since: saved.generation, of: entity, keys: TableLoader.keys) { old, new in
        changes.append(old, new)
        for number in constraints { indexes[number].change(old, new) }
      }
      changes.sort()
    } else if !constraints.isEmpty {
      generation.forEachRow(of: entity) { row in
        for number in constraints { indexes[number].add(row) }
      }
    }
    return changes
  }

  // MARK: Links

  private mutating func putLinks(of relationship: ManagedObjectModel.Relationship, _ number: Int) throws {
    try putSections(
      .links, number, isKept: { [generation] in generation.hasSameLinks(as: $0, relationship, sources: $1.keys) }
    ) {
      try $0.putLinks(of: relationship, number, $1)
    }
  }

  private mutating func putLinks(of relationship: ManagedObjectModel.Relationship, _ number: Int, _ sources: ClosedRange<ObjectKey>) throws
  {
    var links = LinkSections.Writer()
    try generation.forEachTargets(of: relationship, sources: sources) { source, targets in
      if links.bytes.count >= BinaryWriter.usualByteCount { try put(&links, number) }
      links.add(source, targets)
    }
    try put(&links, number)
  }

  private mutating func put(_ links: inout LinkSections.Writer, _ number: Int) throws {
    if links.count == 0 { return }
    try put(.links, number, links.bytes, count: links.count, links.first...links.last)
    links.removeAll()
  }

  private mutating func putLists(of relationship: ManagedObjectModel.Relationship, _ number: Int) throws {
    let reader = generation.links(of: relationship)
    try putSections(
      .order, number,
      isKept: { [generation] in
        // A deleted source has no list, although its links may still exist.
        generation.hasSameLinks(as: $0, relationship, sources: $1.keys)
          && generation.hasSameRows(as: $0, entity: relationship.entityIndex, keys: $1.keys)
      }
    ) {
      try $0.putLists(of: relationship, number, reader, $1)
    }
  }

  private mutating func putLists(
    of relationship: ManagedObjectModel.Relationship, _ number: Int, _ reader: LinkReader, _ sources: ClosedRange<ObjectKey>
  ) throws {
    var lists = OrderSections.Writer()
    try generation.forEachSource(of: relationship, sources: sources) { source in
      let targets = reader.orderedTargets(of: source)
      if targets.isEmpty { return }
      lists.add(source, targets)
      if lists.bytes.count >= BinaryWriter.usualByteCount { try put(&lists, number) }
    }
    try put(&lists, number)
  }

  private mutating func put(_ lists: inout OrderSections.Writer, _ number: Int) throws {
    if lists.count == 0 { return }
    try put(.order, number, lists.bytes, count: lists.count, lists.first...lists.last)
    lists.removeAll()
  }

  private mutating func putInverses(
    of relationship: ManagedObjectModel.Relationship, _ number: Int, _ links: InverseSections.Writer
  ) throws {
    try putSections(
      .inverse, number, isKept: { [generation] in generation.hasSameLinks(as: $0, relationship, sources: $1.keys) }
    ) { writer, owners in
      try writer.generation.forEachBlock(of: relationship, sources: owners) { block in
        var position = 0
        while position < block.owners.count {
          if links.isFull { try writer.put(links, number) }
          position = links.add(block, from: position)
        }
      }
      try writer.put(links, number)
    }
  }

  private mutating func put(_ links: InverseSections.Writer, _ number: Int) throws {
    if links.count == 0 { return }
    try put(.inverse, number, links.encode(), count: links.count, links.first...links.last)
    links.removeAll()
  }

  // MARK: Indexes

  private mutating func putIndex(_ number: Int) throws {
    let change = indexes[number]
    indexes[number].removeAll()
    try change.write(saved) {
      try IndexSections.checkCount($1, schema.uniqueConstraints[number])
      try put(.unique, number, $0, count: $1, $2, digest: $3)
    }
  }
}
