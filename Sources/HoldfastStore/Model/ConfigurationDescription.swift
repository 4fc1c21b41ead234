/// Declares a configuration: a named subset of a model's entities, which a store can be opened with.
///
/// ```swift
/// let cloud = ConfigurationDescription("cloud", ["Person", "Address"])
/// ```
///
/// A store with a configuration has the objects of exactly the entities that the configuration names. Sub-entities are not
/// included by their super entity, so the objects of one family may lie in several stores. An entity may stand in several
/// configurations, or in none. Configurations do not enter the version hashes.
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
  /// The entities of a configuration, in the order of ``entities``; nil when the model has no configuration of that name.
  public func entities(inConfiguration name: String) -> [Entity]? {
    guard let configuration = configurations.first(where: { $0.name == name }) else { return nil }
    return entities.filter { configuration.entities.contains($0.name) }
  }
}

extension ModelCheck {
  /// Every contradiction in configurations.
  static func problems(in configurations: [ConfigurationDescription], of entities: [EntityDescription]) -> [ModelError.Problem] {
    var found: [ModelError.Problem] = []
    let known = Set(entities.map(\.name))
    for (place, configuration) in configurations.enumerated() {
      let path = "configuration \(configuration.name)"
      func report(_ reason: String) { found.append(ModelError.Problem(path: path, reason: reason)) }
      if configuration.name.isEmpty { report("A configuration needs a name.") }
      if configurations[..<place].contains(where: { $0.name == configuration.name }) {
        report("There are two configurations of this name.")
      }
      var named: Set<String> = []
      for name in configuration.entities {
        if !known.contains(name) { report("There is no entity \(name).") }
        if !named.insert(name).inserted { report("It names \(name) twice.") }
      }
    }
    return found
  }

  /// Every contradiction in fetch-request templates.
  static func problems(in templates: [FetchRequestDescription], of entities: [EntityDescription]) -> [ModelError.Problem] {
    var found = repeated(templates.map(\.name)).map {
      ModelError.Problem(path: "fetch request \($0)", reason: "There are two fetch requests of this name.")
    }
    if templates.contains(where: \.name.isEmpty) {
      found.append(ModelError.Problem(path: "fetch request", reason: "A fetch request that programs ask for by name needs one."))
    }
    let known = Set(entities.map(\.name))
    for template in templates where !known.contains(template.entity) {
      found.append(ModelError.Problem(path: "fetch request \(template.name)", reason: "There is no entity \(template.entity) to ask."))
    }
    return found
  }
}
