// Generated from the model. Don't change it: it is overwritten.

import Holdfast

/// The composite attribute Point.
nonisolated struct Point: CompositeAttributeValue {
  /// A whole number of 16 bits.
  var x: Int16?
  /// A whole number of 16 bits.
  var y: Int16?

  /// Creates a value without elements.
  init() {}

  /// The elements.
  static let elements: CompositeElements<Point> = [
    .element("x", \.x, .setting(\.isOptional, false)),
    .element("y", \.y, .setting(\.isOptional, false), .setting(\.defaultValue, .int16(2))),
  ]

  /// The number of slots.
  static var slotCount: Int { 1 + 1 }
}
