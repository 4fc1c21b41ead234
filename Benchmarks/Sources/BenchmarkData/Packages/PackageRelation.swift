/// The kinds of relations between packages.
public enum PackageRelationKind: Int, CaseIterable, Sendable {
  case depends, preDepends, recommends, suggests, breaks, conflicts, replaces, provides
}

/// The required relation to another package's version.
public enum VersionComparison: UInt8, Sendable {
  case earlier, earlierOrEqual, equal, laterOrEqual, later
}

/// One alternative in a relation of a package.
///
/// `Depends: a | b (>= 2), c` has three of them: `a` and `b` in group 0, and `c` in group 1.
public struct PackageRelation: Hashable, Sendable {
  /// The field that contains the relation.
  public let kind: PackageRelationKind
  /// The index in that field. Alternatives share an index.
  public let group: Int
  /// The name of the other package, which can be virtual.
  public let name: String
  /// The text after a colon in the name, such as `any`; usually nil.
  public let qualifier: String?
  /// The required comparison of the version; nil if any version is accepted.
  public let comparison: VersionComparison?
  /// The version to compare with.
  public let version: String?

  /// Creates a relation.
  public init(
    kind: PackageRelationKind, group: Int, name: String, qualifier: String? = nil, comparison: VersionComparison? = nil,
    version: String? = nil
  ) {
    self.kind = kind
    self.group = group
    self.name = name
    self.qualifier = qualifier
    self.comparison = comparison
    self.version = version
  }
}

struct RelationRecord: Sendable {
  var kind: PackageRelationKind
  var comparison: VersionComparison?
  var group: UInt32
  var name: UInt32
  var version: ByteRange?
  var qualifier: ByteRange?
}
