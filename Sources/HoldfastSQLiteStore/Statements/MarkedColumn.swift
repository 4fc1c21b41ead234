import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The bytes of an attribute that allows files of its own, as Core Data has them in its column: a first byte that says whether the
/// value follows, or the name of its file. On disk: do not change.
enum MarkedColumn {
  private static let inline: UInt8 = 1
  private static let file: UInt8 = 2
  /// The mark, 36 characters of a UUID in upper case, and a zero.
  private static let fileByteCount = 38

  /// What a column says.
  enum Content {
    case bytes(UnsafeRawBufferPointer)
    case file(UUID)
  }

  /// Takes a column apart; nil when it begins with no mark, or names no file.
  ///
  /// No bytes at all are an empty value. Others without a mark could be a value of a program that knows none, and could be damage; so
  /// they are refused rather than given out as something else.
  static func content(_ bytes: UnsafeRawBufferPointer) -> Content? {
    guard let mark = bytes.first else { return .bytes(bytes) }
    if mark == inline { return .bytes(UnsafeRawBufferPointer(rebasing: bytes[1...])) }
    guard mark == file, bytes.count == fileByteCount, bytes[fileByteCount - 1] == 0 else { return nil }
    return ExternalDataName.id(UnsafeRawBufferPointer(rebasing: bytes[1..<fileByteCount - 1])).map { .file($0) }
  }

  /// The file that a column names; nil for none.
  static func file(_ bytes: UnsafeRawBufferPointer) -> UUID? {
    if case .file(let id)? = content(bytes) { id } else { nil }
  }

  static func bytes(_ value: UnsafeRawBufferPointer) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: value.count + 1) { buffer, count in
      buffer[0] = inline
      UnsafeMutableRawBufferPointer(buffer)[1...].copyBytes(from: value)
      count = value.count + 1
    }
  }

  static func bytes(_ id: UUID) -> [UInt8] { [file] + Array(id.uuidString.utf8) + [0] }
}
