import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// URLs as attribute values. URIs are stored as text, which `String` reads and writes unchanged.
extension URL: AttributeValue {
  /// The attribute type for URIs.
  @inlinable public static var attributeTypes: AttributeTypeSet { [.uri] }
  /// Reads a slot. An absent or invalid URI reads as `about:blank`.
  public static func load(_ row: RowPointer, _ slot: SlotIndex) -> URL { loadPresent(row, slot) ?? blank }
  /// Reads a slot; nil when the text isn't a valid URI.
  public static func loadPresent(_ row: RowPointer, _ slot: SlotIndex) -> URL? { URL(string: row.string(slot)) }
  /// Writes the absolute string to a slot.
  public func store(in object: ManagedObject, _ slot: SlotIndex) { absoluteString.store(in: object, slot) }
  /// The URI as a store value.
  public var storeValue: StoreValue { .uri(absoluteString) }

  private static let blank: URL = {
    guard let blank = URL(string: "about:blank") else { preconditionFailure("Foundation can't parse the URL about:blank.") }
    return blank
  }()
}

extension StoreValue {
  /// The value of a property in an attribute's type; nil if the type can't represent it. A `String` also is the text of a URI.
  func ofProperty(in type: AttributeType) -> StoreValue? {
    switch (self, type) {
    case (.string(let text), .uri): .uri(text)
    case (.uri(let text), .string): .string(text)
    default: converted(to: type)
    }
  }
}
