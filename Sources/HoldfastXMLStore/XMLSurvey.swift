import HoldfastAtomicStore
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

  /// The maximum number of entities, and of properties of one of them.
  static let maximumCount = 1000

  init(_ errors: XMLErrors) { self.errors = errors }

  /// The entity of an object; nil if the file doesn't have it.
  func entity(of key: ObjectKey) -> String? { types[key].map { entities[$0] } }

  // MARK: Events

  func beginObject(type: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer) throws {
    entity = String(decoding: type, as: UTF8.self).uppercased()
    key = try reference(id)
    if places[entity] == nil {
      places[entity] = entities.count
      entities.append(entity)
      attributes[entity] = [:]
      if entities.count > Self.maximumCount { throw tooMany() }
    }
    types[key] = places[entity]
  }

  func attribute(name: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer) throws {
    let name = String(decoding: name, as: UTF8.self).lowercased(), type = String(decoding: type, as: UTF8.self)
    if let known = attributes[entity]?[name] {
      if known == type { return }
      throw errors.damaged("The attribute \(name) of \(entity) has several types.", "")
    }
    attributes[entity]?[name] = type
    if (attributes[entity]?.count ?? 0) > Self.maximumCount { throw tooMany() }
  }

  func relationship(
    name: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer, destination: UnsafeRawBufferPointer, idrefs: UnsafeRawBufferPointer
  ) throws {
    // The type is the minimum and maximum number of destinations.
    let relationship = Relationship(
      name: String(decoding: name, as: UTF8.self).lowercased(), isToMany: !type.suffix(2).elementsEqual("/1".utf8),
      destination: String(decoding: destination, as: UTF8.self).uppercased())
    owners[relationship, default: []].insert(entity)
    if owners.count > Self.maximumCount { throw tooMany() }
    for id in idrefs.split(whereSeparator: XMLText.isSpace) {
      relationships[relationship, default: []].append(
        Link(source: key, target: try reference(UnsafeRawBufferPointer(rebasing: id))))
    }
  }

  private func reference(_ id: UnsafeRawBufferPointer) throws -> ObjectKey {
    guard id.first == UInt8(ascii: "z"), id.count > 1, let value = NumberText.integer(UnsafeRawBufferPointer(rebasing: id[1...])) else {
      throw errors.damaged("The object ID is invalid.", " Location: an object of \(entity).")
    }
    return ObjectKey(value)
  }

  private func tooMany() -> StoreError {
    errors.limit("The file has more than \(Self.maximumCount) entities, or one with more than \(Self.maximumCount) properties.")
  }
}
