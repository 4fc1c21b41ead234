import HoldfastStore

/// Compares typed properties with the model's transformable, composite and transient attributes.
extension ClassBinding {
  /// Differences of a transformable attribute.
  static func differences(
    _ type: Any.Type, _ attribute: ManagedObjectModel.Attribute, _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    let name = attribute.declaration.valueTransformerName
    guard let transformer = transformers[name] else {
      return [
        "No transformer is registered " + (name.map { "as \($0)" } ?? "as the default")
          + ". Pass one to the container or coordinator, or bind a property of type Data."
      ]
    }
    let made = transformer.madeType
    return made == type ? [] : ["The transformer's values are of type \(made), the property's of type \(type)."]
  }

  /// Differences of a composite attribute: missing elements and different types.
  static func differences(
    _ leaves: [(name: String, types: AttributeTypeSet)], _ composite: ManagedObjectModel.CompositeAttribute,
    _ entity: ManagedObjectModel.Entity
  ) -> [String] {
    let said = Dictionary(leaves.map { ($0.name, $0.types) }, uniquingKeysWith: { first, _ in first })
    var found = Set(leaves.map(\.name)).count == leaves.count ? [] : ["Two elements have the same name."]
    var unknown = Set(said.keys)
    for attribute in entity.attributes where composite.slots.contains(attribute.slot) {
      let name = String(attribute.name.dropFirst(composite.name.count + 1))
      unknown.remove(name)
      guard let types = said[name] else {
        found.append("The Swift type doesn't list the model's element \(name).")
        continue
      }
      if !types.contains(attribute.type) {
        found.append("The element \(name) has the type \(attribute.type.rawValue) in the model, which its Swift type can't hold.")
      }
    }
    return found + unknown.sorted().map { "\(composite.compositeName) has no element \($0)." }
  }

  /// Differences of a transient attribute.
  static func differences(_ type: Any.Type, _ attribute: ManagedObjectModel.TransientAttribute) -> [String] {
    if attribute.type.isUntyped { return [] }
    let types = (type as? any AttributeValue.Type)?.attributeTypes ?? AttributeTypeSet()
    return types.contains(attribute.type) ? [] : ["The model's type is \(attribute.type.rawValue), which the Swift type can't hold."]
  }
}

extension AttributeTransformer {
  /// The type of the values.
  var madeType: Any.Type { Value.self }
}

/// The wrapped type of an optional type, or the type itself if it isn't optional.
func unwrapped(_ type: Any.Type) -> Any.Type { (type as? any OptionalValue.Type)?.wrappedType ?? type }

extension OptionalValue {
  fileprivate static var wrappedType: Any.Type { Wrapped.self }
}
