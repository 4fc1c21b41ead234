/// The packages of a Debian archive as printed by `apt-cache dumpavail`: realistic input for measurements.
///
/// Every stanza with a `Package` field is a package. The same name can occur with several versions or architectures; exact
/// duplicates are skipped. Maintainers and sections are identified by their text. Relations contain package names, and
/// ``links(_:)`` resolves them to packages of the index.
///
/// The index is the plain data of a measurement, complete before any clock starts. It isn't a package manager, and doesn't compare
/// versions.
public struct PackageIndex: Sendable {
  let arena: ByteArena
  /// One record per package, in order of appearance.
  let records: [PackageRecord]
  /// The relations of all packages. Each record contains the range of its own relations.
  let relations: [RelationRecord]
  /// Every name of a package or in a relation, indexed by name number.
  let names: [ByteRange]
  /// Indexed by section number.
  let sectionNames: [ByteRange]
  /// Indexed by maintainer number.
  let maintainerRecords: [MaintainerRecord]
  /// One table per ``PackageRelationKind``, in order of its cases.
  let linkTables: [PackageLinks]
  /// Counts of parsed and skipped input.
  public let statistics: PackageStatistics

  /// The number of packages.
  public var count: Int { records.count }
  /// The number of sections.
  public var sectionCount: Int { sectionNames.count }
  /// The number of maintainers.
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

  /// For each package, the packages that its relations of a kind refer to.
  public func links(_ kind: PackageRelationKind) -> PackageLinks { linkTables[kind.rawValue] }
}

/// Counts of what a parser read and skipped.
public struct PackageStatistics: Hashable, Sendable {
  /// The number of bytes in the input.
  public internal(set) var bytes = 0
  /// The number of stanzas in the input, including skipped ones.
  public internal(set) var stanzas = 0
  /// Skipped stanzas without a `Package` field.
  public internal(set) var namelessStanzas = 0
  /// Skipped stanzas with the same name, version and architecture as an earlier one.
  public internal(set) var repeatedStanzas = 0
  /// Skipped lines that are neither a field nor its continuation.
  public internal(set) var malformedLines = 0
  /// Alternatives in relations other than `Provides` whose name no package has or provides.
  public internal(set) var unresolvedAlternatives = 0
}

/// The maintainer of a package.
public struct PackageMaintainer: Hashable, Sendable {
  /// The name of a person or a team.
  public let name: String
  /// The email address without angle brackets; nil if there is none.
  public let email: String?

  /// Creates a maintainer.
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
  /// Indexed by package; has one more entry than there are packages. The targets of package i are `offsets[i]..<offsets[i + 1]`.
  public let offsets: [UInt32]
  /// Package indexes, in the order of the relations, without duplicates and without the package itself.
  public let targets: [UInt32]

  /// The number of links.
  public var count: Int { targets.count }

  /// The targets of the package at an index.
  public subscript(index: Int) -> ArraySlice<UInt32> { targets[Int(offsets[index])..<Int(offsets[index + 1])] }
}
