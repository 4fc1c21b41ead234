import Holdfast

/// A name in the index: a package, a virtual package that others provide, or a name that is only referred to.
@Entity final class Package: ManagedObject {
  // Looking up a package by its name doesn't scan the others.
  @Attribute(.unique) var name = ""
  /// Nil for a name without a stanza: such a package can't be installed.
  var version: String?
  var section: String?
  var summary: String?
  /// In KiB.
  var installedSize: Int64?
  var maintainer: Maintainer?

  // The packages that it needs, and those that need it: two ends of one relationship. Setting one sets the other.
  @Relationship(inverse: \Package.dependents) var dependencies: ToMany<Package>
  @Relationship var dependents: ToMany<Package>
  // The names that it provides, and the packages that provide this name.
  @Relationship(inverse: \Package.providers) var provides: ToMany<Package>
  @Relationship var providers: ToMany<Package>
}

/// A maintainer of packages.
@Entity final class Maintainer: ManagedObject {
  @Attribute(.unique) var name = ""
  @Relationship(inverse: \Package.maintainer) var packages: ToMany<Package>
}
