/// What every store must give back of a package index: counts, bytes, and sums of hashes that no order changes.
///
/// A store's answer is put together with ``add(_:)`` and ``addLink(_:from:to:)`` from what was read through the public
/// interface, and must equal ``PackageIndex/checksum``.
public struct PackageChecksum: Hashable, Sendable {
  /// How many packages were added.
  public private(set) var packages = 0
  /// The UTF-8 bytes of their texts.
  public private(set) var bytes = 0
  /// The sum of the hashes of their fields.
  public private(set) var fieldSum: UInt64 = 0
  /// How many links of each kind were added; keyed by ``PackageRelationKind``.
  public private(set) var linkCounts = [Int](repeating: 0, count: PackageRelationKind.allCases.count)
  /// The sum of the hashes of the links of each kind; keyed by ``PackageRelationKind``.
  public private(set) var linkSums = [UInt64](repeating: 0, count: PackageRelationKind.allCases.count)

  /// Makes the checksum of nothing.
  public init() {}

  /// Adds one package.
  public mutating func add(_ fields: PackageFields) {
    packages += 1
    bytes += fields.byteCount
    fieldSum &+= fields.hash
  }

  /// Adds one link; the ends are given by the hashes of their keys.
  public mutating func addLink(_ kind: PackageRelationKind, from source: UInt64, to target: UInt64) {
    linkCounts[kind.rawValue] += 1
    var hash = FieldHash(seed: 3 + UInt64(kind.rawValue))
    hash.combine(source)
    hash.combine(target)
    linkSums[kind.rawValue] &+= hash.value
  }

  /// One number for the fields of all packages.
  public var fieldValue: UInt64 {
    var hash = FieldHash(seed: 20)
    hash.combine(UInt64(packages))
    hash.combine(UInt64(bytes))
    hash.combine(fieldSum)
    return hash.value
  }

  /// One number for the links of all kinds.
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

  /// How many links of all kinds there are.
  public var linkCount: Int { PackageRelationKind.allCases.reduce(0) { $0 + links($1).count } }
}
