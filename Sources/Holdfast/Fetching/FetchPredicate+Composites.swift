// Elements of composite attributes, by key paths of the structs that represent them.

extension KeyPath where Root: ManagedObject {
  /// The value of an element of this composite attribute; nil when it has none.
  public func then<Group: CompositeAttributeValue, Next>(_ next: KeyPath<Group, Next>) -> FetchValue<Root, Next> where Value == Group? {
    fetchValue.then(next)
  }
}

extension KeyPath where Root: ManagedObject, Value: CompositeAttributeValue {
  /// The value of an element of this composite attribute; nil when it has none.
  public func then<Next>(_ next: KeyPath<Value, Next>) -> FetchValue<Root, Next> { fetchValue.then(next) }
}

extension FetchValue {
  /// The value of an element of this composite attribute; nil when it has none.
  public func then<Group: CompositeAttributeValue, Next>(_ next: KeyPath<Group, Next>) -> FetchValue<Root, Next> where Value == Group? {
    element(Group.elements.name(next))
  }

  fileprivate func element<Next>(_ name: String) -> FetchValue<Root, Next> {
    guard let path else { return FetchValue<Root, Next>(expression: expression) }
    return FetchValue<Root, Next>(expression: .property(path.appending(PropertyPath(name))))
  }
}

extension FetchValue where Value: CompositeAttributeValue {
  /// The value of an element of this composite attribute; nil when it has none.
  public func then<Next>(_ next: KeyPath<Value, Next>) -> FetchValue<Root, Next> { element(Value.elements.name(next)) }
}
