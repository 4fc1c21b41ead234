import HoldfastStore

@testable import Holdfast

/// An error of a race: what isn't as it must be.
struct RaceFault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// The objects that a context sees, by ID.
struct RaceContents: Equatable {
  struct Thing: Equatable, CustomStringConvertible {
    /// The tag and the unique values, by name.
    let values: [String: StoreValue]
    let keys: [Key]
    /// The name of each relationship, followed by the existing destinations.
    let links: [String]

    var description: String {
      (values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" } + links).joined(separator: " ")
    }
  }

  /// An object's values of a uniqueness constraint.
  struct Key: Hashable {
    /// All constraints are those of root entities.
    let root: EntityIndex
    let names: [String]
    let values: [StoreValue]
  }

  private(set) var things: [ManagedObjectID: Thing] = [:]

  init() {}

  /// Reads all objects.
  ///
  /// - Parameter isSound: Whether to check that both ends of relationships agree, that derived values are those of the destinations, and
  ///   that no two objects have the same unique values.
  init(_ context: ManagedObjectContext, _ model: ManagedObjectModel, isSound: Bool = false) throws {
    let all: [ManagedObject] = try model.entities.filter { $0.superentityIndex == nil }.flatMap {
      try context.fetch(FetchRequest<ManagedObject>(entityName: $0.name))
    }
    let known = Set(all)
    for object in all {
      if isSound { try RaceContents.check(object, known, model) }
      let values = try RaceContents.values(of: object)
      things[object.objectID] = Thing(
        values: values, keys: RaceContents.keys(of: object.entity, values), links: try RaceContents.links(of: object, known))
    }
    // Missing objects were read.
    context.acknowledgeFaultErrors()
    if isSound { try checkUniqueness() }
  }

  /// The objects that differ from those of other contents.
  func differences(from other: RaceContents) -> String {
    let ids = Set(things.keys).union(other.things.keys).filter { things[$0] != other.things[$0] }
    let lines = ids.map { id in
      "\(id.uriRepresentation): \(things[id]?.description ?? "nothing") instead of \(other.things[id]?.description ?? "nothing")"
    }
    return lines.sorted().joined(separator: "; ")
  }

  // MARK: Objects

  /// The names of the attributes that a race sets: the tag, followed by those of uniqueness constraints.
  static func names(of entity: ManagedObjectModel.Entity) -> [String] { ["tag"] + Set(entity.uniquenessConstraints.joined()).sorted() }

  static func values(of object: ManagedObject) throws -> [String: StoreValue] {
    var values: [String: StoreValue] = [:]
    for name in names(of: object.entity) { values[name] = try object.value(forKey: name).storeValue }
    return values
  }

  /// The unique values of an object, without those of constraints with a missing value.
  static func keys(of entity: ManagedObjectModel.Entity, _ values: [String: StoreValue]) -> [Key] {
    entity.uniquenessConstraints.compactMap { names in
      let own = names.map { values[$0] ?? StoreValue.null }
      return own.contains(.null) ? nil : Key(root: entity.rootIndex, names: names, values: own)
    }
  }

  static func targets(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if !relationship.isToMany { return object.toOne(relationship).map { [$0] } ?? [] }
    return relationship.isOrdered
      ? Array(try object.ordered(forKey: relationship.name)) : Array(try object.toMany(forKey: relationship.name))
  }

  private static func links(of object: ManagedObject, _ known: Set<ManagedObject>) throws -> [String] {
    try object.entity.relationships.map { relationship in
      let ids = try targets(object, relationship).filter(known.contains).map(\.objectID.uriRepresentation)
      return "\(relationship.name): " + (relationship.isOrdered ? ids : ids.sorted()).joined(separator: ", ")
    }
  }

  // MARK: Checks

  private static func check(_ object: ManagedObject, _ known: Set<ManagedObject>, _ model: ManagedObjectModel) throws {
    for relationship in object.entity.relationships {
      let targets = try targets(object, relationship)
      if Set(targets).count != targets.count { throw RaceFault("\(object) \(relationship.name) has a target twice.") }
      guard let inverse = model.inverse(of: relationship) else { continue }
      for target in targets {
        if !known.contains(target) {
          if relationship.isToMany { throw RaceFault("\(object) \(relationship.name) contains missing \(target).") }
        } else if try !self.targets(target, inverse).contains(object) {
          throw RaceFault("\(object) \(relationship.name) contains \(target), but not the reverse.")
        }
      }
    }
    for relationship in object.entity.relationships { try checkDerived(object, relationship, known) }
  }

  private static func checkDerived(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ known: Set<ManagedObject>)
    throws
  {
    func check(_ kind: String, _ wanted: Int64?) throws {
      let name = "\(kind)_\(relationship.name)"
      guard object.entity.attributes.contains(where: { $0.name == name }) else { return }
      let found = try object.value(forKey: name).storeValue?.integer
      if found != wanted { throw RaceFault("\(object) \(name) is \(found ?? -1) where it should be \(wanted ?? -1).") }
    }
    let tags = try targets(object, relationship).filter(known.contains).map { try $0.value(forKey: "tag").storeValue?.integer ?? 0 }
    if !relationship.isToMany { return try check("copy", tags.first) }
    try check("count", Int64(tags.count))
    try check("sum", tags.reduce(0, +))
  }

  private func checkUniqueness() throws {
    var owners: [Key: ManagedObjectID] = [:]
    for (id, thing) in things {
      for key in thing.keys {
        guard let other = owners.updateValue(id, forKey: key) else { continue }
        throw RaceFault("\(id.uriRepresentation) and \(other.uriRepresentation) have the same \(key.names.joined(separator: ", ")).")
      }
    }
  }
}
