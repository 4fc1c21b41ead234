internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast

/// Imports a package index in batches with separate saves, so that memory doesn't grow with the index.
///
/// All packages are inserted before their links, because a link can point to a later package. The context is reset between batches,
/// and only object IDs are kept.
struct PackageImport {
  private let index: PackageIndex
  private let context: ManagedObjectContext
  private var progress: ProgressBar
  private var sections: [ManagedObjectID] = []
  private var maintainers: [ManagedObjectID] = []
  private var packages: [ManagedObjectID] = []
  private var linkCount = 0

  private static let batchSize = 2000

  init(_ index: PackageIndex, into context: ManagedObjectContext) {
    self.index = index
    self.context = context
    progress = ProgressBar("Importing", total: 2 * index.count, unit: "packages and their links")
  }

  /// Imports everything.
  ///
  /// - Returns: The number of objects in the store afterwards, plus the number of links created.
  mutating func run() throws -> Int {
    try insertSectionsAndMaintainers()
    for batch in batches {
      try insertPackages(batch)
      progress.advance(by: batch.count)
    }
    for batch in batches {
      try insertLinks(batch)
      progress.advance(by: batch.count)
    }
    progress.finish()
    return try context.count(for: FetchRequest<StoredPackage>()) + context.count(for: FetchRequest<StoredSection>())
      + context.count(for: FetchRequest<StoredMaintainer>()) + linkCount
  }

  private var batches: some Sequence<Range<Int>> {
    stride(from: 0, to: index.count, by: Self.batchSize).lazy.map { [count = index.count] in $0..<min($0 + Self.batchSize, count) }
  }

  // MARK: Steps of `run()`

  private mutating func insertSectionsAndMaintainers() throws {
    let newSections = (0..<index.sectionCount).map { number in
      let section = context.insert(StoredSection.self)
      section.name = index.sectionName(number)
      return section
    }
    let newMaintainers = (0..<index.maintainerCount).map { number in
      let maintainer = context.insert(StoredMaintainer.self)
      let input = index.maintainer(number)
      maintainer.name = input.name
      maintainer.email = input.email
      return maintainer
    }
    try context.save()
    sections = newSections.map(\.objectID)
    maintainers = newMaintainers.map(\.objectID)
    context.reset()
  }

  private mutating func insertPackages(_ batch: Range<Int>) throws {
    let inserted = try batch.map { try insert(index[$0]) }
    try context.save()
    packages += inserted.map(\.objectID)
    context.reset()
  }

  private func insert(_ input: Package) throws -> StoredPackage {
    let package = context.insert(StoredPackage.self)
    package.name = input.name
    package.version = input.version
    package.architecture = input.architecture
    package.installedSize = input.installedSize
    package.size = input.size
    package.summary = input.summary
    package.longDescription = input.longDescription
    package.homepage = input.homepage
    package.priority = input.priority
    package.source = input.source
    package.multiArch = input.multiArch
    package.section = try input.section.map { try object(sections[$0]) }
    package.maintainer = try input.maintainer.map { try object(maintainers[$0]) }
    return package
  }

  private mutating func insertLinks(_ batch: Range<Int>) throws {
    for source in batch {
      let package: StoredPackage = try object(packages[source])
      for kind in PackageRelationKind.allCases {
        let links = package.links(kind)
        for target in index.links(kind)[source] {
          links.insert(try object(packages[Int(target)]))
          linkCount += 1
        }
      }
    }
    try context.save()
    context.reset()
  }

  private func object<Object: ManagedObject>(_ id: ManagedObjectID) throws -> Object {
    guard let object = try context.object(with: id) as? Object else { throw MissingObject("a \(Object.entityName)") }
    return object
  }
}
