/// The properties that identify a package.
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

  /// The hash that represents the package in checksums of links and results.
  public var hash: UInt64 {
    var hash = FieldHash(seed: 1)
    hash.combine(name)
    hash.combine(version)
    hash.combine(architecture)
    return hash.value
  }

  /// Compares name, version and architecture, each in byte order. Versions aren't compared semantically.
  public static func < (left: PackageKey, right: PackageKey) -> Bool {
    for (a, b) in [(left.name, right.name), (left.version, right.version), (left.architecture, right.architecture)] where a != b {
      return a.utf8.lexicographicallyPrecedes(b.utf8)
    }
    return false
  }
}

/// All attributes of a package with its section and maintainer, as a store returned them.
public struct PackageFields: Hashable, Sendable {
  /// Name, version and architecture.
  public var key: PackageKey
  /// The name of the section.
  public var section: String?
  /// The maintainer.
  public var maintainer: PackageMaintainer?
  /// The installed size in KiB.
  public var installedSize: Int64?
  /// The size of the archive file in bytes.
  public var size: Int64?
  /// The first line of the description.
  public var summary: String?
  /// The other lines of the description.
  public var longDescription: String?
  /// The project's home page.
  public var homepage: String?
  /// The priority.
  public var priority: String?
  /// The source package.
  public var source: String?
  /// The value of the field Multi-Arch.
  public var multiArch: String?

  /// Creates the fields of a package that has only a key.
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

  /// The number of UTF-8 bytes of all strings. A section and a maintainer count once per package.
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

  /// All attributes with section and maintainer.
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
