public import HoldfastStore

/// The classes of a model that is made of their declarations.
struct DeclaredClasses {
  /// The classes, each after its superclass.
  private(set) var types: [ManagedObject.Type] = []
  private var declarations: [EntityDeclaration] = []
  private var known: [ObjectIdentifier] = []
  private var problems: [String] = []

  /// Collects some classes, their superclasses, and the classes of their relationships' destinations.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/classMismatch`` that names every class without a declaration.
  init(_ classes: [ManagedObject.Type]) throws {
    for type in classes { add(type, because: "It was passed") }
    try throwProblems()
  }

  private mutating func add(_ type: ManagedObject.Type, because reason: String) {
    guard type != ManagedObject.self, !known.contains(ObjectIdentifier(type)) else { return }
    known.append(ObjectIdentifier(type))
    guard let declaration = type.declaration, declaration.type == type else {
      problems.append("\(type): \(reason), and it has no declaration of its own. Override `declaration` in the class.")
      return
    }
    if let superclass = DeclaredClasses.superclass(of: type) { add(superclass, because: "It is the superclass of \(type)") }
    types.append(type)
    declarations.append(declaration)
    for property in declaration.properties {
      guard case .relationship(_, let destination, _) = property.kind else { continue }
      add(destination, because: "\(type).\(property.name) has objects of it")
    }
  }

  /// The superclass, if it can have a declaration.
  private static func superclass(of type: ManagedObject.Type) -> ManagedObject.Type? {
    guard let superclass = _getSuperclass(type) as? ManagedObject.Type, superclass != ManagedObject.self else { return nil }
    return superclass
  }

  private func throwProblems() throws {
    if problems.isEmpty { return }
    throw PersistenceError(
      .classMismatch, reason: "The classes don't make a model:\n" + problems.map { "  \($0)" }.joined(separator: "\n"))
  }

  // MARK: The model

  /// The model that the classes declare.
  ///
  /// - Throws: ``PersistenceError`` if inverses contradict each other; ``/HoldfastStore/ModelError`` if the model is invalid.
  mutating func model() throws -> ManagedObjectModel {
    let inverses = inverses(), composites = composites()
    checkTransformers()
    try throwProblems()
    let names = Set(declarations.flatMap(\.configurations)).sorted()
    let configurations = names.map { name in
      ConfigurationDescription(name, declarations.filter { $0.configurations.contains(name) }.map(\.type.entityName))
    }
    return try ManagedObjectModel(
      entities: declarations.map { entity($0, inverses) }, configurations: configurations,
      composites: composites.values.sorted { $0.name < $1.name })
  }

  /// The composites of all properties, by name. Structs in different types can have the same name, but not in a model.
  private mutating func composites() -> [String: CompositeDescription] {
    var composites: [String: CompositeDescription] = [:]
    for declaration in declarations {
      for property in declaration.properties {
        guard case .composite(let source, let attribute) = property.kind else { continue }
        if attribute.isUnique {
          problems.append(
            "\(declaration.type).\(property.name): A composite attribute can't be unique by itself. Name its elements in a uniqueness "
              + "constraint, such as #Unique<\(declaration.type)>([\\.\(property.name).element]).")
        }
        for element in source.uniqueElements() {
          problems.append(
            "\(declaration.type).\(property.name): The element \(element) can't be unique by itself. Name it in a uniqueness constraint, such "
              + "as #Unique<\(declaration.type)>([\\.\(property.name).\(element)]).")
        }
        for description in source.descriptions() {
          if let known = composites.updateValue(description, forKey: description.name), known != description {
            problems.append(
              "\(declaration.type).\(property.name): Another struct is also named \(description.name) and has other elements. Rename one "
                + "of both.")
          }
        }
      }
    }
    return composites
  }

  /// Reports different transformers that have the same name, because a transformer is found by the name.
  private mutating func checkTransformers() {
    var found: [String: any AttributeTransformer] = [:]
    for declaration in declarations {
      for property in declaration.properties {
        guard case .attribute(let attribute) = property.kind, let (name, transformer) = attribute.transformer else { continue }
        guard let known = found.updateValue(transformer, forKey: name) else { continue }
        let problem: String
        if Swift.type(of: known) != Swift.type(of: transformer) {
          let value = transformer.madeType, isCodable = name == "Codable.\(value)"
          let other = isCodable ? "Codable type is also named \(value)" : "transformer is also named \(name)"
          problem = "Another \(other). Rename one of both, or register"
        } else if DeclaredClasses.differ(known, transformer) {
          problem = "Another attribute has a \(name) with other settings. Register"
        } else {
          continue
        }
        problems.append(
          "\(declaration.type).\(property.name): \(problem) one transformer under another name and declare its attribute as "
            + "`.transformable(by: \"Name\")`.")
      }
    }
  }

  /// Whether two values of one type are known to have different settings. References and closures may be equal although they differ.
  private static func differ(_ first: Any, _ second: Any) -> Bool {
    if Swift.type(of: first) is AnyClass { return false }
    if let first = first as? any Equatable { return !first.equals(second) }
    return zip(Mirror(reflecting: first).children, Mirror(reflecting: second).children).contains { differ($0.value, $1.value) }
  }

  /// Registers the transformers of `Codable` attributes and those in declarations, unless others have their names.
  func register(in registry: inout AttributeTransformerRegistry) {
    for property in declarations.flatMap(\.properties) {
      guard case .attribute(let attribute) = property.kind, let (name, transformer) = attribute.transformer else { continue }
      if registry[name] == nil { registry.register(transformer, forName: name) }
    }
  }

  private func entity(_ declaration: EntityDeclaration, _ inverses: [RelationshipName: String]) -> EntityDescription {
    var entity = EntityDescription(
      declaration.type.entityName, superentity: DeclaredClasses.superclass(of: declaration.type)?.entityName,
      isAbstract: declaration.isAbstract, fetchedProperties: declaration.fetchedProperties,
      uniquenessConstraints: declaration.uniquenessConstraints, indexes: declaration.indexes,
      versionHashModifier: declaration.versionHashModifier, renamingIdentifier: declaration.renamingIdentifier,
      userInfo: declaration.userInfo)
    for property in declaration.properties {
      switch property.kind {
      case .attribute(let attribute):
        entity.attributes.append(attribute.modelDescription)
        if attribute.isUnique { entity.uniquenessConstraints.append([property.name]) }
      case .composite(_, let attribute): entity.attributes.append(attribute.modelDescription)
      case .relationship(var description, _, _):
        description.inverse = inverses[RelationshipName(declaration.type, property.name)]
        entity.relationships.append(description)
      }
    }
    return entity
  }

  // MARK: Inverses

  /// A relationship, by the class that declares it.
  private struct RelationshipName: Hashable {
    let type: ObjectIdentifier
    let name: String

    init(_ type: ManagedObject.Type, _ name: String) { (self.type, self.name) = (ObjectIdentifier(type), name) }
  }

  /// The name of the inverse of each relationship that has one. An inverse is declared at one end, or the same at both.
  private mutating func inverses() -> [RelationshipName: String] {
    var inverses: [RelationshipName: String] = [:]
    func contradicts(_ name: RelationshipName, _ inverse: String) -> Bool { inverses[name].map { $0 != inverse } ?? false }
    for declaration in declarations {
      for property in declaration.properties {
        guard case .relationship(_, let destination, let inverse?) = property.kind else { continue }
        let keyPath = inverse()
        guard let (owner, name) = relationship(keyPath, of: destination) else {
          problems.append("\(declaration.type).\(property.name): Its inverse isn't a relationship that \(destination) declares.")
          continue
        }
        let here = RelationshipName(declaration.type, property.name), there = RelationshipName(owner, name)
        if contradicts(here, name) || contradicts(there, property.name) {
          problems.append(
            "\(declaration.type).\(property.name): Its inverse \(owner).\(name) is the inverse of another relationship. Correct one of both."
          )
        }
        inverses[here] = name
        inverses[there] = property.name
      }
    }
    return inverses
  }

  /// The relationship at a key path of a class or its superclasses, and the class that declares it.
  private func relationship(_ keyPath: AnyKeyPath, of type: ManagedObject.Type) -> (owner: ManagedObject.Type, name: String)? {
    guard let name = KeyPathNames.known(keyPath, in: type) else { return nil }
    for declaration in declarations where ClassBinding.isKind(type, of: declaration.type) {
      for property in declaration.properties where property.name == name {
        if case .relationship = property.kind { return (declaration.type, property.name) }
      }
    }
    return nil
  }
}

extension ManagedObjectModel {
  /// Creates the model that classes declare; see ``EntityDeclaration``.
  ///
  /// The model also contains the entities of their superclasses, and of the classes of their relationships' destinations. Pass subclasses,
  /// because no other class names them.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/classMismatch`` if a class has no declaration, or inverses contradict each
  ///   other; ``/HoldfastStore/ModelError`` if the model is invalid.
  public static func declared(by classes: [ManagedObject.Type]) throws -> ManagedObjectModel {
    var classes = try DeclaredClasses(classes)
    return try classes.model()
  }
}

extension AttributeTransformerRegistry {
  /// Registers the transformers of the `Codable` attributes that classes declare, and those in `.transformable(by:)`, unless others have
  /// their names. A container does this.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/classMismatch`` if a class has no declaration.
  public mutating func registerCodableAttributes(of classes: [ManagedObject.Type]) throws {
    try DeclaredClasses(classes).register(in: &self)
  }
}

extension Equatable {
  /// Whether a value of any type equals this one.
  fileprivate func equals(_ other: Any) -> Bool { (other as? Self) == self }
}
