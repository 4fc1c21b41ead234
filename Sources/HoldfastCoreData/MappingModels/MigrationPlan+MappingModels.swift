public import Holdfast
import HoldfastModelFile
public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension MigrationPlan {
  /// Adds a version, and Core Data's mapping models that migrate to it.
  ///
  /// ```swift
  /// var plan = MigrationPlan(from: zoo1)
  /// try plan.add(zoo2, mappingModelsAt: ["Zoo 1 to Zoo 2.xcmappingmodel"])
  /// ```
  ///
  /// The mapping models decide what becomes of objects and properties, as in Core Data: objects of an entity without a mapping are removed,
  /// and so are values and links without one. The policies that they name are closures of the program.
  ///
  /// Objects keep their keys, except for those of a mapping with a filter, and of a second mapping of the same source or destination: these are
  /// inserted.
  ///
  /// - Parameters:
  ///   - model: The version. If the plan contains it, the mapping models are another way to it.
  ///   - former: An earlier version of the plan. Defaults to the version that was added last. Traps if the plan doesn't contain it.
  ///   - paths: The paths of the `.xcmappingmodel` folders, of the files in them, or of `.cdm` files. Several are used as one.
  ///   - policies: The code of the entity migration policies, by their class names with modules. Defaults to none.
  /// - Throws: `ModelFileError` if a file can't be read. ``/HoldfastStore/MigrationError`` with code
  ///   ``/HoldfastStore/MigrationError/Code/invalidMappingModel`` if the mapping models don't fit the two versions, or a policy is missing. The
  ///   plan is unchanged then.
  public mutating func add(
    _ model: ManagedObjectModel, after former: ManagedObjectModel? = nil, mappingModelsAt paths: [String],
    policies: [String: MappingPolicy] = [:]
  ) throws {
    let files = try paths.map { try MappingModelFile(contentsOf: $0) }
    try add(model, after: former, named: paths.map(MappingModelNames.name).joined(separator: ", "), files, policies)
  }

  private mutating func add(
    _ model: ManagedObjectModel, after former: ManagedObjectModel?, named name: String, _ files: [MappingModelFile],
    _ policies: [String: MappingPolicy]
  ) throws {
    let steps = try MappingModelPlan(files, from: former ?? self.model, to: model, policies)
    // The policies are code, whose changes can't be seen.
    let fingerprint = files.flatMap(\.entityMappings).map(\.fingerprint).joined(separator: "\n")
    let incomplete = Set(steps.steps.filter(\.isInserting).compactMap { $0.destination?.name })
    addStage(to: model, after: former, named: name, by: steps.rules, fingerprint: fingerprint, incomplete: incomplete) { stage in
      try MappingModelRun(steps, stage).run()
    }
  }

  /// Reads the versions of a model, and all mapping models between them.
  ///
  /// A store is migrated by as few stages as possible. A stage is a mapping model, or an inferred mapping between two versions that follow each
  /// other and have no mapping model.
  ///
  /// ```swift
  /// let plan = try MigrationPlan(versionsAt: "Moody.xcdatamodeld", mappingModelsAt: "Migrations")
  /// try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
  /// ```
  ///
  /// Versions are ordered by their names, as Xcode shows them: "Moody", "Moody 2", "Moody 10". Versions that can't be read are left out, and so
  /// are mapping models of other models, or of versions that aren't there. Compiled mapping models belong to the versions with the version hashes of
  /// their entities.
  ///
  /// - Parameters:
  ///   - path: The path of an `.xcdatamodeld` or `.momd`.
  ///   - version: The name of the version to which stores are migrated. Defaults to the bundle's current one.
  ///   - folder: The path of a folder whose `.xcmappingmodel` folders and `.cdm` files are used, also those in its subfolders.
  ///   - policies: The code of the entity migration policies, by their class names with modules. Defaults to none.
  /// - Throws: The errors of ``add(_:after:mappingModelsAt:policies:)``, and `ModelFileError` if the version can't be read.
  public init(
    versionsAt path: String, to version: String? = nil, mappingModelsAt folder: String, policies: [String: MappingPolicy] = [:]
  ) throws {
    let (versions, current) = try ModelVersions.ordered(at: path), last = version ?? current
    guard let place = versions.firstIndex(where: { $0.name == last }) else {
      throw ModelFileError(
        .unknownVersion, path: path,
        reason:
          "The version \(last.debugDescription) doesn't exist, or can't be read. Readable are \(versions.map(\.name).joined(separator: ", "))."
      )
    }
    let models = Dictionary(versions.map { ($0.name, $0.model) }, uniquingKeysWith: { first, _ in first })
    var files: [MappingModelNames.Ends: [MappingModelFile]] = [:]
    for mappingPath in try MappingModelNames.paths(in: folder) {
      var ends: MappingModelNames.Ends?
      let file = try MappingModelFile.read(contentsOf: mappingPath) {
        ends = MappingModelNames.ends(of: $0, among: versions, ofModelAt: path)
        return ends.map { $0.source != last } ?? false
      }
      if let file, let ends { files[ends, default: []].append(file) }
    }
    self.init(from: versions[0].model)
    for (old, new) in zip(versions[..<place], versions[1...]) {
      if let found = files.removeValue(forKey: MappingModelNames.Ends(source: old.name, destination: new.name)) {
        try add(new.model, after: nil, named: "\(old.name) to \(new.name)", found, policies)
      } else {
        add(new.model)
      }
    }
    for (ends, files) in files.sorted(by: { $0.key < $1.key }) {
      guard let old = models[ends.source], let new = models[ends.destination] else { continue }
      include(old)
      include(new)
      try add(new, after: old, named: "\(ends.source) to \(ends.destination)", files, policies)
    }
  }
}

extension MappingModelFile.EntityMapping {
  /// Everything that a migration uses, as text.
  fileprivate var fingerprint: String {
    let properties = (attributeMappings + relationshipMappings).map { "\($0.name)=\($0.expressionText ?? "")" }
    return "\(name) \(sourceEntityName ?? "") \(sourceFilter ?? "") \(destinationEntityName ?? "") \(policyClassName ?? "") \(properties)"
  }
}

/// Which mapping models belong to which versions.
enum MappingModelNames {
  /// The names of a mapping model's source and destination versions.
  struct Ends: Hashable, Comparable {
    var source: String
    var destination: String

    init(source: String, destination: String) { (self.source, self.destination) = (source, destination) }

    /// The ends of a file; nil if it belongs to another model.
    init?(_ paths: (source: String, destination: String), ofModelAt path: String) {
      let bundle = MappingModelNames.name(path)
      var names: [String] = []
      for path in [paths.source, paths.destination] {
        let parts = path.split(separator: "/").map(String.init)
        guard let version = parts.last else { return nil }
        if parts.count > 1, parts[parts.count - 2].hasSuffix(".xcdatamodeld"), MappingModelNames.name(parts[parts.count - 2]) != bundle {
          return nil
        }
        names.append(MappingModelNames.name(version))
      }
      (source, destination) = (names[0], names[1])
    }

    static func < (a: Ends, b: Ends) -> Bool { (a.source, a.destination) < (b.source, b.destination) }
  }

  /// The versions to which a mapping model belongs; nil if it belongs to another model.
  static func ends(
    of file: MappingModelFile.Versions, among versions: [(name: String, model: ManagedObjectModel)], ofModelAt path: String
  ) -> Ends? {
    switch file {
    case .paths(let source, let destination):
      guard let ends = Ends((source, destination), ofModelAt: path), versions.contains(where: { $0.name == ends.source }),
        versions.contains(where: { $0.name == ends.destination })
      else { return nil }
      return ends
    case .hashes(let source, let destination):
      let sources = places(source, versions), destinations = places(destination, versions)
      let pairs = sources.flatMap { first in destinations.filter { $0 != first }.map { (first, $0) } }
      // Several pairs have the hashes if versions differ in other entities only: then the mapping model is that of neighbours, unless it would
      // remove objects that the new version can have. A version's successor comes before its predecessor.
      func cost(_ pair: (Int, Int)) -> (Int, Int, Int) {
        let (old, new) = (versions[pair.0].model, versions[pair.1].model)
        let removed = old.entities.count { !$0.isAbstract && source[$0.name] == nil && new.entity(named: $0.name) != nil }
        return (removed, abs(pair.0 - pair.1), pair.0 < pair.1 ? 0 : 1)
      }
      return pairs.min { cost($0) < cost($1) }.map { Ends(source: versions[$0.0].name, destination: versions[$0.1].name) }
    }
  }

  /// The places of the versions that have entities with some version hashes.
  private static func places(_ hashes: [String: [UInt8]], _ versions: [(name: String, model: ManagedObjectModel)]) -> [Int] {
    versions.indices.filter { place in
      !hashes.isEmpty && hashes.allSatisfy { versions[place].model.entity(named: $0.key)?.versionHash == $0.value }
    }
  }

  /// The last component of a path, without its extension.
  static func name(_ path: String) -> String {
    let last = path.split(separator: "/").last.map(String.init) ?? path
    guard let dot = last.lastIndex(of: "."), dot != last.startIndex else { return last }
    return String(last[..<dot])
  }

  /// The paths of the mapping models in a folder.
  static func paths(in folder: String) throws -> [String] {
    let names: [String]
    do { names = try FileManager.default.subpathsOfDirectory(atPath: folder) } catch {
      throw ModelFileError(
        .notFound, operation: "read the mapping models", path: folder, reason: "The folder can't be read. Check its path.", cause: error)
    }
    return names.filter { name in MappingModelFile.endings.contains { name.hasSuffix($0) } }.sorted().map { folder + "/" + $0 }
  }
}
