/// The numbers of compact JSON that the options limit.
struct JSONExtent {
  /// The levels of nested arrays and objects.
  private(set) var nesting = 0
  /// The maximum number of members of an object.
  private(set) var memberCount = 0
  /// The maximum length of a member name in bytes.
  private(set) var nameByteCount = 0

  /// - Parameter text: A valid document without white space, such as the canonical form of a model.
  init(_ text: [UInt8]) {
    // The numbers of members of the open objects. Arrays have none.
    var open: [Int] = []
    var place = 0
    while place < text.count {
      switch text[place] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        open.append(0)
        nesting = max(nesting, open.count)
        place += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        open.removeLast()
        place += 1
      case UInt8(ascii: "\""):
        let byteCount = JSONExtent.skipString(text, &place)
        guard place < text.count, text[place] == UInt8(ascii: ":") else { continue }
        open[open.count - 1] += 1
        memberCount = max(memberCount, open[open.count - 1])
        nameByteCount = max(nameByteCount, byteCount)
      default: place += 1
      }
    }
  }

  /// Moves a place behind the string that begins there, and returns the length of its value.
  private static func skipString(_ text: [UInt8], _ place: inout Int) -> Int {
    var count = 0
    place += 1
    while text[place] != UInt8(ascii: "\"") {
      // Only control characters have escapes with four digits. They are one byte.
      let isEscape = text[place] == UInt8(ascii: "\\")
      place += isEscape ? (text[place + 1] == UInt8(ascii: "u") ? 6 : 2) : 1
      count += 1
    }
    place += 1
    return count
  }
}
