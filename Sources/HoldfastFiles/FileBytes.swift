public import HoldfastStore

/// Random access to one state of a file.
///
/// The bytes stay readable after the file was replaced or removed. Calls can come from any thread. If another process changes the
/// file in place, the new bytes are returned; a format that reads this way needs a digest for each section.
public final class FileBytes: Sendable {
  /// The size of the file in bytes.
  public let byteCount: Int64
  /// The file; nil if the bytes are in memory.
  private let file: KeptFile?
  private let memory: [UInt8]
  private let path: String

  init(_ file: KeptFile, byteCount: Int64, path: String) {
    self.file = file
    self.byteCount = byteCount
    self.path = path
    memory = []
  }

  init(_ memory: [UInt8], path: String) {
    file = nil
    self.memory = memory
    self.path = path
    byteCount = Int64(memory.count)
  }

  /// Fills a buffer with the bytes at an offset.
  ///
  /// - Parameters:
  ///   - offset: The offset of the first byte.
  ///   - buffer: The buffer. It can't extend past the end of the file.
  ///   - operation: The current operation as a verb phrase, for error messages.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `inputOutput` if the disk fails, or if the file was truncated meanwhile.
  public func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, operation: String = "read the store") throws(StoreError) {
    precondition(offset >= 0 && Int64(buffer.count) <= byteCount - offset, "The range to read extends past the end of the file.")
    guard let file else { return buffer.copyBytes(from: memory[Int(offset)..<Int(offset) + buffer.count]) }
    let count: Int
    do throws(FileSystemError) { count = try file.fileSystem.fill(buffer, from: file.handle, at: offset) } catch {
      throw StoreError(error, operation: operation, path: path)
    }
    guard count == buffer.count else {
      throw StoreError(
        .inputOutput, operation: operation, path: path,
        reason: "Another program truncated the file while it was open. Close the store and restore the file from a backup.")
    }
  }

  /// Returns bytes for a repair: zeros where an encrypted file is damaged.
  ///
  /// - Parameters:
  ///   - offset: The offset of the first byte.
  ///   - count: The number of bytes. They can't extend past the end of the file.
  ///   - operation: The current operation as a verb phrase, for error messages.
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of ``read(at:into:operation:)``, and `damaged` only if none of the bytes can be read.
  public func intactBytes(at offset: Int64, count: Int, operation: String) throws -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count), place = 0, failure: StoreError?, isIntact = false
    while place < count {
      let rest = Self.pieceByteCount - Int((offset + Int64(place)) % Int64(Self.pieceByteCount))
      let range = place..<min(place + rest, count)
      do {
        try result.withUnsafeMutableBytes {
          try read(at: offset + Int64(range.lowerBound), into: UnsafeMutableRawBufferPointer(rebasing: $0[range]), operation: operation)
        }
        isIntact = true
      } catch let error as StoreError where error.code == .damaged { failure = failure ?? error }
      place = range.upperBound
    }
    if let failure, !isIntact { throw failure }
    return result
  }

  /// The size of what can be damaged alone: the contents of a chunk of an encrypted file.
  private static let pieceByteCount = 16_384
}
