public import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A transformer between property lists and the keyed archives of Apple's default transformer.
///
/// It is the default transformer of an ``AttributeTransformerRegistry``. Core Data can read its archives in attributes with Core Data's
/// default transformer.
///
/// It reads archives of strings, numbers, dates, data, arrays, dictionaries and sets as a ``/HoldfastPropertyList/PropertyList``, whichever program
/// wrote them. Archives of objects of other classes are refused. The reader never looks up or instantiates a class, and it is bounded by
/// ``limits``.
public struct KeyedArchiveTransformer: AttributeTransformer {
  /// The maximum sizes of an archive that is read or written.
  public let limits: PropertyListLimits

  /// Creates a transformer.
  public init(limits: PropertyListLimits = PropertyListLimits()) { self.limits = limits }

  /// Encodes a property list as a keyed archive.
  ///
  /// - Throws: ``/HoldfastPropertyList/PropertyListError`` when an archive can't represent the value, or exceeds ``limits``.
  public func data(from value: PropertyList) throws -> Data {
    let bytes = try KeyedArchive.bytes(of: value)
    // Otherwise a value could be saved that can't be read again.
    _ = try KeyedArchive(bytes, limits: limits).propertyListValue(limits: limits)
    return Data(bytes)
  }

  /// Decodes the property list in a keyed archive.
  ///
  /// - Throws: ``/HoldfastPropertyList/PropertyListError`` when the archive is damaged, too large, or contains other classes.
  public func value(from data: Data) throws -> PropertyList {
    try KeyedArchive(Array(data), limits: limits).propertyListValue(limits: limits)
  }
}
