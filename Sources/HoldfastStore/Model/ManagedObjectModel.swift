/// An immutable description of all entities and their relationships.
///
/// A model is created from declarations in one step, which checks them and reports all problems at once. Threads, contexts and stores can
/// share a model. Models with equal declarations are equal, and a model is encoded as its declarations.
///
/// ```swift
/// let model = try ManagedObjectModel(entities: [
///   EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])
/// ])
/// ```
public final class ManagedObjectModel: Sendable {
  /// The declarations, in the order of ``entities``.
  public let declarations: [EntityDescription]
  /// The entities, in the order of Core Data's entity numbers.
  ///
  /// The entity at index i has the number i + 1.
  ///
  /// Root entities are ordered by name, ignoring case. Each entity is followed by its subentities in the same order, so an
  /// entity and its subentities are contiguous. This is a file format: don't change it.
  public let entities: [Entity]
  /// The ordered relationships, in entity order and then by name.
  ///
  /// Each occurs once, under the entity that declares it.
  public let orderedRelationships: [Relationship]
  /// Text that distinguishes this version of the model from others. Kept in stores.
  public let versionIdentifiers: [String]
  /// The configurations, as declared.
  public let configurations: [ConfigurationDescription]
  /// The composites of composite attributes, as declared.
  public let composites: [CompositeDescription]
  /// The fetch request templates, as declared.
  public let fetchRequestTemplates: [FetchRequestDescription]
  /// The digest of all entity names and version hashes: SHA-512 in base64.
  ///
  /// Core Data stores it as `NSStoreModelVersionHashesDigest`. It is computed once, because opening a SQLite store compares it.
  public let versionDigest: String
  let indexByName: [String: EntityIndex]

  /// Creates a model from declarations.
  ///
  /// A model has at most 4,096 entities and 4,096 composites. An entity has at most 4,096 properties, including inherited ones, and 100
  /// superentities. A row has at most 8,192 values. Composites are nested at most 32 deep. All entities together have at most 1,000,000
  /// properties, including inherited ones and the elements of composites.
  ///
  /// - Throws: ``ModelError`` with every problem and the path of its declaration, or with the first limit that is exceeded.
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
    versionDigest = ModelVersionHash.digest(entities.map { (name: $0.name, hash: $0.versionHash) })
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

  /// Returns the entity with this name, or nil.
  public func entity(named name: String) -> Entity? {
    indexByName[name].map { entities[$0] }
  }

  /// Returns the fetch request template with this name, or nil.
  public func fetchRequestTemplate(named name: String) -> FetchRequestDescription? {
    fetchRequestTemplates.first { $0.name == name }
  }

  /// Returns the destination entity of a relationship.
  public func destination(of relationship: Relationship) -> Entity { entities[relationship.destinationIndex] }

  /// Returns the inverse of a relationship, or nil if there is none.
  public func inverse(of relationship: Relationship) -> Relationship? {
    guard relationship.hasInverse else { return nil }
    let destination = entities[relationship.destinationIndex]
    return (relationship.isTransient ? destination.transientRelationships : destination.relationships)[relationship.inverseIndex]
  }
}

extension ManagedObjectModel: Hashable {
  /// Models are equal if all arguments of their initializers are: also configurations, composites and fetch request templates.
  public static func == (a: ManagedObjectModel, b: ManagedObjectModel) -> Bool {
    a === b
      || (a.declarations == b.declarations && a.versionIdentifiers == b.versionIdentifiers && a.configurations == b.configurations
        && a.composites == b.composites && a.fetchRequestTemplates == b.fetchRequestTemplates)
  }

  /// Hashes the declarations.
  public func hash(into hasher: inout Hasher) { hasher.combine(declarations) }
}

/// The encoded form. It is a separate type because a class can't decode itself through its own throwing designated initialiser in one step.
private struct CodedModel: Codable {
  var entities: [EntityDescription]
  var versionIdentifiers: [String]
  /// Nil if there are none, and in models encoded before configurations were supported.
  var configurations: [ConfigurationDescription]?
  /// Nil if there are none.
  var composites: [CompositeDescription]?
  /// Nil if there are none.
  var fetchRequestTemplates: [FetchRequestDescription]?
}

/// A codable wrapper of ``ManagedObjectModel``, which is a class.
public struct CodableModel: Sendable, Hashable, Codable {
  /// The model.
  public let model: ManagedObjectModel

  /// Creates a wrapper of a model.
  public init(_ model: ManagedObjectModel) { self.model = model }

  /// Decodes declarations and creates a model.
  ///
  /// - Throws: ``ModelError`` if the model is invalid, or a decoding error.
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

/// The order of entity names: ignoring ASCII case, then by bytes. This is a file format: don't change it.
enum ModelOrder {
  static func precedes(_ a: String, _ b: String) -> Bool {
    let left = a.utf8.map(lowered), right = b.utf8.map(lowered)
    return left == right ? bytewise(a, b) : left.lexicographicallyPrecedes(right)
  }

  /// The rank of each declaration in the order that names many-to-many pairs.
  ///
  /// Entities are ordered by name, with each superentity before its subentities. A subentity early in the alphabet therefore moves its
  /// superentities forward. This is a file format: don't change it.
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

  /// The order of UTF-8 bytes, which slots use.
  static func bytewise(_ a: String, _ b: String) -> Bool {
    a.utf8.lexicographicallyPrecedes(b.utf8)
  }

  private static func lowered(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte + 32 : byte }
}
