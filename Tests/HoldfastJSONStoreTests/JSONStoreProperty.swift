import HoldfastJSONStore
import HoldfastStore

#if canImport(TestSupport)
  // The fuzzer compiles the file in its own module.
  import TestSupport
#endif

/// The guarantees for any bytes opened as a JSON store.
enum JSONStoreProperty {
  static let model = WholeFileProperty.model()

  private static let property = WholeFileProperty(
    model: model, description: { .json(at: $0, options: JSONStoreOptions(wholeFile: $1)) }, content: objects)

  /// What the store does with the bytes. It does the same with lines of another form, which yajl reads.
  static func outcome(_ bytes: [UInt8]) -> WholeFileProperty.Outcome {
    let outcome = property.outcome(bytes), indented = indentingRows(bytes)
    if case .violation = outcome { return outcome }
    if indented.count == bytes.count { return outcome }
    let (one, other) = (description(outcome), description(property.outcome(indented)))
    return one == other ? outcome : .violation("Lines aren't read as yajl reads them: \(one), but \(other)")
  }

  /// Puts a space before each object in a line of the writer's form.
  private static func indentingRows(_ bytes: [UInt8]) -> [UInt8] {
    let beginning = Array("\n{\"$key\":".utf8)
    var result: [UInt8] = []
    for (index, byte) in bytes.enumerated() {
      result.append(byte)
      if byte == beginning[0], bytes[index...].starts(with: beginning) { result.append(0x20) }
    }
    return result
  }

  /// The content that was saved, or the error without its position.
  private static func description(_ outcome: WholeFileProperty.Outcome) -> String {
    switch outcome {
    case .accepted(let content): return String(decoding: content ?? [], as: UTF8.self)
    case .violation(let rule): return rule
    case .refused(let error):
      let parts = "\(error)".split(separator: "before byte ", omittingEmptySubsequences: false)
      return parts.enumerated().map { $0 == 0 ? $1 : $1.drop { $0.isNumber } }.joined()
    }
  }

  /// The violated guarantee; nil if there is none.
  static func violation(_ bytes: [UInt8]) -> String? {
    if case .violation(let rule) = outcome(bytes) { rule } else { nil }
  }

  /// The range of the objects in a file. Saves differ in their generation, which is before it, and therefore in their digest, which is
  /// after it.
  private static func objects(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
    let start = bytes.firstRange(of: Array("\"entities\":".utf8)), end = bytes.firstRange(of: Array(",\n\"digest\":".utf8))
    guard let start, let end, start.upperBound <= end.lowerBound else { return nil }
    return bytes[start.upperBound..<end.lowerBound]
  }
}
