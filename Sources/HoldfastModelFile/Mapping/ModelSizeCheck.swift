import HoldfastStore

/// Refuses models whose few elements stand for very much: each sub-entity has all properties of those above it, and each composite
/// attribute all elements of its composite.
struct ModelSizeCheck {
  /// More entities above each other than any model has; a circle comes to this, too.
  static let maximumInheritance = 100
  /// More than any store can keep in a row.
  static let maximumPropertiesOfEntity = 5_000

  private let model: ModelDeclarations
  private let options: ModelFileOptions
  private let entities: [String: EntityDescription]
  private let composites: [String: CompositeDescription]

  init(_ model: ModelDeclarations, _ options: ModelFileOptions) {
    self.model = model
    self.options = options
    entities = Dictionary(model.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    composites = Dictionary(model.composites.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  func run() throws(ModelFileError) {
    for (count, what) in [(model.entities.count, "entities"), (model.configurations.count, "configurations")]
    where count > options.maximumEntityCount {
      throw ModelFileError(.tooLarge, reason: "It has \(count) \(what); \(options.maximumEntityCount) are allowed.")
    }
    var counts = CompositeCount(composites)
    var own: [String: Int] = [:]
    for entity in model.entities { own[entity.name] = propertyCount(entity, &counts) }
    var total = 0
    for entity in model.entities {
      let count = try ([entity] + superentities(of: entity)).reduce(0) { $0 + (own[$1.name] ?? 0) }
      guard count <= ModelSizeCheck.maximumPropertiesOfEntity else {
        throw ModelFileError(
          .tooLarge, element: "entity \(entity.name.quoted)",
          reason: "It has \(count) properties with those that it inherits; \(ModelSizeCheck.maximumPropertiesOfEntity) are allowed.")
      }
      total += count
    }
    guard total <= options.maximumPropertyCount else {
      throw ModelFileError(
        .tooLarge,
        reason: "Its entities have \(total) properties with those that they inherit; \(options.maximumPropertyCount) are allowed.")
    }
    for configuration in model.configurations where configuration.entities.count > model.entities.count {
      throw ModelFileError(
        .contradictory, element: "configuration \(configuration.name.quoted)", reason: "It names more entities than the model has.")
    }
  }

  private func superentities(of entity: EntityDescription) throws(ModelFileError) -> [EntityDescription] {
    var found: [EntityDescription] = []
    var next = entity.superentity.flatMap { entities[$0] }
    while let above = next {
      // Short circles are told by the model's own check, which names them.
      if above.name == entity.name { break }
      found.append(above)
      guard found.count <= ModelSizeCheck.maximumInheritance else {
        throw ModelFileError(
          .tooLarge, element: "entity \(entity.name.quoted)",
          reason: "It inherits from more than \(ModelSizeCheck.maximumInheritance) entities, or in a circle.")
      }
      next = above.superentity.flatMap { entities[$0] }
    }
    return found
  }

  private func propertyCount(_ entity: EntityDescription, _ counts: inout CompositeCount) -> Int {
    entity.attributes.reduce(entity.relationships.count + entity.fetchedProperties.count) { $0 + counts.count($1) }
  }
}

/// How many values attributes have; a composite that contains itself counts as one, and is told by the model's own check.
private struct CompositeCount {
  private let composites: [String: CompositeDescription]
  private var known: [String: Int] = [:]
  private var open: Set<String> = []

  init(_ composites: [String: CompositeDescription]) { self.composites = composites }

  mutating func count(_ attribute: AttributeDescription) -> Int {
    guard let name = attribute.compositeName, let composite = composites[name] else { return 1 }
    if let count = known[name] { return count }
    // Deeper than this means more values than are allowed, or a circle.
    guard open.count < ModelSizeCheck.maximumInheritance, open.insert(name).inserted else { return 1 }
    var count = 1
    for element in composite.elements { count = min(count + self.count(element), ModelSizeCheck.maximumPropertiesOfEntity + 1) }
    open.remove(name)
    known[name] = count
    return count
  }
}
