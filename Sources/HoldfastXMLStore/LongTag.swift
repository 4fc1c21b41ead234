/// Counts the attributes of the tags that libxml2 reads.
///
/// libxml2 compares each attribute of a tag with all others, so its time is quadratic in the number of attributes. It reports nothing before
/// the tag is complete.
///
/// The result doesn't depend on how many bytes libxml2 reads at a time. In a tag, "<" is only the first byte, so the bytes between two of
/// them contain at most one tag. A tag with too many attributes is longer than most reads. So only the first and the last tag of a read need
/// to be looked at, which continue in other reads.
struct LongTag {
  /// The maximum number of attributes. Tags of a store have at most four.
  static let mostAttributes = 1000
  /// The bytes before the value of an attribute: a space, a name and an equals sign. Bytes with fewer aren't an attribute.
  private static let leastGap = 3
  /// A tag within this number of bytes can't have more than ``mostAttributes``, because each value has two quotation marks.
  private static let leastByteCount = (leastGap + 2) * mostAttributes

  private enum Place {
    /// Not in a tag.
    case outside
    /// After "<".
    case beginning
    /// In a tag, between the values of attributes.
    case tag
    /// In the value of an attribute, which ends with this quotation mark.
    case value(UInt8)
  }

  private var place = Place.outside
  /// The number of bytes since the beginning of the tag, or since its last value.
  private var gap = 0
  /// The number of attributes of the last tag.
  private(set) var attributeCount = 0

  /// Processes the bytes that the parser reads next.
  mutating func update(_ bytes: some BidirectionalCollection<UInt8>) {
    let sign = UInt8(ascii: "<")
    guard bytes.count <= Self.leastByteCount, let first = bytes.firstIndex(of: sign), let last = bytes.lastIndex(of: sign) else {
      return count(bytes[...])
    }
    count(bytes[..<first])
    if attributeCount <= Self.mostAttributes { count(bytes[last...]) }
  }

  private mutating func count(_ bytes: some Sequence<UInt8>) {
    for byte in bytes {
      switch (place, byte) {
      case (_, UInt8(ascii: "<")): (place, gap, attributeCount) = (.beginning, 0, 0)
      case (.outside, _): break
      case (.beginning, UInt8(ascii: "!")), (.beginning, UInt8(ascii: "?")): place = .outside
      case (.beginning, _): place = .tag
      case (.tag, UInt8(ascii: ">")): place = .outside
      case (.tag, UInt8(ascii: "\"")), (.tag, UInt8(ascii: "'")):
        if gap >= Self.leastGap { attributeCount += 1 }
        (place, gap) = (.value(byte), 0)
      case (.tag, _): gap += 1
      case (.value(let mark), _): if byte == mark { place = .tag }
      }
      if attributeCount > Self.mostAttributes { return }
    }
  }
}
