import HoldfastStore

/// Reads the values of an element's attributes, and throws errors with their location.
struct ElementReader {
  let element: ModelElement
  /// The name in errors: `attribute "age" of entity "Person"`.
  let what: String

  /// - Parameters:
  ///   - kind: The term for the element, for errors: "attribute".
  ///   - owner: The element that contains this one; nil for the model itself.
  init(_ element: ModelElement, _ kind: String, of owner: String? = nil) {
    self.element = element
    let name = element["name"].map { " \($0.quoted)" } ?? ""
    what = "\(kind)\(name)" + (owner.map { " of \($0)" } ?? "")
  }

  /// The text of an attribute; nil if the text is missing or empty, because Xcode writes both for no text.
  func text(_ name: String) -> String? { element[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// The text of a required attribute.
  func required(_ name: String) throws(ModelFileError) -> String {
    guard let text = text(name) else {
      throw ModelFileError(.missingAttribute, line: element.line, element: what, reason: "The attribute \(name) is missing.")
    }
    return text
  }

  /// A boolean. Xcode writes YES and omits NO; people and other programs write other forms.
  func flag(_ name: String, default absent: Bool = false) throws(ModelFileError) -> Bool {
    guard let text = text(name) else { return absent }
    guard let value = ValueText.truth(text) else { throw invalid(name, "neither YES nor NO") }
    return value
  }

  /// An integer.
  func integer(_ name: String) throws(ModelFileError) -> Int? {
    guard let text = text(name) else { return nil }
    guard let value = Int(text) else { throw invalid(name, "not an integer") }
    return value
  }

  /// A non-negative integer.
  func count(_ name: String) throws(ModelFileError) -> Int? {
    guard let value = try integer(name) else { return nil }
    guard value >= 0 else { throw invalid(name, "negative") }
    return value
  }

  /// A value of a type.
  func value(_ name: String, _ type: AttributeType) throws(ModelFileError) -> StoreValue? {
    guard let text = type == .string ? element[name] : text(name) else { return nil }
    guard let value = ValueText.value(text, type) else { throw invalid(name, "not \(ValueText.description(of: type))") }
    return value
  }

  /// The entries of the element's `userInfo`.
  ///
  /// Dictionaries of Core Data distinguish keys that differ in their Unicode normalization only. Those of a model don't.
  func userInfo() throws(ModelFileError) -> [String: String] {
    guard let list = element.child(named: "userInfo") else { return [:] }
    var entries: [String: String] = [:]
    for entry in list.children(named: "entry") {
      guard let key = entry["key"] else {
        throw ModelFileError(.missingAttribute, line: entry.line, element: "user info of \(what)", reason: "An entry has no key.")
      }
      if let former = entries.index(forKey: key), !entries[former].key.utf8.elementsEqual(key.utf8) {
        throw ModelFileError(
          .unsupported, line: entry.line, element: "user info of \(what)",
          reason: "Two entries have the key \(key.quoted), in different Unicode normalization forms. Rename one of them.")
      }
      entries[key] = entry["value"] ?? ""
    }
    return entries
  }

  func invalid(_ name: String, _ what: String) -> ModelFileError {
    ModelFileError(
      .invalidValue, line: element.line, element: self.what, reason: "\(name) \((element[name] ?? "").quoted) is \(what).")
  }
}
