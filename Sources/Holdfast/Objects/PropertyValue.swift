public import HoldfastStore

/// The value of a property read by name, by ``ManagedObject/value(forKey:)`` or ``ManagedObject/value(forKeyPath:)``.
///
/// A property can have objects or several values; a ``/HoldfastStore/StoreValue`` is one value of a row.
///
/// It can contain objects, so it stays in their context's isolation.
public enum PropertyValue: Hashable {
  /// The value of an attribute, the ID of a to-one relationship's destination, or null.
  case single(StoreValue)
  /// The destination objects of a to-many relationship, in their order if it is ordered.
  case objects([ManagedObject])
  /// The values of a path for each object of a to-many relationship, in the order of the objects.
  case list([PropertyValue])
  /// The values of a composite attribute by the names of its elements, including nested composite attributes. An attribute without values
  /// is ``single(_:)`` null.
  case composite([String: PropertyValue])

  /// The single value; nil for other cases.
  public var storeValue: StoreValue? {
    if case .single(let value) = self { value } else { nil }
  }

  /// The objects of a to-many relationship; nil for other cases.
  public var objects: [ManagedObject]? {
    if case .objects(let objects) = self { objects } else { nil }
  }

  /// The values of a composite attribute by name; nil for other cases.
  public var elements: [String: PropertyValue]? {
    if case .composite(let elements) = self { elements } else { nil }
  }

  /// The single values of a list, the result of a path through one to-many relationship; nil for other cases.
  public var storeValues: [StoreValue]? {
    guard case .list(let list) = self else { return nil }
    let values = list.compactMap(\.storeValue)
    return values.count == list.count ? values : nil
  }

  /// Whether a property has this single value.
  public static func == (a: PropertyValue, b: StoreValue) -> Bool { a == .single(b) }

  /// Whether a property has anything other than this single value.
  public static func != (a: PropertyValue, b: StoreValue) -> Bool { !(a == b) }
}
