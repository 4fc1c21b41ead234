/// A frozen description of all kinds of objects and how they relate.
///
/// A model is made from declarations in one step, which checks everything and reports all that is wrong at once.
/// After that it never changes, so it can be shared by threads, contexts and stores. Two models are equal when
/// their declarations are; it is coded as its declarations.
///
/// ```swift
/// let model = try ManagedObjectModel(entities: [
///   EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])
/// ])
/// ```
public final class ManagedObjectModel: Sendable {
  /// The declarations, sorted as ``entities``.
  public let declarations: [EntityDescription]
  /// The frozen entities in the order of Core Data's entity numbers (entity at index i has number i + 1): entities
  /// without a super entity by name without regard to case, and behind each entity its sub-entities in the same order,
  /// so that a family stands together. On disk: do not change.
  public let entities: [Entity]
  /// The relationships that have an order, in the order of ``entities`` and then of names, each once: under the entity that
  /// declares it.
  public let orderedRelationships: [Relationship]
  /// Free text that tells this version from others, kept with a store.
  public let versionIdentifiers: [String]
  /// The named subsets of entities that stores can be opened with, as declared.
  public let configurations: [ConfigurationDescription]
  /// The groups of attributes that composite attributes have, as declared.
  public let composites: [CompositeDescription]
  /// The fetch requests that programs ask for by name, as declared.
  public let fetchRequestTemplates: [FetchRequestDescription]
  let indexByName: [String: Int]

  /// Freezes declarations.
  ///
  /// A model has up to 4,096 entities and 4,096 composites. An entity has up to 4,096 properties, inherited ones included, and 100
  /// superentities; a row has up to 8,192 values. Composites are nested up to 32 deep.
  ///
  /// - Throws: ``ModelError`` with every contradiction that was found, each with the path of the thing at fault; or with the first bound that
  ///   is exceeded.
  public init(
    entities declarations: [EntityDescription], versionIdentifiers: [String] = [], configurations: [ConfigurationDescription] = [],
    composites: [CompositeDescription] = [], fetchRequestTemplates: [FetchRequestDescription] = []
  ) throws(ModelError) {
    let exceeding = ModelBounds.problems(declarations, composites)
    guard exceeding.isEmpty else { throw ModelError(problems: exceeding) }
    let check = ModelCheck(declarations.sorted { ModelOrder.precedes($0.name, $1.name) }, composites)
    var problems =
      check.problems() + ModelCheck.problems(in: configurations, of: declarations)
      + ModelCheck.problems(in: fetchRequestTemplates, of: declarations)
    if problems.isEmpty { problems = ModelBounds.problems(declarations, check) }
    guard problems.isEmpty else { throw ModelError(problems: problems) }
    let ordered = ModelFreezer.ordered(declarations)
    self.declarations = ordered
    self.versionIdentifiers = versionIdentifiers
    self.configurations = configurations
    self.composites = composites
    self.fetchRequestTemplates = fetchRequestTemplates
    entities = ModelFreezer(ordered, composites).entities()
    orderedRelationships = ManagedObjectModel.orderedRelationships(entities)
    indexByName = Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.index) })
  }

  private static func orderedRelationships(_ entities: [Entity]) -> [Relationship] {
    var ordered: [Relationship] = []
    for entity in entities {
      for relationship in entity.toManyRelationships where relationship.isOrdered && relationship.entityIndex == entity.index {
        ordered.append(relationship)
      }
    }
    return ordered
  }

  /// The entity of that name, or nil.
  public func entity(named name: String) -> Entity? {
    indexByName[name].map { entities[$0] }
  }

  /// The template of that name, or nil.
  public func fetchRequestTemplate(named name: String) -> FetchRequestDescription? {
    fetchRequestTemplates.first { $0.name == name }
  }

  /// The destination entity of a relationship.
  public func destination(of relationship: Relationship) -> Entity { entities[relationship.destinationIndex] }

  /// The relationship that leads back; nil for none.
  public func inverse(of relationship: Relationship) -> Relationship? {
    guard relationship.hasInverse else { return nil }
    let destination = entities[relationship.destinationIndex]
    return (relationship.isTransient ? destination.transientRelationships : destination.relationships)[relationship.inverseIndex]
  }
}

extension ManagedObjectModel: Hashable {
  /// Models are equal when all that was declared is, and their version identifiers.
  public static func == (a: ManagedObjectModel, b: ManagedObjectModel) -> Bool {
    a === b
      || (a.declarations == b.declarations && a.versionIdentifiers == b.versionIdentifiers && a.configurations == b.configurations
        && a.composites == b.composites && a.fetchRequestTemplates == b.fetchRequestTemplates)
  }

  /// Hashes the declarations.
  public func hash(into hasher: inout Hasher) { hasher.combine(declarations) }
}

/// The coded form: a type of its own because a class cannot finish decoding through a throwing designated
/// initialiser of its own in one step.
private struct CodedModel: Codable {
  var entities: [EntityDescription]
  var versionIdentifiers: [String]
  /// Nil in what was coded before there were configurations, and where there are none.
  var configurations: [ConfigurationDescription]?
  /// Nil where there are none.
  var composites: [CompositeDescription]?
  /// Nil where there are none.
  var fetchRequestTemplates: [FetchRequestDescription]?
}

/// A frozen model that can be coded; wraps ``ManagedObjectModel``, which is a class.
public struct CodableModel: Sendable, Hashable, Codable {
  /// The model.
  public let model: ManagedObjectModel

  /// Wraps a model.
  public init(_ model: ManagedObjectModel) { self.model = model }

  /// Decodes declarations and freezes them.
  ///
  /// - Throws: ``ModelError`` when they contradict each other, or a decoding error.
  public init(from decoder: any Decoder) throws {
    let coded = try CodedModel(from: decoder)
    model = try ManagedObjectModel(
      entities: coded.entities, versionIdentifiers: coded.versionIdentifiers, configurations: coded.configurations ?? [],
      composites: coded.composites ?? [], fetchRequestTemplates: coded.fetchRequestTemplates ?? [])
  }

  /// Encodes the declarations.
  public func encode(to encoder: any Encoder) throws {
    try CodedModel(
      entities: model.declarations, versionIdentifiers: model.versionIdentifiers,
      configurations: model.configurations.isEmpty ? nil : model.configurations,
      composites: model.composites.isEmpty ? nil : model.composites,
      fetchRequestTemplates: model.fetchRequestTemplates.isEmpty ? nil : model.fetchRequestTemplates
    ).encode(to: encoder)
  }
}

/// How entity names are ordered: case-insensitively (ASCII), ties by their bytes. On disk: do not change.
enum ModelOrder {
  static func precedes(_ a: String, _ b: String) -> Bool {
    let left = a.utf8.map(lowered), right = b.utf8.map(lowered)
    return left == right ? bytewise(a, b) : left.lexicographicallyPrecedes(right)
  }

  /// For each of the declarations its place in the order in which many-to-many pairs get their names: by name, but a super
  /// entity before its sub-entities, so that a sub-entity early in the alphabet pulls those above it forward. On disk: do
  /// not change.
  static func namingRanks(_ declarations: [EntityDescription]) -> [Int] {
    let indexByName = Dictionary(declarations.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    var ranks = [Int](repeating: -1, count: declarations.count)
    var next = 0
    func visit(_ index: Int) {
      guard ranks[index] < 0 else { return }
      if let above = declarations[index].superentity.flatMap({ indexByName[$0] }) { visit(above) }
      ranks[index] = next
      next += 1
    }
    for index in declarations.indices.sorted(by: { precedes(declarations[$0].name, declarations[$1].name) }) { visit(index) }
    return ranks
  }

  /// The order of UTF-8 bytes, which is that of slots.
  static func bytewise(_ a: String, _ b: String) -> Bool {
    a.utf8.lexicographicallyPrecedes(b.utf8)
  }

  private static func lowered(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte + 32 : byte }
}
