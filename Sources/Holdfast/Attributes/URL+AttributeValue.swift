#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// What URIs are kept as is text; `String` reads and writes it as it is.
extension URL: AttributeValue {
  /// URIs.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.uri] }
  /// Reads a slot; `about:blank` for none and for text that is no URI.
  public static func load(_ row: RowPointer, _ slot: Int) -> URL { loadPresent(row, slot) ?? blank }
  /// Reads a slot; nil for text that is no URI.
  public static func loadPresent(_ row: RowPointer, _ slot: Int) -> URL? { URL(string: row.string(slot)) }
  /// Writes a slot: the absolute text.
  public func store(in object: ManagedObject, _ slot: Int) { absoluteString.store(in: object, slot) }
  /// A URI.
  public var storeValue: StoreValue { .uri(absoluteString) }

  private static let blank: URL = {
    guard let blank = URL(string: "about:blank") else { preconditionFailure("Foundation does not know the URL about:blank.") }
    return blank
  }()
}
