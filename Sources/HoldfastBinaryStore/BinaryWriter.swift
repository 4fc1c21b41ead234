import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes a store as a file, from the first byte to the last.
struct BinaryWriter {
  private let image: StoreImage
  private let model: [UInt8]
  private let file: FileReplacement
  private var entries: [SectionEntry] = []
  private var offset = Int64(BinaryLayout.headerByteCount)
  /// The index entries of each constraint.
  private var indexes: [[IndexSections.Entry]]
  private var schema: TableSchema { image.generation.schema }

  /// About how many bytes rows of a section take in memory, and links and lists in the file.
  private static let usualByteCount = 1 << 16

  init(_ image: StoreImage, model: [UInt8], to file: FileReplacement) {
    self.image = image
    self.model = model
    self.file = file
    indexes = image.generation.schema.uniqueConstraints.map { _ in [] }
  }

  mutating func write() throws {
    guard let uuid = UUID(uuidString: image.header.storeUUID) else {
      throw StoreError(.unstorableValue, operation: "write the store", reason: "The store's UUID \(image.header.storeUUID) is none.")
    }
    let header = BinaryLayout.header(uuid: uuid)
    try header.withUnsafeBytes { try file.write($0) }
    try putBytes(.info, BinaryInfo(image).bytes())
    try putBytes(.model, model)
    for entity in image.model.entities { try putRows(of: entity) }
    for (number, relationship) in BinaryInfo.listed(image.model).enumerated() where BinaryInfo.isListOfLinks(relationship) {
      try putLinks(of: relationship, number)
    }
    for (number, relationship) in BinaryInfo.listed(image.model).enumerated() where relationship.isOrdered {
      try putLists(of: relationship, number)
    }
    for number in indexes.indices { try putIndex(number) }
    try putEnd(header)
  }

  // MARK: Sections

  private mutating func put(
    _ kind: BinaryLayout.Kind, _ subject: Int, _ bytes: UnsafeRawBufferPointer, count: Int, _ range: ClosedRange<Int64>
  ) throws {
    entries.append(
      SectionEntry(
        kind: kind, subject: subject, offset: offset, byteCount: bytes.count, digest: ContentDigest.value(of: bytes), count: count,
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

  // MARK: Rows

  private mutating func putRows(of entity: ManagedObjectModel.Entity) throws {
    let encoder = PageEncoder(entity.layout)
    let constraints = schema.uniqueConstraints.enumerated().filter { $0.element.entities.contains(entity.index) }
    for (number, _) in constraints { indexes[number].reserveCapacity(indexes[number].count + image.generation.rowCount(of: entity.index)) }
    let byteSlots = entity.layout.kinds.indices.filter { entity.layout.kinds[$0] == .bytes }
    var rows: [RowPointer] = [], bytesCount = 0
    try image.generation.forEachRow(of: entity.index) { row in
      for (number, constraint) in constraints {
        if let digest = UniqueDigest.value(of: row, constraint) { indexes[number].append(.init(digest: digest, key: row.key)) }
      }
      rows.append(row)
      for slot in byteSlots where row.isPresent(slot) { bytesCount += row.bytes(slot).count }
      if rows.count * entity.layout.fixedByteCount + bytesCount >= BinaryWriter.usualByteCount {
        try put(.rows, entity.index, encoder.encode(rows, bytesCount: bytesCount), count: rows.count, rows[0].key...row.key)
        rows.removeAll(keepingCapacity: true)
        bytesCount = 0
      }
    }
    guard let first = rows.first, let last = rows.last else { return }
    try put(.rows, entity.index, encoder.encode(rows, bytesCount: bytesCount), count: rows.count, first.key...last.key)
  }

  // MARK: Links

  private mutating func putLinks(of relationship: ManagedObjectModel.Relationship, _ number: Int) throws {
    var links = LinkSections.Writer()
    func end(_ writer: inout BinaryWriter) throws {
      links.endSource()
      if links.count == 0 { return }
      try links.bytes.bytes.withUnsafeBytes { try writer.put(.links, number, $0, count: links.count, links.first...links.last) }
      links.removeAll()
    }
    try image.generation.forEachLink(of: relationship) { link in
      if link.source != links.last && links.bytes.bytes.count >= BinaryWriter.usualByteCount { try end(&self) }
      links.add(link)
    }
    try end(&self)
  }

  private mutating func putLists(of relationship: ManagedObjectModel.Relationship, _ number: Int) throws {
    var lists = OrderSections.Writer()
    func end(_ writer: inout BinaryWriter) throws {
      if lists.count == 0 { return }
      try lists.bytes.bytes.withUnsafeBytes { try writer.put(.order, number, $0, count: lists.count, lists.first...lists.last) }
      lists.removeAll()
    }
    let reader = image.generation.links(of: relationship)
    try image.generation.forEachSource(of: relationship) { source in
      let targets = reader.orderedTargets(of: source)
      if targets.isEmpty { return }
      lists.add(source, targets)
      if lists.bytes.bytes.count >= BinaryWriter.usualByteCount { try end(&self) }
    }
    try end(&self)
  }

  // MARK: Indexes

  private mutating func putIndex(_ number: Int) throws {
    let entries = indexes[number]
    indexes[number] = []
    try IndexSections.write(entries) { try put(.unique, number, $0, count: $1, $2) }
  }
}
