/// Counts the attributes of a tag that is longer than any tag of a store.
///
/// libxml2 compares each attribute of a tag with all others, so a tag with many takes time that grows with their square. It reports nothing
/// before the tag is complete, so the bytes that it reads without reporting anything belong to one tag, comment or long text.
struct LongTag {
  /// The maximum number of attributes. Tags of a store have at most four.
  static let mostAttributes = 1000
  /// Shorter tags aren't looked at: they are as good as all there are.
  private static let usualLength = 4096

  private(set) var attributeCount = 0
  private var byteCount = 0
  private var followsSign = false

  /// Takes the bytes that the parser reads next.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    byteCount += bytes.count
    guard byteCount > Self.usualLength else { return }
    for byte in bytes {
      // An equals sign before a quotation mark or white space, as attributes have it and other text seldom.
      if followsSign && (byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte <= UInt8(ascii: " ")) { attributeCount += 1 }
      followsSign = byte == UInt8(ascii: "=")
    }
  }
}
