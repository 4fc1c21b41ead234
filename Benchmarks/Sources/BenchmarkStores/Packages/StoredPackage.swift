internal import BenchmarkData
internal import Holdfast

/// A package of the package input, with its links of every kind and their inverses.
final class StoredPackage: ManagedObject {
  enum Slot {
    static let architecture: SlotIndex = 0, homepage: SlotIndex = 1, installedSize: SlotIndex = 2, longDescription: SlotIndex = 3
    static let maintainer: SlotIndex = 4, multiArch: SlotIndex = 5, name: SlotIndex = 6
    static let priority: SlotIndex = 7, section: SlotIndex = 8, size: SlotIndex = 9, source: SlotIndex = 10, summary: SlotIndex = 11
    static let version: SlotIndex = 12
    static let breaks = 0, brokenBy = 1, conflictedBy = 2, conflicts = 3, dependedOnBy = 4, depends = 5, preDependedOnBy = 6
    static let preDepends = 7, providedBy = 8, provides = 9, recommendedBy = 10, recommends = 11, replacedBy = 12, replaces = 13
    static let suggestedBy = 14, suggests = 15
  }
  override class var entityName: String { "Package" }
  var architecture: String {
    get { self[Slot.architecture] }
    set { self[Slot.architecture] = newValue }
  }
  var homepage: String? {
    get { self[Slot.homepage] }
    set { self[Slot.homepage] = newValue }
  }
  var installedSize: Int64? {
    get { self[Slot.installedSize] }
    set { self[Slot.installedSize] = newValue }
  }
  var longDescription: String? {
    get { self[Slot.longDescription] }
    set { self[Slot.longDescription] = newValue }
  }
  var maintainer: StoredMaintainer? {
    get { toOne(Slot.maintainer) }
    set { setToOne(Slot.maintainer, newValue) }
  }
  var multiArch: String? {
    get { self[Slot.multiArch] }
    set { self[Slot.multiArch] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var priority: String? {
    get { self[Slot.priority] }
    set { self[Slot.priority] = newValue }
  }
  var section: StoredSection? {
    get { toOne(Slot.section) }
    set { setToOne(Slot.section, newValue) }
  }
  var size: Int64? {
    get { self[Slot.size] }
    set { self[Slot.size] = newValue }
  }
  var source: String? {
    get { self[Slot.source] }
    set { self[Slot.source] = newValue }
  }
  var summary: String? {
    get { self[Slot.summary] }
    set { self[Slot.summary] = newValue }
  }
  var version: String {
    get { self[Slot.version] }
    set { self[Slot.version] = newValue }
  }

  var breaks: ToMany<StoredPackage> { toMany(Slot.breaks) }
  var conflicts: ToMany<StoredPackage> { toMany(Slot.conflicts) }
  var depends: ToMany<StoredPackage> { toMany(Slot.depends) }
  var preDepends: ToMany<StoredPackage> { toMany(Slot.preDepends) }
  var provides: ToMany<StoredPackage> { toMany(Slot.provides) }
  var recommends: ToMany<StoredPackage> { toMany(Slot.recommends) }
  var replaces: ToMany<StoredPackage> { toMany(Slot.replaces) }
  var suggests: ToMany<StoredPackage> { toMany(Slot.suggests) }

  /// The packages that this one refers to in its relations of a kind.
  func links(_ kind: PackageRelationKind) -> ToMany<StoredPackage> {
    switch kind {
    case .depends: depends
    case .preDepends: preDepends
    case .recommends: recommends
    case .suggests: suggests
    case .breaks: breaks
    case .conflicts: conflicts
    case .replaces: replaces
    case .provides: provides
    }
  }

  override class var properties: [PropertyBinding] {
    [
      .attribute("architecture", \StoredPackage.architecture, slot: Slot.architecture),
      .attribute("homepage", \StoredPackage.homepage, slot: Slot.homepage),
      .attribute("installedSize", \StoredPackage.installedSize, slot: Slot.installedSize),
      .attribute("longDescription", \StoredPackage.longDescription, slot: Slot.longDescription),
      .toOne("maintainer", \StoredPackage.maintainer, slot: Slot.maintainer),
      .attribute("multiArch", \StoredPackage.multiArch, slot: Slot.multiArch), .attribute("name", \StoredPackage.name, slot: Slot.name),
      .attribute("priority", \StoredPackage.priority, slot: Slot.priority), .toOne("section", \StoredPackage.section, slot: Slot.section),
      .attribute("size", \StoredPackage.size, slot: Slot.size), .attribute("source", \StoredPackage.source, slot: Slot.source),
      .attribute("summary", \StoredPackage.summary, slot: Slot.summary), .attribute("version", \StoredPackage.version, slot: Slot.version),
      .toMany("breaks", \StoredPackage.breaks, index: Slot.breaks), .toMany("conflicts", \StoredPackage.conflicts, index: Slot.conflicts),
      .toMany("depends", \StoredPackage.depends, index: Slot.depends),
      .toMany("preDepends", \StoredPackage.preDepends, index: Slot.preDepends),
      .toMany("provides", \StoredPackage.provides, index: Slot.provides),
      .toMany("recommends", \StoredPackage.recommends, index: Slot.recommends),
      .toMany("replaces", \StoredPackage.replaces, index: Slot.replaces),
      .toMany("suggests", \StoredPackage.suggests, index: Slot.suggests),
    ]
  }
}

/// A section of the package input.
final class StoredSection: ManagedObject {
  enum Slot {
    static let name: SlotIndex = 0
    static let packages = 0
  }
  override class var entityName: String { "Section" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var packages: ToMany<StoredPackage> { toMany(Slot.packages) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("name", \StoredSection.name, slot: Slot.name),
      .toMany("packages", \StoredSection.packages, index: Slot.packages),
    ]
  }
}

/// A maintainer of the package input.
final class StoredMaintainer: ManagedObject {
  enum Slot {
    static let email: SlotIndex = 0, name: SlotIndex = 1
    static let packages = 0
  }
  override class var entityName: String { "Maintainer" }
  var email: String? {
    get { self[Slot.email] }
    set { self[Slot.email] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var packages: ToMany<StoredPackage> { toMany(Slot.packages) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("email", \StoredMaintainer.email, slot: Slot.email), .attribute("name", \StoredMaintainer.name, slot: Slot.name),
      .toMany("packages", \StoredMaintainer.packages, index: Slot.packages),
    ]
  }
}
