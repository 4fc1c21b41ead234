import Holdfast

/// The questions. Each is a fetch request, a walk along relationships, or one after the other.
struct PackageGraph {
  let context: ManagedObjectContext

  // MARK: Walks

  /// The packages that depend on one, by name.
  func packages(thatDependOn name: String, transitively: Bool) throws -> [Package] {
    let package = try package(named: name)
    var found: Set<Package> = []
    var level = [package]
    repeat {
      level = level.flatMap(\.allDependents).filter { found.insert($0).inserted }
    } while transitively && !level.isEmpty
    // In a circle of dependencies one comes back to where one began.
    found.remove(package)
    return found.sorted { $0.name < $1.name }
  }

  /// What is known of a package.
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

  private func list(_ packages: ToManyRelationship<Package>) -> String? {
    // Going over them brings their rows along where the store has them at hand; asking first whether there are any would not.
    let names = packages.map(\.name).sorted()
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// A package by its name.
  func package(named name: String) throws -> Package {
    guard let package = try context.fetch(FetchRequest<Package>(where: \.name == name)).first else { throw NoSuchPackage(name: name) }
    return package
  }

  // MARK: Fetches

  /// The packages that take most space: the store sorts and hands out no more than are wanted.
  func largestPackages(_ limit: Int) throws -> [(Int64, String)] {
    let request = FetchRequest<Package>(
      where: \.installedSize > 0, sortedBy: [FetchSortDescriptor(\.installedSize, ascending: false), FetchSortDescriptor(\.name)],
      limit: limit)
    return try context.fetch(request).map { ($0.installedSize ?? 0, $0.name) }
  }

  /// The sections that take most space: the store adds up, and no package is read.
  func largestSections(_ limit: Int) throws -> [(Int64, String)] {
    let request = DictionaryFetchRequest<Package>(
      where: \.version != nil, columns: ["section": .property("section"), "size": .sum("installedSize")], groupedBy: ["section"])
    let sections = try context.fetch(request).map { group in (number(group["size"]), text(group["section"]) ?? "no section") }
    return top(limit, of: sections)
  }

  /// Who maintains most packages. The groups have the IDs of the maintainers; their names are asked for together.
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
  /// The packages that depend on this one, or on something that it provides.
  var allDependents: [Package] { Array(dependents) + provides.flatMap { Array($0.dependents) } }
}

/// A package was asked for that the index does not speak of.
struct NoSuchPackage: Error, CustomStringConvertible {
  let name: String
  var description: String { "There is no package \(name) in the index, and no package depends on it or provides it." }
}
