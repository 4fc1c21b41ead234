import HoldfastStore

// Core Data creates a SQLite file for a configuration of a model without the model's other entities.
extension PersistentStoreMetadata {
  /// The configuration with which the store must be opened; nil if it has all entities of the model.
  ///
  /// - Parameters:
  ///   - name: The configuration that the user passed; nil for none.
  ///   - model: The model.
  ///   - path: The path of the model, for the error.
  /// - Throws: ``CommandError`` if the model has no such configuration.
  func neededConfiguration(_ name: String?, of model: ManagedObjectModel, at path: String) throws(CommandError) -> String? {
    guard let name else { return nil }
    guard model.entities(inConfiguration: name) != nil else {
      let known = model.configurations.map(\.name).joined(separator: ", ")
      throw CommandError(
        path: path,
        reason: "The model has no configuration \(name). \(known.isEmpty ? "Omit --configuration." : "Its configurations: \(known).")")
    }
    return isCompatible(with: model) ? nil : name
  }

  /// What to do if the store may have been created for a configuration of one of these models, as a sentence after a space; empty if it
  /// wasn't.
  func configurationAdvice(_ models: [ManagedObjectModel]) -> String {
    // Files of other types aren't opened with a configuration.
    if type != "SQLite" { return "" }
    let fitting = models.flatMap { model in
      model.configurations.map(\.name).filter { differingEntities(from: model, configuration: $0).isEmpty }
    }
    if fitting.isEmpty { return "" }
    let names = Set(fitting).sorted().joined(separator: ", ")
    return " If Core Data created the store for a configuration, pass it with --configuration. These fit: \(names)."
  }
}
