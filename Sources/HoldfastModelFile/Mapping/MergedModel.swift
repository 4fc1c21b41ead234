public import HoldfastStore

extension ManagedObjectModel {
  /// Joins the current models of several bundles into one, as Core Data's `mergedModel(from:)` does.
  ///
  /// - Parameters:
  ///   - paths: `.xcdatamodeld` or `.xcdatamodel` folders.
  ///   - options: The limits for each.
  /// - Throws: ``ModelFileError``: what reading throws; `contradictory` as ``merging(_:)``.
  public static func merged(
    contentsOf paths: [String], options: ModelFileOptions = ModelFileOptions()
  ) throws(ModelFileError) -> ManagedObjectModel {
    var models: [ManagedObjectModel] = []
    for path in paths { models.append(try ManagedObjectModel(contentsOf: path, options: options)) }
    return try merging(models)
  }

  /// Joins models into one, as Core Data's `init(byMerging:)` does.
  ///
  /// What has the same name in several models, be it an entity, a composite or a fetch request, must be the same in each. A configuration
  /// has the entities of all configurations of its name; the version identifiers are those of all models.
  ///
  /// - Throws: ``ModelFileError`` with code `contradictory`.
  public static func merging(_ models: [ManagedObjectModel]) throws(ModelFileError) -> ManagedObjectModel {
    let entities = try joined(models.flatMap(\.declarations), "entity", by: \.name)
    let composites = try joined(models.flatMap(\.composites), "composite", by: \.name)
    let templates = try joined(models.flatMap(\.fetchRequestTemplates), "fetch request", by: \.name)
    var configurations: [ConfigurationDescription] = []
    for configuration in models.flatMap(\.configurations) {
      guard let place = configurations.firstIndex(where: { $0.name == configuration.name }) else {
        configurations.append(configuration)
        continue
      }
      let known = Set(configurations[place].entities)
      configurations[place].entities += configuration.entities.filter { !known.contains($0) }
    }
    var seen: Set<String> = []
    do {
      return try ManagedObjectModel(
        entities: entities, versionIdentifiers: models.flatMap(\.versionIdentifiers).filter { seen.insert($0).inserted },
        configurations: configurations, composites: composites, fetchRequestTemplates: templates)
    } catch {
      throw ModelFileError(.contradictory, operation: "merge the models", reason: "Together they contradict each other.", cause: error)
    }
  }

  private static func joined<Declaration: Equatable>(
    _ all: [Declaration], _ kind: String, by name: (Declaration) -> String
  ) throws(ModelFileError) -> [Declaration] {
    var byName: [String: Declaration] = [:]
    var joined: [Declaration] = []
    for declaration in all {
      guard let known = byName[name(declaration)] else {
        byName[name(declaration)] = declaration
        joined.append(declaration)
        continue
      }
      guard known == declaration else {
        throw ModelFileError(
          .contradictory, operation: "merge the models", element: "\(kind) \(name(declaration).quoted)",
          reason: "Two models say different things of it. Rename one, or leave one model out.")
      }
    }
    return joined
  }
}
