public import HoldfastStore

/// The entity that a class declares: its properties and what applies to all of them.
///
/// A model is made of the declarations of its classes; see ``PersistentContainer/init(for:transformers:store:)``. Names of properties
/// appear here and in the accessors only:
///
/// ```swift
/// final class Animal: ManagedObject {
///   enum Slots {
///     static var name: SlotIndex { SlotIndex(ManagedObject.Slots.count) }
///     static var tag: SlotIndex { SlotIndex(ManagedObject.Slots.count + slotCount(of: String.self)) }
///   }
///   var name: String { get { self[property: Slots.name] } set { self[property: Slots.name] = newValue } }
///   var tag: Int? { get { self[property: Slots.tag] } set { self[property: Slots.tag] = newValue } }
///   override class var declaration: EntityDeclaration? {
///     EntityDeclaration(Animal.self, [.property("name", \Animal.name, default: ""), .property("tag", \Animal.tag, .unique)])
///   }
/// }
/// ```
///
/// The entity has the name of the class. If the superclass has a declaration, its entity is the superentity. Transient attributes and
/// relationships can't be declared here; a class that has some needs a model.
public struct EntityDeclaration {
  let type: ManagedObject.Type
  let properties: [PropertyDeclaration]
  /// Whether only subentities have objects. Defaults to false.
  public var isAbstract = false
  /// The uniqueness constraints over several properties: lists of names. Those of one property are ``AttributeOption/unique``.
  public var uniquenessConstraints: [[String]] = []
  /// The indexes to create, in stores that support them.
  public var indexes: [FetchIndexDescription] = []
  /// The fetched properties.
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
  ///   - properties: The class's own properties, in any order.
  public init<Class: ManagedObject>(_ type: Class.Type, _ properties: [PropertyDeclaration]) {
    self.type = type
    self.properties = properties
  }

  /// The declaration of the superclass; nil if there is none.
  private var above: EntityDeclaration? { (_getSuperclass(type) as? ManagedObject.Type)?.declaration }

  /// The number of slots of an object.
  private var slotCount: Int { properties.reduce(above?.slotCount ?? 0) { $0 + $1.slotCount } }

  /// The number of to-many relationships of an object.
  private var toManyCount: Int { properties.reduce(above?.toManyCount ?? 0) { $0 + ($1.isToMany ? 1 : 0) } }

  /// The bindings of the class's own properties, with the slots that a model gives them: after those of the superclass, by name.
  var bindings: [PropertyBinding] {
    var slot = above?.slotCount ?? 0, index = above?.toManyCount ?? 0
    return properties.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }.map { property in
      defer { if property.isToMany { index += 1 } else { slot += property.slotCount } }
      return property.binding(property.isToMany ? index : slot)
    }
  }
}
