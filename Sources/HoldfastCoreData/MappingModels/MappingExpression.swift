import Holdfast
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore

/// An expression of a mapping model, with the properties and mappings to which it refers.
indirect enum MappingExpression: Sendable {
  case constant(StoreValue)
  case path(MappingPath)
  /// What the objects of a path became by a mapping, or by all.
  case destinations(MappingPath, mappedBy: String?)
  case call(@Sendable ([StoreValue]) throws -> StoreValue, [MappingExpression])
  /// What a function computes of the list of a path.
  case reduction(MappingAggregate, MappingPath)
  /// The first of two expressions if a condition holds, or else the second.
  case conditional(MappingCondition, MappingExpression, MappingExpression)

  /// What an expression is read with.
  struct Scope {
    let model: ManagedObjectModel
    /// The source entity; nil if the mapping has none.
    var entity: ManagedObjectModel.Entity?
    /// The name of the variable that is the source object.
    var variable = "source"
    let mappingNames: Set<String>
    let policy: MappingPolicy?
  }

  init(_ archived: ArchivedExpression, _ scope: Scope) throws(MappingProblem) {
    switch archived {
    case .constant(let value): self = .constant(try Self.constant(value, archived.text))
    case .decimal(let number): self = .constant(.decimal(number))
    case .variable, .keyPath, .subquery: self = .path(try Self.path(archived, scope))
    case .conditional(let predicate, let first, let second):
      self = .conditional(
        try MappingCondition(predicate, scope), try MappingExpression(first, scope), try MappingExpression(second, scope))
    case .method(.variable("manager"), let selector, let arguments): self = try Self.destinations(selector, arguments, scope, archived.text)
    case .method(.variable("entityPolicy"), let selector, let arguments):
      guard let function = scope.policy?.functions[selector] else {
        throw MappingProblem("The expression \(archived.text) calls \(selector), which isn't among the functions of the mapping's policy.")
      }
      self = .call(function, try Self.all(arguments, scope))
    case .function("castObject:toType:", let arguments):
      guard arguments.count == 2, case .constant(.string(let type)) = arguments[1], let function = MappingCast.function(type) else {
        throw Self.unsupported(archived)
      }
      self = .call(function, [try MappingExpression(arguments[0], scope)])
    case .function(let selector, let arguments):
      if let aggregate = MappingAggregate(function: selector), arguments.count == 1 {
        self = try Self.reduction(aggregate, arguments[0], scope, archived)
        return
      }
      guard let function = MappingFunctions.function(selector, arguments.count) else { throw Self.unsupported(archived) }
      self = .call(function, try Self.all(arguments, scope))
    case .evaluatedObject, .method, .aggregate: throw Self.unsupported(archived)
    }
  }

  private static func unsupported(_ archived: ArchivedExpression) -> MappingProblem {
    MappingProblem("The expression \(archived.text) isn't supported. Name a policy in the mapping, and set the property there.")
  }

  private static func all(_ archived: [ArchivedExpression], _ scope: Scope) throws(MappingProblem) -> [MappingExpression] {
    var found: [MappingExpression] = []
    for part in archived { found.append(try MappingExpression(part, scope)) }
    return found
  }

  private static func path(_ archived: ArchivedExpression, _ scope: Scope) throws(MappingProblem) -> MappingPath {
    switch archived {
    case .variable(scope.variable):
      guard let entity = scope.entity else {
        throw MappingProblem("The expression refers to a source object, but the mapping has no source entity. Choose one in Xcode.")
      }
      return MappingPath(entity)
    case .variable("source"):
      throw MappingProblem("The condition of a SUBQUERY can't refer to $source. Name a policy in the mapping, and set the property there.")
    case .keyPath(let start, let path):
      var found = try Self.path(start, scope)
      try found.append(path, scope.model)
      return found
    case .subquery(let collection, let variable, let predicate):
      var found = try path(collection, scope), inner = scope
      (inner.entity, inner.variable) = (found.entity, variable)
      guard found.filter(try MappingCondition(predicate, inner)) else {
        throw MappingProblem("The collection of \(archived.text) isn't a list of objects. Correct it in Xcode.")
      }
      return found
    default: throw unsupported(archived)
    }
  }

  private static func reduction(
    _ aggregate: MappingAggregate, _ list: ArchivedExpression, _ scope: Scope, _ archived: ArchivedExpression
  ) throws(MappingProblem) -> MappingExpression {
    switch list {
    case .keyPath, .subquery: break
    default: throw unsupported(archived)
    }
    let path = try path(list, scope)
    if aggregate == .count, let counted = path.counted { return .path(counted) }
    guard case .values(let values, _) = path.end, let type = values.type, aggregate.accepts(type) else {
      throw MappingProblem(
        "The function in \(archived.text) needs the values of several objects, as $source.items.@unionOfObjects.price has them. Correct it "
          + "in Xcode, or use a policy.")
    }
    return .reduction(aggregate, path)
  }

  private static func destinations(
    _ selector: String, _ arguments: [ArchivedExpression], _ scope: Scope, _ text: String
  ) throws(MappingProblem) -> MappingExpression {
    guard arguments.count == 2, case .constant(.string(let name)) = arguments[0] else {
      throw MappingProblem("The expression \(text) isn't supported. Name a policy in the mapping, and set the property there.")
    }
    let path = try path(arguments[1], scope)
    guard case .objects = path.end else {
      throw MappingProblem("The expression \(text) refers to a value instead of objects. Correct its key path in Xcode.")
    }
    switch selector {
    case "destinationInstancesForEntityMappingNamed:sourceInstances:":
      guard scope.mappingNames.contains(name) else {
        throw MappingProblem("The expression \(text) names an entity mapping that doesn't exist. Correct the name in Xcode.")
      }
      return .destinations(path, mappedBy: name)
    case "destinationInstancesForSourceRelationshipNamed:sourceInstances:": return .destinations(path, mappedBy: nil)
    default: throw MappingProblem("The method \(selector) of $manager isn't supported. Set the property in a policy.")
    }
  }

  private static func constant(_ value: PropertyList, _ text: String) throws(MappingProblem) -> StoreValue {
    switch value {
    case .null: .null
    case .bool(let value): .bool(value)
    case .integer(let number): .int64(number)
    case .real(let number): .double(number)
    case .date(let seconds): .date(seconds)
    case .string(let text): .string(text)
    case .unsigned, .data, .uid, .array, .dictionary:
      throw MappingProblem("The constant \(text) isn't a value of an attribute. Set the property in a policy.")
    }
  }

  // MARK: Evaluation

  /// The value for an attribute.
  func value(_ old: FormerObject) throws -> StoreValue {
    switch self {
    case .constant(let value): return value
    case .path(let path):
      guard let value = try path.value(from: old) else { throw MappingProblem("The expression has objects instead of a value.") }
      return value
    case .destinations: throw MappingProblem("The expression has objects instead of a value.")
    case .call(let function, let arguments): return try function(try arguments.map { try $0.value(old) })
    case .reduction(let aggregate, let path): return try aggregate.result(of: try path.values(from: old))
    case .conditional(let condition, let first, let second): return try (condition.holds(old) ? first : second).value(old)
    }
  }

  /// The objects for a relationship to an entity.
  func objects(_ old: FormerObject, _ run: MappingModelRun, as entity: ManagedObjectModel.Entity) throws -> [ManagedObject] {
    switch self {
    case .path(let path):
      guard case .objects = path.end else { throw MappingProblem("The expression has a value instead of objects.") }
      return try run.objects(for: try path.objects(from: old), mappedBy: nil, as: entity)
    case .destinations(let path, let name):
      return try run.objects(for: try path.objects(from: old), mappedBy: name, as: entity)
    case .conditional(let condition, let first, let second):
      return try (condition.holds(old) ? first : second).objects(old, run, as: entity)
    case .constant(.null): return []
    case .constant, .call, .reduction: throw MappingProblem("The expression has a value instead of objects.")
    }
  }

  /// Why the expression can't be that of an attribute, or of a relationship; nil if it can.
  func problem(isRelationship: Bool) -> String? {
    let hasObjects: Bool
    switch self {
    case .path(let path):
      if case .values = path.end { return "The expression has a list of values. Choose one by a function such as max:, or in a policy." }
      if case .objects = path.end { hasObjects = true } else { hasObjects = false }
    case .destinations: hasObjects = true
    case .constant(.null): return nil
    case .constant, .reduction: hasObjects = false
    case .conditional(_, let first, let second):
      return first.problem(isRelationship: isRelationship) ?? second.problem(isRelationship: isRelationship)
    case .call(_, let arguments):
      if let problem = arguments.lazy.compactMap({ $0.problem(isRelationship: false) }).first { return problem }
      hasObjects = false
    }
    if hasObjects == isRelationship { return nil }
    return isRelationship
      ? "The expression has a value, but the property is a relationship. Correct it in Xcode."
      : "The expression has objects, but needs a value. Correct it in Xcode."
  }
}
