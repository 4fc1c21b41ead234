/// Resolves relations to packages.
///
/// A name refers to every package with that name, regardless of version and architecture. If there is none, it refers to the
/// packages that provide the name. In the field `Provides`, a name refers only to packages with that name, not to others that
/// provide it. A package is never linked to itself, and is linked to another package at most once per kind.
struct PackageLinkResolver {
  private let records: [PackageRecord]
  private let relations: [RelationRecord]
  /// Indexed by name number: the packages with that name.
  private let owners: Buckets
  /// Indexed by name number: the packages that provide it.
  private let providers: Buckets

  init(records: [PackageRecord], relations: [RelationRecord], nameCount: Int) {
    self.records = records
    self.relations = relations
    owners = Buckets(
      count: nameCount, pairs: records.enumerated().lazy.map { (key: Int($1.name), value: UInt32($0)) })
    let provided = records.indices.lazy.flatMap { index in
      relations[records[index].relations].lazy.filter { $0.kind == .provides }.map { (key: Int($0.name), value: UInt32(index)) }
    }
    providers = Buckets(count: nameCount, pairs: provided)
  }

  /// The links of one kind. Counts the alternatives that refer to no package.
  func links(_ kind: PackageRelationKind, unresolved: inout Int) -> PackageLinks {
    var offsets: [UInt32] = [0]
    var targets: [UInt32] = []
    /// Indexed by package: the index after the last source that was linked to it.
    var linkedFrom = [UInt32](repeating: 0, count: records.count)
    offsets.reserveCapacity(records.count + 1)
    for (source, record) in records.enumerated() {
      for relation in relations[record.relations] where relation.kind == kind {
        let meant = kind == .provides ? owners[Int(relation.name)] : ownersOrProviders(Int(relation.name))
        if meant.isEmpty, kind != .provides { unresolved += 1 }
        for target in meant where target != source && linkedFrom[Int(target)] != source + 1 {
          linkedFrom[Int(target)] = UInt32(source + 1)
          targets.append(target)
        }
      }
      offsets.append(UInt32(targets.count))
    }
    return PackageLinks(offsets: offsets, targets: targets)
  }

  private func ownersOrProviders(_ name: Int) -> ArraySlice<UInt32> {
    let owners = owners[name]
    return owners.isEmpty ? providers[name] : owners
  }
}

/// Values grouped by a small integer key, as two arrays.
private struct Buckets {
  private var offsets: [Int]
  private var values: [UInt32]

  init(count: Int, pairs: some Sequence<(key: Int, value: UInt32)>) {
    offsets = [Int](repeating: 0, count: count + 2)
    for pair in pairs { offsets[pair.key + 2] += 1 }
    for index in 2..<offsets.count { offsets[index] += offsets[index - 1] }
    values = [UInt32](repeating: 0, count: offsets[count + 1])
    for pair in pairs {
      values[offsets[pair.key + 1]] = pair.value
      offsets[pair.key + 1] += 1
    }
  }

  subscript(key: Int) -> ArraySlice<UInt32> { values[offsets[key]..<offsets[key + 1]] }
}
