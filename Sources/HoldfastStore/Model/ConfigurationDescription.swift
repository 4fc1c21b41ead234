/// Declares a configuration: a named subset of a model's entities, for opening a store.
///
/// ```swift
/// let cloud = ConfigurationDescription("cloud", ["Person", "Address"])
/// ```
///
/// A store with a configuration contains only objects of the entities that the configuration names. Naming a superentity doesn't include
/// its subentities, so they can be in different stores than the superentity. An entity may be in several configurations, or in none.
/// Configurations aren't part of version hashes.
public struct ConfigurationDescription: Sendable, Hashable, Codable {
  /// The name, unique in the model.
  public var name: String
  /// The names of the entities, in any order.
  public var entities: [String]

  /// Declares a configuration.
  public init(_ name: String, _ entities: [String]) {
    self.name = name
    self.entities = entities
  }
}

extension ManagedObjectModel {
  /// The entities of a configuration, in the order of ``entities``. Nil if the configuration doesn't exist.
  public func entities(inConfiguration name: String) -> [Entity]? {
    guard let configuration = configurations.first(where: { $0.name == name }) else { return nil }
    return entities.filter { configuration.entities.contains($0.name) }
  }
}

extension ModelCheck {
  /// Finds the problems of configurations.
  static func problems(in configurations: [ConfigurationDescription], of entities: [EntityDescription]) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    let known = Set(entities.map(\.name))
    var names: Set<String> = []
    for configuration in configurations {
      let path = "configuration \(configuration.name)"
      func report(_ reason: String) { found.append(ModelError.Problem(path: path, reason: reason)) }
      if configuration.name.isEmpty { report("The configuration has no name. Give it one.") }
      if !names.insert(configuration.name).inserted { report("Another configuration has this name. Rename one of them.") }
      var named: Set<String> = []
      for name in configuration.entities {
        if !known.contains(name) { report("The entity \(name) doesn't exist.") }
        if !named.insert(name).inserted { report("The configuration contains the entity \(name) twice.") }
      }
    }
    return found
  }

  /// Finds the problems of fetch request templates.
  static func problems(in templates: [FetchRequestDescription], of entities: [EntityDescription]) -> [ModelError.Problem] {
    var found = repeated(templates.map(\.name)).map {
      ModelError.Problem(path: "fetch request \($0)", reason: "Another fetch request has this name. Rename one of them.")
    }
    if templates.contains(where: \.name.isEmpty) {
      found.append(ModelError.Problem(path: "fetch request", reason: "The fetch request has no name. Give it one."))
    }
    let known = Set(entities.map(\.name))
    for template in templates where !known.contains(template.entity) {
      found.append(ModelError.Problem(path: "fetch request \(template.name)", reason: "The entity \(template.entity) doesn't exist."))
    }
    return found
  }
}
