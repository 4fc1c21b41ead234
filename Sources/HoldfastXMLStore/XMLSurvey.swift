import HoldfastStore

/// Collects the names, types and links of a file's objects, from which ``DerivedModel`` derives a model. Values aren't read.
///
/// Names are as written: entities in upper case, properties in lower case.
final class XMLSurvey {
  /// A relationship as each of its objects repeats it. Relationships of several entities that are equal are taken for one.
  struct Relationship: Hashable {
    var name: String
    var isToMany: Bool
    var destination: String
  }

  struct Link: Hashable {
    var source: ObjectKey
    var target: ObjectKey
  }

  /// The type of each attribute by entity and name.
  private(set) var attributes: [String: [String: String]] = [:]
  private(set) var relationships: [Relationship: [Link]] = [:]
  /// The entities whose objects have a relationship.
  private(set) var owners: [Relationship: Set<String>] = [:]
  /// The entities with objects, and that of each object.
  private(set) var entities: [String] = []
  private var places: [String: Int] = [:]
  private var types: [ObjectKey: Int] = [:]
  private let errors: XMLErrors
  private var entity = ""
  private var key: ObjectKey = 0

  /// The maximum number of entities.
  static let maximumEntityCount = 1000
  /// The maximum number of properties, where an inherited one counts once for each entity with objects.
  static let maximumPropertyCount = 20_000
  private var propertyCount = 0

  init(_ errors: XMLErrors) { self.errors = errors }

  /// The entity of an object; nil if the file doesn't have it.
  func entity(of key: ObjectKey) -> String? { types[key].map { entities[$0] } }

  // MARK: Events

  func beginObject(type: String, id: String) throws {
    entity = type.uppercased()
    key = try reference(id)
    if places[entity] == nil {
      places[entity] = entities.count
      entities.append(entity)
      attributes[entity] = [:]
      if entities.count > Self.maximumEntityCount {
        throw errors.noModel("There are objects of more than \(Self.maximumEntityCount) entities.")
      }
    }
    types[key] = places[entity]
  }

  func attribute(name: String, type: String) throws {
    let name = name.lowercased()
    if let known = attributes[entity]?[name] {
      if known == type { return }
      throw errors.noModel("The attribute \(name.prefix(40)) of \(entity.prefix(40)) has several types, the last one in object z\(key).")
    }
    attributes[entity]?[name] = type
    try countProperty()
  }

  private func countProperty() throws {
    propertyCount += 1
    if propertyCount > Self.maximumPropertyCount {
      throw errors.noModel("The objects have more than \(Self.maximumPropertyCount) properties.")
    }
  }

  func relationship(name: String, type: String, destination: String, idrefs: String) throws {
    // The type is the minimum and maximum number of destinations.
    let relationship = Relationship(name: name.lowercased(), isToMany: !type.hasSuffix("/1"), destination: destination.uppercased())
    if owners[relationship, default: []].insert(entity).inserted { try countProperty() }
    for id in idrefs.split(whereSeparator: \.isWhitespace) {
      relationships[relationship, default: []].append(Link(source: key, target: try reference(id)))
    }
  }

  private func reference(_ id: some StringProtocol) throws -> ObjectKey {
    guard id.hasPrefix("z"), let value = Int64(id.dropFirst()) else {
      throw errors.damaged("The object ID is invalid.", " Location: an object of \(entity.prefix(40)).")
    }
    return ObjectKey(value)
  }
}
