import Holdfast

/// The questions. Each is answered by a fetch request, by following relationships, or both.
struct PackageGraph {
  let context: ManagedObjectContext

  // MARK: Traversals

  /// The packages that depend on a package, sorted by name.
  func packages(thatDependOn name: String, transitively: Bool) throws -> [Package] {
    let package = try package(named: name)
    var found: Set<Package> = []
    var level = [package]
    repeat {
      level = level.flatMap(\.allDependents).filter { found.insert($0).inserted }
    } while transitively && !level.isEmpty
    // A cycle of dependencies leads back to the package itself.
    found.remove(package)
    return found.sorted { $0.name < $1.name }
  }

  /// The fields of a package, as lines.
  func info(_ name: String) throws -> [String] {
    let package = try package(named: name)
    let fields = [
      ("Package", package.name), ("Version", package.version ?? (package.providers.isEmpty ? "not in the index" : "virtual")),
      ("Section", package.section), ("Installed-Size", package.installedSize.map { "\($0) KiB" }), ("Maintainer", package.maintainer?.name),
      ("Description", package.summary), ("Depends", list(package.dependencies)), ("Provides", list(package.provides)),
      ("Provided-By", list(package.providers)), ("Needed-By", list(package.dependents)),
    ]
    return fields.compactMap { name, text in text.map { "\(name): \($0)" } }
  }

  private func list(_ packages: ToMany<Package>) -> String? {
    // Iterating can read the packages' rows in the same request. Testing isEmpty first would request only their keys.
    let names = packages.map(\.name).sorted()
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// The package with a name.
  func package(named name: String) throws -> Package {
    guard let package = try context.fetch(FetchRequest<Package>(where: \.name == name)).first else { throw NoSuchPackage(name: name) }
    return package
  }

  // MARK: Fetches

  /// The largest packages. The store sorts them and returns only the first ones.
  func largestPackages(_ limit: Int) throws -> [(Int64, String)] {
    let request = FetchRequest<Package>(
      where: \.installedSize > 0, sortedBy: [FetchSortDescriptor(\.installedSize, ascending: false), FetchSortDescriptor(\.name)],
      limit: limit)
    return try context.fetch(request).map { ($0.installedSize ?? 0, $0.name) }
  }

  /// The largest sections. The store computes the sums, and no package is read.
  func largestSections(_ limit: Int) throws -> [(Int64, String)] {
    let request = DictionaryFetchRequest<Package>(
      where: \.version != nil, columns: ["section": .property("section"), "size": .sum("installedSize")], groupedBy: ["section"])
    let sections = try context.fetch(request).map { group in (number(group["size"]), text(group["section"]) ?? "no section") }
    return top(limit, of: sections)
  }

  /// The maintainers with the most packages. The groups contain the maintainers' IDs, and a second fetch returns the objects.
  func busiestMaintainers(_ limit: Int) throws -> [(Int64, String)] {
    let request = DictionaryFetchRequest<Package>(
      where: \.version != nil, columns: ["maintainer": .property("maintainer"), "packages": .count()], groupedBy: ["maintainer"])
    var counts: [ManagedObjectID: Int64] = [:]
    for group in try context.fetch(request) {
      if case .objectID(let id)? = group["maintainer"] { counts[id] = number(group["packages"]) }
    }
    let least = counts.values.sorted(by: >).prefix(limit).last ?? 0
    let wanted = counts.filter { $0.value >= least }
    let maintainers = FetchRequest<Maintainer>(where: FetchPredicate(.membership(.object, wanted.keys.map { .objectID($0) })))
    return top(limit, of: try context.fetch(maintainers).map { (wanted[$0.objectID] ?? 0, $0.name) })
  }

  private func top(_ limit: Int, of rows: [(Int64, String)]) -> [(Int64, String)] {
    Array(rows.sorted { ($1.0, $0.1) < ($0.0, $1.1) }.prefix(limit))
  }

  private func number(_ value: StoreValue?) -> Int64 { if case .int64(let number)? = value { number } else { 0 } }

  private func text(_ value: StoreValue?) -> String? { if case .string(let text)? = value { text } else { nil } }
}

extension Package {
  /// The packages that depend on this one, or on a name that it provides.
  var allDependents: [Package] { Array(dependents) + provides.flatMap { Array($0.dependents) } }
}

/// The index doesn't contain a name.
struct NoSuchPackage: Error, CustomStringConvertible {
  let name: String
  var description: String { "The index has no package \(name), and no package depends on it or provides it." }
}
