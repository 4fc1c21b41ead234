#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The reference to an external file that replaces a value.
enum JSONText {
  /// The prefix of a reference to an external file. Its colon isn't a base64 character. On disk: do not change.
  static let fileNameMark = Array("external:".utf8)

  /// The reference to the external file with an ID.
  static func fileName(_ id: UUID) -> String { "external:\(id.uuidString)" }

  /// Whether a string is a reference to an external file.
  static func isFileName(_ text: some Sequence<UInt8>) -> Bool { text.starts(with: fileNameMark) }
}
