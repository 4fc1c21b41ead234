import HoldfastAtomicStore
import HoldfastStore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A file of which sections are read when somebody needs them. What was read of rows and indexes stays, so that nothing is read twice.
final class BinaryFile: PagedStoreFile {
  let header: StoreFileHeader
  let schema: TableSchema
  var path: String? { errors.path }
  private let file: FileBytes
  private let errors: BinaryErrors
  private let allowsUnverified: Bool
  private let entries: [SectionEntry]
  private let subjects: BinarySubjects
  /// The places of each entity's rows in the directory.
  private let pages: [Range<Int>]
  private let rowCounts: [Int]
  /// The places of each constraint's index in the directory; nil for one of which the file has none.
  private let indexPlaces: [Range<Int>?]
  private let decoders: [PageDecoder]
  /// The sections of rows that were read, by place; guarded because any thread may read.
  private let batches: Mutex<[RowBatch?]>
  /// The sections of indexes that were read, by place.
  private let indexes = Mutex<[Int: [UInt8]]>([:])

  /// Reads what there is besides rows, links and indexes.
  ///
  /// - Throws: ``StoreError``: `notAStore`, `newerFormat`, `damaged`, `incompatibleModel`; what reading throws.
  init(_ file: FileBytes, model: ManagedObjectModel, _ errors: BinaryErrors, _ options: BinaryStore.Options) throws {
    allowsUnverified = options.wholeFile.allowsUnverified
    let opened = try BinaryOpening(file, errors, allowsUnverified: allowsUnverified)
    let info = try opened.info()
    header = info.header
    if !header.nextKeys.values.allSatisfy(TableLoader.nextKeys.contains) { throw errors.damaged("The file says of keys what cannot be.") }
    schema = try TableLoader(model: model, path: errors.path).beginTables(info.header)
    subjects = try BinarySubjects(info, schema, errors)
    entries = opened.directory.entries
    (self.file, self.errors) = (file, errors.whileOpen)
    batches = Mutex(Array(repeating: nil, count: entries.count))
    decoders = model.entities.map { [identity = schema.identity] in PageDecoder($0, identity: identity) }
    (pages, rowCounts) = try BinaryFile.pages(entries, subjects, model, errors)
    var memory = RowMemory(options.wholeFile, fileByteCount: file.byteCount)
    for entity in model.entities {
      if let excess = memory.add(rowCounts[entity.index], entity.layout) { throw errors.tooLarge(excess) }
    }
    for entry in entries where !subjects.knows(entry) { throw errors.newerFormat("a section of what the model has not") }
    indexPlaces = BinaryFile.indexPlaces(entries, subjects, allowsUnverified: allowsUnverified)
  }

  /// Finds the sections of each constraint. Where digests need not be right no index is trusted: what it led to could be something else.
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
  private static func pages(
    _ entries: [SectionEntry], _ subjects: BinarySubjects, _ model: ManagedObjectModel, _ errors: BinaryErrors
  ) throws -> ([Range<Int>], [Int]) {
    var pages = Array(repeating: 0..<0, count: model.entities.count)
    var counts = Array(repeating: 0, count: model.entities.count)
    for (place, entry) in entries.enumerated() where entry.kind == .rows {
      guard entry.subject < subjects.entities.count, let entity = subjects.entities[entry.subject], !model.entities[entity].isAbstract
      else { throw errors.newerFormat("rows of an entity that the model has not") }
      // A key takes four bytes.
      guard entry.count > 0, entry.count <= entry.byteCount / 4 else { throw errors.damaged("A section of rows is too short for them.") }
      if pages[entity].isEmpty {
        pages[entity] = place..<place + 1
      } else if pages[entity].upperBound == place {
        pages[entity] = pages[entity].lowerBound..<place + 1
      } else {
        throw errors.damaged("The rows of an entity lie in two places.")
      }
      counts[entity] += entry.count
    }
    return (pages, counts)
  }

  /// Parts mean entities, relationships and constraints by the model's numbers, which may be others than the file's.
  var saved: (bytes: FileBytes, parts: [FilePart]) {
    let trusted = allowsUnverified ? entries.filter { $0.kind != .unique } : entries
    return (file, trusted.compactMap { entry in subjects.number(of: entry).map { entry.part(subject: $0) } })
  }

  // MARK: Sections

  private func withSection<Result>(_ entry: SectionEntry, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    try BinaryOpening.withSection(entry, file, errors, allowsUnverified: allowsUnverified) { section in
      do {
        return try body(section)
      } catch let fault as SectionFault {
        throw errors.damaged("There is something wrong with \(entry.name). \(fault.reason)")
      }
    }
  }

  private func batch(_ place: Int, of entity: Int) throws -> RowBatch {
    if let known = batches.withLock({ $0[place] }) { return known }
    let entry = entries[place]
    let read = try withSection(entry) { try decoders[entity].batch($0, count: entry.count, keys: entry.first...entry.last) }
    return batches.withLock { batches in
      // Somebody else may have been faster.
      let batch = batches[place] ?? read
      batches[place] = batch
      return batch
    }
  }

  // MARK: Rows

  func rowCount(of entity: Int) -> Int { rowCounts[entity] }

  func largestKey(of entity: Int) -> Int64 { pages[entity].last.map { entries[$0].last } ?? 0 }

  func forEachPage(of entity: Int, _ body: (RowBatch) throws -> SinkDemand) throws {
    for place in pages[entity] where try body(batch(place, of: entity)) == .enough { return }
  }

  func row(entity: Int, key: Int64) throws -> RowView? {
    guard let place = BinaryFile.place(of: key, in: pages[entity], { entries[$0].last }), entries[place].first <= key else { return nil }
    let batch = try batch(place, of: entity)
    guard let index = BinaryFile.place(of: key, in: 0..<batch.count, { batch.pointer($0).key }), batch.pointer(index).key == key else {
      return nil
    }
    return batch[index]
  }

  /// The first of ascending places whose key is not below another; nil when all are.
  private static func place(of key: Int64, in range: Range<Int>, _ keyAt: (Int) -> Int64) -> Int? {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if keyAt(middle) < key { low = middle + 1 } else { high = middle }
    }
    return low < range.upperBound ? low : nil
  }

  // MARK: Indexes

  func keys(digest: UInt64, constraint: Int) throws -> [Int64]? {
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
    for entity in pages.indices {
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
    // Nothing is made of indexes, but what is wrong with them is found.
    for constraint in schema.uniqueConstraints.indices { try compareIndex(constraint) }
    for entry in entries where entry.kind == .model { try withSection(entry) { _ in } }
  }

  /// Compares the entries of an index with the rows.
  private func compareIndex(_ number: Int) throws {
    guard let sections = indexPlaces[number] else { return }
    let constraint = schema.uniqueConstraints[number]
    var difference = LinkDigest()
    for place in sections {
      try withSection(entries[place]) { bytes in
        try IndexSections.check(bytes, entries[place])
        IndexSections.forEach(in: bytes, entries[place]) { difference.subtract(source: Int64(place) << 32 | Int64($0), target: $1) }
      }
    }
    for entity in constraint.entities {
      try forEachPage(of: entity) { batch in
        for index in 0..<batch.count {
          guard let digest = UniqueDigest.value(of: batch.pointer(index), constraint) else { continue }
          let part = Int64(digest >> 32)
          var place = BinaryFile.place(of: part, in: sections) { entries[$0].last } ?? sections.upperBound
          if place < sections.upperBound && entries[place].first > part { place = sections.upperBound }
          difference.add(source: Int64(place) << 32 | Int64(digest & 0xFFFF_FFFF), target: batch.pointer(index).key)
        }
        return .more
      }
    }
    if !difference.isEven {
      throw errors.damaged(
        "The index of \(constraint.names.joined(separator: ", ")) of \(schema.model.entities[constraint.entity].name) is not that of the rows."
      )
    }
  }

  private func readLinks(
    _ links: [SectionEntry], _ lists: [SectionEntry], of relationship: ManagedObjectModel.Relationship, into loader: TableLoader
  ) throws {
    guard links.isEmpty || BinaryInfo.isListOfLinks(relationship), lists.isEmpty || relationship.isOrdered else {
      throw errors.newerFormat("links of a relationship that the model has not")
    }
    if !links.isEmpty {
      var found: [SaveRequest.Link] = []
      found.reserveCapacity(links.reduce(0) { $0 + min($1.count, $1.byteCount) })
      for entry in links { try withSection(entry) { try LinkSections.read($0, entry, into: &found) } }
      loader.take(links: found, of: relationship)
    }
    // Also without any list: then there may be no links.
    if relationship.isOrdered {
      var found: [SaveRequest.Link] = [], keys: [Int64] = []
      for entry in lists { try withSection(entry) { try OrderSections.read($0, entry, into: &found, &keys) } }
      loader.take(order: found, keys: keys, of: relationship)
    }
  }
}

/// What is read when a file is opened, with a model or without.
struct BinaryOpening {
  let directory: BinaryDirectory
  private let file: FileBytes
  private let errors: BinaryErrors
  private let allowsUnverified: Bool

  init(_ file: FileBytes, _ errors: BinaryErrors, allowsUnverified: Bool) throws {
    directory = try BinaryDirectory(file, errors, allowsUnverified: allowsUnverified)
    (self.file, self.errors, self.allowsUnverified) = (file, errors, allowsUnverified)
  }

  /// What the file says of its store.
  func info() throws -> BinaryInfo {
    do {
      return try BinaryInfo(bytes(of: .info), storeUUID: directory.storeUUID, generation: directory.generation)
    } catch let error as PropertyListError {
      throw errors.damaged("What the file says of itself cannot be read.", error)
    }
  }

  /// The model, as canonical JSON.
  func model() throws -> [UInt8] { try bytes(of: .model) }

  private func bytes(of kind: BinaryLayout.Kind) throws -> [UInt8] {
    let found = directory.entries.filter { $0.kind == kind && $0.subject == 0 }
    guard found.count == 1 else { throw errors.damaged("The file does not say of itself what every store says.") }
    return try BinaryOpening.withSection(found[0], file, errors, allowsUnverified: allowsUnverified) { Array($0) }
  }

  /// Reads a section and compares its digest.
  static func withSection<Result>(
    _ entry: SectionEntry, _ file: FileBytes, _ errors: BinaryErrors, allowsUnverified: Bool,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    guard let base = malloc(max(entry.byteCount, 1)) else {
      throw errors.tooLarge("There is no memory for the \(entry.byteCount) bytes of \(entry.name). Free some, and try again.")
    }
    defer { free(base) }
    let section = UnsafeMutableRawBufferPointer(start: base, count: entry.byteCount)
    try file.read(at: entry.offset, into: section, operation: errors.operation)
    if !allowsUnverified && ContentDigest.value(of: UnsafeRawBufferPointer(section)) != entry.digest { throw errors.unverified(entry.name) }
    return try body(UnsafeRawBufferPointer(section))
  }
}
