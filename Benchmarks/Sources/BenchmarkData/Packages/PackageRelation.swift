/// How one package stands to another.
public enum PackageRelationKind: Int, CaseIterable, Sendable {
  case depends, preDepends, recommends, suggests, breaks, conflicts, replaces, provides
}

/// What a relation demands of the other package's version.
public enum VersionComparison: UInt8, Sendable {
  case earlier, earlierOrEqual, equal, laterOrEqual, later
}

/// One alternative of one relation of a package.
///
/// `Depends: a | b (>= 2), c` is three of them: `a` and `b` of group 0, and `c` of group 1.
public struct PackageRelation: Hashable, Sendable {
  /// The field that it stands in.
  public let kind: PackageRelationKind
  /// The position in that field, from 0; alternatives share it.
  public let group: Int
  /// The name of the other package, which may be a virtual one.
  public let name: String
  /// What follows the name after a colon, such as `any`; usually nil.
  public let qualifier: String?
  /// What is demanded of the version; nil when any will do.
  public let comparison: VersionComparison?
  /// The version that it is compared with.
  public let version: String?

  /// Makes a relation.
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
