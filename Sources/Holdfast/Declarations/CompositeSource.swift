import HoldfastStore

/// The composite attribute that a struct declares, with those of its elements.
struct CompositeSource {
  /// The name of the struct, without module and enclosing types.
  let name: String
  /// The description of each composite, by name; made when a model is.
  let descriptions: () -> [CompositeDescription]

  init<Value: CompositeAttributeValue>(_ type: Value.Type) {
    name = String(describing: type)
    let name = name
    descriptions = {
      [CompositeDescription(name, Value.elements.elements.map(\.description))]
        + Value.elements.elements.flatMap { $0.source?.descriptions() ?? [] }
    }
  }
}

extension CompositeElement {
  private var valueType: Any.Type { Swift.type(of: keyPath as AnyKeyPath).valueType }

  /// The composite that the element has as its value; nil for a single value.
  fileprivate var source: CompositeSource? {
    (unwrapped(valueType) as? any CompositeAttributeValue.Type).map { CompositeSource($0) }
  }

  /// The element in a model. It is optional, because a composite attribute without a value has elements without values.
  fileprivate var description: AttributeDescription {
    if let source { return .composite(name, source.name, isOptional: true) }
    return AttributeDescription(name, leaves().first?.types.declaredType ?? .undefined, isOptional: true)
  }
}
