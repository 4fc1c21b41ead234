import Holdfast
import HoldfastModelFile
import HoldfastStore

/// How the entity mappings of one or several files make objects of one version of a model objects of another one.
///
/// Of the mappings of a source entity, at most one is *direct*: its objects keep their keys, and the store changes them itself. The same holds
/// for each destination entity. The other mappings, and those with a filter, insert objects. What the store can't do, such as evaluating
/// expressions, is left to code.
struct MappingModelPlan: Sendable {
  /// A mapping with what code has to do.
  struct Step: Sendable {
    let mapping: MappingModelFile.EntityMapping
    let source: ManagedObjectModel.Entity?
    let destination: ManagedObjectModel.Entity?
    /// What source objects fulfil; nil for all objects.
    let filter: MappingFilter?
    let policy: MappingPolicy?
    fileprivate(set) var isDirect = false
    /// The attributes that code sets, by name.
    fileprivate(set) var attributes: [(name: String, expression: MappingExpression)] = []
    /// The relationships that code sets.
    fileprivate(set) var relationships: [(relationship: ManagedObjectModel.Relationship, expression: MappingExpression)] = []
    /// Whether code inserts the objects.
    var isInserting: Bool { !isDirect && source != nil && destination != nil }
  }

  let former: ManagedObjectModel
  private let model: ManagedObjectModel
  private(set) var steps: [Step] = []
  private(set) var rules = MappingRules()
  private var names: Set<String> = []
  private var problems: [MigrationError.Problem] = []

  /// Reads what is needed from files.
  ///
  /// - Throws: ``/HoldfastStore/MigrationError`` with everything that doesn't fit the models, and what to do.
  init(
    _ files: [MappingModelFile], from former: ManagedObjectModel, to model: ManagedObjectModel, _ policies: [String: MappingPolicy]
  ) throws {
    (self.former, self.model) = (former, model)
    for file in files {
      checkVersions(file.versions)
      for mapping in file.entityMappings { addStep(mapping, policies) }
    }
    for step in steps where !names.insert(step.mapping.name).inserted {
      problem(
        "entity mapping \(step.mapping.name)",
        "Several entity mappings have this name. Give them different names in Xcode, or pass only one file.")
    }
    try throwProblems()
    chooseDirectSteps()
    for place in steps.indices { addProperties(place) }
    try throwProblems()
    try leaveToCodeWhatStoresCannotDo()
  }

  private mutating func problem(_ path: String, _ reason: String) { problems.append(MigrationError.Problem(path, reason)) }

  private func throwProblems() throws {
    if problems.isEmpty { return }
    throw MigrationError(
      .invalidMappingModel, reason: "The mapping model doesn't fit the two versions, or the program. Nothing was changed.",
      problems: problems)
  }

  // MARK: Entities

  /// A compiled file belongs to two versions. With other ones, it could set values of properties that have another meaning.
  private mutating func checkVersions(_ versions: MappingModelFile.Versions) {
    guard case .hashes(let sources, let destinations) = versions else { return }
    for (hashes, model, version) in [(sources, former, "former"), (destinations, self.model, "new")] {
      for (name, hash) in hashes.sorted(by: { $0.key < $1.key }) {
        guard let entity = model.entity(named: name), entity.versionHash != hash else { continue }
        problem(
          "entity \(name)",
          "The mapping model was compiled for another version of the \(version) model's \(name). Compile it in Xcode with this version.")
      }
    }
  }

  private mutating func addStep(_ mapping: MappingModelFile.EntityMapping, _ policies: [String: MappingPolicy]) {
    let path = "entity mapping \(mapping.name)"
    func entity(_ name: String?, _ model: ManagedObjectModel, _ version: String) -> ManagedObjectModel.Entity? {
      guard let name else { return nil }
      guard let entity = model.entity(named: name), !entity.isAbstract else {
        problem(
          path, "The \(version) model has no entity \(name) that can have objects. Open the mapping model in Xcode with both versions.")
        return nil
      }
      return entity
    }
    let policy = mapping.policyClassName.flatMap { policies[$0] }
    if let name = mapping.policyClassName, policy == nil {
      problem(path, "It has the policy \(name), whose code isn't part of the file. Pass a MappingPolicy under this name.")
    }
    let source = entity(mapping.sourceEntityName, former, "former"), destination = entity(mapping.destinationEntityName, model, "new")
    var condition: MappingFilter?
    if let source, let text = mapping.sourceFilter { condition = filter(text, source, path) }
    steps.append(Step(mapping: mapping, source: source, destination: destination, filter: condition, policy: policy))
  }

  /// A filter; nil if it holds for all objects, or isn't supported.
  private mutating func filter(_ text: String, _ entity: ManagedObjectModel.Entity, _ path: String) -> MappingFilter? {
    do throws(MappingProblem) {
      let filter = try PredicateReader.filter(text, on: entity, in: former)
      return filter.query == .literal(true) && filter.patterns.isEmpty ? nil : filter
    } catch {
      problem(path, error.reason)
      return nil
    }
  }

  /// The first mapping of each entity is direct, if no other family of entities has objects for the destination's family. Entities with the same
  /// name come first, because people expect their objects to keep their keys.
  private mutating func chooseDirectSteps() {
    var sources: Set<EntityIndex> = [], destinations: Set<EntityIndex> = [], roots: [EntityIndex: EntityIndex] = [:]
    let places = steps.indices.filter { isSameEntity(steps[$0]) } + steps.indices.filter { !isSameEntity(steps[$0]) }
    for place in places {
      guard let source = steps[place].source, let destination = steps[place].destination, steps[place].filter == nil else { continue }
      guard !sources.contains(source.index), !destinations.contains(destination.index),
        roots[destination.rootIndex, default: source.rootIndex] == source.rootIndex
      else { continue }
      sources.insert(source.index)
      destinations.insert(destination.index)
      roots[destination.rootIndex] = source.rootIndex
      steps[place].isDirect = true
      rules.entities[destination.name] = MappingRules.Entity(source: source.name)
    }
  }

  private func isSameEntity(_ step: Step) -> Bool {
    guard let source = step.source, let destination = step.destination else { return false }
    return source.name == (destination.declaration.renamingIdentifier ?? destination.name) || source.name == destination.name
  }

  // MARK: Properties

  private func scope(_ step: Step) -> MappingExpression.Scope {
    MappingExpression.Scope(model: former, entity: step.source, mappingNames: names, policy: step.policy)
  }

  private mutating func addProperties(_ place: Int) {
    let step = steps[place], scope = scope(step)
    guard let destination = step.destination else { return }
    for property in step.mapping.attributeMappings {
      let path = "\(destination.name).\(property.name)"
      guard isAttribute(property.name, destination) else {
        problem(
          path,
          "The mapping \(step.mapping.name) has this attribute, and the new model has no stored attribute of this name. Remove it from the mapping."
        )
        continue
      }
      // Without an expression and a property of the same name, the default value remains.
      if property.expression == nil, !(step.source.map { isAttribute(property.name, $0) } ?? false) { continue }
      if step.isDirect, let name = sameAttribute(property, step.source), !sharesFiles(name, step.source, destination) {
        rules.entities[destination.name]?.attributes[property.name] = name
      } else {
        setByCode(place, attribute: property, scope, path)
      }
    }
    for property in step.mapping.relationshipMappings {
      let path = "\(destination.name).\(property.name)"
      guard let relationship = destination.relationship(named: property.name) else {
        problem(path, "The mapping \(step.mapping.name) has this relationship, and the new model doesn't. Remove it from the mapping.")
        continue
      }
      let former = step.source?.relationship(named: property.name)
      if property.expression == nil, former == nil { continue }
      if property.expression == nil, step.isDirect, let former, !isInserted(former), isListedByFamily(relationship) {
        rules.entities[destination.name]?.relationships[property.name] = property.name
      } else {
        setByCode(place, relationship, property, scope, path)
      }
    }
  }

  private func isAttribute(_ name: String, _ entity: ManagedObjectModel.Entity) -> Bool {
    switch entity.property(named: name) {
    case .attribute, .composite: true
    default: false
    }
  }

  /// The attribute of the source from which the store can take the value.
  private func sameAttribute(_ property: MappingModelFile.PropertyMapping, _ source: ManagedObjectModel.Entity?) -> String? {
    // Elements of composite attributes are set one by one.
    if property.name.contains(".") { return nil }
    guard let expression = property.expression else { return property.name }
    guard case .keyPath(.variable("source"), let name) = expression, let source, isAttribute(name, source), !name.contains(".") else {
      return nil
    }
    return name
  }

  /// Whether a second attribute would get values of one attribute that may be in external files.
  ///
  /// Each value has a file of its own, which is removed with it. So code copies these values.
  private func sharesFiles(
    _ name: String, _ source: ManagedObjectModel.Entity?, _ destination: ManagedObjectModel.Entity
  ) -> Bool {
    guard let source, rules.entities[destination.name]?.attributes.values.contains(name) ?? false else { return false }
    return source.attributes.contains { ($0.name == name || $0.name.hasPrefix(name + ".")) && $0.allowsExternalBinaryDataStorage }
  }

  /// Whether the mappings of all entities with a relationship take it from the relationship of the same name.
  private func isListedByFamily(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    let owner = model.entities[relationship.entityIndex]
    return steps.allSatisfy { step in
      guard step.isDirect, let destination = step.destination, destination.isKind(of: owner) else { return true }
      return step.mapping.relationshipMappings.contains { $0.name == relationship.name && $0.expression == nil }
    }
  }

  /// Whether objects at the end of a relationship are inserted by mappings that aren't direct.
  private func isInserted(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    let kinds = former.destination(of: relationship).concreteIndexes
    return steps.contains { step in !step.isDirect && step.destination != nil && step.source.map { kinds.contains($0.index) } ?? false }
  }

  private mutating func setByCode(
    _ place: Int, attribute property: MappingModelFile.PropertyMapping, _ scope: MappingExpression.Scope, _ path: String
  ) {
    if let expression = property.expression {
      guard let expression = expressionForCode(expression, scope, path, isRelationship: false) else { return }
      steps[place].attributes.append((property.name, expression))
      return
    }
    // A composite attribute is set element by element.
    for attribute in steps[place].destination?.attributes ?? [] {
      guard attribute.name == property.name || attribute.name.hasPrefix(property.name + "."),
        let source = scope.entity, source.attributes.contains(where: { $0.name == attribute.name }),
        let copied = try? MappingPath(attribute.name, from: source, former)
      else { continue }
      steps[place].attributes.append((attribute.name, .path(copied)))
    }
  }

  private mutating func setByCode(
    _ place: Int, _ relationship: ManagedObjectModel.Relationship, _ property: MappingModelFile.PropertyMapping,
    _ scope: MappingExpression.Scope, _ path: String
  ) {
    let expression = property.expression ?? .keyPath(.variable("source"), property.name)
    guard let expression = expressionForCode(expression, scope, path, isRelationship: true) else { return }
    if let reason = noDestinations(expression, model.destination(of: relationship)) { return problem(path, reason) }
    steps[place].relationships.append((relationship, expression))
  }

  /// Why an expression can't have objects of an entity; nil if it can.
  private func noDestinations(_ expression: MappingExpression, _ entity: ManagedObjectModel.Entity) -> String? {
    let path: MappingPath, name: String?
    switch expression {
    case .path(let found): (path, name) = (found, nil)
    case .destinations(let found, let mapping): (path, name) = (found, mapping)
    case .conditional(_, let first, let second): return noDestinations(first, entity) ?? noDestinations(second, entity)
    default: return nil
    }
    let kinds = path.entity.concreteIndexes
    let isFound = steps.contains { step in
      guard let source = step.source, let destination = step.destination, name == nil || step.mapping.name == name else { return false }
      return kinds.contains(source.index) && destination.isKind(of: entity)
    }
    if isFound { return nil }
    return
      "No objects of \(path.entity.name) become a \(entity.name)\(name.map { " by the mapping \($0)" } ?? ""). Correct the key path or the mapping."
  }

  private mutating func expressionForCode(
    _ archived: ArchivedExpression, _ scope: MappingExpression.Scope, _ path: String, isRelationship: Bool
  ) -> MappingExpression? {
    do throws(MappingProblem) {
      let expression = try MappingExpression(archived, scope)
      if let reason = expression.problem(isRelationship: isRelationship) { throw MappingProblem(reason) }
      return expression
    } catch {
      problem(path, error.reason)
      return nil
    }
  }

  // MARK: What the store can't do

  /// Leaves properties to code that the store can't decide, such as attributes that change their type.
  private mutating func leaveToCodeWhatStoresCannotDo() throws {
    let (mapping, found) = try MappingModel.partial(from: former, to: model, by: rules)
    for place in steps.indices where steps[place].isDirect {
      guard let destination = steps[place].destination else { continue }
      for problem in found {
        if let name = Self.property(of: problem, destination, model) { leaveToCode(name, place, destination) }
      }
      for (relationship, link) in zip(destination.relationships, mapping.mapping(of: destination.index).links) {
        // The store would leave all links out if one of them didn't fit.
        if let link, link.needsSingleDestination || link.needsSingleOwner { leaveToCode(relationship.name, place, destination) }
      }
    }
    try throwProblems()
    problems = try MappingModel.partial(from: former, to: model, by: rules).problems.filter { !isSolved($0) }
    try throwProblems()
  }

  /// Whether code sets a property, in all mappings of entities that have it, or a policy can.
  private func isSolved(_ problem: MigrationError.Problem) -> Bool {
    let affected = steps.compactMap { step -> (Step, String)? in
      guard step.isDirect, let destination = step.destination else { return nil }
      return Self.property(of: problem, destination, model).map { (step, $0) }
    }
    return !affected.isEmpty
      && affected.allSatisfy { step, name in
        // No code can set a derived attribute.
        if step.destination?.attributes.contains(where: { $0.name == name && $0.derivation != nil }) ?? false { return false }
        return step.policy?.body != nil || step.attributes.contains { $0.name == name || $0.name.hasPrefix(name + ".") }
          || step.relationships.contains { $0.relationship.name == name }
          || rules.entities[step.destination?.name ?? ""]?.relationships[name] != nil
      }
  }

  private mutating func leaveToCode(_ name: String, _ place: Int, _ destination: ManagedObjectModel.Entity) {
    let step = steps[place], scope = scope(step)
    let path = "\(destination.name).\(name)"
    if rules.entities[destination.name]?.attributes.removeValue(forKey: name) != nil,
      let property = step.mapping.attributeMappings.first(where: { $0.name == name })
    {
      setByCode(place, attribute: property, scope, path)
    }
    if rules.entities[destination.name]?.relationships.removeValue(forKey: name) != nil,
      let property = step.mapping.relationshipMappings.first(where: { $0.name == name }),
      let relationship = destination.relationship(named: name)
    {
      setByCode(place, relationship, property, scope, path)
    }
  }

  /// The property that a problem names, if it concerns an entity: an attribute of the entity itself, or a relationship that it or a superentity
  /// declares.
  private static func property(
    of problem: MigrationError.Problem, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) -> String? {
    let names = problem.path.split(separator: ".", maxSplits: 2).map(String.init)
    guard names.count > 1, let owner = model.entity(named: names[0]), entity.isKind(of: owner) else { return nil }
    return owner.index == entity.index || entity.relationship(named: names[1]) != nil ? names[1] : nil
  }
}
