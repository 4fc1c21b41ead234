import Holdfast

/// A name in the index: a package, a virtual package that others provide, or a name that is only referred to.
final class Package: ManagedObject {
  enum Slot {
    static let installedSize: SlotIndex = 0, maintainer: SlotIndex = 1, name: SlotIndex = 2, section: SlotIndex = 3
    static let summary: SlotIndex = 4, version: SlotIndex = 5
    static let dependencies = 0, dependents = 1, providers = 2, provides = 3
  }
  override class var entityName: String { "Package" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  /// Nil for a name without a stanza: such a package can't be installed.
  var version: String? {
    get { self[Slot.version] }
    set { self[Slot.version] = newValue }
  }
  var section: String? {
    get { self[Slot.section] }
    set { self[Slot.section] = newValue }
  }
  var summary: String? {
    get { self[Slot.summary] }
    set { self[Slot.summary] = newValue }
  }
  /// In KiB.
  var installedSize: Int64? {
    get { self[Slot.installedSize] }
    set { self[Slot.installedSize] = newValue }
  }
  var maintainer: Maintainer? {
    get { toOne(Slot.maintainer) }
    set { setToOne(Slot.maintainer, newValue) }
  }

  /// The packages that it needs, and those that need it: two ends of one relationship. Setting one sets the other.
  var dependencies: ToMany<Package> { toMany(Slot.dependencies) }
  var dependents: ToMany<Package> { toMany(Slot.dependents) }
  /// The names that it provides, and the packages that provide this name.
  var provides: ToMany<Package> { toMany(Slot.provides) }
  var providers: ToMany<Package> { toMany(Slot.providers) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("installedSize", \Package.installedSize, slot: Slot.installedSize),
      .toOne("maintainer", \Package.maintainer, slot: Slot.maintainer), .attribute("name", \Package.name, slot: Slot.name),
      .attribute("section", \Package.section, slot: Slot.section), .attribute("summary", \Package.summary, slot: Slot.summary),
      .attribute("version", \Package.version, slot: Slot.version),
      .toMany("dependencies", \Package.dependencies, index: Slot.dependencies),
      .toMany("dependents", \Package.dependents, index: Slot.dependents),
      .toMany("providers", \Package.providers, index: Slot.providers), .toMany("provides", \Package.provides, index: Slot.provides),
    ]
  }
}

/// A maintainer of packages.
final class Maintainer: ManagedObject {
  enum Slot { static let name: SlotIndex = 0, packages = 0 }
  override class var entityName: String { "Maintainer" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var packages: ToMany<Package> { toMany(Slot.packages) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Maintainer.name, slot: Slot.name), .toMany("packages", \Maintainer.packages, index: Slot.packages)]
  }
}

extension Stack {
  /// Packages with their dependencies, any number and also in cycles, and their maintainers.
  static func makeModel() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Package",
        attributes: [
          AttributeDescription("name", .string), AttributeDescription("version", .string, isOptional: true),
          AttributeDescription("section", .string, isOptional: true), AttributeDescription("summary", .string, isOptional: true),
          AttributeDescription("installedSize", .integer64, isOptional: true),
        ],
        relationships: [
          .toOne("maintainer", to: "Maintainer", inverse: "packages"),
          .toMany("dependencies", to: "Package", inverse: "dependents"), .toMany("dependents", to: "Package", inverse: "dependencies"),
          .toMany("provides", to: "Package", inverse: "providers"), .toMany("providers", to: "Package", inverse: "provides"),
        ],
        // Names are unique, and looking up a package by its name doesn't scan the others.
        uniquenessConstraints: [["name"]]),
      EntityDescription(
        "Maintainer", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("packages", to: "Package", inverse: "maintainer")], uniquenessConstraints: [["name"]]),
    ])
  }
}
