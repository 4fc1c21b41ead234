/// Reads and writes in several calls.
extension StoreFileSystem {
  /// Fills a buffer with the bytes at an offset, continuing after short reads. Returns the number of bytes.
  ///
  /// The number is smaller than the buffer's size only if the file ends there.
  func fill(_ buffer: UnsafeMutableRawBufferPointer, from file: StoreFileHandle, at offset: Int64) throws(FileSystemError) -> Int {
    var count = 0
    while count < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
      var output = OutputRawSpan(buffer: rest, initializedCount: 0)
      try read(file, at: offset + Int64(count), into: &output)
      let got = output.finalize(for: rest)
      if got == 0 { break }
      count += got
    }
    return count
  }

  /// Returns the bytes at an offset, at most `count`, and fewer if the file ends there.
  public func bytes(of file: StoreFileHandle, at offset: Int64, count: Int) throws(FileSystemError) -> [UInt8] {
    var failure: FileSystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      do throws(FileSystemError) {
        initialized = try fill(UnsafeMutableRawBufferPointer(buffer), from: file, at: offset)
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes all bytes, continuing after short writes.
  public func writeAll(_ bytes: [UInt8], to file: StoreFileHandle, at offset: Int64) throws(FileSystemError) {
    // Not `Array.span`, which needs macOS 26.
    try bytes.withUnsafeBufferPointer { bytes throws(FileSystemError) in
      let memory = UnsafeRawBufferPointer(bytes)
      try writeAll(memory.bytes, to: file, at: offset)
    }
  }

  /// Writes all bytes, continuing after short writes.
  func writeAll(_ bytes: RawSpan, to file: StoreFileHandle, at offset: Int64) throws(FileSystemError) {
    var count = 0
    while count < bytes.byteCount {
      let written = try write(file, at: offset + Int64(count), bytes.extracting(droppingFirst: count))
      guard written > 0 else { throw FileSystemError(.write, name: file.name, number: ErrorNumber.inputOutput) }
      count += written
    }
  }

  /// Makes the names in a folder durable. Does nothing if the file system can't synchronize folders.
  func synchronizeFolder(_ folder: StoreFileHandle) throws(FileSystemError) {
    do throws(FileSystemError) { try synchronize(folder) } catch {
      guard [ErrorNumber.invalid, ErrorNumber.notSupported].contains(error.number) else { throw error }
    }
  }
}
