/// The parameters of the phases of a package measurement, chosen once from the input.
///
/// A process that only reads a store gets the plan rather than the input, so that its memory figures contain only the store.
public struct PackagePlan: Hashable, Codable, Sendable {
  /// A search by a prefix, a range and a substring, sorted by key.
  public struct Search: Hashable, Codable, Sendable {
    /// The prefix of the name.
    public var namePrefix = "lib"
    /// The minimum installed size in KiB.
    public var minimumInstalledSize: Int64 = 100
    /// The maximum installed size in KiB.
    public var maximumInstalledSize: Int64 = 1000
    /// A substring of the summary, compared exactly.
    public var summaryPart = "library"
    /// The maximum number of results.
    public var limit = 200
  }

  /// The number of packages in the input.
  public let packageCount: Int
  /// The search parameters.
  public let search: Search
  /// The start packages of traversals, distributed over the input.
  public let samples: [PackageKey]
  /// The section whose packages are updated: the largest one with at most 1/20 of the packages.
  public let updateSection: String?
  /// The section whose packages are deleted: the largest other one with at most 1/50 of the packages.
  public let deleteSection: String?

  /// Chooses a plan for an index.
  public init(index: PackageIndex) {
    packageCount = index.count
    search = Search()
    let sampleCount = min(200, index.count)
    samples = (0..<sampleCount).map { index[$0 * index.count / sampleCount].key }
    let update = Self.section(of: index, share: 20, except: nil)
    updateSection = update
    deleteSection = Self.section(of: index, share: 50, except: update)
  }

  private static func section(of index: PackageIndex, share: Int, except: String?) -> String? {
    var sizes = [Int](repeating: 0, count: index.sectionCount)
    for package in 0..<index.count { if let section = index[package].section { sizes[section] += 1 } }
    let sections = sizes.indices.map { (name: index.sectionName($0), size: sizes[$0]) }.filter { $0.name != except && $0.size > 0 }
    let small = sections.filter { $0.size <= max(1, index.count / share) }
    func isBefore(_ a: (name: String, size: Int), _ b: (name: String, size: Int)) -> Bool { (a.size, b.name) < (b.size, a.name) }
    return (small.max(by: isBefore) ?? sections.min(by: isBefore))?.name
  }
}
