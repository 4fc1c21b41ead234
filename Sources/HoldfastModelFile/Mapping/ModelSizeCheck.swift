import HoldfastStore

/// Refuses models that are small in the file and too large in memory. A subentity has all properties of its superentities, and a composite
/// attribute has all elements of its composite.
struct ModelSizeCheck {
  /// The maximum number of superentities. It is above that of every model; circular inheritance exceeds it, too.
  static let maximumInheritance = 100
  /// The maximum number of properties of an entity. It is more than any store can keep in a row.
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
      throw ModelFileError(.tooLarge, reason: "The model has \(count) \(what); the maximum is \(options.maximumEntityCount).")
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
          reason: "It has \(count) properties, including inherited ones; the maximum is \(ModelSizeCheck.maximumPropertiesOfEntity).")
      }
      total += count
    }
    guard total <= options.maximumPropertyCount else {
      throw ModelFileError(
        .tooLarge,
        reason: "The entities have \(total) properties, including inherited ones; the maximum is \(options.maximumPropertyCount).")
    }
    for configuration in model.configurations where configuration.entities.count > model.entities.count {
      throw ModelFileError(
        .contradictory, element: "configuration \(configuration.name.quoted)", reason: "It contains more entities than the model.")
    }
  }

  private func superentities(of entity: EntityDescription) throws(ModelFileError) -> [EntityDescription] {
    var found: [EntityDescription] = []
    var next = entity.superentity.flatMap { entities[$0] }
    while let above = next {
      // The model's own check reports short cycles, with their names.
      if above.name == entity.name { break }
      found.append(above)
      guard found.count <= ModelSizeCheck.maximumInheritance else {
        throw ModelFileError(
          .tooLarge, element: "entity \(entity.name.quoted)",
          reason: "The entity inherits from more than \(ModelSizeCheck.maximumInheritance) entities, or from itself.")
      }
      next = above.superentity.flatMap { entities[$0] }
    }
    return found
  }

  private func propertyCount(_ entity: EntityDescription, _ counts: inout CompositeCount) -> Int {
    entity.attributes.reduce(entity.relationships.count + entity.fetchedProperties.count) { $0 + counts.count($1) }
  }
}

/// Counts the values of attributes. A composite that contains itself counts as one; the model's own check reports it.
private struct CompositeCount {
  private let composites: [String: CompositeDescription]
  private var known: [String: Int] = [:]
  private var open: Set<String> = []

  init(_ composites: [String: CompositeDescription]) { self.composites = composites }

  mutating func count(_ attribute: AttributeDescription) -> Int {
    guard let name = attribute.compositeName, let composite = composites[name] else { return 1 }
    if let count = known[name] { return count }
    // A deeper level means more values than allowed, or a cycle.
    guard open.count < ModelSizeCheck.maximumInheritance, open.insert(name).inserted else { return 1 }
    var count = 1
    for element in composite.elements { count = min(count + self.count(element), ModelSizeCheck.maximumPropertiesOfEntity + 1) }
    open.remove(name)
    known[name] = count
    return count
  }
}
