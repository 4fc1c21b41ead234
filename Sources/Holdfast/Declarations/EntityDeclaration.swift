public import HoldfastStore

/// The entity that a class declares: its properties and what applies to all of them.
///
/// A model is made of the declarations of its classes; see ``PersistentContainer/init(for:transformers:store:)``. Names of properties
/// appear here and in the accessors only:
///
/// ```swift
/// final class Animal: ManagedObject {
///   enum Slots {
///     static var name: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
///     static var tag: SlotIndex { name.advanced(by: slotCount(of: String.self)) }
///   }
///   var name: String { get { self[property: Slots.name] } set { self[property: Slots.name] = newValue } }
///   var tag: Int? { get { self[property: Slots.tag] } set { self[property: Slots.tag] = newValue } }
///   override class var declaration: EntityDeclaration? {
///     EntityDeclaration(Animal.self, [.property("name", \Animal.name, default: ""), .property("tag", \Animal.tag, .unique)])
///   }
/// }
/// ```
///
/// The entity has the name of the class. If the superclass has a declaration, its entity is the superentity.
public struct EntityDeclaration {
  let type: ManagedObject.Type
  /// The class's own properties, in any order.
  public var properties: [PropertyDeclaration]
  /// Whether only subentities have objects. Defaults to false.
  public var isAbstract = false
  /// The uniqueness constraints over several properties: lists of names. Those of one property are ``AttributeOption/unique``.
  public var uniquenessConstraints: [[String]] = []
  /// The indexes to create, in stores that support them.
  public var indexes: [FetchIndexDescription] = []
  /// The fetched properties. ``ManagedObject/fetchedObjects(forProperty:as:)`` returns their objects.
  public var fetchedProperties: [FetchedPropertyDescription] = []
  /// The name in the previous version of the model, if it was different.
  public var renamingIdentifier: String?
  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public var versionHashModifier: String?
  /// Custom text by key.
  public var userInfo: [String: String] = [:]
  /// The names of the configurations that contain the entity. Defaults to none.
  public var configurations: [String] = []

  /// Declares the entity of a class.
  ///
  /// - Parameters:
  ///   - type: The class that returns the declaration.
  ///   - properties: The class's own properties, in any order. Defaults to none.
  public init<Class: ManagedObject>(_ type: Class.Type, _ properties: [PropertyDeclaration] = []) {
    self.type = type
    self.properties = properties
  }

  /// The declaration of the superclass; nil if there is none.
  private var above: EntityDeclaration? { (_getSuperclass(type) as? ManagedObject.Type)?.declaration }

  /// The numbers of places of an object's properties.
  private var count: PropertyCount { properties.reduce(above?.count ?? PropertyCount()) { $0.adding($1.place) } }

  /// The bindings of the superclass's properties, and of the class's own, with the slots that a model gives them: by name.
  var bindings: [PropertyBinding] {
    let above = above
    var count = above?.count ?? PropertyCount()
    return (above?.bindings ?? [])
      + properties.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }.map { property in
        defer { count = count.adding(property.place) }
        return property.binding(count[property.place])
      }
  }
}

/// Where an object keeps the value of a property.
enum PropertyPlace {
  /// In a row, in a number of slots.
  case slots(Int)
  case toMany
  case transient
  case transientLink
}

/// The numbers of an object's slots, to-many relationships, transient attributes and transient relationships.
private struct PropertyCount {
  private var slots = 0
  private var toMany = 0
  private var transients = 0
  private var transientLinks = 0

  func adding(_ place: PropertyPlace) -> PropertyCount {
    var count = self
    switch place {
    case .slots(let more): count.slots += more
    case .toMany: count.toMany += 1
    case .transient: count.transients += 1
    case .transientLink: count.transientLinks += 1
    }
    return count
  }

  /// The number that counts a property's place.
  subscript(place: PropertyPlace) -> Int {
    switch place {
    case .slots: slots
    case .toMany: toMany
    case .transient: transients
    case .transientLink: transientLinks
    }
  }
}
