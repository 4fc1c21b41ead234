import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The column of an attribute with external storage, in Core Data's encoding. The first byte shows whether the value or its file's name
/// follows. On disk: do not change.
enum MarkedColumn {
  private static let inline: UInt8 = 1
  private static let file: UInt8 = 2
  /// The size of a column with a file's name: the mark, 36 characters of a UUID in upper case, and a zero byte.
  static let fileByteCount = 38

  /// The decoded content of a column.
  enum Content {
    case bytes(UnsafeRawBufferPointer)
    case file(UUID)
  }

  /// Decodes a column; nil if it has no valid mark or file name.
  ///
  /// An empty column is an empty value. Other bytes without a mark could come from a program that doesn't write marks, or be damaged. So
  /// they are refused instead of being returned as another value.
  static func content(_ bytes: UnsafeRawBufferPointer) -> Content? {
    guard let mark = bytes.first else { return .bytes(bytes) }
    if mark == inline { return .bytes(UnsafeRawBufferPointer(rebasing: bytes[1...])) }
    guard mark == file, bytes.count == fileByteCount, bytes[fileByteCount - 1] == 0 else { return nil }
    return ExternalDataName.id(UnsafeRawBufferPointer(rebasing: bytes[1..<fileByteCount - 1])).map { .file($0) }
  }

  /// The file that a column names, or nil.
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
