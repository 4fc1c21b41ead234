/// Converts stanzas to the records of a ``PackageIndex``.
struct PackageIndexBuilder {
  private var arena = ByteArena(capacity: 1 << 20)
  private var records: [PackageRecord] = []
  private var relations: [RelationRecord] = []
  /// Indexed by ``Kind``.
  private var numberings = [TextNumbering](repeating: TextNumbering(), count: Kind.allCases.count)
  private var maintainerRecords: [MaintainerRecord] = []
  /// Name, version and architecture of the packages so far.
  private var seen: Set<Identity> = []

  /// The kinds of numbered strings.
  private enum Kind: Int, CaseIterable {
    case name
    case section
    /// Maintainers as written, name and address together.
    case maintainer
    /// Strings that many packages share: versions, architectures, priorities, sources.
    case common
  }

  private struct Identity: Hashable {
    var name: UInt32
    var version: UInt32
    var architecture: UInt32
  }

  mutating func add(_ stanza: Stanza, _ statistics: inout PackageStatistics) {
    guard let name = number(stanza, .package, .name) else {
      statistics.namelessStanzas += 1
      return
    }
    let version = number(stanza, .version, .common) ?? emptyText()
    let architecture = number(stanza, .architecture, .common) ?? emptyText()
    guard seen.insert(Identity(name: name, version: version, architecture: architecture)).inserted else {
      statistics.repeatedStanzas += 1
      return
    }
    let description = description(stanza)
    records.append(
      PackageRecord(
        name: name,
        version: texts(.common)[Int(version)],
        architecture: texts(.common)[Int(architecture)],
        section: number(stanza, .section, .section),
        maintainer: maintainer(stanza),
        installedSize: integer(stanza, .installedSize),
        size: integer(stanza, .size),
        summary: description.summary,
        longDescription: description.rest,
        homepage: text(stanza, .homepage),
        priority: commonText(stanza, .priority),
        source: commonText(stanza, .source),
        multiArch: commonText(stanza, .multiArch),
        relations: relations(stanza)))
  }

  func finish(_ statistics: PackageStatistics) -> PackageIndex {
    var statistics = statistics
    let resolver = PackageLinkResolver(records: records, relations: relations, nameCount: texts(.name).count)
    let tables = PackageRelationKind.allCases.map { resolver.links($0, unresolved: &statistics.unresolvedAlternatives) }
    return PackageIndex(
      arena: arena, records: records, relations: relations, names: texts(.name), sectionNames: texts(.section),
      maintainerRecords: maintainerRecords, linkTables: tables, statistics: statistics)
  }

  // MARK: Fields

  private mutating func text(_ stanza: Stanza, _ field: StanzaField) -> ByteRange? {
    stanza.withValue(field) { appendRepaired($0) }
  }

  private mutating func commonText(_ stanza: Stanza, _ field: StanzaField) -> ByteRange? {
    number(stanza, field, .common).map { texts(.common)[Int($0)] }
  }

  private mutating func number(_ stanza: Stanza, _ field: StanzaField, _ kind: Kind) -> UInt32? {
    stanza.withValue(field) { bytes in withRepaired(bytes) { $0.numberText($1, kind) } }
  }

  private mutating func emptyText() -> UInt32 { numberText(UnsafeRawBufferPointer(start: nil, count: 0), .common) }

  private mutating func numberText(_ bytes: UnsafeRawBufferPointer, _ kind: Kind) -> UInt32 {
    numberings[kind.rawValue].number(of: bytes, in: &arena)
  }

  private func texts(_ kind: Kind) -> [ByteRange] { numberings[kind.rawValue].texts }

  /// A decimal number, or nil for anything else.
  private func integer(_ stanza: Stanza, _ field: StanzaField) -> Int64? {
    stanza.withValue(field) { Int64(String(decoding: $0, as: UTF8.self)) }
  }

  private mutating func maintainer(_ stanza: Stanza) -> UInt32? {
    guard let number = number(stanza, .maintainer, .maintainer) else { return nil }
    if Int(number) == maintainerRecords.count { maintainerRecords.append(splitMaintainer(texts(.maintainer)[Int(number)])) }
    return number
  }

  /// Splits `Name <address>`. Without angle brackets, all of it is the name.
  private func splitMaintainer(_ whole: ByteRange) -> MaintainerRecord {
    arena.withBytes(whole) { bytes in
      guard let open = bytes.lastIndex(of: UInt8(ascii: "<")) else { return MaintainerRecord(name: whole, email: nil) }
      let close = bytes[open...].firstIndex(of: UInt8(ascii: ">")) ?? bytes.count
      var nameEnd = open
      while nameEnd > 0, isWhite(bytes[nameEnd - 1]) { nameEnd -= 1 }
      let start = Int(whole.offset)
      return MaintainerRecord(
        name: ByteRange(offset: start, count: nameEnd),
        email: close > open + 1 ? ByteRange(offset: start + open + 1, count: close - open - 1) : nil)
    }
  }

  /// The first line, and the other lines without their leading space. A line with only a dot is an empty line.
  private mutating func description(_ stanza: Stanza) -> (summary: ByteRange?, rest: ByteRange?) {
    let parts = stanza.withValue(.description) { bytes -> (ByteRange?, ByteRange?) in
      let end = bytes.firstIndex(of: lineFeed) ?? bytes.count
      let first = trimmed(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
      let summary = first.isEmpty ? nil : appendRepaired(first)
      guard end < bytes.count else { return (summary, nil) }
      let lines = bytes[(end + 1)...].split(separator: lineFeed, omittingEmptySubsequences: false).map { line in
        line.elementsEqual([UInt8(ascii: ".")]) ? line.prefix(0) : line
      }
      let rest = Array(lines.joined(separator: CollectionOfOne(lineFeed)))
      return (summary, rest.withUnsafeBytes { appendRepaired($0) })
    }
    return parts ?? (nil, nil)
  }

  private mutating func relations(_ stanza: Stanza) -> Range<Int> {
    let first = relations.count
    for (field, kind) in StanzaField.relations {
      _ = stanza.withValue(field) { bytes -> Void? in
        RelationScanner(bytes: bytes).forEach { append($0, kind) }
      }
    }
    return first..<relations.count
  }

  private mutating func append(_ scanned: ScannedRelation, _ kind: PackageRelationKind) {
    relations.append(
      RelationRecord(
        kind: kind,
        comparison: scanned.comparison,
        group: UInt32(scanned.group),
        name: withRepaired(scanned.name) { $0.numberText($1, .name) },
        version: scanned.version.map { commonText($0) },
        qualifier: scanned.qualifier.map { commonText($0) }))
  }

  private mutating func commonText(_ bytes: UnsafeRawBufferPointer) -> ByteRange {
    let number = withRepaired(bytes) { $0.numberText($1, .common) }
    return texts(.common)[Int(number)]
  }

  // MARK: UTF-8

  private mutating func appendRepaired(_ bytes: UnsafeRawBufferPointer) -> ByteRange {
    withRepaired(bytes) { $0.arena.append($1) }
  }

  /// Calls a closure with valid UTF-8. Invalid bytes are replaced by replacement characters.
  private mutating func withRepaired<R>(
    _ bytes: UnsafeRawBufferPointer, _ body: (inout PackageIndexBuilder, UnsafeRawBufferPointer) -> R
  ) -> R {
    if bytes.allSatisfy({ $0 < 0x80 }) { return body(&self, bytes) }
    var text = String(decoding: bytes, as: UTF8.self)
    return text.withUTF8 { body(&self, UnsafeRawBufferPointer($0)) }
  }
}
