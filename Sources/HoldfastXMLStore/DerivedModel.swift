import HoldfastStore

/// The model that the objects of an XML file show. See ``XMLStoreOptions/derivesModel``.
///
/// - A destination that differs from the entity of an object there is its superentity, if the entity has the superentity's relationships: Core Data
///   writes each relationship of an object, also an empty one. Of several superentities of one entity, each is a superentity of the next one.
/// - Two relationships whose links are each other's reverse are inverses. Each belongs to the destination of the other.
/// - Other properties of several entities belong to their nearest common superentity, or to each of them.
/// - Equal relationships of unrelated entities are different ones.
struct DerivedModel {
  private let survey: XMLSurvey
  /// The names of the entities in the model, by the names as written.
  private let names: [String: String]
  /// The superentities of each entity, the highest first.
  private let ancestors: [String: [String]]
  /// The entities whose objects have a property of a name.
  private let named: [String: Set<String>]
  private let errors: XMLErrors

  /// The hash modifier of all entities in a derived model. So no other model has its version hashes.
  static let hashModifier = "derived from an XML store"

  static func isDerived(_ model: ManagedObjectModel) -> Bool { model.declarations.allSatisfy { $0.versionHashModifier == hashModifier } }

  /// - Parameter known: The names of entities in the version hashes, in their original case.
  init(_ survey: XMLSurvey, known: some Sequence<String>, _ errors: XMLErrors) throws {
    self.survey = survey
    self.errors = errors
    let written = Set(survey.entities).union(survey.owners.keys.map(\.destination))
    names = Dictionary(written.map { ($0, $0) } + known.map { ($0.uppercased(), $0) }) { _, known in known }
    ancestors = try Self.ancestors(survey, errors)
    var named: [String: Set<String>] = [:]
    for (relationship, owners) in survey.owners { named[relationship.name, default: []].formUnion(owners) }
    for (entity, attributes) in survey.attributes { for name in attributes.keys { named[name, default: []].insert(entity) } }
    self.named = named
  }

  /// A relationship of some entities, with its links.
  private struct Group {
    var relationship: XMLSurvey.Relationship
    var owners: Set<String>
    var links: Set<XMLSurvey.Link>

    /// Whether an object is the destination of several links.
    var hasSharedTargets: Bool { relationship.isToMany && Set(links.lazy.map(\.target)).count < links.count }

    /// A number that depends on the links, not on their order: equal links have equal numbers.
    func digest(isReverse: Bool) -> Int {
      links.reduce(links.count) { sum, link in
        var hasher = Hasher()
        hasher.combine(isReverse ? link.target : link.source)
        hasher.combine(isReverse ? link.source : link.target)
        return sum &+ hasher.finalize()
      }
    }
  }

  private typealias Declarations = [String: [RelationshipDescription]]

  func model() throws -> ManagedObjectModel {
    var declared: Declarations = [:]
    let all = survey.owners.map { relationship, owners in
      // A link to a missing object has no other end.
      let links = (survey.relationships[relationship] ?? []).lazy.filter { survey.entity(of: $0.target) != nil }
      return Group(relationship: relationship, owners: owners, links: Set(links))
    }
    let families = all.flatMap { divided($0) { ancestors[$0]?.first ?? $0 } }
    // Entities of one family may have different relationships of the same name.
    let parts = try pair(families, &declared).flatMap { divided($0) { $0 } }
    let others = Dictionary(grouping: try pair(parts, &declared), by: \.relationship)
    for (relationship, parts) in others.sorted(by: { isBefore($0.key, $1.key) }) {
      let group = Group(
        relationship: relationship, owners: parts.reduce(into: []) { $0.formUnion($1.owners) },
        links: parts.reduce(into: []) { $0.formUnion($1.links) })
      for family in divided(group, by: { ancestors[$0]?.first ?? $0 }) {
        try checkOwners(family)
        for place in places(of: family.owners, named: relationship.name) {
          declared[place, default: []].append(described(relationship, inverse: nil))
        }
      }
    }
    return try model(declared, declaredAttributes())
  }

  /// Divides a group by its owners.
  private func divided(_ group: Group, by key: (String) -> String) -> [Group] {
    let owners = Dictionary(grouping: group.owners, by: key)
    if owners.count < 2 { return [group] }
    let links = Dictionary(grouping: group.links) { survey.entity(of: $0.source).map(key) ?? "" }
    return owners.sorted { $0.key < $1.key }.map { part, owners in
      Group(relationship: group.relationship, owners: Set(owners), links: Set(links[part] ?? []))
    }
  }

  /// The maximum number of comparisons of relationships whose links are each other's reverse.
  private static let maximumComparisonCount = 1_000_000

  /// Declares relationships whose links are each other's reverse as inverses, and returns the others.
  ///
  /// If several fit, none is the inverse, unless objects have several owners: then it is the first one by name.
  private func pair(_ groups: [Group], _ declared: inout Declarations) throws -> [Group] {
    let groups = groups.sorted {
      $0.relationship == $1.relationship ? $0.owners.min() ?? "" < $1.owners.min() ?? "" : isBefore($0.relationship, $1.relationship)
    }
    var places: [Int: [Int]] = [:]
    for (place, group) in groups.enumerated() where !group.links.isEmpty {
      places[group.digest(isReverse: false), default: []].append(place)
    }
    var isPaired = [Bool](repeating: false, count: groups.count)
    var comparisonCount = 0
    func candidates(_ first: Group) throws -> [Int] {
      var found: [Int] = []
      for place in places[first.digest(isReverse: true), default: []] where !isPaired[place] {
        comparisonCount += 1
        if comparisonCount > Self.maximumComparisonCount { throw errors.noModel("Too many of its relationships have the same links.") }
        if isInverse(groups[place], of: first) { found.append(place) }
        // Two are enough to know that there are several.
        if found.count == 2 { break }
      }
      return found
    }
    for (place, first) in groups.enumerated() where !isPaired[place] && !first.links.isEmpty {
      let found = try candidates(first)
      guard let other = found.first else { continue }
      if !first.hasSharedTargets && !groups[other].hasSharedTargets, try found.count > 1 || candidates(groups[other]).count > 1 { continue }
      let second = groups[other].relationship
      declared[second.destination, default: []].append(described(first.relationship, inverse: second.name))
      if other != place {
        declared[first.relationship.destination, default: []].append(described(second, inverse: first.relationship.name))
      }
      (isPaired[place], isPaired[other]) = (true, true)
    }
    return zip(groups, isPaired).filter { !$0.1 }.map(\.0)
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
            attributes: attributes[entity] ?? [], relationships: relationships[entity] ?? [], versionHashModifier: Self.hashModifier)
        })
    } catch { throw errors.noModel("", error) }
  }

  private func name(_ written: String) -> String { names[written] ?? written }

  private func hasSubentities(_ entity: String) -> Bool { ancestors.values.contains { $0.contains(entity) } }

  // MARK: Inheritance

  /// The maximum number of pairs of superentities of one entity, which may have to be ordered.
  private static let maximumPairCount = 5000

  private static func ancestors(_ survey: XMLSurvey, _ errors: XMLErrors) throws -> [String: [String]] {
    var relationships: [String: Set<XMLSurvey.Relationship>] = [:]
    for (relationship, owners) in survey.owners { for owner in owners { relationships[owner, default: []].insert(relationship) } }
    var above: [String: Set<String>] = [:]
    for (relationship, links) in survey.relationships {
      for entity in Set(links.lazy.compactMap { survey.entity(of: $0.target) }) where entity != relationship.destination {
        guard relationships[relationship.destination, default: []].isSubset(of: relationships[entity, default: []]) else { continue }
        above[entity, default: []].insert(relationship.destination)
      }
    }
    // Before they are closed, which could take long.
    func checkPairs() throws {
      if above.values.reduce(0, { $0 + $1.count * ($1.count - 1) / 2 }) > maximumPairCount {
        throw errors.noModel("Its entities would have too many superentities.")
      }
    }
    try checkPairs()
    close(&above)
    try checkPairs()
    // Two superentities of one entity whose order isn't known: the one with more subentities is the higher one, or the first one by name.
    while let (higher, lower) = undecided(above) {
      above[lower, default: []].insert(higher)
      close(&above)
    }
    return above.mapValues { supers in supers.sorted { (above[$0]?.count ?? 0, $0) < (above[$1]?.count ?? 0, $1) } }
  }

  /// Adds the superentities of superentities.
  private static func close(_ above: inout [String: Set<String>]) {
    var hasGrown = true
    while hasGrown {
      hasGrown = false
      for (entity, supers) in above {
        let all = supers.reduce(into: supers) { $0.formUnion(above[$1] ?? []) }.subtracting([entity])
        if all.count > supers.count {
          above[entity] = all
          hasGrown = true
        }
      }
    }
  }

  private static func undecided(_ above: [String: Set<String>]) -> (higher: String, lower: String)? {
    for (_, supers) in above.filter({ $0.value.count > 1 }).sorted(by: { $0.key < $1.key }) {
      for first in supers.sorted() {
        for second in supers.sorted() where first < second {
          if above[first]?.contains(second) == true || above[second]?.contains(first) == true { continue }
          let counts = [first, second].map { entity in above.values.count { $0.contains(entity) } }
          return counts[1] > counts[0] ? (second, first) : (first, second)
        }
      }
    }
    return nil
  }

  /// Whether an entity is another one or its subentity.
  private func isKind(_ entity: String, of other: String) -> Bool { entity == other || ancestors[entity]?.contains(other) == true }

  /// Where a property of some entities is declared: at their nearest common superentity, or at each of them if they have none or another
  /// subentity has a different property of that name.
  private func places(of owners: Set<String>, named name: String) -> [String] {
    let paths = owners.sorted().map { (ancestors[$0] ?? []) + [$0] }
    if let common = paths.first?.last(where: { entity in paths.allSatisfy { $0.contains(entity) } }),
      named[name, default: []].subtracting(owners).allSatisfy({ !isKind($0, of: common) })
    {
      return [common]
    }
    return owners.filter { owner in !owners.contains { $0 != owner && isKind(owner, of: $0) } }.sorted()
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
        throw errors.noModel("The attribute \(attribute.name.prefix(40)) has the unknown type \(StoreError.quotedName(attribute.type)).")
      }
      for place in places(of: entities, named: attribute.name) {
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

  private func isInverse(_ second: Group, of first: Group) -> Bool {
    guard first.links.count == second.links.count, isDeclared(first, at: second.relationship.destination),
      isDeclared(second, at: first.relationship.destination)
    else { return false }
    return second.links.allSatisfy { first.links.contains(XMLSurvey.Link(source: $0.target, target: $0.source)) }
  }

  /// Whether an entity can have a group's relationship: its owners are exactly those of that kind.
  private func isDeclared(_ group: Group, at entity: String) -> Bool {
    group.owners.allSatisfy { isKind($0, of: entity) }
      && (survey.owners[group.relationship] ?? []).allSatisfy { group.owners.contains($0) || !isKind($0, of: entity) }
  }

  /// Without an inverse, an object is the destination of one owner only, as in Core Data.
  private func checkOwners(_ group: Group) throws {
    if !group.hasSharedTargets { return }
    throw errors.noModel(
      "Objects belong to several owners by the relationship \(group.relationship.name.prefix(40)), and no relationship has the reverse links."
    )
  }

  private func isBefore(_ first: XMLSurvey.Relationship, _ second: XMLSurvey.Relationship) -> Bool {
    (first.name, first.destination, first.isToMany ? 1 : 0) < (second.name, second.destination, second.isToMany ? 1 : 0)
  }
}
