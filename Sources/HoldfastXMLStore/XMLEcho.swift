import HoldfastAtomicStore

/// Writes the parser's events as XML without attributes, to extract the metadata's property list.
final class XMLEcho {
  private(set) var bytes: [UInt8] = []
  private var names: [String] = []

  var isEmpty: Bool { bytes.isEmpty }

  func begin(_ name: String) {
    names.append(name)
    bytes += "<\(name)>".utf8
  }

  func end() {
    if let name = names.popLast() { bytes += "</\(name)>".utf8 }
  }

  func characters(_ text: some Sequence<UInt8>) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "<"): bytes += "&lt;".utf8
      case UInt8(ascii: ">"): bytes += "&gt;".utf8
      case UInt8(ascii: "&"): bytes += "&amp;".utf8
      case 0x0D: bytes += "&#13;".utf8
      default: bytes.append(byte)
      }
    }
  }
}
