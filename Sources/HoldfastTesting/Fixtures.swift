public import Holdfast
import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The objects that `insertFixtures(_:)` has inserted, by name.
public struct Fixtures {
  private let objects: [String: ManagedObject]

  init(_ objects: [String: ManagedObject]) { self.objects = objects }

  /// The object with a name, of the class that the caller expects.
  ///
  /// ```swift
  /// let fido: Dog = try fixtures["fido"]
  /// ```
  ///
  /// - Throws: ``FixtureError`` if there is none, or it is of another class.
  public subscript<Object: ManagedObject>(_ name: String) -> Object {
    get throws(FixtureError) {
      guard let object = objects[name] else {
        let known = objects.keys.sorted().joined(separator: ", ")
        throw FixtureError(place: name, reason: "No fixture has this name. The names are: \(known.isEmpty ? "none" : known).")
      }
      guard let typed = object as? Object else {
        throw FixtureError(place: name, reason: "The fixture is a \(type(of: object)), not a \(Object.self).")
      }
      return typed
    }
  }
}

/// An error in fixtures: where, and why.
public struct FixtureError: Error, CustomStringConvertible {
  /// The place in the document, such as `Dog[2].age`, or the name of a fixture.
  public let place: String
  /// Why it failed, and what to do.
  public let reason: String
  /// The underlying error, if any.
  public let cause: (any Error)?

  init(place: String, reason: String, cause: (any Error)? = nil) {
    self.place = place
    self.reason = reason
    self.cause = cause
  }

  /// The place, the reason and the cause.
  public var description: String { "\(place): \(reason)" + (cause.map { " Cause: \($0)" } ?? "") }
}

extension ManagedObjectContext {
  /// Inserts objects that a JSON document describes. They aren't saved.
  ///
  /// The document has an array of objects for each entity. `$name` names an object, for relationships and for the test:
  ///
  /// ```json
  /// {
  ///   "Person": [{ "$name": "ann", "name": "Ann" }],
  ///   "Dog": [
  ///     { "$name": "fido", "name": "Fido", "age": 3, "born": "2023-05-01", "owner": "ann", "friends": ["rex"] },
  ///     { "$name": "rex", "name": "Rex" }
  ///   ]
  /// }
  /// ```
  ///
  /// | attribute | JSON |
  /// |---|---|
  /// | date | `2026-11-25`, `2026-11-25T18:00:00Z`, `2026-11-25T18:00:00.5+01:00`, or seconds since 2001 |
  /// | decimal | a number, text for more digits, or `"NaN"` |
  /// | UUID, URI | text |
  /// | bytes, transformable | text in Base64 |
  /// | composite | an object |
  /// | to-one relationship | a name |
  /// | to-many relationship | an array of names |
  ///
  /// Properties that aren't in the document have their default values.
  ///
  /// - Parameter json: The document.
  /// - Returns: The objects with names.
  /// - Throws: ``FixtureError`` with the place in the document. The objects inserted so far stay; roll back.
  @discardableResult public func insertFixtures(_ json: Data) throws -> Fixtures {
    let document: [String: [[String: FixtureValue]]]
    do { document = try JSONDecoder().decode([String: [[String: FixtureValue]]].self, from: json) } catch {
      throw FixtureError(place: "the document", reason: "It isn't a JSON object with an array of objects for each entity.", cause: error)
    }
    var reader = FixtureReader(context: self)
    try reader.insert(document)
    return Fixtures(reader.names)
  }

  /// Inserts objects that a JSON document describes; see ``insertFixtures(_:)-(Data)``.
  @discardableResult public func insertFixtures(_ json: String) throws -> Fixtures { try insertFixtures(Data(json.utf8)) }
}

/// Inserts the objects of a document, and then sets their properties, which may refer to any of them.
private struct FixtureReader {
  private static let nameKey = "$name"

  let context: ManagedObjectContext
  private(set) var names: [String: ManagedObject] = [:]

  init(context: ManagedObjectContext) { self.context = context }

  mutating func insert(_ document: [String: [[String: FixtureValue]]]) throws {
    var inserted: [(place: String, object: ManagedObject, values: [String: FixtureValue])] = []
    for (entity, objects) in document.sorted(by: { $0.key < $1.key }) {
      for (index, values) in objects.enumerated() {
        let place = "\(entity)[\(index)]"
        let object = try at(place) { try context.insert(entityNamed: entity) }
        try name(object, values[Self.nameKey], place)
        inserted.append((place, object, values))
      }
    }
    for (place, object, values) in inserted {
      for (key, value) in values.sorted(by: { $0.key < $1.key }) where key != Self.nameKey { try set(key, of: object, value, place) }
    }
  }

  private mutating func name(_ object: ManagedObject, _ value: FixtureValue?, _ place: String) throws {
    guard let value else { return }
    guard case .string(let name) = value else {
      throw FixtureError(place: "\(place).\(Self.nameKey)", reason: "The name isn't text.")
    }
    guard names[name] == nil else { throw FixtureError(place: "\(place).\(Self.nameKey)", reason: "Two objects have the name \(name).") }
    names[name] = object
  }

  private func set(_ key: String, of object: ManagedObject, _ value: FixtureValue, _ place: String) throws {
    let place = "\(place).\(key)"
    switch object.entity.property(named: key) {
    case .attribute(let attribute)?:
      let value = try stored(value, attribute.type, place)
      try at(place) { try object.setValue(value, forKey: key) }
    case .composite(let composite)?: try setElements(of: composite, object, value, place)
    case .relationship(let relationship)?, .transientRelationship(let relationship)?:
      if relationship.isToMany {
        let objects = try several(value, place)
        // The other end may have added some already.
        try at(place) {
          guard case .objects(let present) = try object.value(forKey: key) else { return }
          try object.setValue(objects + present.filter { !objects.contains($0) }, forKey: key)
        }
      } else {
        let target = try one(value, place)
        try at(place) { try object.setValue(target, forKey: key) }
      }
    case .transient?, .fetched?:
      throw FixtureError(place: place, reason: "A document can't set transient attributes and fetched properties.")
    case nil:
      throw FixtureError(place: place, reason: "\(object.entity.name) has no property \(key).")
    }
  }

  private func stored(_ value: FixtureValue, _ type: AttributeType, _ place: String) throws -> StoreValue {
    if type == .objectID { return try one(value, place).map { .objectID($0.objectID) } ?? .null }
    guard let stored = value.value(for: type) else {
      throw FixtureError(place: place, reason: "The value doesn't fit the type \(type.rawValue).")
    }
    return stored
  }

  /// Sets the elements of a composite attribute that the document contains; null sets all of them to nil.
  private func setElements(
    of composite: ManagedObjectModel.CompositeAttribute, _ object: ManagedObject, _ value: FixtureValue, _ place: String
  ) throws {
    if case .null = value { return try at(place) { try object.setValue(StoreValue.null, forKey: composite.name) } }
    guard case .object(let values) = value else {
      throw FixtureError(place: place, reason: "The attribute is composite; give an object with its elements.")
    }
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      // Elements are properties with paths as names.
      let place = "\(place).\(key)", path = "\(composite.name).\(key)"
      switch object.entity.property(named: path) {
      case .attribute(let element)?:
        let value = try stored(value, element.type, place)
        try at(place) { try object.setValue(value, forKey: path) }
      case .composite(let element)?: try setElements(of: element, object, value, place)
      default: throw FixtureError(place: place, reason: "The composite attribute has no element \(key).")
      }
    }
  }

  private func one(_ value: FixtureValue, _ place: String) throws -> ManagedObject? {
    if case .null = value { return nil }
    guard case .string(let name) = value else {
      throw FixtureError(place: place, reason: "The relationship is to-one; give the name of an object, or null.")
    }
    guard let object = names[name] else { throw FixtureError(place: place, reason: "No object has the name \(name).") }
    return object
  }

  private func several(_ value: FixtureValue, _ place: String) throws -> [ManagedObject] {
    guard case .array(let values) = value else {
      throw FixtureError(place: place, reason: "The relationship is to-many; give an array of names.")
    }
    return try values.enumerated().compactMap { index, value in try one(value, "\(place)[\(index)]") }
  }

  private func at<Result>(_ place: String, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch {
      throw FixtureError(place: place, reason: "The framework refused it.", cause: error)
    }
  }
}
