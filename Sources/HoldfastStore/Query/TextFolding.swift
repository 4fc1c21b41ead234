/// How text is made alike before it is compared.
public struct TextFolding: OptionSet, Sendable, Hashable, Codable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }
  public static let caseInsensitive = TextFolding(rawValue: 1)
  public static let diacriticInsensitive = TextFolding(rawValue: 2)
}
extension TextFolding {
  public static var unicodeVersion: String { "" }
  public func fold(_ text: UnsafeRawBufferPointer, into output: inout [UInt8]) { output += text }
  public func fold(_ text: String) -> [UInt8] { Array(text.utf8) }
  public func equals(_ text: UnsafeRawBufferPointer, folded: UnsafeRawBufferPointer) -> Bool { false }
  public func hasPrefix(_ text: UnsafeRawBufferPointer, folded: UnsafeRawBufferPointer) -> Bool { false }
  public func hasSuffix(_ text: UnsafeRawBufferPointer, folded: UnsafeRawBufferPointer) -> Bool { false }
  public func contains(_ text: UnsafeRawBufferPointer, folded: UnsafeRawBufferPointer) -> Bool { false }
  public func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int { 0 }
}
