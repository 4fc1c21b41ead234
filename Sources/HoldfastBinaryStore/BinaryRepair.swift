import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension BinaryFormat: RepairableFormat {
  /// Reads the sections whose digests match, one by one.
  func recover(_ reader: FileReader, _ given: ManagedObjectModel?) throws -> RecoveredContents {
    let errors = BinaryErrors(path: path, operation: RepairRequest.operation)
    let sections = try SoundSections(reader.bytes, errors)
    var report = RepairReport()
    report.damagedPlaceCount = sections.damagedPlaceCount
    let model =
      try given ?? (try? sections.bytes(of: .model).map { try ManagedObjectModel.decoded(canonicalJSON: $0) })
      ?? { throw StoreError.lacksModel(path) }()
    let info = try info(sections, model, &report)
    let memory = RowMemory(options.wholeFile, fileByteCount: reader.byteCount)
    let loader = TableLoader(model: model, path: path, memory: memory), schema = try loader.beginTables(info.header)
    try load(sections, try BinarySubjects(info, schema, errors), into: loader, schema, &report)
    return RecoveredContents(loader, report)
  }

  private func info(_ sections: SoundSections, _ model: ManagedObjectModel, _ report: inout RepairReport) throws -> BinaryInfo {
    if let bytes = try sections.bytes(of: .info),
      let info = try? BinaryInfo(bytes, storeUUID: sections.storeUUID ?? SaveOrigin.newID().uuidString, generation: sections.generation)
    {
      if sections.storeUUID == nil {
        report.notes.append("The store's UUID is lost. The new store has another one.")
      } else if sections.damagedPlaceCount > 0 {
        report.notes.append("The store's UUID, and which entities and relationships the sections belong to, couldn't be verified.")
      }
      return info
    }
    // A save numbers entities and relationships in the order of the model.
    report.notes.append("The store's metadata is lost.")
    return BinaryInfo(try StoreImage(header: .replacement(of: model, storeUUID: sections.storeUUID), emptyFor: model))
  }

  private func load(
    _ sections: SoundSections, _ subjects: BinarySubjects, into loader: TableLoader, _ schema: TableSchema, _ report: inout RepairReport
  ) throws {
    var links: [Int: [SaveRequest.Link]] = [:], lists: [Int: ([SaveRequest.Link], [Int64])] = [:]
    for entry in sections.entries where subjects.knows(entry) {
      let isRead = try sections.read(entry) { bytes in
        switch entry.kind {
        case .rows:
          guard let entity = subjects.entities[entry.subject], !loader.model.entities[entity].isAbstract else { throw SectionFault("") }
          let decoder = RowSectionDecoder(loader.model.entities[entity], identity: schema.identity)
          try loader.take(decoder.batch(bytes, count: entry.count, keys: entry.first...entry.last), of: entity)
        // A section whose end is malformed adds nothing.
        case .links:
          var found: [SaveRequest.Link] = []
          try LinkSections.read(bytes, entry, into: &found)
          links[entry.subject, default: []] += found
        case .order:
          var found: [SaveRequest.Link] = [], keys: [Int64] = []
          try OrderSections.read(bytes, entry, into: &found, &keys)
          lists[entry.subject, default: ([], [])].0 += found
          lists[entry.subject, default: ([], [])].1 += keys
        case .info, .model, .unique, .history, .inverse: break
        }
      }
      if isRead { continue }
      report.damagedPlaceCount += 1
      // The directory may contain any count. A row takes at least four bytes.
      if entry.kind == .rows { report.unreadableCount += min(entry.count, entry.byteCount / 4) }
      if entry.kind == .links { report.notes.append("\(entry.count) links of \(subjects.name(entry, loader.model)) are lost.") }
    }
    for (number, relationship) in subjects.relationships.enumerated() {
      guard let relationship else { continue }
      if relationship.storesLinks { loader.take(links: links[number] ?? [], of: relationship) }
      if relationship.isOrdered { loader.take(order: lists[number]?.0 ?? [], keys: lists[number]?.1 ?? [], of: relationship) }
    }
  }
}

extension BinarySubjects {
  fileprivate func name(_ entry: SectionEntry, _ model: ManagedObjectModel) -> String {
    guard let relationship = relationships[entry.subject] else { return "a relationship" }
    return "\(model.entities[relationship.entityIndex].name).\(relationship.name)"
  }
}

/// The sections of a file whose directory may be damaged.
final class SoundSections {
  /// The entries of the directory that can be entries.
  private(set) var entries: [SectionEntry] = []
  /// The store's UUID; nil if the beginning of the file is damaged.
  private(set) var storeUUID: String?
  /// The generation number; 1 if it is lost.
  private(set) var generation: Int64 = 1
  /// The number of damaged parts of the header, the footer and the directory.
  private(set) var damagedPlaceCount = 0
  private let file: FileBytes
  private let errors: BinaryErrors
  /// Why the first bytes of an encrypted file that were lost can't be read.
  private var failure: StoreError?

  init(_ file: FileBytes, _ errors: BinaryErrors) throws {
    (self.file, self.errors) = (file, errors)
    do {
      let opening = try BinaryDirectory(file, errors, allowsUnverified: false)
      (entries, storeUUID, generation) = (opening.entries, opening.storeUUID, opening.generation)
      return
    } catch let error as StoreError where error.code == .newerFormat && BinaryDirectory.isSealed(file, errors) {
      // Not damage, which would also change the digest. What this version doesn't know would be lost.
      throw error
    } catch {}
    generation = try footerGeneration() ?? 1
    let header = try bytes(at: 0, BinaryLayout.headerByteCount)
    if let header, header.starts(with: BinaryLayout.mark) {
      storeUUID = header[16..<32].withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString }
    }
    damagedPlaceCount = 1
    try findEntries()
    guard entries.contains(where: { $0.kind == .rows }) || header?.starts(with: BinaryLayout.mark) == true else {
      throw failure ?? errors.notAStore()
    }
  }

  /// The generation number in the footer; nil if it is lost. A number above 2^40 is damage, because it counts saves.
  private func footerGeneration() throws -> Int64? {
    let place = file.byteCount - Int64(BinaryLayout.footerByteCount)
    guard let footer = try bytes(at: place, BinaryLayout.footerByteCount), footer.suffix(BinaryLayout.mark.count) == BinaryLayout.mark[...]
    else { return nil }
    let generation = footer.withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(fromByteOffset: 24, as: Int64.self)) }
    return (1...(1 << 40)).contains(generation) ? generation : nil
  }

  /// Finds entries, first from the one of the store information on. If that is damaged, from the end of the file back to the beginning of the
  /// directory.
  private func findEntries() throws {
    let count = Int(min(file.byteCount, Self.mostSearched)), start = file.byteCount - Int64(count)
    let tail = try bytes(at: start, count) ?? []
    // Kind 1, subject 0 and the offset 32: the first section follows the header.
    let first: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0, UInt8(BinaryLayout.headerByteCount), 0, 0, 0, 0, 0, 0, 0]
    if let place = tail.indices.last(where: { tail[$0] == 1 && tail[$0...].starts(with: first) }) {
      entries = try entries(from: start + Int64(place), by: Int64(BinaryLayout.entryByteCount))
    }
    if entries.count < 2 {
      // The end of the directory isn't known if something was appended to the file or cut off.
      let ends = (0..<BinaryLayout.entryByteCount + BinaryLayout.footerByteCount).map { file.byteCount - Int64($0) }
      for end in ends {
        let found = try entries(from: end - Int64(BinaryLayout.entryByteCount), by: -Int64(BinaryLayout.entryByteCount))
        if found.count > entries.count { entries = found.reversed() }
      }
    }
    removeContradicting()
  }

  /// Removes neighbours whose order isn't that of a directory, because one of them may name another entity, and repeated sections.
  private func removeContradicting() {
    var seen: Set<Int64> = [], wrong: Set<Int> = []
    for (place, entry) in entries.enumerated() {
      if !seen.insert(entry.offset).inserted { wrong.insert(place) }
      guard place > 0 else { continue }
      let before = entries[place - 1]
      let order = (before.kind.rawValue, before.subject, before.last), next = (entry.kind.rawValue, entry.subject, entry.first)
      if order >= next || before.offset >= entry.offset { wrong.formUnion([place - 1, place]) }
    }
    damagedPlaceCount += wrong.isEmpty ? 0 : 1
    entries = entries.enumerated().filter { !wrong.contains($0.offset) }.map(\.element)
  }

  /// The entries from a place on, in steps.
  private func entries(from start: Int64, by step: Int64) throws -> [SectionEntry] {
    var found: [SectionEntry] = [], place = start, missed = 0
    while place >= Int64(BinaryLayout.headerByteCount), place < file.byteCount, missed < Self.mostMissed {
      if let entry = try entry(at: place) {
        found.append(entry)
        missed = 0
      } else {
        missed += 1
      }
      place += step
    }
    return found
  }

  /// The number of entries in a damaged page, and those that it cuts.
  private static let mostMissed = 4096 / BinaryLayout.entryByteCount + 2
  /// The maximum size of the directory that is searched, in bytes: that of a file of about 5 GB.
  private static let mostSearched: Int64 = 4 << 20

  private func entry(at place: Int64) throws -> SectionEntry? {
    guard let bytes = try bytes(at: place, BinaryLayout.entryByteCount), let entry = SectionEntry(bytes),
      entry.offset >= Int64(BinaryLayout.headerByteCount), entry.byteCount > 0, Int64(entry.byteCount) <= place - entry.offset,
      entry.count > 0, entry.count <= entry.byteCount || entry.kind == .inverse && entry.count / 2 <= entry.byteCount,
      entry.first <= entry.last
    else { return nil }
    return entry
  }

  private func bytes(at offset: Int64, _ count: Int) throws -> [UInt8]? {
    guard offset >= 0, count >= 0, Int64(count) <= file.byteCount - offset else { return nil }
    do { return try file.intactBytes(at: offset, count: count, operation: errors.operation) } catch let error as StoreError
      where error.code == .damaged
    {
      failure = failure ?? error
      return nil
    }
  }

  /// The bytes of the only section of a kind; nil if it is lost.
  func bytes(of kind: BinaryLayout.Kind) throws -> [UInt8]? {
    guard let entry = entries.first(where: { $0.kind == kind }) else { return nil }
    var found: [UInt8]?
    _ = try read(entry) { found = Array($0) }
    return found
  }

  /// The number of bytes of all sections that were read.
  private var readByteCount: Int64 = 0

  /// Passes the bytes of a section whose digest matches. Returns false if it doesn't, or the bytes can't be decoded.
  func read(_ entry: SectionEntry, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    // Damaged entries may name one section again and again.
    readByteCount += Int64(entry.byteCount)
    guard readByteCount <= 4 * file.byteCount else { return false }
    do { try BinaryOpening.withSection(entry, file, errors, allowsUnverified: false, body) } catch is SectionFault {
      return false
    } catch let error as StoreError where error.code == .damaged { return false }
    return true
  }
}

extension SectionEntry {
  /// Decodes an entry; nil if its kind doesn't exist.
  fileprivate init?(_ bytes: [UInt8]) {
    let numbers = bytes.withUnsafeBytes { bytes in
      (0..<7).map { Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * $0, as: Int64.self)) }
    }
    guard let kind = BinaryLayout.Kind(rawValue: UInt32(truncatingIfNeeded: numbers[0])), let byteCount = Int(exactly: numbers[2]) else {
      return nil
    }
    self.init(
      kind: kind, subject: Int(UInt32(truncatingIfNeeded: numbers[0] >> 32)), offset: numbers[1], byteCount: byteCount,
      digest: UInt64(bitPattern: numbers[3]), count: Int(numbers[4]), first: numbers[5], last: numbers[6])
  }
}
