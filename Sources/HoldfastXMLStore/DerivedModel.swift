import HoldfastStore

/// The model that the objects of an XML file show. See ``XMLStoreOptions/derivesModel``.
///
/// - A destination that differs from the entity of an object there is its superentity. Of several superentities of one entity, each is a
///   superentity of the next one: the one with more subentities is the higher one.
/// - Two relationships whose links are each other's reverse are inverses. Each belongs to the destination of the other.
/// - Other properties of several entities belong to their nearest common superentity, or to each of them.
struct DerivedModel {
  private let survey: XMLSurvey
  /// The names of the entities in the model, by the names as written.
  private let names: [String: String]
  /// The superentities of each entity, the highest first.
  private let ancestors: [String: [String]]
  private let errors: XMLErrors
  /// The maximum number of superentities of an entity.
  private static let maximumDepth = 32

  /// - Parameter known: The names of entities in the version hashes, in their original case.
  init(_ survey: XMLSurvey, known: some Sequence<String>, _ errors: XMLErrors) throws {
    self.survey = survey
    self.errors = errors
    let written = Set(survey.entities).union(survey.owners.keys.map(\.destination))
    names = Dictionary(written.map { ($0, $0) } + known.map { ($0.uppercased(), $0) }) { _, known in known }
    ancestors = try Self.ancestors(survey, errors)
  }

  func model() throws -> ManagedObjectModel {
    var declared: [String: [RelationshipDescription]] = [:], rest = Set(survey.owners.keys)
    let links = survey.relationships.mapValues { Set($0) }
    for first in Self.sorted(rest) where rest.contains(first) {
      guard let forward = links[first], let second = Self.sorted(rest).first(where: { isInverse($0, links[$0], of: first, forward) }) else {
        continue
      }
      rest.subtract([first, second])
      declared[second.destination, default: []].append(described(first, inverse: second.name))
      if first != second { declared[first.destination, default: []].append(described(second, inverse: first.name)) }
    }
    for relationship in Self.sorted(rest) {
      try checkOwners(relationship)
      for place in places(of: survey.owners[relationship] ?? []) {
        declared[place, default: []].append(described(relationship, inverse: nil))
      }
    }
    return try model(declared, declaredAttributes())
  }

  private func model(
    _ relationships: [String: [RelationshipDescription]], _ attributes: [String: [AttributeDescription]]
  ) throws -> ManagedObjectModel {
    do {
      return try ManagedObjectModel(
        entities: names.keys.sorted().map { entity in
          EntityDescription(
            name(entity), superentity: ancestors[entity]?.last.map(name),
            isAbstract: survey.attributes[entity] == nil && hasSubentities(entity),
            attributes: attributes[entity] ?? [], relationships: relationships[entity] ?? [])
        })
    } catch {
      throw StoreError(
        .incompatibleModel, operation: "derive the store's model", path: errors.path,
        reason: "The objects in the file don't show a consistent model. Open the store with the model that it was written with.",
        cause: error)
    }
  }

  private func name(_ written: String) -> String { names[written] ?? written }

  private func hasSubentities(_ entity: String) -> Bool { ancestors.values.contains { $0.contains(entity) } }

  // MARK: Inheritance

  private static func ancestors(_ survey: XMLSurvey, _ errors: XMLErrors) throws -> [String: [String]] {
    var above: [String: Set<String>] = [:]
    for (relationship, links) in survey.relationships {
      for link in links {
        guard let entity = survey.entity(of: link.target), entity != relationship.destination else { continue }
        above[entity, default: []].insert(relationship.destination)
      }
    }
    var counts: [String: Int] = [:]
    for entity in above.values.joined() { counts[entity, default: 0] += 1 }
    func isHigher(_ first: String, _ second: String) -> Bool {
      if above[second]?.contains(first) == true { return true }
      if above[first]?.contains(second) == true { return false }
      let (a, b) = (counts[first, default: 0], counts[second, default: 0])
      return a != b ? a > b : first < second
    }
    func grow(_ entity: String, by supers: Set<String>) -> Bool {
      let count = above[entity]?.count ?? 0
      above[entity, default: []].formUnion(supers.subtracting([entity]))
      return above[entity]?.count != count
    }
    // What is above an entity is above its other superentities that are lower, and what is above a superentity is above the entity.
    var hasGrown = true
    while hasGrown {
      hasGrown = false
      for (entity, supers) in above.sorted(by: { $0.key < $1.key }) {
        if supers.count > maximumDepth { throw errors.limit("An entity has more than \(maximumDepth) superentities.") }
        if grow(entity, by: supers.reduce(into: supers) { $0.formUnion(above[$1] ?? []) }) { hasGrown = true }
        for lower in supers.sorted() where grow(lower, by: supers.filter { $0 != lower && isHigher($0, lower) }) { hasGrown = true }
      }
    }
    return above.mapValues { $0.sorted(by: isHigher) }
  }

  /// Whether an entity is another one or its subentity.
  private func isKind(_ entity: String, of other: String) -> Bool { entity == other || ancestors[entity]?.contains(other) == true }

  /// Where a property of some entities is declared: at their nearest common superentity, or at each of them.
  private func places(of owners: Set<String>) -> [String] {
    let paths = owners.sorted().map { (ancestors[$0] ?? []) + [$0] }
    if let common = paths.first?.last(where: { entity in paths.allSatisfy { $0.contains(entity) } }) { return [common] }
    return owners.sorted()
  }

  // MARK: Properties

  private func declaredAttributes() throws -> [String: [AttributeDescription]] {
    struct Attribute: Hashable {
      var name: String
      var type: String
    }
    var owners: [Attribute: Set<String>] = [:]
    for (entity, attributes) in survey.attributes {
      for (name, type) in attributes { owners[Attribute(name: name, type: type), default: []].insert(entity) }
    }
    var declared: [String: [AttributeDescription]] = [:]
    for (attribute, entities) in owners.sorted(by: { ($0.key.name, $0.key.type) < ($1.key.name, $1.key.type) }) {
      guard let type = XMLEntity.attributeType(attribute.type) else {
        throw errors.damaged("The attribute \(attribute.name) has the unknown type \"\(attribute.type.prefix(40))\".", "")
      }
      for place in places(of: entities) {
        declared[place, default: []].append(AttributeDescription(attribute.name, type, isOptional: true))
      }
    }
    return declared
  }

  private func described(_ relationship: XMLSurvey.Relationship, inverse: String?) -> RelationshipDescription {
    let destination = name(relationship.destination)
    return relationship.isToMany
      ? .toMany(relationship.name, to: destination, inverse: inverse) : .toOne(relationship.name, to: destination, inverse: inverse)
  }

  private func isInverse(
    _ second: XMLSurvey.Relationship, _ links: Set<XMLSurvey.Link>?, of first: XMLSurvey.Relationship, _ forward: Set<XMLSurvey.Link>
  ) -> Bool {
    guard let links, links.count == forward.count, survey.owners[first]?.allSatisfy({ isKind($0, of: second.destination) }) == true,
      survey.owners[second]?.allSatisfy({ isKind($0, of: first.destination) }) == true
    else { return false }
    return links.allSatisfy { forward.contains(XMLSurvey.Link(source: $0.target, target: $0.source)) }
  }

  /// Without an inverse, an object is the destination of one owner only, as in Core Data.
  private func checkOwners(_ relationship: XMLSurvey.Relationship) throws {
    guard relationship.isToMany, let links = survey.relationships[relationship] else { return }
    if Set(links.lazy.map(\.target)).count == links.count { return }
    throw StoreError(
      .incompatibleModel, operation: "derive the store's model", path: errors.path,
      reason:
        "The relationship \(relationship.name) to \(relationship.destination) has objects with several owners, and no other relationship "
        + "has its reverse links. Open the store with the model that it was written with.")
  }

  private static func sorted(_ relationships: Set<XMLSurvey.Relationship>) -> [XMLSurvey.Relationship] {
    relationships.sorted { ($0.name, $0.destination, $0.isToMany ? 1 : 0) < ($1.name, $1.destination, $1.isToMany ? 1 : 0) }
  }
}
