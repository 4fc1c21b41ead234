public import HoldfastStore

/// Derived attributes, declared with key paths: the compiler finds a wrong name. `derived(_:)` has all expressions.
extension AttributeOption {
  /// The number of objects in a to-many relationship, such as `.derived(countOf: \Dog.walks)`.
  public static func derived<Root: ManagedObject, Value: ToManyValue>(
    countOf relationship: any KeyPath<Root, Value> & Sendable
  ) -> AttributeOption {
    derived(DerivedKeyPaths([relationship], suffix: ".@count"))
  }

  /// The sum over the objects in a to-many relationship, such as `.derived(sumOf: \Walk.minutes, through: \Dog.walks)`.
  ///
  /// - Parameters:
  ///   - attribute: The numbers, an attribute of the destinations.
  ///   - relationship: The to-many relationship.
  public static func derived<Root: ManagedObject, Value: ToManyValue, Number: AttributeValue>(
    sumOf attribute: any KeyPath<Value.Destination, Number> & Sendable, through relationship: any KeyPath<Root, Value> & Sendable
  ) -> AttributeOption {
    derived(DerivedKeyPaths([relationship, attribute], suffix: ".@sum"))
  }

  /// A copy of an attribute, such as `.derived(copyOf: \Dog.name, as: .canonical)`.
  ///
  /// - Parameters:
  ///   - attribute: The attribute.
  ///   - function: A conversion of text. Defaults to none.
  public static func derived<Root: ManagedObject, Value: AttributeValue>(
    copyOf attribute: any KeyPath<Root, Value> & Sendable, as function: Derivation.TextFunction? = nil
  ) -> AttributeOption {
    derived(DerivedKeyPaths([attribute], function))
  }

  /// A copy of an attribute of a to-one destination, such as `.derived(copyOf: \Dog.name, through: \Walk.dog)`.
  ///
  /// - Parameters:
  ///   - attribute: The attribute of the destination.
  ///   - relationship: The to-one relationship.
  ///   - function: A conversion of text. Defaults to none.
  public static func derived<Root: ManagedObject, Value: ToOneValue, Copy: AttributeValue>(
    copyOf attribute: any KeyPath<Value.Destination, Copy> & Sendable, through relationship: any KeyPath<Root, Value> & Sendable,
    as function: Derivation.TextFunction? = nil
  ) -> AttributeOption {
    derived(DerivedKeyPaths([relationship, attribute], function))
  }

  private static func derived(_ keyPaths: DerivedKeyPaths) -> AttributeOption {
    AttributeOption {
      $0.derivation = keyPaths
      $0.description.isOptional = true
    }
  }
}

/// The key paths in the declaration of a derived attribute.
///
/// Their names are looked up when a model is made. Before that, a class doesn't know them: its declaration contains this.
struct DerivedKeyPaths: Sendable {
  /// The steps from the object to the value.
  private let steps: [any AnyKeyPath & Sendable]
  private let function: Derivation.TextFunction?
  private let suffix: String

  init(_ steps: [any AnyKeyPath & Sendable], _ function: Derivation.TextFunction? = nil, suffix: String = "") {
    (self.steps, self.function, self.suffix) = (steps, function, suffix)
  }

  /// The expression in the model. If a key path isn't a property of the model, it is invalid, and contains the reason.
  var expression: String {
    let path = steps.map { DerivedKeyPaths.name(of: $0) }.joined(separator: ".") + suffix
    return function.map { "\($0.rawValue):(\(path))" } ?? path
  }

  private static func name(of keyPath: AnyKeyPath) -> String {
    guard let type = Swift.type(of: keyPath).rootType as? ManagedObject.Type else {
      preconditionFailure("The key path of a derived attribute begins at a class of managed objects.")
    }
    return KeyPathNames.name(keyPath, in: type)
  }
}
