/// What is measured on packages; the raw value is the name in results.
public enum PackagePhase: String, CaseIterable, Sendable {
  /// Import all packages, maintainers, sections and links in batches into a fresh store. Checksum: objects plus links.
  case importing = "import"
  /// Open, fetch all packages, read every attribute, the section and the maintainer.
  case load
  /// Follow every link of every kind.
  case links
  /// ``PackagePlan/search``.
  case search
  /// From each of ``PackagePlan/samples``, follow "depends" as far as it goes.
  case traverse
  /// One more KiB for each package of ``PackagePlan/updateSection``, then a save.
  case update
  /// Delete the packages of ``PackagePlan/deleteSection``, then a save.
  case delete
}
