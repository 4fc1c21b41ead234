/// A package of a ``PackageIndex``. Strings are created on demand.
public struct Package: Sendable {
  /// The position in the index, from 0.
  public let index: Int
  let record: PackageRecord
  let owner: PackageIndex

  /// The name.
  public var name: String { text(owner.names[Int(record.name)]) }
  /// The version; empty if the stanza has none.
  public var version: String { text(record.version) }
  /// The architecture; empty if the stanza has none.
  public var architecture: String { text(record.architecture) }
  /// The number of the section, or nil.
  public var section: Int? { record.section.map(Int.init) }
  /// The number of the maintainer, or nil.
  public var maintainer: Int? { record.maintainer.map(Int.init) }
  /// The installed size in KiB.
  public var installedSize: Int64? { record.installedSize }
  /// The size of the archive file in bytes.
  public var size: Int64? { record.size }
  /// The first line of the description.
  public var summary: String? { record.summary.map(text) }
  /// The other lines of the description, joined by line feeds.
  public var longDescription: String? { record.longDescription.map(text) }
  /// The project's home page.
  public var homepage: String? { record.homepage.map(text) }
  /// The priority.
  public var priority: String? { record.priority.map(text) }
  /// The source package, with a version if the field has one. Nil if it has the same name as the package.
  public var source: String? { record.source.map(text) }
  /// The value of the field Multi-Arch.
  public var multiArch: String? { record.multiArch.map(text) }

  /// The relations as written in the stanza.
  public var relations: [PackageRelation] {
    owner.relations[record.relations].map {
      PackageRelation(
        kind: $0.kind, group: Int($0.group), name: text(owner.names[Int($0.name)]), qualifier: $0.qualifier.map(text),
        comparison: $0.comparison, version: $0.version.map(text))
    }
  }

  private func text(_ range: ByteRange) -> String { owner.arena.string(range) }
}

/// The fields of a package, as numbers and ranges of strings.
struct PackageRecord: Sendable {
  var name: UInt32
  var version: ByteRange
  var architecture: ByteRange
  var section: UInt32?
  var maintainer: UInt32?
  var installedSize: Int64?
  var size: Int64?
  var summary: ByteRange?
  var longDescription: ByteRange?
  var homepage: ByteRange?
  var priority: ByteRange?
  var source: ByteRange?
  var multiArch: ByteRange?
  /// The range of this package's entries in `PackageIndex.relations`.
  var relations: Range<Int>
}
