import HoldfastFiles
import HoldfastStore
import Synchronization

/// An open encrypted file: reads and writes its contents.
///
/// The file is complete after each ``write(at:_:)``: the last chunk is sealed as the last one. Several threads can read. Writes must not
/// overlap with other calls. They don't, because stores write new files only.
final class SealedFile: Sendable {
  private let file: StoreFileHandle
  private let base: any StoreFileSystem
  private let cipher: any FileCipher
  /// The key and the size, which the first read or write determines; nil before that.
  private let state = Mutex<Contents?>(nil)

  private struct Contents {
    var key: any FileKey
    /// The header of a new file; nil after it was written.
    var unwrittenHeader: [UInt8]?
    var byteCount: Int64
  }

  /// The number of bytes that are read or written at a time.
  private static let largestTransfer = 64 * SealedLayout.chunkByteCount

  init(_ file: StoreFileHandle, of base: any StoreFileSystem, _ cipher: any FileCipher) {
    self.file = file
    self.base = base
    self.cipher = cipher
  }

  // MARK: Reading

  /// Appends bytes at an offset to the output, at least one unless the file ends there.
  func read(at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    let contents = try contents()
    let count = min(Int64(output.freeCapacity), contents.byteCount - offset, Self.largestTransfer)
    guard count > 0 else { return }
    let range = offset..<offset + count
    let chunks = range.lowerBound / SealedLayout.chunkByteCount...(range.upperBound - 1) / SealedLayout.chunkByteCount
    let plain = try open(chunks, contents)
    let start = Int(offset - chunks.lowerBound * SealedLayout.chunkByteCount)
    // The result is shorter if another process truncated the file meanwhile.
    output.append(plain.dropFirst(start).prefix(Int(count)))
  }

  /// Reads and decrypts chunks. Returns fewer bytes if the file ends before.
  private func open(_ chunks: ClosedRange<Int64>, _ contents: Contents) throws(FileSystemError) -> [UInt8] {
    let start = SealedLayout.offset(ofChunk: chunks.lowerBound)
    let plainCount =
      SealedLayout.range(ofChunk: chunks.upperBound, in: contents.byteCount).upperBound
      - chunks.lowerBound * SealedLayout.chunkByteCount
    let sealedCount = plainCount + Int64(chunks.count) * SealedLayout.overhead
    let sealed = try base.bytes(of: file, at: start, count: Int(sealedCount))
    var plain: [UInt8] = []
    plain.reserveCapacity(Int(plainCount))
    var place = 0
    for chunk in chunks {
      let count = SealedLayout.range(ofChunk: chunk, in: contents.byteCount).count + Int(SealedLayout.overhead)
      guard place + count <= sealed.count else { break }
      let associated = SealedLayout.associatedBytes(ofChunk: chunk, isLast: chunk == SealedLayout.lastChunk(of: contents.byteCount))
      guard contents.key.open(sealed[place..<place + count], authenticating: associated, into: &plain) else {
        throw failure(
          .read, ErrorNumber.wrongContents, .damaged,
          "The bytes from \(SealedLayout.offset(ofChunk: chunk)) on aren't those that were encrypted: they were changed or damaged, or the "
            + "file was truncated. Restore the file from a backup.")
      }
      place += count
    }
    return plain
  }

  // MARK: Writing

  /// Writes bytes at an offset, and returns how many were written.
  func write(at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    guard bytes.byteCount > 0 else { return 0 }
    if try contents().byteCount < offset { try setSize(offset) }
    let count = min(bytes.byteCount, Int(Self.largestTransfer))
    try write([UInt8](bytes.extracting(first: count)), at: offset, contents())
    return count
  }

  /// Seals the chunks that contain the new bytes. If the file grows, this includes the chunk that was the last one.
  private func write(_ new: [UInt8], at offset: Int64, _ old: Contents) throws(FileSystemError) {
    var contents = old
    let end = offset + Int64(new.count)
    contents.byteCount = max(old.byteCount, end)
    var first = offset / SealedLayout.chunkByteCount
    if contents.byteCount > old.byteCount, old.byteCount > 0 { first = min(first, SealedLayout.lastChunk(of: old.byteCount)) }
    var sealed: [UInt8] = old.unwrittenHeader ?? []
    let place = old.unwrittenHeader == nil ? SealedLayout.offset(ofChunk: first) : 0
    for chunk in first...(end - 1) / SealedLayout.chunkByteCount {
      let plain = try merged(new, at: offset, with: old, chunk, SealedLayout.range(ofChunk: chunk, in: contents.byteCount))
      seal(plain, chunk, contents, into: &sealed)
    }
    try base.writeAll(sealed, to: file, at: place)
    contents.unwrittenHeader = nil
    state.withLock { [contents] in $0 = contents }
  }

  /// The new contents of a chunk: the new bytes in their range, and the old bytes elsewhere.
  private func merged(_ new: [UInt8], at offset: Int64, with old: Contents, _ chunk: Int64, _ range: Range<Int64>)
    throws(FileSystemError) -> ArraySlice<UInt8>
  {
    let fresh = range.clamped(to: offset..<offset + Int64(new.count))
    let slice = new[Int(fresh.lowerBound - offset)..<Int(fresh.upperBound - offset)]
    let kept = SealedLayout.range(ofChunk: chunk, in: old.byteCount)
    if fresh.lowerBound <= kept.lowerBound && fresh.upperBound >= kept.upperBound { return slice }
    var plain = try openAll(chunk, old)
    let start = Int(fresh.lowerBound - range.lowerBound)
    plain.replaceSubrange(start..<min(start + slice.count, plain.count), with: slice)
    return plain[...]
  }

  /// Reads and decrypts a chunk of a file that this process is writing.
  private func openAll(_ chunk: Int64, _ contents: Contents) throws(FileSystemError) -> [UInt8] {
    let plain = try open(chunk...chunk, contents)
    guard plain.count == SealedLayout.range(ofChunk: chunk, in: contents.byteCount).count else {
      throw failure(
        .read, ErrorNumber.inputOutput, .inputOutput, "Another program truncated the file while it was being written. Save again.")
    }
    return plain
  }

  private func seal(_ plain: ArraySlice<UInt8>, _ chunk: Int64, _ contents: Contents, into sealed: inout [UInt8]) {
    let isLast = chunk == SealedLayout.lastChunk(of: contents.byteCount)
    contents.key.seal(plain, authenticating: SealedLayout.associatedBytes(ofChunk: chunk, isLast: isLast), into: &sealed)
  }

  /// Truncates the contents, or extends them with zeros.
  func setSize(_ byteCount: Int64) throws(FileSystemError) {
    var contents = try contents()
    while contents.byteCount < byteCount {
      let zeros = [UInt8](repeating: 0, count: Int(min(byteCount - contents.byteCount, Self.largestTransfer)))
      try write(zeros, at: contents.byteCount, contents)
      contents = try self.contents()
    }
    // Also if the size doesn't change, because the call releases reserved space.
    guard byteCount < contents.byteCount, byteCount > 0 else {
      try base.setSize(contents.unwrittenHeader == nil ? SealedLayout.sealedByteCount(of: byteCount) : 0, of: file)
      contents.byteCount = byteCount
      return state.withLock { [contents] in $0 = contents }
    }
    let last = SealedLayout.lastChunk(of: byteCount)
    let plain = try openAll(last, contents).prefix(SealedLayout.range(ofChunk: last, in: byteCount).count)
    contents.byteCount = byteCount
    var sealed: [UInt8] = []
    seal(plain, last, contents, into: &sealed)
    try base.setSize(SealedLayout.sealedByteCount(of: byteCount), of: file)
    try base.writeAll(sealed, to: file, at: SealedLayout.offset(ofChunk: last))
    state.withLock { [contents] in $0 = contents }
  }

  // MARK: Opening

  /// Reads the header on first use. An empty file gets a new header.
  private func contents() throws(FileSystemError) -> Contents {
    if let known = state.withLock({ $0 }) { return known }
    let size = try base.status(of: file).identity.size
    let found = try size == 0 ? new() : existing(size)
    state.withLock { $0 = $0 ?? found }
    return found
  }

  private func new() -> Contents {
    let header = SealedFileHeader(key: cipher.currentKey)
    guard let key = header.key(cipher) else { preconditionFailure("The cipher doesn't have its current key.") }
    return Contents(key: key, unwrittenHeader: header.bytes, byteCount: 0)
  }

  private func existing(_ size: Int64) throws(FileSystemError) -> Contents {
    let header: SealedFileHeader
    let bytes = try base.bytes(of: file, at: 0, count: Int(SealedLayout.headerByteCount))
    do throws(SealedFileHeader.Refusal) { header = try SealedFileHeader(reading: bytes) } catch {
      switch error {
      case .notEncrypted:
        throw failure(
          .openForReading, ErrorNumber.wrongContents, .notAStore,
          "The file isn't encrypted. Open it without encryption, and copy its objects to an encrypted store.")
      case .newerFormat:
        throw failure(
          .openForReading, ErrorNumber.wrongContents, .newerFormat,
          "A newer version of this library encrypted the file. Update the library.")
      case .damaged:
        throw failure(
          .openForReading, ErrorNumber.wrongContents, .damaged,
          "The header of the encrypted file was changed or damaged. Restore the file from a backup.")
      }
    }
    guard let key = header.key(cipher) else {
      throw failure(
        .openForReading, ErrorNumber.accessDenied, .notPermitted,
        "The file is encrypted with the key \(header.keyIdentifier), which isn't among the keys of this store. Pass that key as a former key."
      )
    }
    let byteCount = SealedLayout.byteCount(ofSealed: size)
    guard byteCount == 0 || SealedLayout.sealedByteCount(of: byteCount) == size else {
      throw failure(
        .read, ErrorNumber.wrongContents, .damaged,
        "The last chunk of the encrypted file is incomplete: the file was truncated, or bytes were appended. Restore it from a backup.")
    }
    return Contents(key: key, unwrittenHeader: nil, byteCount: byteCount)
  }

  private func failure(_ operation: StoreFileOperation, _ number: Int32, _ code: StoreError.Code, _ reason: String) -> FileSystemError {
    FileSystemError(operation, name: file.name, number: number, detail: FileSystemError.Detail(code, reason))
  }
}
