public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Transforms property lists, as the keyed archives that Apple's default transformer writes. The default of a registry.
///
/// An archive of texts, numbers, dates, bytes, arrays, dictionaries and sets is read as a ``/HoldfastStore/PropertyList``, whatever wrote it;
/// an archive of objects of other classes is refused. No class is looked up or made: the reader knows values only, and is bounded.
///
/// What it writes is read by Core Data where its default transformer is used.
public struct KeyedArchiveTransformer: AttributeTransformer {
  /// How large what is read may be.
  public let limits: PropertyListLimits

  /// Makes a transformer.
  public init(limits: PropertyListLimits = PropertyListLimits()) { self.limits = limits }

  /// The archive of a value.
  ///
  /// - Throws: ``/HoldfastStore/PropertyListError`` for what an archive cannot say.
  public func data(from value: PropertyList) throws -> Data { Data(try KeyedArchive.bytes(of: value)) }

  /// The value of an archive.
  ///
  /// - Throws: ``/HoldfastStore/PropertyListError``.
  public func value(from data: Data) throws -> PropertyList {
    try KeyedArchive(Array(data), limits: limits).propertyListValue(limits: limits)
  }
}
