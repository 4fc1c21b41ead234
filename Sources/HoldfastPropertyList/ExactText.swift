/// Text that equals only text with the same UTF-8 bytes, as a key.
///
/// Swift's `==` treats two texts that differ only in their Unicode normalization as equal. A writer that stores each text once must
/// distinguish them, or one of them would be replaced by the other.
struct ExactText: Hashable {
  private let text: String

  init(_ text: String) { self.text = text }

  static func == (a: ExactText, b: ExactText) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  // Texts with the same bytes have the same hash; so have those that differ only in their normalization.
  func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension [String: PropertyList] {
  /// Adds an entry of a dictionary that is read.
  ///
  /// - Throws: ``PropertyListError`` if the dictionary already has a key that Swift's `==` treats as equal.
  mutating func add(
    _ value: PropertyList, forKey key: String, at place: @autoclosure () -> PropertyListError.Place
  ) throws(PropertyListError) {
    if let known = index(forKey: key) { throw PropertyListError(duplicate: key, of: self[known].key, at: place()) }
    self[key] = value
  }
}

extension PropertyListError {
  /// The error for a key that Swift's `==` treats as equal to a former key of the same dictionary.
  init(duplicate key: String, of known: String, at place: Place) {
    if ExactText(key) == ExactText(known) {
      self.init(.damaged, at: place, "A dictionary has a duplicate key.")
    } else {
      self.init(
        .unsupported, at: place, "A dictionary has two keys that differ only in their Unicode normalization. Rename or remove one of them.")
    }
  }
}
