#if Macros
  public import HoldfastStore

  /// Makes a class an entity, and its stored properties the entity's attributes and relationships. Requires the trait `Macros`.
  ///
  /// ```swift
  /// @Entity final class Dog: ManagedObject {
  ///   @Attribute(.unique) var chip: String?
  ///   var name = ""
  ///   @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
  /// }
  /// ```
  ///
  /// The Swift type of a property decides what it is:
  ///
  /// | Type | Property |
  /// |---|---|
  /// | an ``AttributeValue``, such as `Int`, `Date?` or an enumeration with raw values | attribute |
  /// | a ``CompositeAttributeValue``, such as a struct with ``Composite()`` | composite attribute |
  /// | an optional class with `@Entity` | to-one relationship |
  /// | ``ToMany`` or ``OrderedToMany`` | to-many relationship |
  ///
  /// An optional type makes an attribute optional in the model. An initial value is the default value of new objects. If it isn't a literal,
  /// such as `Date()`, it is computed for each new object.
  ///
  /// Computed, static and lazy properties stay as they are. The macro adds:
  ///
  /// - the accessors of the properties,
  /// - ``ManagedObject/declaration``, and the numbers that the accessors use,
  /// - in a `final` class, an initializer with the class's own attributes and to-one relationships as parameters,
  ///   `Dog(context: context, name: "Fido")`. It requires the properties that are neither optional nor have an initial value. A class that
  ///   has one with the same parameters gets none,
  /// - `Dog.Snapshot`, a ``ManagedObjectSnapshot``.
  ///
  /// - Parameters:
  ///   - name: The name of the entity. Defaults to the name of the class.
  ///   - isAbstract: Whether only subentities have objects. Write it, with either value, for a class that has subclasses.
  ///   - uniquenessConstraints: See ``EntityDeclaration/uniquenessConstraints``. ``Unique(_:)`` has key paths instead of names.
  ///   - indexes: See ``EntityDeclaration/indexes``. ``Index(_:)`` has key paths instead of names.
  ///   - fetchedProperties: See ``EntityDeclaration/fetchedProperties``.
  ///   - renamingIdentifier: The name in the previous version of the model, if it was different.
  ///   - versionHashModifier: Text added to the version hash.
  ///   - userInfo: Custom text by key.
  ///   - configurations: The names of the configurations that contain the entity.
  @attached(
    member, names: named(Slots), named(SlotCounts), named(declaration), named(entityName), named(setComputedDefaults), named(init),
    named(Snapshot))
  @attached(memberAttribute)
  public macro Entity(
    name: String? = nil, isAbstract: Bool = false, uniquenessConstraints: [[String]] = [], indexes: [FetchIndexDescription] = [],
    fetchedProperties: [FetchedPropertyDescription] = [], renamingIdentifier: String? = nil, versionHashModifier: String? = nil,
    userInfo: [String: String] = [:], configurations: [String] = []
  ) = #externalMacro(module: "HoldfastMacrosPlugin", type: "EntityMacro")

  /// Adds rules and settings to an attribute of a class with `@Entity`, or to an element of a struct with `@Composite`.
  ///
  /// ```swift
  /// @Attribute(.unique, .length(1...15)) var chip: String?
  /// @Attribute(.transient) var isSelected = false
  /// ```
  ///
  /// - Parameters:
  ///   - options: Rules and settings.
  ///   - name: The name in the model, a literal. Defaults to the name of the property.
  @attached(peer) public macro Attribute(_ options: AttributeOption..., name: String? = nil) =
    #externalMacro(module: "HoldfastMacrosPlugin", type: "PropertyOptionsMacro")

  /// Adds rules and settings to a relationship of a class with `@Entity`.
  ///
  /// One of both ends of a relationship names the other as its inverse. A to-many relationship whose inverse is named at the other end, or
  /// that has none, is marked with `@Relationship` without arguments.
  ///
  /// - Parameters:
  ///   - options: Rules and settings.
  ///   - deleteRule: What happens to the destinations when the object is deleted. Defaults to nullify.
  ///   - inverse: The relationship of the destinations that points back.
  ///   - name: The name in the model, a literal. Defaults to the name of the property.
  @attached(peer) public macro Relationship(
    _ options: RelationshipOption..., deleteRule: DeleteRule = .nullify, inverse: AnyKeyPath? = nil, name: String? = nil
  ) = #externalMacro(module: "HoldfastMacrosPlugin", type: "PropertyOptionsMacro")

  /// Declares combinations of properties that no two objects have in common, in a class with `@Entity`.
  ///
  /// ```swift
  /// #Unique<Dog>([\.owner, \.name], [\.home?.city, \.name])
  /// ```
  @freestanding(declaration) public macro Unique<Class: ManagedObject>(_ constraints: [PartialKeyPath<Class>]...) =
    #externalMacro(module: "HoldfastMacrosPlugin", type: "EntityListMacro")

  /// Declares indexes over properties, in a class with `@Entity`. Stores that support indexes create them.
  ///
  /// ```swift
  /// #Index<Dog>([\.name], [\.home?.city, \.name])
  /// ```
  @freestanding(declaration) public macro Index<Class: ManagedObject>(_ indexes: [PartialKeyPath<Class>]...) =
    #externalMacro(module: "HoldfastMacrosPlugin", type: "EntityListMacro")

  /// Makes a struct the type of composite attributes: its stored properties are the elements. Requires the trait `Macros`.
  ///
  /// In a module whose default isolation is the main actor, write `@Composite nonisolated struct`.
  ///
  /// ```swift
  /// @Composite struct Place {
  ///   @Attribute(.length(1...40)) var city: String?
  ///   var latitude = 0.0
  /// }
  /// ```
  @attached(member, names: named(elements), named(slotCount), named(init))
  @attached(extension, conformances: CompositeAttributeValue)
  public macro Composite() = #externalMacro(module: "HoldfastMacrosPlugin", type: "CompositeMacro")

  /// The accessors of a managed property. `@Entity` adds it.
  @attached(accessor) public macro _ManagedProperty() = #externalMacro(module: "HoldfastMacrosPlugin", type: "ManagedPropertyMacro")
#endif
