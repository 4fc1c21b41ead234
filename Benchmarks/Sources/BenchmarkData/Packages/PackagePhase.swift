/// The phases measured on packages. The raw value is the name in results.
public enum PackagePhase: String, CaseIterable, Sendable {
  /// Import all packages, maintainers, sections and links in batches into a new store. Checksum: the number of objects and links.
  case importing = "import"
  /// Open the store, fetch all packages, read every attribute, the section and the maintainer.
  case load
  /// Follow all links of every kind.
  case links
  /// ``PackagePlan/search``.
  case search
  /// From each of ``PackagePlan/samples``, follow "depends" transitively.
  case traverse
  /// Add one KiB to each package of ``PackagePlan/updateSection``, then save.
  case update
  /// Delete the packages of ``PackagePlan/deleteSection``, then save.
  case delete
}
