import HoldfastAtomicStore

/// Writes the parser's events as compact JSON, to extract the text of one member, or of the elements of a list.
final class JSONEcho {
  private final class Bytes {
    var all: [UInt8] = []
  }

  private let bytes = Bytes()
  private let output: TextOutput
  private var needsComma = false

  init() { output = TextOutput { [bytes] in bytes.all += $0 } }

  /// The text written so far.
  func text() throws -> [UInt8] {
    try output.flush()
    return bytes.all
  }

  /// Ends a line. The next element isn't separated from the one before it by a comma.
  func endLine() {
    output.put("\n")
    needsComma = false
  }

  func begin(_ bracket: StaticString) {
    separate()
    output.put(bracket)
    needsComma = false
  }

  func end(_ bracket: StaticString) {
    output.put(bracket)
    needsComma = true
  }

  func name(_ text: UnsafeRawBufferPointer) {
    separate()
    output.put(text: text)
    output.put(":")
    needsComma = false
  }

  func scalar(_ scalar: JSONMetadata.Scalar) {
    separate()
    switch scalar {
    case .null: output.put("null")
    case .boolean(let value): output.put(value ? "true" : "false")
    case .number(let text): output.put(text)
    case .string(let text): output.put(text: text)
    }
    needsComma = true
  }

  private func separate() {
    if needsComma { output.put(",") }
  }
}
