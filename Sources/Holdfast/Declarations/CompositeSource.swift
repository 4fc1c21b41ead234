import HoldfastStore

/// The composite attribute that a struct declares, with those of its elements.
struct CompositeSource {
  /// The name of the struct, without module and enclosing types.
  let name: String
  /// The description of each composite, by name; made when a model is.
  let descriptions: () -> [CompositeDescription]
  /// The paths of elements that are declared as unique, which they can't be.
  let uniqueElements: () -> [String]

  init<Value: CompositeAttributeValue>(_ type: Value.Type) {
    name = String(describing: type)
    let name = name
    descriptions = {
      [CompositeDescription(name, Value.elements.elements.map(\.declared.modelDescription))]
        + Value.elements.elements.flatMap { $0.source?.descriptions() ?? [] }
    }
    uniqueElements = {
      Value.elements.elements.flatMap { element in
        (element.declared.isUnique ? [element.name] : []) + (element.source?.uniqueElements().map { "\(element.name).\($0)" } ?? [])
      }
    }
  }
}

extension CompositeElement {
  private var valueType: Any.Type { Swift.type(of: keyPath as AnyKeyPath).valueType }

  /// The composite that the element has as its value; nil for a single value.
  fileprivate var source: CompositeSource? {
    (unwrapped(valueType) as? any CompositeAttributeValue.Type).map { CompositeSource($0) }
  }

  /// The element in a model. Unless an option says otherwise, it is optional, because a composite attribute without a value has elements
  /// without values.
  fileprivate var declared: DeclaredAttribute {
    let (leaves, options) = contents()
    guard let source else {
      return DeclaredAttribute(name, leaves.first?.types.declaredType ?? .undefined, isOptional: true, default: nil, options)
    }
    var element = DeclaredAttribute(name, .composite, isOptional: true, default: nil, options)
    element.description.compositeName = source.name
    return element
  }
}
