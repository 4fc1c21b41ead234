import Holdfast
import TestSupport

extension RandomModel: CustomStringConvertible {
  /// Entities with their relationships, one per line.
  var description: String {
    model.entities.map { entity in
      let above = entity.superentityIndex.map { " under \(model.entities[$0].name)" } ?? ""
      let relationships = entity.ownRelationships.map { relationship in
        let inverse = model.inverse(of: relationship).map { "inverse \($0.name)" } ?? "no inverse"
        let kind = relationship.isOrdered ? "ordered" : relationship.isToMany ? "to-many" : "to-one"
        let shape = "\(relationship.isOptional ? "" : "mandatory ")\(kind) \(relationship.minCount)…\(relationship.maxCount)"
        return "\n    \(relationship.name): \(shape) \(model.destination(of: relationship).name), \(inverse), \(relationship.deleteRule)"
      }
      let attributes = entity.attributes.map { " \($0.name): \($0.type.rawValue)" }.joined(separator: ",")
      let constraints = entity.uniquenessConstraints.map { ", unique \($0.joined(separator: " and "))" }.joined()
      return "  \(entity.isAbstract ? "abstract " : "")\(entity.name)\(above)\(attributes)\(constraints)\(relationships.joined())"
    }.joined(separator: "\n")
  }
}

/// A random model: families of entities with attributes of every type, and all kinds of relationships between them. Every entity has a
/// `tag`, which identifies its objects, and a transient `mark`.
struct RandomModel {
  let model: ManagedObjectModel
  /// The entities that can have objects.
  let concrete: [ManagedObjectModel.Entity]
  /// Whether objects are of class ``Echo``.
  let hasCallbacks: Bool

  /// - Parameters:
  ///   - hasUniqueValues: Whether root entities have uniqueness constraints.
  ///   - hasCallbacks: Whether objects have the attributes of ``Echo``. Then no rule denies a deletion.
  ///   - hasDerivedValues: Whether objects count and sum up their destinations, and copy the tags of single ones.
  init(
    _ random: inout SeededGenerator, hasUniqueValues: Bool = false, hasCallbacks: Bool = false, hasDerivedValues: Bool = false
  ) throws {
    var entities: [EntityDescription] = []
    for number in 0..<Int.random(in: 2...6, using: &random) {
      let above = number > 0 && Int.random(in: 0..<2, using: &random) == 0 ? entities[Int.random(in: 0..<number, using: &random)].name : nil
      var entity = EntityDescription("E\(number)", superentity: above)
      if above == nil {
        entity.attributes.append(AttributeDescription("tag", .integer64))
        entity.attributes.append(AttributeDescription("mark", .integer64, isOptional: true, isTransient: true))
      }
      let types = AttributeType.storedCases
      if Int.random(in: 0..<3, using: &random) == 0 {
        entity.attributes.append(.composite("g\(number)", Bool.random(using: &random) ? "Inner" : "Outer", isOptional: true))
      }
      for place in 0..<Int.random(in: 1...3, using: &random) {
        // Siblings may have properties with the same name; an entity and its superentity may not.
        let isShared = above != nil && Bool.random(using: &random) && !entities.contains { $0.superentity == entity.name }
        entity.attributes.append(
          AttributeDescription(
            isShared && place == 0 ? "leaf" : "a\(number)_\(place)", types[Int.random(in: 0..<types.count, using: &random)],
            isOptional: true))
      }
      entities.append(entity)
    }
    // A leaf's name must differ from those of its superentities.
    for index in entities.indices {
      let hasBelow = entities.contains { $0.superentity == entities[index].name }
      if hasBelow { entities[index].attributes.removeAll { $0.name == "leaf" } }
      entities[index].isAbstract = hasBelow && Int.random(in: 0..<3, using: &random) == 0
    }
    for number in 0..<Int.random(in: 2...7, using: &random) { RandomModel.relate(number, &entities, &random) }
    if hasUniqueValues { RandomModel.constrain(&entities, &random) }
    if hasCallbacks { RandomModel.addEchoes(&entities) }
    if hasDerivedValues { for index in entities.indices { entities[index].attributes += RandomModel.derived(entities[index]) } }
    model = try ManagedObjectModel(entities: entities, composites: RandomModel.composites(&random))
    concrete = model.entities.filter { !$0.isAbstract }
    self.hasCallbacks = hasCallbacks
  }

  /// The classes of the root entities.
  var classes: [ManagedObject.Type] {
    let roots = Set(model.entities.filter { $0.superentityIndex == nil }.map(\.name))
    return hasCallbacks ? Echo.classes.filter { roots.contains($0.entityName) } : []
  }

  /// Gives each root entity a unique `code`, or a `row` and a `seat` that are unique together, or both.
  private static func constrain(_ entities: inout [EntityDescription], _ random: inout SeededGenerator) {
    for index in entities.indices where entities[index].superentity == nil {
      let number = Int.random(in: 0..<5, using: &random)
      let constraints: [[String]] = number < 3 ? [["code"]] : number == 3 ? [["row", "seat"]] : [["code"], ["row", "seat"]]
      entities[index].uniquenessConstraints = constraints
      for name in constraints.joined() { entities[index].attributes.append(AttributeDescription(name, .integer64, isOptional: true)) }
    }
  }

  /// Adds the attributes of ``Echo``. Denied deletions hide links of objects that no save calls.
  private static func addEchoes(_ entities: inout [EntityDescription]) {
    for index in entities.indices {
      if entities[index].superentity == nil { entities[index].attributes += Echo.attributes }
      for place in entities[index].relationships.indices where entities[index].relationships[place].deleteRule == .deny {
        entities[index].relationships[place].deleteRule = .nullify
      }
    }
  }

  private static func derived(_ entity: EntityDescription) -> [AttributeDescription] {
    entity.relationships.flatMap { relationship -> [AttributeDescription] in
      let name = relationship.name
      if !relationship.isToMany { return [.derived("copy_\(name)", .integer64, "\(name).tag")] }
      return [.derived("count_\(name)", .integer64, "\(name).@count"), .derived("sum_\(name)", .integer64, "\(name).tag.@sum")]
    }
  }

  /// A composite, and one that contains it.
  private static func composites(_ random: inout SeededGenerator) -> [CompositeDescription] {
    let types = (0..<3).map { _ in AttributeType.storedCases[Int.random(in: 0..<AttributeType.storedCases.count, using: &random)] }
    let inner = CompositeDescription(
      "Inner", [AttributeDescription("x", types[0], isOptional: true), AttributeDescription("y", types[1], isOptional: true)])
    let outer = CompositeDescription(
      "Outer", [AttributeDescription("z", types[2], isOptional: true), .composite("deep", "Inner", isOptional: true)])
    return [outer, inner]
  }

  private static func relate(_ number: Int, _ entities: inout [EntityDescription], _ random: inout SeededGenerator) {
    let (from, to) = (Int.random(in: 0..<entities.count, using: &random), Int.random(in: 0..<entities.count, using: &random))
    let (there, back) = ("r\(number)", "s\(number)")
    func rule() -> DeleteRule {
      switch Int.random(in: 0..<7, using: &random) {
      case 0: .cascade
      case 1: .deny
      default: .nullify
      }
    }
    // Rarely, because an incomplete object refuses the save.
    func optional() -> Bool { Int.random(in: 0..<8, using: &random) != 0 }
    func bounds() -> (least: Int, most: Int) {
      switch Int.random(in: 0..<8, using: &random) {
      case 0: (2, 0)
      case 1: (0, 3)
      case 2: (1, 4)
      default: (0, 0)
      }
    }
    func many(_ name: String, _ destination: String, _ inverse: String?) -> RelationshipDescription {
      let bounds = bounds()
      return .toMany(
        name, to: destination, inverse: inverse, isOptional: optional(), deleteRule: rule(), minCount: bounds.least, maxCount: bounds.most,
        isOrdered: ordered())
    }
    func ordered() -> Bool { Bool.random(using: &random) }
    func add(_ relationship: RelationshipDescription, _ entity: Int) { entities[entity].relationships.append(relationship) }
    let (a, b) = (entities[from].name, entities[to].name)
    switch Int.random(in: 0..<8, using: &random) {
    case 0:
      add(.toOne(there, to: b, inverse: back, isOptional: optional(), deleteRule: rule()), from)
      add(.toOne(back, to: a, inverse: there, deleteRule: rule()), to)
    case 1, 2:
      add(many(there, b, back), from)
      add(.toOne(back, to: a, inverse: there, isOptional: optional(), deleteRule: rule()), to)
    case 3, 4:
      add(many(there, b, back), from)
      add(many(back, a, there), to)
    case 5: add(.toMany(there, to: a, inverse: there, isOrdered: ordered()), from)
    case 6: add(.toOne(there, to: a, inverse: there), from)
    default:
      if Bool.random(using: &random) {
        add(.toOne(there, to: b, inverse: nil, deleteRule: rule()), from)
      } else {
        // Deleting a target doesn't validate the count of the owner, so there are no bounds.
        add(.toMany(there, to: b, inverse: nil, deleteRule: rule(), isOrdered: ordered()), from)
      }
    }
  }
}
