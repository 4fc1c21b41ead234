/// The packages of a Debian-style archive as `apt-cache dumpavail` prints them: real input for a measurement.
///
/// Every stanza with a `Package` field is one package; the same name may occur with several versions or
/// architectures, and an exact repetition is left out. Maintainers and sections are told apart by their text.
/// Relations name packages; ``links(_:)`` says which packages of the index they mean.
///
/// It is the plain data of a measurement, complete before any clock starts, and not a package manager: versions are
/// kept, not compared.
public struct PackageIndex: Sendable {
  let arena: ByteArena
  /// One record per package, in order of appearance.
  let records: [PackageRecord]
  /// The relations of all packages; each record says which part is its own.
  let relations: [RelationRecord]
  /// Every name that a package has or a relation mentions, keyed by name number.
  let names: [ByteRange]
  /// Keyed by section number.
  let sectionNames: [ByteRange]
  /// Keyed by maintainer number.
  let maintainerRecords: [MaintainerRecord]
  /// One table per ``PackageRelationKind``, in order of its cases.
  let linkTables: [PackageLinks]
  /// What was read and what was left out.
  public let statistics: PackageStatistics

  /// How many packages there are.
  public var count: Int { records.count }
  /// How many sections there are.
  public var sectionCount: Int { sectionNames.count }
  /// How many maintainers there are.
  public var maintainerCount: Int { maintainerRecords.count }

  /// The package at an index.
  public subscript(index: Int) -> Package { Package(index: index, record: records[index], owner: self) }

  /// The name of a section.
  public func sectionName(_ section: Int) -> String { arena.string(sectionNames[section]) }

  /// A maintainer.
  public func maintainer(_ maintainer: Int) -> PackageMaintainer {
    let record = maintainerRecords[maintainer]
    return PackageMaintainer(name: arena.string(record.name), email: record.email.map(arena.string))
  }

  /// For each package, the packages that its relations of a kind mean.
  public func links(_ kind: PackageRelationKind) -> PackageLinks { linkTables[kind.rawValue] }
}

/// What a parser read, and what it left out.
public struct PackageStatistics: Hashable, Sendable {
  /// The bytes of the input.
  public internal(set) var bytes = 0
  /// The stanzas of the input, including those left out.
  public internal(set) var stanzas = 0
  /// Stanzas without a `Package` field, left out.
  public internal(set) var namelessStanzas = 0
  /// Stanzas that repeat name, version and architecture of an earlier one, left out.
  public internal(set) var repeatedStanzas = 0
  /// Lines that are neither a field nor the continuation of one, left out.
  public internal(set) var malformedLines = 0
  /// Alternatives of relations, `Provides` aside, whose name no package of the index has or provides.
  public internal(set) var unresolvedAlternatives = 0
}

/// Who looks after a package.
public struct PackageMaintainer: Hashable, Sendable {
  /// The name of a person or a team.
  public let name: String
  /// The address, without angle brackets; nil when there is none.
  public let email: String?

  /// Makes a maintainer.
  public init(name: String, email: String?) {
    self.name = name
    self.email = email
  }
}

struct MaintainerRecord: Sendable {
  var name: ByteRange
  var email: ByteRange?
}

/// Links from each package of an index to others, as one array.
public struct PackageLinks: Hashable, Sendable {
  /// Keyed by package index; one more entry than packages. Targets of package i are `offsets[i]..<offsets[i + 1]`.
  public let offsets: [UInt32]
  /// Package indexes, in the order in which the relations mention them; no one twice and never the package itself.
  public let targets: [UInt32]

  /// How many links there are.
  public var count: Int { targets.count }

  /// The targets of the package at an index.
  public subscript(index: Int) -> ArraySlice<UInt32> { targets[Int(offsets[index])..<Int(offsets[index + 1])] }
}
