/// Counts the attributes of a tag that is longer than a store's tags usually are.
///
/// libxml2 compares each attribute of a tag with all others, so its time is quadratic in the number of attributes. It reports
/// nothing before the tag is complete. The bytes that it reads between two events therefore belong to one tag, comment or long
/// text.
struct LongTag {
  /// The maximum number of attributes. Tags of a store have at most four.
  static let mostAttributes = 1000
  /// Shorter tags aren't checked; nearly all tags are shorter.
  private static let usualLength = 4096

  private(set) var attributeCount = 0
  private var byteCount = 0
  private var followsSign = false

  /// Processes the bytes that the parser reads next.
  mutating func update(_ bytes: some Collection<UInt8>) {
    byteCount += bytes.count
    guard byteCount > Self.usualLength else { return }
    for byte in bytes {
      // An equals sign before a quotation mark or whitespace, which is common in attributes and rare in other text.
      if followsSign && (byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte <= UInt8(ascii: " ")) { attributeCount += 1 }
      followsSign = byte == UInt8(ascii: "=")
    }
  }
}
