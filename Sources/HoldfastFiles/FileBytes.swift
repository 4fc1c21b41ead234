public import HoldfastStore

/// The bytes of one state of a file, from any place on, for as long as somebody keeps this; also when the file was replaced or
/// removed since.
///
/// Calls may come from any thread. When somebody changes the file in place, other bytes come than were there: a format that reads
/// so has a digest of each part.
public final class FileBytes: Sendable {
  /// How many bytes the file has.
  public let byteCount: Int64
  private let file: KeptFile
  private let path: String

  init(_ file: KeptFile, byteCount: Int64, path: String) {
    self.file = file
    self.byteCount = byteCount
    self.path = path
  }

  /// Fills a buffer with the bytes from a place on.
  ///
  /// - Parameters:
  ///   - offset: where the first byte lies.
  ///   - buffer: no larger than what is left of the file from there.
  ///   - operation: what is being done, for messages.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `inputOutput` when the disk fails, or the file became shorter meanwhile.
  public func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, operation: String = "read the store") throws(StoreError) {
    precondition(offset >= 0 && Int64(buffer.count) <= byteCount - offset, "Bytes behind the end of a file were asked for.")
    var count = 0
    while count < buffer.count {
      let got: Int
      do throws(FileSystemError) {
        got = try file.read(at: offset + Int64(count), into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
      } catch {
        throw StoreError(error, operation: operation, path: path)
      }
      guard got > 0 else {
        throw StoreError(
          .inputOutput, operation: operation, path: path,
          reason: "Another program has cut the file off while it was open. Close the store, and take a copy of the file from a backup.")
      }
      count += got
    }
  }
}
