public import HoldfastStore

/// A default value whose text belongs to another type, such as `NO` for a number.
///
/// Xcode keeps the text of a default value when the type of its attribute changes, and Core Data converts it. A model has the converted
/// value; the document keeps the text.
public struct ConvertedDefault: Sendable, Hashable {
  /// The attribute: `Person.age`, or `composite Place.height` for an element of a composite.
  public let path: String
  /// The text in the file: `NO`.
  public let text: String
  /// The value that the model uses.
  public let value: StoreValue
  /// The value as written in a model file for the attribute's type: `0`.
  public var correctedText: String { ValueText.text(value) ?? "" }

  /// The converted value of an element's default; nil if its text matches the type or can't be converted.
  static func value(_ reader: ElementReader, _ type: AttributeType) -> StoreValue? {
    reader.text("defaultValueString").flatMap { ValueText.converted($0, to: type) }
  }
}

extension ModelDocument {
  /// The default values whose text belongs to another type, in the order of the file.
  public var convertedDefaults: [ConvertedDefault] {
    root.children.flatMap { owner -> [ConvertedDefault] in
      guard owner.name == "entity" || owner.name == "composite", let name = owner["name"] else { return [] }
      let prefix = owner.name == "entity" ? name : "composite \(name)"
      return owner.children(named: "attribute").compactMap { ConvertedDefault($0, of: prefix) }
    }
  }
}

extension ConvertedDefault {
  fileprivate init?(_ element: ModelElement, of owner: String) {
    let reader = ElementReader(element, "attribute")
    // Reading the model reports an unknown type. A derived attribute has no default.
    guard let type = try? AttributeReader.type(reader), let value = ConvertedDefault.value(reader, type),
      (try? reader.flag("derived")) == false
    else { return nil }
    self.init(path: "\(owner).\(element["name"] ?? "")", text: element["defaultValueString"] ?? "", value: value)
  }
}
