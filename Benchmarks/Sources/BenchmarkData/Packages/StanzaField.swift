/// The relevant fields of a stanza.
enum StanzaField: Int, CaseIterable {
  case package, version, architecture, section, maintainer, installedSize, size, description, homepage, priority, source, multiArch
  case depends, preDepends, recommends, suggests, breaks, conflicts, replaces, provides

  /// The fields that contain relations, and the kind of each.
  static let relations: [(field: StanzaField, kind: PackageRelationKind)] = [
    (.depends, .depends), (.preDepends, .preDepends), (.recommends, .recommends), (.suggests, .suggests),
    (.breaks, .breaks), (.conflicts, .conflicts), (.replaces, .replaces), (.provides, .provides),
  ]

  /// The field with a name, compared without case as the format requires; nil for irrelevant fields.
  init?(name: UnsafeRawBufferPointer) {
    for candidate in Self.spelling[min(name.count, Self.spelling.count - 1)] where candidate.matches(name) {
      self = candidate.field
      return
    }
    return nil
  }

  private struct Candidate {
    let field: StanzaField
    let lowercase: [UInt8]

    func matches(_ name: UnsafeRawBufferPointer) -> Bool {
      lowercase.elementsEqual(name) { $0 == $1 | 0x20 || $0 == $1 }
    }
  }

  /// Indexed by the length of the name, so that irrelevant fields cost almost nothing.
  private static let spelling: [[Candidate]] = {
    let names: [(StanzaField, String)] = [
      (.package, "package"), (.version, "version"), (.architecture, "architecture"), (.section, "section"),
      (.maintainer, "maintainer"), (.installedSize, "installed-size"), (.size, "size"), (.description, "description"),
      (.homepage, "homepage"), (.priority, "priority"), (.source, "source"), (.multiArch, "multi-arch"),
      (.depends, "depends"), (.preDepends, "pre-depends"), (.recommends, "recommends"), (.suggests, "suggests"),
      (.breaks, "breaks"), (.conflicts, "conflicts"), (.replaces, "replaces"), (.provides, "provides"),
    ]
    var table = [[Candidate]](repeating: [], count: 16)
    for (field, name) in names { table[name.utf8.count].append(Candidate(field: field, lowercase: Array(name.utf8))) }
    return table
  }()
}
