// Generated from the model. Don't change it: it is overwritten.

import Holdfast

/// The composite attribute Place.
nonisolated struct Place: CompositeAttributeValue {
  /// A composite value.
  var inner: Point?
  /// A floating-point number of 64 bits.
  var lat: Double?

  /// Creates a value without elements.
  init() {}

  /// The elements.
  static let elements: CompositeElements<Place> = [
    .element("inner", \.inner),
    .element("lat", \.lat, .setting(\.isOptional, false)),
  ]

  /// The number of slots.
  static var slotCount: Int { Point.slotCount + 1 }
}
