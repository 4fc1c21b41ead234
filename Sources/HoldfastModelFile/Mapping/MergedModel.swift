public import HoldfastStore

extension ManagedObjectModel {
  /// Merges the current models of several bundles, like Core Data's `mergedModel(from:)`.
  ///
  /// - Parameters:
  ///   - paths: `.xcdatamodeld` or `.xcdatamodel` folders.
  ///   - options: The limits for each file.
  /// - Throws: ``ModelFileError``: the errors of reading, and `contradictory` like ``merging(_:)``.
  public static func merged(
    contentsOf paths: [String], options: ModelFileOptions = ModelFileOptions()
  ) throws(ModelFileError) -> ManagedObjectModel {
    var models: [ManagedObjectModel] = []
    for path in paths { models.append(try ManagedObjectModel(contentsOf: path, options: options)) }
    return try merging(models)
  }

  /// Merges models into one, like Core Data's `init(byMerging:)`.
  ///
  /// Entities, composites and fetch requests with the same name must be equal in all models. The order of an entity's properties doesn't
  /// matter, nor how a derivation expression is written. A configuration has the entities of all configurations with its name. The result
  /// has the version identifiers of all models.
  ///
  /// - Throws: ``ModelFileError`` with code `contradictory`.
  public static func merging(_ models: [ManagedObjectModel]) throws(ModelFileError) -> ManagedObjectModel {
    let entities = try joined(models.flatMap(\.declarations), "entity", by: \.name, comparing: \.canonical)
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
      throw ModelFileError(.contradictory, operation: "merge the models", reason: "The merged model is contradictory.", cause: error)
    }
  }

  private static func joined<Declaration: Equatable>(
    _ all: [Declaration], _ kind: String, by name: (Declaration) -> String, comparing canonical: (Declaration) -> Declaration = { $0 }
  ) throws(ModelFileError) -> [Declaration] {
    var byName: [String: Declaration] = [:]
    var joined: [Declaration] = []
    for declaration in all {
      guard let known = byName[name(declaration)] else {
        byName[name(declaration)] = declaration
        joined.append(declaration)
        continue
      }
      guard canonical(known) == canonical(declaration) else {
        throw ModelFileError(
          .contradictory, operation: "merge the models", element: "\(kind) \(name(declaration).quoted)",
          reason: "Two models declare it differently. Rename one of the declarations, or omit one of the models.")
      }
    }
    return joined
  }
}

extension EntityDescription {
  /// The declaration as it is compared: properties by name, and derivation expressions as Core Data's compiled models write them.
  fileprivate var canonical: EntityDescription {
    var entity = self
    for place in entity.attributes.indices {
      guard let text = entity.attributes[place].derivationExpression else { continue }
      entity.attributes[place].derivationExpression = Derivation(text)?.description ?? text
    }
    entity.attributes.sort { $0.name < $1.name }
    entity.relationships.sort { $0.name < $1.name }
    entity.fetchedProperties.sort { $0.name < $1.name }
    return entity
  }
}
