#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What stands in place of a value that lies in a file of its own.
enum JSONText {
  /// What stands before the name of a file in place of a value. Its colon is no character of base64. On disk: do not change.
  static let fileNameMark = Array("external:".utf8)

  /// What stands in place of the value that lies in a file.
  static func fileName(_ id: UUID) -> String { "external:\(id.uuidString)" }

  /// Whether a text is meant as the name of a file.
  static func isFileName(_ text: UnsafeRawBufferPointer) -> Bool { text.starts(with: fileNameMark) }
}
