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
