import Holdfast
import HoldfastStore

/// A key path from an object of the former model: relationships, and what is read at their end.
struct MappingPath: Sendable {
  indirect enum End: Sendable {
    /// The objects themselves.
    case objects
    /// The number of objects.
    case count
    /// An attribute of the only object.
    case attribute(String)
    /// What an operator computes of a value of each object.
    case aggregate(MappingAggregate, of: MappingPath)
    /// A list with a value of each object, or with each of these values once.
    case values(of: MappingPath, isDistinct: Bool)
  }

  private static let maximumNames = QueryExpression.maximumNesting
  /// Reading a path takes stack for each operator, and twice the time for each union.
  private static let maximumOperators = 8

  /// Operators that join lists. Lists of objects are joined after every relationship here.
  private static let unions: Set<String> = [
    "@unionOfObjects", "@unionOfArrays", "@unionOfSets", "@distinctUnionOfObjects", "@distinctUnionOfArrays", "@distinctUnionOfSets",
  ]

  private struct Step {
    var name: String
    var isToMany: Bool
    /// What holds for the objects that are kept; nil for all.
    var condition: MappingCondition?
  }

  private var steps: [Step] = []
  private(set) var end = End.objects
  /// The entity of the objects, or of the object with the attribute.
  private(set) var entity: ManagedObjectModel.Entity

  /// The source object itself.
  init(_ entity: ManagedObjectModel.Entity) { self.entity = entity }

  /// Finds the properties of a path.
  ///
  /// - Throws: ``MappingProblem`` if the former model doesn't have such properties.
  init(_ path: String, from entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) throws(MappingProblem) {
    self.entity = entity
    try append(path, model)
  }

  /// Continues the path from its objects.
  mutating func append(_ path: String, _ model: ManagedObjectModel) throws(MappingProblem) {
    guard case .objects = end else {
      throw MappingProblem("The key path \(path) follows a value, which has no properties. Correct it in Xcode.")
    }
    var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...]
    guard names.count <= Self.maximumNames, names.count(where: { $0.hasPrefix("@") }) <= Self.maximumOperators else {
      throw MappingProblem(
        "A key path has more than \(Self.maximumNames) names, or \(Self.maximumOperators) operators. Shorten it in Xcode, or use a policy.")
    }
    while let name = names.popFirst() {
      let rest = names.joined(separator: "."), isToMany = steps.contains { $0.isToMany }
      if isToMany, let aggregate = MappingAggregate(keyPathOperator: name) {
        end = .aggregate(aggregate, of: try Self.values(rest, from: entity, model, for: aggregate, in: path))
        names = []
      } else if Self.unions.contains(name) {
        if isToMany, let values = try? MappingPath(rest, from: entity, model), values.type != nil {
          end = .values(of: values, isDistinct: name.hasPrefix("@distinct"))
          names = []
        }
      } else if name == "@count", names.isEmpty, isToMany {
        end = .count
      } else if let relationship = entity.relationship(named: name) {
        steps.append(Step(name: name, isToMany: relationship.isToMany))
        entity = model.destination(of: relationship)
      } else {
        let attribute = ([name] + names).joined(separator: ".")
        guard entity.attributes.contains(where: { $0.name == attribute }) else {
          throw MappingProblem(
            "The former \(entity.name) has no property \(attribute), which the key path \(path) contains. Correct it in Xcode.")
        }
        if isToMany {
          throw MappingProblem(
            "The key path \(path) has a value for each of several objects. Choose one by an operator such as @max, or in a policy.")
        }
        end = .attribute(attribute)
        names = []
      }
    }
  }

  /// Keeps only the objects for which a condition holds. False if the path has no list of objects.
  mutating func filter(_ condition: MappingCondition) -> Bool {
    guard case .objects = end, let last = steps.indices.last, steps.contains(where: { $0.isToMany }) else { return false }
    steps[last].condition = steps[last].condition.map { .and([$0, condition]) } ?? condition
    return true
  }

  /// The path from each of several objects to the value that an operator reads.
  private static func values(
    _ rest: String, from entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, for aggregate: MappingAggregate, in path: String
  ) throws(MappingProblem) -> MappingPath {
    if rest.isEmpty { throw MappingProblem("The key path \(path) ends with an operator that needs a property behind it. Add it in Xcode.") }
    let values = try MappingPath(rest, from: entity, model)
    guard let type = values.type, aggregate.accepts(type) else {
      throw MappingProblem("The key path \(path) has an operator that can't be used with \(rest). Correct it in Xcode, or use a policy.")
    }
    return values
  }

  /// The type of the value at the end; nil for objects and lists.
  var type: AttributeType? {
    switch end {
    case .objects, .values: nil
    case .count, .aggregate(.count, _): .integer64
    case .attribute(let name): entity.attributes.first { $0.name == name }?.type
    case .aggregate(.minimum, let path), .aggregate(.maximum, let path): path.type
    case .aggregate: .double
    }
  }

  /// The path to the number of the objects; nil if it has no list of objects.
  var counted: MappingPath? {
    guard case .objects = end, steps.contains(where: { $0.isToMany }) else { return nil }
    var copy = self
    copy.end = .count
    return copy
  }

  /// The objects at the end of the relationships, each once, in their order.
  func objects(from old: FormerObject) throws -> [FormerObject] {
    var objects = [old]
    for step in steps {
      let next = try objects.flatMap { try step.isToMany ? $0.objects(step.name) : $0.object(step.name).map { [$0] } ?? [] }
      var seen: Set<ObjectKey> = []
      objects = try next.filter { try seen.insert($0.key).inserted && step.condition?.holds($0) != false }
    }
    return objects
  }

  /// The value at the end; nil for objects and lists.
  func value(from old: FormerObject) throws -> StoreValue? {
    switch end {
    case .objects, .values: nil
    case .count: .int64(Int64(try objects(from: old).count))
    case .attribute(let name): try objects(from: old).first?.value(name) ?? .null
    case .aggregate(let aggregate, let path):
      try aggregate.result(of: try objects(from: old).map { try path.value(from: $0) ?? .null })
    }
  }

  /// The list of values at the end; empty for other paths. As in Core Data, each object must have a value.
  func values(from old: FormerObject) throws -> [StoreValue] {
    guard case .values(let path, let isDistinct) = end else { return [] }
    var seen: Set<StoreValue> = []
    return try objects(from: old).compactMap { object in
      guard let value = try path.value(from: object), value != .null else {
        throw MappingProblem("One of the objects has no value, which the union in the key path needs. Set the property in a policy.")
      }
      return isDistinct && !seen.insert(value).inserted ? nil : value
    }
  }
}

/// Why something in a mapping model doesn't fit, in sentences.
struct MappingProblem: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
