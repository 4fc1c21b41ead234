import Foundation
import Holdfast

/// Imports an index into a store, replacing the previous one in a single save.
struct PackageImport {
  private let context: ManagedObjectContext
  private var packages: [String: Package] = [:]
  private var maintainers: [String: Maintainer] = [:]
  private var summary = ImportSummary()
  private var progress = Progress()

  init(into context: ManagedObjectContext) { self.context = context }

  /// Reads the entire index, then saves.
  mutating func run(_ source: IndexSource) throws -> ImportSummary {
    defer { progress.finish() }
    try deleteFormerIndex()
    var reader = StanzaReader()
    try source.read { reader.read($0) { add($0) } }
    reader.finish { add($0) }
    if summary.packages == 0 { throw SourceError.empty(source) }
    progress.show("Saving \(packages.count) names")
    try context.save()
    summary.otherNames = packages.count - summary.packages
    summary.maintainers = maintainers.count
    return summary
  }

  private func deleteFormerIndex() throws {
    for package in try context.fetch(Package.self) { context.delete(package) }
    for maintainer in try context.fetch(Maintainer.self) { context.delete(maintainer) }
  }

  /// Adds the package of a stanza, unless an earlier stanza had the same name.
  private mutating func add(_ stanza: Stanza) {
    let package = package(named: stanza["package"] ?? "")
    if package.version != nil { return summary.repetitions += 1 }
    package.version = stanza["version"] ?? ""
    package.section = stanza["section"]
    package.summary = stanza["description"]
    package.installedSize = stanza["installed-size"].flatMap { Int64($0) }
    package.maintainer = stanza["maintainer"].map { maintainer(named: $0) }
    for name in names(inRelation: stanza["depends"]) + names(inRelation: stanza["pre-depends"]) {
      package.dependencies.insert(self.package(named: name))  // its dependents contain the package at once
    }
    for name in names(inRelation: stanza["provides"]) { package.provides.insert(self.package(named: name)) }
    summary.packages += 1
    if summary.packages.isMultiple(of: 1000) { progress.show("Read \(summary.packages) packages") }
  }

  /// The package with a name, created if it's new. A dependency can name a package that comes later, or never.
  private mutating func package(named name: String) -> Package {
    if let package = packages[name] { return package }
    let package = context.insert(Package.self) { $0.name = name }
    packages[name] = package
    return package
  }

  private mutating func maintainer(named name: String) -> Maintainer {
    if let maintainer = maintainers[name] { return maintainer }
    let maintainer = context.insert(Maintainer.self) { $0.name = name }
    maintainers[name] = maintainer
    return maintainer
  }
}

/// The result of an import.
struct ImportSummary: CustomStringConvertible {
  var packages = 0
  var otherNames = 0
  var maintainers = 0
  var repetitions = 0

  var description: String {
    "Imported \(packages) packages of \(maintainers) maintainers. They refer to \(otherNames) other names."
      + (repetitions == 0 ? "" : " Repeated stanzas skipped: \(repetitions).")
  }
}
