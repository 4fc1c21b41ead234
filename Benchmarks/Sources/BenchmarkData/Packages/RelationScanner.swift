/// One alternative in the bytes of a relation field.
struct ScannedRelation {
  var group: Int
  var name: UnsafeRawBufferPointer
  var qualifier: UnsafeRawBufferPointer?
  var comparison: VersionComparison?
  var version: UnsafeRawBufferPointer?
}

/// Parses the value of a relation field: `a (>= 1) | b:any [amd64] <!nodoc>, c`.
///
/// Restrictions in square and angle brackets are ignored. Entries without a name are skipped.
struct RelationScanner {
  let bytes: UnsafeRawBufferPointer

  /// Calls a closure with each alternative, from left to right.
  func forEach(_ body: (ScannedRelation) -> Void) {
    var group = 0
    for entry in split(bytes, at: UInt8(ascii: ",")) where !entry.isEmpty {
      for alternative in split(entry, at: UInt8(ascii: "|")) {
        if let relation = scan(alternative, group: group) { body(relation) }
      }
      group += 1
    }
  }

  private func split(_ bytes: UnsafeRawBufferPointer, at separator: UInt8) -> some Sequence<UnsafeRawBufferPointer> {
    sequence(state: Optional(0)) { (start: inout Int?) -> UnsafeRawBufferPointer? in
      guard let from = start else { return nil }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[from...])
      let length = rest.firstIndex(of: separator)
      start = length.map { from + $0 + 1 }
      return trimmed(UnsafeRawBufferPointer(rebasing: rest[..<(length ?? rest.count)]))
    }
  }

  private func scan(_ text: UnsafeRawBufferPointer, group: Int) -> ScannedRelation? {
    let end = text.firstIndex { isWhite($0) || $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "<") } ?? text.count
    let full = UnsafeRawBufferPointer(rebasing: text[..<end])
    let colon = full.firstIndex(of: UInt8(ascii: ":"))
    let name = UnsafeRawBufferPointer(rebasing: full[..<(colon ?? end)])
    guard !name.isEmpty else { return nil }
    var relation = ScannedRelation(group: group, name: name)
    if let colon, colon + 1 < end { relation.qualifier = UnsafeRawBufferPointer(rebasing: full[(colon + 1)...]) }
    scanVersion(UnsafeRawBufferPointer(rebasing: text[end...]), into: &relation)
    return relation
  }

  private func scanVersion(_ text: UnsafeRawBufferPointer, into relation: inout ScannedRelation) {
    guard let open = text.firstIndex(of: UInt8(ascii: "(")) else { return }
    let close = text[open...].firstIndex(of: UInt8(ascii: ")")) ?? text.count
    let demand = trimmed(UnsafeRawBufferPointer(rebasing: text[(open + 1)..<close]))
    let sign = demand.prefix { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ">") }
    let version = trimmed(UnsafeRawBufferPointer(rebasing: demand[sign.endIndex...]))
    guard !version.isEmpty else { return }
    relation.comparison = comparison(sign)
    relation.version = version
  }

  /// A single `<` or `>` is an old form that includes equality. No operator means equality.
  private func comparison(_ sign: Slice<UnsafeRawBufferPointer>) -> VersionComparison {
    let strict = sign.count == 2 && sign.first == sign.last
    return switch sign.first {
    case UInt8(ascii: "<"): strict ? .earlier : .earlierOrEqual
    case UInt8(ascii: ">"): strict ? .later : .laterOrEqual
    default: .equal
    }
  }
}
