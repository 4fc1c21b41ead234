/// What tells one package from all others.
public struct PackageKey: Hashable, Codable, Sendable, Comparable {
  /// The name.
  public let name: String
  /// The version.
  public let version: String
  /// The architecture.
  public let architecture: String

  /// Makes a key.
  public init(name: String, version: String, architecture: String) {
    self.name = name
    self.version = version
    self.architecture = architecture
  }

  /// The hash that stands for the package in checksums of links and results.
  public var hash: UInt64 {
    var hash = FieldHash(seed: 1)
    hash.combine(name)
    hash.combine(version)
    hash.combine(architecture)
    return hash.value
  }

  /// By name, version and architecture, each in byte order; versions are not compared as versions.
  public static func < (left: PackageKey, right: PackageKey) -> Bool {
    for (a, b) in [(left.name, right.name), (left.version, right.version), (left.architecture, right.architecture)] where a != b {
      return a.utf8.lexicographicallyPrecedes(b.utf8)
    }
    return false
  }
}

/// Every attribute of one package with its section and its maintainer, as a store gave it back.
public struct PackageFields: Hashable, Sendable {
  /// Name, version and architecture.
  public var key: PackageKey
  /// The name of the section.
  public var section: String?
  /// The maintainer.
  public var maintainer: PackageMaintainer?
  /// The space that it takes when installed, in KiB.
  public var installedSize: Int64?
  /// The bytes of the archive file.
  public var size: Int64?
  /// The first line of the description.
  public var summary: String?
  /// The other lines of the description.
  public var longDescription: String?
  /// The address of the project.
  public var homepage: String?
  /// The priority.
  public var priority: String?
  /// The source package.
  public var source: String?
  /// Whether it can be installed for several architectures.
  public var multiArch: String?

  /// Makes the fields of a package that has only a key.
  public init(key: PackageKey) { self.key = key }

  /// The hash of all fields.
  public var hash: UInt64 {
    var hash = FieldHash(seed: 2)
    hash.combine(key.hash)
    hash.combine(section)
    hash.combine(maintainer?.name)
    hash.combine(maintainer?.email)
    hash.combine(installedSize)
    hash.combine(size)
    for text in [summary, longDescription, homepage, priority, source, multiArch] { hash.combine(text) }
    return hash.value
  }

  /// The UTF-8 bytes of all texts; a section and a maintainer count once per package.
  public var byteCount: Int {
    [
      key.name, key.version, key.architecture, section, maintainer?.name, maintainer?.email, summary, longDescription, homepage,
      priority, source, multiArch,
    ].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
  }
}

extension Package {
  /// Name, version and architecture.
  public var key: PackageKey { PackageKey(name: name, version: version, architecture: architecture) }

  /// Every attribute with section and maintainer.
  public var fields: PackageFields {
    var fields = PackageFields(key: key)
    fields.section = section.map(owner.sectionName)
    fields.maintainer = maintainer.map(owner.maintainer)
    fields.installedSize = installedSize
    fields.size = size
    fields.summary = summary
    fields.longDescription = longDescription
    fields.homepage = homepage
    fields.priority = priority
    fields.source = source
    fields.multiArch = multiArch
    return fields
  }
}
