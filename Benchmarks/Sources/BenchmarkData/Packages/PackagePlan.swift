/// What the phases of a package measurement ask for, chosen once from the input.
///
/// A process that only reads a store gets the plan and not the input, so that its memory figures are the store's.
public struct PackagePlan: Hashable, Codable, Sendable {
  /// A search with a prefix, a range and a part of a text, sorted by key.
  public struct Search: Hashable, Codable, Sendable {
    /// What the name begins with.
    public var namePrefix = "lib"
    /// The smallest installed size.
    public var minimumInstalledSize: Int64 = 100
    /// The largest installed size.
    public var maximumInstalledSize: Int64 = 1000
    /// What the summary contains, case and accents as written.
    public var summaryPart = "library"
    /// How many results at most.
    public var limit = 200
  }

  /// How many packages the input has.
  public let packageCount: Int
  /// What is searched for.
  public let search: Search
  /// The packages that a traversal starts from, spread over the input.
  public let samples: [PackageKey]
  /// The section whose packages are changed: the largest with at most one package in twenty.
  public let updateSection: String?
  /// The section whose packages are deleted: the largest other one with at most one package in fifty.
  public let deleteSection: String?

  /// Chooses what to ask of an index.
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
