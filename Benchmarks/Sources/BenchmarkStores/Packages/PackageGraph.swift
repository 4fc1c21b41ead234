internal import BenchmarkData
internal import Holdfast

/// The operations of the workloads on packages. Each returns the checksum of its ``/BenchmarkData/PackagePhase``.
struct PackageGraph {
  let context: ManagedObjectContext

  /// All packages, in no particular order.
  func all() throws -> [StoredPackage] { try context.fetch(StoredPackage.self) }

  /// Reads every attribute of packages, with section and maintainer.
  func read(_ packages: [StoredPackage]) -> UInt64 {
    var checksum = PackageChecksum()
    for package in packages { checksum.add(package.fields) }
    return checksum.fieldValue
  }

  /// Follows every link of packages, which must be all packages in the store.
  func followLinks(of packages: [StoredPackage]) -> UInt64 {
    let keys = Dictionary(uniqueKeysWithValues: packages.map { ($0, $0.key.hash) })
    var checksum = PackageChecksum()
    for (package, source) in keys {
      for kind in PackageRelationKind.allCases {
        for target in package.links(kind) { checksum.addLink(kind, from: source, to: keys[target] ?? 0) }
      }
    }
    return checksum.linkValue
  }

  /// The packages found by a search, sorted by key.
  func search(_ search: PackagePlan.Search) throws -> UInt64 {
    let found = try context.fetch(
      StoredPackage.self, sortedBy: [.ascending(\.name), .ascending(\.version), .ascending(\.architecture)], limit: search.limit
    ) {
      $0.name.beginsWith(search.namePrefix) && $0.installedSize >= search.minimumInstalledSize
        && $0.installedSize <= search.maximumInstalledSize && $0.summary.contains(search.summaryPart)
    }
    return PackageAnswers.search(found.map(\.key.hash))
  }

  /// Everything that packages depend on, directly or indirectly.
  func traverse(from keys: [PackageKey]) throws -> UInt64 {
    try keys.reduce(0) { sum, key in reachable(from: try package(key)).reduce(sum) { $0 &+ PackageAnswers.traversed($1.name) } }
  }

  /// The packages of a section.
  func packages(ofSection section: String?) throws -> [StoredPackage] {
    guard let section else { return [] }
    return try context.fetch(StoredPackage.self) { $0.section.name == section }
  }

  /// The sum of the installed sizes of the packages of a section, as the store computes it. 0 if there are none.
  func totalInstalledSize(ofSection section: String?) throws -> Int64 {
    guard let section else { return 0 }
    let request = DictionaryFetchRequest<StoredPackage>(
      where: FetchPredicate { $0.section.name == section }, columns: ["size": .sum("installedSize")])
    return try context.fetch(request).first?["size"]?.integer ?? 0
  }

  /// Adds one KiB to each package, without saving.
  func grow(_ packages: [StoredPackage]) -> UInt64 {
    packages.reduce(0) { sum, package in
      let size = (package.installedSize ?? 0) + 1
      package.installedSize = size
      return sum &+ PackageAnswers.updated(size)
    }
  }

  /// The number of links of all kinds, counted through the objects.
  func linkCount() throws -> Int {
    try all().reduce(0) { sum, package in PackageRelationKind.allCases.reduce(sum) { $0 + package.links($1).count } }
  }

  private func package(_ key: PackageKey) throws -> StoredPackage {
    let request = FetchRequest<StoredPackage> { $0.name == key.name && $0.version == key.version && $0.architecture == key.architecture }
    guard let package = try context.fetch(request).first else { throw MissingObject("package \(key.name)") }
    return package
  }

  private func reachable(from start: StoredPackage) -> Set<StoredPackage> {
    var reached: Set = [start]
    var open = [start]
    while let next = open.popLast() {
      for target in next.depends where reached.insert(target).inserted { open.append(target) }
    }
    return reached
  }
}

extension StoredPackage {
  /// Name, version and architecture.
  var key: PackageKey { PackageKey(name: name, version: version, architecture: architecture) }

  /// All attributes with section and maintainer.
  var fields: PackageFields {
    var fields = PackageFields(key: key)
    fields.section = section?.name
    fields.maintainer = maintainer.map { PackageMaintainer(name: $0.name, email: $0.email) }
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
