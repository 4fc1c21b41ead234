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
    guard let package = try context.fetchOne(Package.self, where: { $0.name == name }) else { throw NoSuchPackage(name: name) }
    return package
  }

  // MARK: Fetches

  /// The largest packages. The store sorts them and returns only the first ones.
  func largestPackages(_ limit: Int) throws -> [(Int, String)] {
    let packages = try context.fetch(Package.self, sortedBy: [.descending(\.installedSize), .ascending(\.name)], limit: limit) {
      $0.installedSize > 0
    }
    return packages.map { (Int($0.installedSize ?? 0), $0.name) }
  }

  /// The largest sections. The store computes the sums, and no package is read.
  func largestSections(_ limit: Int) throws -> [(Int, String)] {
    let sections = try context.aggregate(Package.self, by: \.section) {
      $0.sum(\.installedSize)
    } where: {
      $0.version != nil
    }
    return top(limit, of: sections.map { ($0.value, $0.key ?? "no section") })
  }

  /// The maintainers with the most packages. The groups contain the maintainers as faults, and a fetch reads those of the answer.
  func busiestMaintainers(_ limit: Int) throws -> [(Int, String)] {
    let counts = try context.aggregate(Package.self, by: \.maintainer) {
      $0.count()
    } where: {
      $0.version != nil
    }
    let known = counts.filter { $0.key != nil }
    let least = known.map(\.value).sorted(by: >).prefix(limit).last ?? 0
    let busiest = known.filter { $0.value >= least }
    _ = try context.fetch(Maintainer.self) { $0.isIn(busiest.compactMap(\.key)) }
    return top(limit, of: busiest.map { ($0.value, $0.key?.name ?? "") })
  }

  private func top(_ limit: Int, of rows: [(Int, String)]) -> [(Int, String)] {
    Array(rows.sorted { ($1.0, $0.1) < ($0.0, $1.1) }.prefix(limit))
  }
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
