public import HoldfastStore

/// What a property of an object has, found by name: ``ManagedObject/value(forKey:)``, ``ManagedObject/value(forKeyPath:)``.
///
/// It can hold objects and stays with them in their context's isolation.
public enum PropertyValue: Hashable {
  /// The value of an attribute, the ID of a to-one relationship's target, or null.
  case single(StoreValue)
  /// The objects that a to-many relationship leads to, those of an ordered one in their order.
  case objects([ManagedObject])
  /// What a path through a to-many relationship finds at each of its objects, in their order.
  case list([PropertyValue])
  /// The values of a composite attribute by the names of its elements, groups within it as such. One without any value is
  /// ``single(_:)`` null.
  case composite([String: PropertyValue])

  /// The single value; nil when there are many.
  public var storeValue: StoreValue? {
    if case .single(let value) = self { value } else { nil }
  }

  /// The objects of a to-many relationship; nil when it is something else.
  public var objects: [ManagedObject]? {
    if case .objects(let objects) = self { objects } else { nil }
  }

  /// The values of a composite attribute by name; nil when it is something else.
  public var elements: [String: PropertyValue]? {
    if case .composite(let elements) = self { elements } else { nil }
  }

  /// The single values of a list, as a path through one to-many relationship finds them; nil when it is something else.
  public var storeValues: [StoreValue]? {
    guard case .list(let list) = self else { return nil }
    let values = list.compactMap(\.storeValue)
    return values.count == list.count ? values : nil
  }

  /// Whether a property has a single value, and that.
  public static func == (a: PropertyValue, b: StoreValue) -> Bool { a == .single(b) }

  /// Whether a property has something else than a single value.
  public static func != (a: PropertyValue, b: StoreValue) -> Bool { !(a == b) }
}
