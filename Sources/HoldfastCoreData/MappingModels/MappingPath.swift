import Holdfast
import HoldfastStore

/// A key path from an object of the former model: relationships, and what is read at their end.
struct MappingPath: Sendable {
  enum End: Sendable {
    /// The objects themselves.
    case objects
    /// The number of objects.
    case count
    /// An attribute of the only object.
    case attribute(String)
  }

  /// Operators that join the objects of all lists into one. That is done after every relationship here.
  private static let unions: Set<String> = [
    "@unionOfObjects", "@unionOfArrays", "@unionOfSets", "@distinctUnionOfObjects", "@distinctUnionOfArrays", "@distinctUnionOfSets",
  ]

  private var steps: [(name: String, isToMany: Bool)] = []
  private(set) var end = End.objects
  /// The entity of the objects, or of the object with the attribute.
  let entity: ManagedObjectModel.Entity

  /// The source object itself.
  init(_ entity: ManagedObjectModel.Entity) { self.entity = entity }

  /// Finds the properties of a path.
  ///
  /// - Throws: ``MappingProblem`` if the former model doesn't have such properties.
  init(_ path: String, from entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel) throws(MappingProblem) {
    var entity = entity, isToMany = false
    var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...]
    while let name = names.popFirst() {
      if Self.unions.contains(name) { continue }
      if name == "@count", names.isEmpty, isToMany {
        end = .count
      } else if let relationship = entity.relationship(named: name) {
        steps.append((name, relationship.isToMany))
        isToMany = isToMany || relationship.isToMany
        entity = model.destination(of: relationship)
      } else {
        let attribute = ([name] + names).joined(separator: ".")
        guard entity.attributes.contains(where: { $0.name == attribute }) else {
          throw MappingProblem(
            "The former \(entity.name) has no property \(attribute), which the key path \(path) contains. Correct it in Xcode.")
        }
        if isToMany { throw MappingProblem("The key path \(path) has a value for each of several objects. Set it in a policy.") }
        end = .attribute(attribute)
        names = []
      }
    }
    self.entity = entity
  }

  /// The objects at the end of the relationships, each once, in their order.
  func objects(from old: FormerObject) throws -> [FormerObject] {
    var objects = [old]
    for step in steps {
      let next = try objects.flatMap { try step.isToMany ? $0.objects(step.name) : $0.object(step.name).map { [$0] } ?? [] }
      var seen: Set<ObjectKey> = []
      objects = next.filter { seen.insert($0.key).inserted }
    }
    return objects
  }

  /// The value at the end; nil for a path of objects.
  func value(from old: FormerObject) throws -> StoreValue? {
    switch end {
    case .objects: nil
    case .count: .int64(Int64(try objects(from: old).count))
    case .attribute(let name): try objects(from: old).first?.value(name) ?? .null
    }
  }
}

/// Why something in a mapping model doesn't fit, in sentences.
struct MappingProblem: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
