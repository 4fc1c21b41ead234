/// The checksum of a package index: counts, bytes, and order-independent sums of hashes.
///
/// A store's checksum is computed with ``add(_:)`` and ``addLink(_:from:to:)`` from data that was read through the public
/// interface. It must be equal to ``PackageIndex/checksum``.
public struct PackageChecksum: Hashable, Sendable {
  /// The number of packages.
  public private(set) var packages = 0
  /// The number of UTF-8 bytes in their strings.
  public private(set) var bytes = 0
  /// The sum of the hashes of their fields.
  public private(set) var fieldSum: UInt64 = 0
  /// The number of links of each kind, indexed by ``PackageRelationKind``.
  public private(set) var linkCounts = [Int](repeating: 0, count: PackageRelationKind.allCases.count)
  /// The sum of the hashes of the links of each kind, indexed by ``PackageRelationKind``.
  public private(set) var linkSums = [UInt64](repeating: 0, count: PackageRelationKind.allCases.count)

  /// Creates an empty checksum.
  public init() {}

  /// Adds a package.
  public mutating func add(_ fields: PackageFields) {
    packages += 1
    bytes += fields.byteCount
    fieldSum &+= fields.hash
  }

  /// Adds a link. The ends are specified by the hashes of their keys.
  public mutating func addLink(_ kind: PackageRelationKind, from source: UInt64, to target: UInt64) {
    linkCounts[kind.rawValue] += 1
    var hash = FieldHash(seed: 3 + UInt64(kind.rawValue))
    hash.combine(source)
    hash.combine(target)
    linkSums[kind.rawValue] &+= hash.value
  }

  /// The fields of all packages as one number.
  public var fieldValue: UInt64 {
    var hash = FieldHash(seed: 20)
    hash.combine(UInt64(packages))
    hash.combine(UInt64(bytes))
    hash.combine(fieldSum)
    return hash.value
  }

  /// The links of all kinds as one number.
  public var linkValue: UInt64 {
    var hash = FieldHash(seed: 21)
    for count in linkCounts { hash.combine(UInt64(count)) }
    for sum in linkSums { hash.combine(sum) }
    return hash.value
  }
}

extension PackageIndex {
  /// The checksum of the parsed input.
  public var checksum: PackageChecksum {
    var checksum = PackageChecksum()
    var keys: [UInt64] = []
    for index in 0..<count {
      let fields = self[index].fields
      keys.append(fields.key.hash)
      checksum.add(fields)
    }
    for kind in PackageRelationKind.allCases {
      let links = links(kind)
      for source in 0..<count {
        for target in links[source] { checksum.addLink(kind, from: keys[source], to: keys[Int(target)]) }
      }
    }
    return checksum
  }

  /// The number of links of all kinds.
  public var linkCount: Int { PackageRelationKind.allCases.reduce(0) { $0 + links($1).count } }
}
