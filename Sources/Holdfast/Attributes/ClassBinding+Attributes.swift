import HoldfastStore

/// How properties of classes that are more than one plain value differ from the model.
extension ClassBinding {
  /// Differences of a transformable attribute.
  static func differences(
    _ type: Any.Type, _ attribute: ManagedObjectModel.Attribute, _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    let name = attribute.declaration.valueTransformerName
    guard let transformer = transformers[name] else {
      return [
        "No transformer is registered " + (name.map { "as \($0)" } ?? "as the default one")
          + ". Pass it to the container or coordinator, or bind a property of type Data."
      ]
    }
    let made = transformer.madeType
    return made == type ? [] : ["Its transformer makes \(made), not \(type)."]
  }

  /// Differences of a composite attribute: elements that one side does not have, and types.
  static func differences(
    _ leaves: [(name: String, types: AttributeTypeSet)], _ composite: ManagedObjectModel.CompositeAttribute,
    _ entity: ManagedObjectModel.Entity
  ) -> [String] {
    let said = Dictionary(leaves.map { ($0.name, $0.types) }, uniquingKeysWith: { first, _ in first })
    var found = Set(leaves.map(\.name)).count == leaves.count ? [] : ["Two elements have one name."]
    var unknown = Set(said.keys)
    for attribute in entity.attributes where composite.slots.contains(attribute.slot) {
      let name = String(attribute.name.dropFirst(composite.name.count + 1))
      unknown.remove(name)
      guard let types = said[name] else {
        found.append("The model has an element \(name), which the Swift type does not list.")
        continue
      }
      if !types.contains(attribute.type) {
        found.append("The model says that \(name) is \(attribute.type.rawValue), which its Swift type cannot hold.")
      }
    }
    return found + unknown.sorted().map { "\(composite.compositeName) has no element \($0)." }
  }

  /// Differences of a transient attribute.
  static func differences(_ type: Any.Type, _ attribute: ManagedObjectModel.TransientAttribute) -> [String] {
    if attribute.type.isUntyped { return [] }
    let types = (type as? any AttributeValue.Type)?.attributeTypes ?? AttributeTypeSet()
    return types.contains(attribute.type) ? [] : ["The model says \(attribute.type.rawValue), which this Swift type cannot hold."]
  }
}

extension AttributeTransformer {
  /// The type of the values.
  fileprivate var madeType: Any.Type { Value.self }
}

/// The type that an optional may hold; any other type itself.
func unwrapped(_ type: Any.Type) -> Any.Type { (type as? any AnyOptional.Type)?.wrappedType ?? type }

protocol AnyOptional {
  static var wrappedType: Any.Type { get }
  /// The key path of the wrapped value behind that of an optional; nil for a key path of another type.
  static func unwrapping(_ keyPath: AnyKeyPath) -> AnyKeyPath?
}

extension Optional: AnyOptional {
  static var wrappedType: Any.Type { Wrapped.self }
  static func unwrapping(_ keyPath: AnyKeyPath) -> AnyKeyPath? { keyPath.appending(path: \Wrapped?.!) }
}
