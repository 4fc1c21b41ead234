import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// A file whose sections are read on demand. What was read stays in memory, so nothing is read twice: rows, indexes, and the links of
/// relationships that were requested.
final class BinaryFile: PagedStoreFile {
  let header: StoreFileHeader
  let schema: TableSchema
  let history: HistoryLog?
  var path: String? { errors.path }
  let file: FileBytes
  let errors: BinaryErrors
  let allowsUnverified: Bool
  private let keepsRows: Bool
  let entries: [SectionEntry]
  let subjects: BinarySubjects
  /// For each entity, the positions of its row sections in the directory.
  let rowSections: [Range<Int>]
  /// The positions of the sections of each relationship in the directory.
  let linkPlaces: LinkPlaces
  private let rowCounts: [Int]
  /// For each constraint, the positions of its index sections in the directory; nil if the file has no index.
  private let indexPlaces: [Range<Int>?]
  private let decoders: [RowSectionDecoder]
  /// What was read of rows and links. Guarded because any thread can read.
  let pages: Mutex<ReadPages>
  /// The index sections that were read, by directory index.
  private let indexes: Mutex<[[UInt8]?]>

  /// Reads everything except rows, links and indexes.
  ///
  /// - Parameter keepsRows: Whether rows that were read stay in memory. Defaults to true; false for reading everything once.
  /// - Throws: ``StoreError`` with code `notAStore`, `newerFormat`, `damaged` or `incompatibleModel`, and errors from reading the
  ///   file.
  init(
    _ file: FileBytes, model: ManagedObjectModel, _ errors: BinaryErrors, _ options: BinaryStoreOptions, keepsRows: Bool = true
  ) throws {
    (allowsUnverified, self.keepsRows) = (options.wholeFile.allowsUnverified, keepsRows)
    let opened = try BinaryOpening(file, errors, allowsUnverified: allowsUnverified)
    let info = try opened.info()
    header = info.header
    if !header.nextKeys.values.allSatisfy(TableLoader.nextKeys.contains) { throw errors.damaged("An entity's next key is out of range.") }
    schema = try TableLoader(model: model, path: errors.path).beginTables(info.header)
    // Using the property in a loop over thousands of sections would retain its parts each time.
    let subjects = try BinarySubjects(info, schema, errors)
    self.subjects = subjects
    entries = opened.directory.entries
    history = try opened.history()
    (self.file, self.errors) = (file, errors.whileOpen)
    pages = Mutex(ReadPages(count: entries.count))
    indexes = Mutex(Array(repeating: nil, count: entries.count))
    decoders = model.entities.map { [identity = schema.identity] in RowSectionDecoder($0, identity: identity) }
    (rowSections, rowCounts) = try BinaryFile.rowSections(entries, subjects, model, errors)
    var memory = RowMemory(options.wholeFile, fileByteCount: file.byteCount)
    for entity in model.entities {
      if let excess = memory.add(rowCounts[entity.index], entity.layout) { throw errors.tooLarge(excess) }
    }
    for entry in entries where !subjects.knows(entry) {
      throw errors.newerFormat("a section for an entity, relationship or constraint that isn't in the model")
    }
    indexPlaces = BinaryFile.indexPlaces(entries, subjects, allowsUnverified: allowsUnverified)
    linkPlaces = LinkPlaces(entries, subjects, schema.model)
    if !allowsUnverified { try checkLinkCounts() }
  }

  /// Finds the sections of each constraint. If digests aren't verified, no index is trusted, because it could point to the wrong
  /// rows.
  private static func indexPlaces(_ entries: [SectionEntry], _ subjects: BinarySubjects, allowsUnverified: Bool) -> [Range<Int>?] {
    if allowsUnverified { return subjects.constraintNumbers.map { _ in nil } }
    return subjects.constraintNumbers.map { number in
      number.map { number in
        let first = entries.firstIndex { $0.kind == .unique && $0.subject == number } ?? 0
        return first..<first + entries.count { $0.kind == .unique && $0.subject == number }
      }
    }
  }

  /// Finds the sections of each entity.
  private static func rowSections(
    _ entries: [SectionEntry], _ subjects: BinarySubjects, _ model: ManagedObjectModel, _ errors: BinaryErrors
  ) throws -> ([Range<Int>], [Int]) {
    var rowSections = Array(repeating: 0..<0, count: model.entities.count)
    var counts = Array(repeating: 0, count: model.entities.count)
    for (place, entry) in entries.enumerated() where entry.kind == .rows {
      guard entry.subject < subjects.entities.count, let entity = subjects.entities[entry.subject], !model.entities[entity].isAbstract
      else { throw errors.newerFormat("rows of an entity that isn't in the model") }
      // Each key takes four bytes.
      guard entry.count > 0, entry.count <= entry.byteCount / 4 else { throw errors.damaged("A section is too short for its rows.") }
      if rowSections[entity].isEmpty {
        rowSections[entity] = place..<place + 1
      } else if rowSections[entity].upperBound == place {
        rowSections[entity] = rowSections[entity].lowerBound..<place + 1
      } else {
        throw errors.damaged("The rows of an entity aren't contiguous.")
      }
      counts[entity] += entry.count
    }
    return (rowSections, counts)
  }

  /// The parts use the model's numbers of entities, relationships and constraints, which can differ from the file's.
  var saved: (bytes: FileBytes, parts: [FilePart]) {
    let trusted = allowsUnverified ? entries.filter { $0.kind != .unique && $0.kind != .inverse } : entries
    return (file, trusted.compactMap { entry in subjects.number(of: entry).map { entry.part(subject: $0) } })
  }

  // MARK: Sections

  func withSection<Result>(_ entry: SectionEntry, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    try BinaryOpening.withSection(entry, file, errors, allowsUnverified: allowsUnverified) { section in
      do {
        return try body(section)
      } catch let fault as SectionFault {
        throw errors.damaged("There is invalid data in \(entry.name). \(fault.reason)")
      }
    }
  }

  private func batch(_ place: Int, of entity: EntityIndex) throws -> RowBatch {
    if let known = pages.withLock({ $0.batches[place] }) { return known }
    let entry = entries[place]
    let read = try withSection(entry) { try decoders[entity].batch($0, count: entry.count, keys: entry.first...entry.last) }
    if !keepsRows { return read }
    return try pages.withLock { pages throws in
      // Another thread may have read the section in the meantime.
      if let batch = pages.batches[place] { return batch }
      guard pages.claims.settle(place, { read.confirms($0) }) else { throw contradiction() }
      pages.batches[place] = read
      return read
    }
  }

  // MARK: Rows

  func rowCount(of entity: EntityIndex) -> Int { rowCounts[entity] }

  func largestKey(of entity: EntityIndex) -> ObjectKey { ObjectKey(rowSections[entity].last.map { entries[$0].last } ?? 0) }

  func forEachPage(of entity: EntityIndex, _ body: (RowBatch) throws -> SinkDemand) throws {
    for place in rowSections[entity] where try body(batch(place, of: entity)) == .enough { return }
  }

  func row(entity: EntityIndex, key: ObjectKey) throws -> RowView? {
    let key = key.rawValue
    guard let place = BinaryFile.place(of: key, in: rowSections[entity], { entries[$0].last }), entries[place].first <= key
    else { return nil }
    let batch = try batch(place, of: entity)
    guard let index = BinaryFile.place(of: key, in: 0..<batch.count, { batch.pointer($0).key.rawValue }),
      batch.pointer(index).key.rawValue == key
    else { return nil }
    return batch[index]
  }

  /// The first index in an ascending range whose key is at least `key`; nil if there is none.
  static func place(of key: Int64, in range: Range<Int>, _ keyAt: (Int) -> Int64) -> Int? {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if keyAt(middle) < key { low = middle + 1 } else { high = middle }
    }
    return low < range.upperBound ? low : nil
  }

  // MARK: Indexes

  func keys(digest: UInt64, constraint: Int) throws -> [ObjectKey]? {
    guard let places = indexPlaces[constraint] else { return nil }
    let part = Int64(digest >> 32)
    guard let place = BinaryFile.place(of: part, in: places, { entries[$0].last }), entries[place].first <= part else { return [] }
    return try index(place).withUnsafeBytes { IndexSections.keys(UInt32(truncatingIfNeeded: digest), in: $0, entries[place]) }
  }

  private func index(_ place: Int) throws -> [UInt8] {
    if let known = indexes.withLock({ $0[place] }) { return known }
    let entry = entries[place]
    let bytes = try withSection(entry) { section in
      try IndexSections.check(section, entry)
      return Array(section)
    }
    indexes.withLock { $0[place] = bytes }
    return bytes
  }

  // MARK: Everything

  func read(into loader: TableLoader) throws {
    _ = try loader.begin(header)
    if let history { loader.take(history: history) }
    for entity in schema.model.entityIndexes {
      try forEachPage(of: entity) { batch in
        try loader.take(batch, of: entity)
        return .more
      }
    }
    let links = Dictionary(grouping: entries.filter { $0.kind == .links }, by: \.subject)
    let lists = Dictionary(grouping: entries.filter { $0.kind == .order }, by: \.subject)
    for (number, relationship) in subjects.relationships.enumerated() {
      if let relationship { try readLinks(links[number] ?? [], lists[number] ?? [], of: relationship, into: loader) }
    }
    // Indexes aren't loaded, but they are checked for damage.
    for constraint in schema.uniqueConstraints.indices { try compareIndex(constraint) }
    // The digests of what isn't needed are verified as well.
    for entry in entries where entry.kind == .model || entry.kind == .inverse { try withSection(entry) { _ in } }
  }

  /// Compares the entries of an index with the rows.
  private func compareIndex(_ number: Int) throws {
    guard let sections = indexPlaces[number] else { return }
    let constraint = schema.uniqueConstraints[number]
    var difference = LinkDigest()
    for place in sections {
      try withSection(entries[place]) { bytes in
        try IndexSections.check(bytes, entries[place])
        IndexSections.forEach(in: bytes, entries[place]) { difference.subtract(source: BinaryFile.source(place, $0), target: $1) }
      }
    }
    for entity in constraint.entities {
      try forEachPage(of: entity) { batch in
        for index in 0..<batch.count {
          guard let digest = UniqueDigest.value(of: batch.pointer(index), constraint) else { continue }
          let part = Int64(digest >> 32)
          var place = BinaryFile.place(of: part, in: sections) { entries[$0].last } ?? sections.upperBound
          if place < sections.upperBound && entries[place].first > part { place = sections.upperBound }
          difference.add(source: BinaryFile.source(place, UInt32(truncatingIfNeeded: digest)), target: batch.pointer(index).key)
        }
        return .more
      }
    }
    if !difference.isEven {
      throw errors.damaged(
        "The index of \(constraint.names.joined(separator: ", ")) of \(schema.model.entities[constraint.entity].name) "
          + "doesn't match the rows."
      )
    }
  }

  /// A number for an entry of an index, so that a digest of links can compare entries.
  @inline(__always) private static func source(_ place: Int, _ digest: UInt32) -> ObjectKey {
    ObjectKey(Int64(place) << 32 | Int64(digest))
  }

  private func readLinks(
    _ links: [SectionEntry], _ lists: [SectionEntry], of relationship: ManagedObjectModel.Relationship, into loader: TableLoader
  ) throws {
    guard links.isEmpty || relationship.storesLinks, lists.isEmpty || relationship.isOrdered else {
      throw errors.newerFormat("links or lists of a relationship that doesn't store them")
    }
    if !links.isEmpty {
      var found: [SaveRequest.Link] = []
      found.reserveCapacity(links.reduce(0) { $0 + min($1.count, $1.byteCount) })
      for entry in links { try withSection(entry) { try LinkSections.read($0, entry, into: &found) } }
      loader.take(links: found, of: relationship)
    }
    // Required even without a section, to check that the relationship then has no links.
    if relationship.isOrdered {
      var found: [SaveRequest.Link] = [], keys: [Int64] = []
      for entry in lists { try withSection(entry) { try OrderSections.read($0, entry, into: &found, &keys) } }
      loader.take(order: found, keys: keys, of: relationship)
    }
  }
}

/// Reads the header of a file, with or without a model.
struct BinaryOpening {
  let directory: BinaryDirectory
  private let file: FileBytes
  private let errors: BinaryErrors
  private let allowsUnverified: Bool

  init(_ file: FileBytes, _ errors: BinaryErrors, allowsUnverified: Bool) throws {
    directory = try BinaryDirectory(file, errors, allowsUnverified: allowsUnverified)
    (self.file, self.errors, self.allowsUnverified) = (file, errors, allowsUnverified)
  }

  /// The store information.
  func info() throws -> BinaryInfo {
    do {
      return try BinaryInfo(bytes(of: .info), storeUUID: directory.storeUUID, generation: directory.generation)
    } catch let error as PropertyListError {
      throw errors.damaged("The store information can't be read.", error)
    }
  }

  /// The history; nil if the file has none.
  func history() throws -> HistoryLog? {
    if !directory.entries.contains(where: { $0.kind == .history }) { return nil }
    if let history = try HistoryLog(bytes(of: .history)) { return history }
    throw errors.damaged("The history is invalid.")
  }

  /// The model, as canonical JSON.
  func model() throws -> [UInt8] { try bytes(of: .model) }

  private func bytes(of kind: BinaryLayout.Kind) throws -> [UInt8] {
    let found = directory.entries.filter { $0.kind == kind && $0.subject == 0 }
    guard found.count == 1 else { throw errors.damaged("The store information or the model is missing, or appears twice.") }
    return try BinaryOpening.withSection(found[0], file, errors, allowsUnverified: allowsUnverified) { Array($0) }
  }

  /// Reads a section and verifies its digest.
  static func withSection<Result>(
    _ entry: SectionEntry, _ file: FileBytes, _ errors: BinaryErrors, allowsUnverified: Bool,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    guard let base = malloc(max(entry.byteCount, 1)) else {
      throw errors.tooLarge("There isn't enough memory for the \(entry.byteCount) bytes of \(entry.name). Free memory and try again.")
    }
    defer { free(base) }
    let section = UnsafeMutableRawBufferPointer(start: base, count: entry.byteCount)
    try file.read(at: entry.offset, into: section, operation: errors.operation)
    if !allowsUnverified && ContentDigest.value(of: UnsafeRawBufferPointer(section)) != entry.digest { throw errors.unverified(entry.name) }
    return try body(UnsafeRawBufferPointer(section))
  }
}
